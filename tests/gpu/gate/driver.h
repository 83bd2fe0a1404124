/*
 * The driver for programs that measure it (gate, facts): every entry point of the table through
 * dlsym, and the kernels that such programs launch, as text. What the driver lacks answers
 * CUDA_ERROR_NOT_FOUND.
 */
#ifndef CUSPLICE_TESTS_GPU_GATE_DRIVER_H
#define CUSPLICE_TESTS_GPU_GATE_DRIVER_H

#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <cudaProfiler.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gate_driver {
#define CUS_API(symbol, class, scope, arg, abi, act, reason) __typeof__(&symbol) symbol;
#define CUS_API_NEWER(...)
#include "shim/api/cuda_api.def"
};
extern struct gate_driver cu;
/* False: there is no libcuda.so.1. */
bool gate_driver_open(void);
bool gate_driver_has(const char *symbol);
/* The name of a code, or its number as text. */
const char *gate_code_name(CUresult code);

#define GATE_PTX_HEAD ".version 6.0\n.target sm_50\n.address_size 64\n"
/* touch(unsigned *), set_flag(unsigned *, unsigned), spin_until(flag, value, rounds, out). */
extern const char gate_ptx[];

#endif
