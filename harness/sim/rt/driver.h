/*
 * How the stand-ins reach the driver: dlopen("libcuda.so.1"), dlsym of cuGetProcAddress_v2, and
 * cuGetProcAddress for all else, once for each meaning of stream 0. The real libraries do the same,
 * so a preloaded library sees the same calls.
 */
#ifndef HARNESS_SIM_RT_DRIVER_H
#define HARNESS_SIM_RT_DRIVER_H

#include <cuda.h>
#include <cudaProfiler.h>

/* What stream 0 means to a caller: the legacy stream, or the default stream of its thread (the
 * _ptsz and _ptds entry points). */
enum rt_zero { RT_LEGACY, RT_PER_THREAD, RT_ZEROS };

struct rt_driver {
    /* cuCtxSynchronize takes the context since version 13000; an older driver's takes none and
     * ignores it. */
    CUresult (*p_cuCtxSynchronize)(CUcontext);
    CUresult (*p_cuCtxGetDevice)(CUdevice *, CUcontext); /* likewise */
#define RT_DRIVER(fn) __typeof__(&fn) p_##fn;
#include "harness/sim/rt/driver.def"
#undef RT_DRIVER
};

/*
 * The functions of the driver for one meaning of stream 0, loaded and initialised by cuInit at the
 * first call of the process. Safe on any thread. NULL when there is no driver or cuInit failed;
 * *why is then CUDA_ERROR_STUB_LIBRARY (none) or what cuInit said. A function that the driver does
 * not have is a null pointer in the table.
 */
const struct rt_driver *rt_driver(enum rt_zero zero, CUresult *why);

/* Calls through the table; a function that the driver does not have gives CUDA_ERROR_NOT_SUPPORTED.
 */
#define RT_CALL(d, fn, ...) ((d)->p_##fn ? (d)->p_##fn(__VA_ARGS__) : CUDA_ERROR_NOT_SUPPORTED)

#endif
