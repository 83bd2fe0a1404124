/*
 * How the stand-ins reach the driver: dlopen("libcuda.so.1"), dlsym of cuGetProcAddress_v2, and
 * cuGetProcAddress for all else, once for each meaning of stream 0. The real libraries do the same,
 * so a preloaded library sees the same calls.
 */
#ifndef HARNESS_SIM_RT_DRIVER_H
#define HARNESS_SIM_RT_DRIVER_H

#include <cuda.h>
#include <cudaProfiler.h>

/* The meaning of stream 0 for a caller: the legacy stream, or its thread's default stream (the
 * _ptsz and _ptds entry points). */
enum rt_zero { RT_LEGACY, RT_PER_THREAD, RT_ZEROS };

struct rt_driver {
    /* Since version 13000 cuCtxSynchronize takes the context; older drivers ignore the argument. */
    CUresult (*p_cuCtxSynchronize)(CUcontext);
    CUresult (*p_cuCtxGetDevice)(CUdevice *, CUcontext); /* the same */
#define RT_DRIVER(fn) __typeof__(&fn) p_##fn;
#include "harness/sim/rt/driver.def"
#undef RT_DRIVER
};

/* Returns the driver's functions for one meaning of stream 0; the first call of the process
 * loads the driver and calls cuInit. Any thread. Returns NULL if there is no driver (*why is
 * CUDA_ERROR_STUB_LIBRARY) or cuInit failed (*why is its result). A function that the driver
 * lacks is NULL in the table. */
const struct rt_driver *rt_driver(enum rt_zero zero, CUresult *why);

/* Calls a function of the table; CUDA_ERROR_NOT_SUPPORTED if the driver lacks it. */
#define RT_CALL(d, fn, ...) ((d)->p_##fn ? (d)->p_##fn(__VA_ARGS__) : CUDA_ERROR_NOT_SUPPORTED)

#endif
