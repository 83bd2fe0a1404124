/*
 * What the files of the libcudart stand-in share: entering and leaving a call, errors, the current
 * device, registered functions.
 */
#ifndef HARNESS_SIM_RT_RT_H
#define HARNESS_SIM_RT_RT_H

#include <cuda_runtime_api.h>
#include <stdbool.h>

#include "harness/sim/rt/driver.h"

#define RT_EXPORT __attribute__((visibility("default")))

/* Sets *d to the driver, and gives the thread a context: the current one, or the primary context
 * of its device. */
cudaError_t rt_enter(const struct rt_driver **d, enum rt_zero zero);
/* The same without a context, for queries about devices. */
cudaError_t rt_enter_bare(const struct rt_driver **d);
/* Stores an error for this thread's cudaGetLastError, and returns it. */
cudaError_t rt_leave(cudaError_t error);
/* Turns a driver's result into a runtime error; nearly all have the same number. */
cudaError_t rt_error(CUresult result);

/* With CUSIM_RUNTIME_NAMES stream 0 and devices have other names than in the driver. No known
 * runtime does this. */
bool rt_strange(void);

/* The device of the calling thread. */
int rt_device(void);

/* Finds the kernel of a host stub or a cudaKernel_t, and loads it the first time.
 * cudaErrorInvalidResourceHandle: nobody registered the address. cudaErrorInvalidDeviceFunction:
 * the driver does not have the kernel. */
cudaError_t rt_kernel(const void *function, const struct rt_driver *d, CUkernel *kernel);
/* Registers a kernel of cudaLibraryGetKernel for rt_kernel, under its own handle. */
cudaError_t rt_kernel_add(CUkernel kernel);

/* Defines an exported function from one expression of the driver table `d` with a CUresult. */
#define RT_FUNCTION(name, params, expression)                                                      \
    RT_EXPORT cudaError_t name params {                                                            \
        const struct rt_driver *d;                                                                 \
        cudaError_t error = rt_enter(&d, RT_LEGACY);                                               \
        return rt_leave(error ? error : rt_error(expression));                                     \
    }

/* Defines two: one for the legacy stream, and one with a suffix for the per-thread stream. */
#define RT_FUNCTION_TWICE(name, suffix, params, expression)                                        \
    RT_FUNCTION(name, params, expression)                                                          \
    RT_EXPORT cudaError_t name##suffix params;                                                     \
    RT_EXPORT cudaError_t name##suffix params {                                                    \
        const struct rt_driver *d;                                                                 \
        cudaError_t error = rt_enter(&d, RT_PER_THREAD);                                           \
        return rt_leave(error ? error : rt_error(expression));                                     \
    }
#define RT_STREAM_FUNCTION(name, params, expression)                                               \
    RT_FUNCTION_TWICE(name, _ptsz, params, expression)

#endif
