// The inlined hot path as functions, for tests in C++.
#ifndef CUSPLICE_TESTS_UNIT_STREAM_HOT_CALL_H
#define CUSPLICE_TESTS_UNIT_STREAM_HOT_CALL_H

#include "shim/stream/engine.h"

bool hot_launch(CUfunction f, const uint32_t *dims, CUstream handle, enum cus_abi abi,
                void **params);
bool hot_launch_ex(const CUlaunchConfig *config, CUfunction f, enum cus_abi abi, void **params);

#endif
