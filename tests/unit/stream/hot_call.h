// Gives C++ tests what only C can include: the inlined hot path, and the process's state.
#ifndef CUSPLICE_TESTS_UNIT_STREAM_HOT_CALL_H
#define CUSPLICE_TESTS_UNIT_STREAM_HOT_CALL_H

#include "shim/stream/engine.h"

bool hot_launch(CUfunction f, const uint32_t *dims, CUstream handle, enum cus_abi abi,
                void **params, void **extra);
bool hot_launch_ex(const CUlaunchConfig *config, CUfunction f, enum cus_abi abi, void **params);
// On a side stream.
bool hot_branch(CUfunction f, const uint32_t *dims, CUstream handle, void **params);
bool hot_memset(CUdeviceptr dst, uint32_t value, uint32_t elem, size_t width, CUstream handle,
                enum cus_abi abi);
bool hot_copy(enum cus_copy_form form, uint64_t dst, uint64_t src, size_t bytes, CUstream handle,
              enum cus_abi abi);
// The same where a trace is made.
bool recorded_launch(const struct cus_launch *launch);
bool recorded_memset(const struct cus_memset *memset);
bool recorded_copy(const struct cus_copy *copy);
bool hot_passes(CUstream handle, enum cus_abi abi, CUfunction f);

// What the hot path writes for the stream on which the calling thread has ops deferred: the memory
// of the engine, and that of the params which are asked for in place of a node's. CUS_LINE bytes
// are never of two of them.
struct hot_memory {
    uintptr_t begin, end;
};
void hot_writes(struct hot_memory written[2]);
enum { HOT_LINE = 64 };

// As if the driver's pools had no room left in any context that is known.
void no_room(void);

#endif
