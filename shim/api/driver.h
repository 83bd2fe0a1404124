/*
 * The real driver, as a table of function pointers.
 *
 * shim/hook fills one table per process after the first successful cuInit; stream and graph call
 * the driver through it and through nothing else, so that tests can hand them another. An entry
 * that the driver lacks is NULL: whoever uses an OPTIONAL entry asks first, a missing NEEDED entry
 * means that nothing is withheld.
 *
 * Names are the exported symbols: what cuda.h's macros make of the plain name is what a row means.
 */
#ifndef CUSPLICE_API_DRIVER_H
#define CUSPLICE_API_DRIVER_H

#include <cuda.h>

#define CUS_DRIVER_NEEDED(X)                                                                       \
    X(cuCtxGetDevice)                                                                              \
    X(cuCtxGetCurrent)                                                                             \
    X(cuCtxPushCurrent_v2)                                                                         \
    X(cuCtxPopCurrent_v2)                                                                          \
    X(cuStreamGetFlags)                                                                            \
    X(cuStreamGetPriority)                                                                         \
    X(cuStreamIsCapturing)                                                                         \
    X(cuStreamQuery)                                                                               \
    X(cuStreamCreateWithPriority)                                                                  \
    X(cuStreamDestroy_v2)                                                                          \
    X(cuStreamBeginCapture_v2)                                                                     \
    X(cuStreamEndCapture)                                                                          \
    X(cuThreadExchangeStreamCaptureMode)                                                           \
    X(cuLaunchKernel)                                                                              \
    X(cuMemsetD8Async)                                                                             \
    X(cuMemsetD16Async)                                                                            \
    X(cuMemsetD32Async)                                                                            \
    X(cuMemcpyAsync)                                                                               \
    X(cuMemcpyDtoDAsync_v2)                                                                        \
    X(cuMemcpyHtoDAsync_v2)                                                                        \
    X(cuMemcpyDtoHAsync_v2)                                                                        \
    X(cuPointerGetAttributes)                                                                      \
    X(cuGraphInstantiateWithFlags)                                                                 \
    X(cuGraphExecDestroy)                                                                          \
    X(cuGraphDestroy)                                                                              \
    X(cuGraphLaunch)                                                                               \
    X(cuGraphMemcpyNodeGetParams)                                                                  \
    X(cuGraphMemsetNodeGetParams)                                                                  \
    X(cuGraphExecMemcpyNodeSetParams)                                                              \
    X(cuGraphExecMemsetNodeSetParams)

#define CUS_DRIVER_OPTIONAL(X)                                                                     \
    X(cuDeviceGetAttribute)                                                                        \
    X(cuStreamGetId)                                                                               \
    X(cuStreamGetCtx)                                                                              \
    X(cuStreamGetGreenCtx)                                                                         \
    X(cuStreamCopyAttributes)                                                                      \
    X(cuStreamGetCaptureInfo_v3)                                                                   \
    X(cuStreamUpdateCaptureDependencies_v2)                                                        \
    X(cuLaunchKernelEx)                                                                            \
    X(cuLaunchCooperativeKernel)                                                                   \
    X(cuGraphExecKernelNodeSetParams_v2)                                                           \
    X(cuGraphKernelNodeGetParams_v2)                                                               \
    X(cuGraphKernelNodeGetAttribute)                                                               \
    X(cuGraphGetEdges_v2)                                                                          \
    X(cuFuncGetName)                                                                               \
    X(cuKernelGetName)                                                                             \
    X(cuFuncGetParamInfo)                                                                          \
    X(cuKernelGetParamInfo)                                                                        \
    X(cuKernelGetFunction)                                                                         \
    X(cuFuncGetAttribute)                                                                          \
    X(cuMemGetInfo_v2)                                                                             \
    X(cuDriverGetVersion)

/* OPTIONAL entries that mode verify alone calls, while nothing runs and nobody else calls: they may
 * wait. */
#define CUS_DRIVER_VERIFYING(X)                                                                    \
    X(cuGraphNodeGetEnabled)                                                                       \
    X(cuGraphNodeSetEnabled)                                                                       \
    X(cuModuleLoadData)                                                                            \
    X(cuModuleGetFunction)                                                                         \
    X(cuMemAlloc_v2)                                                                               \
    X(cuMemFree_v2)                                                                                \
    X(cuStreamSynchronize)                                                                         \
    X(cuCtxSynchronize)

struct cus_driver {
#define CUS_DRIVER_FIELD(name) __typeof__(&name) name;
    CUS_DRIVER_NEEDED(CUS_DRIVER_FIELD)
    CUS_DRIVER_OPTIONAL(CUS_DRIVER_FIELD)
    CUS_DRIVER_VERIFYING(CUS_DRIVER_FIELD)
#undef CUS_DRIVER_FIELD
};

#endif
