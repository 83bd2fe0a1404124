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

/* Sets *d to the driver and sees that the thread has a context: the current one, or the primary
 * context of its device. */
cudaError_t rt_enter(const struct rt_driver **d, enum rt_zero zero);
/* The same without a context, for calls that ask about devices only. */
cudaError_t rt_enter_bare(const struct rt_driver **d);
/* Remembers the error, if it is one, for cudaGetLastError of this thread; returns it. */
cudaError_t rt_leave(cudaError_t error);
/* A driver's result as an error of the runtime: the numbers are the same but for a few. */
cudaError_t rt_error(CUresult result);

/* With CUSIM_RUNTIME_NAMES stream 0 and devices go by other names than in the driver. No runtime is
 * known to do so. */
bool rt_strange(void);

/* The device of the calling thread. */
int rt_device(void);

/*
 * The kernel behind a host stub or a cudaKernel_t, loaded at the first question.
 * cudaErrorInvalidResourceHandle for an address that nobody registered,
 * cudaErrorInvalidDeviceFunction for a kernel that the driver does not have.
 */
cudaError_t rt_kernel(const void *function, const struct rt_driver *d, CUkernel *kernel);
/* Makes a kernel of cudaLibraryGetKernel known to rt_kernel under its own handle. */
cudaError_t rt_kernel_add(CUkernel kernel);

/* An exported function whose work is one expression of the driver table `d`, which gives a
 * CUresult. */
#define RT_FUNCTION(name, params, expression)                                                      \
    RT_EXPORT cudaError_t name params {                                                            \
        const struct rt_driver *d;                                                                 \
        cudaError_t error = rt_enter(&d, RT_LEGACY);                                               \
        return rt_leave(error ? error : rt_error(expression));                                     \
    }

/* The same twice: as it is for the legacy stream, and with a suffix for the per-thread one. */
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
