/*
 * What both parts of the calibration begin with: the driver's entry points, a stream, memory,
 * three kernels, and series of measurements. The parts call it, on one thread. On failure it
 * prints a line to stderr and ends the process; it never returns an error.
 */
#ifndef CUSPLICE_TOOLS_CALIBRATE_DEVICE_H
#define CUSPLICE_TOOLS_CALIBRATE_DEVICE_H

#include <cuda.h>
#include <stddef.h>
#include <stdint.h>

#define DEVICE_CALLS(X)                                                                            \
    X(cuInit)                                                                                      \
    X(cuDeviceGet)                                                                                 \
    X(cuDeviceGetName)                                                                             \
    X(cuDriverGetVersion)                                                                          \
    X(cuDevicePrimaryCtxRetain)                                                                    \
    X(cuCtxSetCurrent)                                                                             \
    X(cuModuleLoadData)                                                                            \
    X(cuModuleGetFunction)                                                                         \
    X(cuMemAlloc_v2)                                                                               \
    X(cuMemHostAlloc)                                                                              \
    X(cuMemHostGetDevicePointer_v2)                                                                \
    X(cuStreamCreate)                                                                              \
    X(cuStreamSynchronize)                                                                         \
    X(cuLaunchKernel)                                                                              \
    X(cuMemsetD32Async)                                                                            \
    X(cuMemcpyDtoDAsync_v2)                                                                        \
    X(cuMemcpyDtoHAsync_v2)                                                                        \
    X(cuEventCreate)                                                                               \
    X(cuEventRecord)                                                                               \
    X(cuEventRecordWithFlags)                                                                      \
    X(cuEventElapsedTime)                                                                          \
    X(cuStreamBeginCapture_v2)                                                                     \
    X(cuStreamEndCapture)                                                                          \
    X(cuGraphGetNodes)                                                                             \
    X(cuGraphKernelNodeGetParams_v2)                                                               \
    X(cuGraphInstantiateWithFlags)                                                                 \
    X(cuGraphExecKernelNodeSetParams_v2)                                                           \
    X(cuGraphLaunch)                                                                               \
    X(cuGraphExecDestroy)                                                                          \
    X(cuGraphDestroy)

struct device {
#define X(name) __typeof__(&name) name;
    DEVICE_CALLS(X)
#undef X
    CUdevice device;
    CUstream stream;                /* non-blocking */
    CUfunction chain, fill, spin;   /* as in kernels/ */
    CUdeviceptr words, other, gate; /* device memory twice; what the host sees as `flag` */
    volatile unsigned *flag;        /* the first word opens gates */
};
enum { DEVICE_WORDS = 64 };

void device_start(struct device *d);
#define MUST(call) device_must((call), #call)
void device_must(CUresult result, const char *call);

/* x = 3 x + b, over all words. */
void device_chain(struct device *d, unsigned b);
void device_memset(struct device *d);

/* ---- measurements ---- */

uint64_t device_now(void);

enum { SERIES = 4096 };
struct series {
    double values[SERIES];
    size_t n;
};
void series_add(struct series *series, double value);
double series_median(struct series *series);
double series_apart(struct series *series);
/* Prints both. */
void series_tell(const char *name, struct series *series);
/* What follows from others. */
void tell(const char *name, double value, double apart);

int driver_part(void);
int loop_part(int timed);

#endif
