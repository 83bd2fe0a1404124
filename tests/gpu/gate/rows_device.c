/* The driver, devices, contexts, green contexts, events, errors, settings. */
#include "tests/gpu/gate/gate.h"

#include <string.h>
#include <unistd.h>

/* ---- the driver ---- */

SIMPLE(cuInit, (0))
SIMPLE(cuDriverGetVersion, (OUT(int, 0)))
SIMPLE(cuGetErrorName, (CUDA_ERROR_NOT_READY, OUT(const char *, 0)))
SIMPLE(cuGetErrorString, (CUDA_ERROR_NOT_READY, OUT(const char *, 0)))
SIMPLE(cuGetProcAddress, ("cuMemAlloc", OUT(void *, 0), 12000, 0))
SIMPLE(cuGetProcAddress_v2,
       ("cuMemAlloc", OUT(void *, 0), 12000, 0, OUT(CUdriverProcAddressQueryResult, 1)))
/* One of the tables that the CUDA runtime asks for. */
ROW(cuGetExportTable) {
    static const CUuuid runtime = {{0x6b, (char)0xd5, (char)0xfb, 0x6c, 0x5b, (char)0xf4,
                                    (char)0xe7, 0x4a, (char)0x89, (char)0x87, (char)0xd9, 0x39,
                                    0x12, (char)0xfd, (char)0x9d, (char)0xf9}};
    GATE_OR(cuGetExportTable, (OUT(const void *, 0), &runtime), CUDA_ERROR_NOT_FOUND);
}
SIMPLE(cuThreadExchangeStreamCaptureMode, (OUT(CUstreamCaptureMode, 0)))
SIMPLE(cuProfilerStart, ())
SIMPLE(cuProfilerStop, ())
SIMPLE(cuFlushGPUDirectRDMAWrites, (CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX,
                                    CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER))

static void logged(void *data, CUlogLevel level, char *message, size_t length) {
    (void)data, (void)level, (void)message, (void)length;
}
SIMPLE(cuLogsCurrent, (OUT(CUlogIterator, 0), 0))
ROW(cuLogsDumpToFile) {
    GATE(cuLogsDumpToFile, (NULL, g->temporary, 0));
}
ROW(cuLogsDumpToMemory) {
    static char text[25600];
    *OUT(size_t, 0) = sizeof text;
    GATE(cuLogsDumpToMemory, (NULL, text, OUT(size_t, 0), 0));
}
ROW(cuLogsRegisterCallback) {
    GATE(cuLogsRegisterCallback, (logged, NULL, OUT(CUlogsCallbackHandle, 0)));
    TRY(cuLogsUnregisterCallback, (*OUT(CUlogsCallbackHandle, 0)));
}
ROW(cuLogsUnregisterCallback) {
    TRY(cuLogsRegisterCallback, (logged, NULL, OUT(CUlogsCallbackHandle, 0)));
    GATE_END(cuLogsUnregisterCallback, (*OUT(CUlogsCallbackHandle, 0)));
}
SIMPLE(cuCheckpointProcessGetState, ((int)getpid(), OUT(CUprocessState, 0)))
ROW(cuCoredumpGetAttribute) {
    *OUT(size_t, 1) = sizeof(bool);
    GATE(cuCoredumpGetAttribute, (CU_COREDUMP_LIGHTWEIGHT, OUT(bool, 0), OUT(size_t, 1)));
}
ROW(cuCoredumpGetAttributeGlobal) {
    *OUT(size_t, 1) = sizeof(bool);
    GATE(cuCoredumpGetAttributeGlobal, (CU_COREDUMP_LIGHTWEIGHT, OUT(bool, 0), OUT(size_t, 1)));
}
ROW(cuCoredumpSetAttribute) {
    *OUT(size_t, 1) = sizeof(bool);
    GATE(cuCoredumpSetAttribute, (CU_COREDUMP_LIGHTWEIGHT, OUT(bool, 0), OUT(size_t, 1)));
}
ROW(cuCoredumpSetAttributeGlobal) {
    *OUT(size_t, 1) = sizeof(bool);
    GATE(cuCoredumpSetAttributeGlobal, (CU_COREDUMP_LIGHTWEIGHT, OUT(bool, 0), OUT(size_t, 1)));
}

/* ---- devices ---- */

SIMPLE(cuDeviceGet, (OUT(CUdevice, 0), 0))
SIMPLE(cuDeviceGetCount, (OUT(int, 0)))
SIMPLE(cuDeviceGetName, (OUT(char, 0), 64, g->device))
SIMPLE(cuDeviceGetUuid, (OUT(CUuuid, 0), g->device))
SIMPLE(cuDeviceGetUuid_v2, (OUT(CUuuid, 0), g->device))
SIMPLE(cuDeviceGetLuid, (OUT(char, 0), OUT(unsigned, 1), g->device))
SIMPLE(cuDeviceTotalMem, (OUT(unsigned, 0), g->device))
SIMPLE(cuDeviceTotalMem_v2, (OUT(size_t, 0), g->device))
SIMPLE(cuDeviceGetAttribute, (OUT(int, 0), CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, g->device))
SIMPLE(cuDeviceGetProperties, (OUT(CUdevprop, 0), g->device))
SIMPLE(cuDeviceComputeCapability, (OUT(int, 0), OUT(int, 1), g->device))
SIMPLE(cuDeviceGetPCIBusId, (OUT(char, 0), 64, g->device))
ROW(cuDeviceGetByPCIBusId) {
    TRY(cuDeviceGetPCIBusId, (OUT(char, 0), 64, g->device));
    GATE(cuDeviceGetByPCIBusId, (OUT(CUdevice, 1), OUT(char, 0)));
}
SIMPLE(cuDeviceGetDefaultMemPool, (OUT(CUmemoryPool, 0), g->device))
SIMPLE(cuDeviceGetMemPool, (OUT(CUmemoryPool, 0), g->device))
ROW(cuDeviceSetMemPool) {
    TRY(cuDeviceGetMemPool, (OUT(CUmemoryPool, 0), g->device));
    GATE(cuDeviceSetMemPool, (g->device, *OUT(CUmemoryPool, 0)));
}
SIMPLE(cuDeviceGetTexture1DLinearMaxWidth,
       (OUT(size_t, 0), CU_AD_FORMAT_UNSIGNED_INT8, 1, g->device))
SIMPLE(cuDeviceGetExecAffinitySupport, (OUT(int, 0), CU_EXEC_AFFINITY_TYPE_SM_COUNT, g->device))
SIMPLE(cuDeviceCanAccessPeer, (OUT(int, 0), g->device, g->peer))
SIMPLE(cuDeviceGetP2PAttribute,
       (OUT(int, 0), CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, g->device, g->peer))
ROW(cuDeviceGetP2PAtomicCapabilities) {
    *OUT(CUatomicOperation, 1) = CU_ATOMIC_OPERATION_INTEGER_ADD;
    GATE(cuDeviceGetP2PAtomicCapabilities,
         (OUT(unsigned, 0), OUT(CUatomicOperation, 1), 1, g->device, g->peer));
}
ROW(cuDeviceGetHostAtomicCapabilities) {
    *OUT(CUatomicOperation, 1) = CU_ATOMIC_OPERATION_INTEGER_ADD;
    GATE(cuDeviceGetHostAtomicCapabilities,
         (OUT(unsigned, 0), OUT(CUatomicOperation, 1), 1, g->device));
}
SIMPLE(cuDeviceGetDevResource, (g->device, OUT(CUdevResource, 0), CU_DEV_RESOURCE_TYPE_SM))
SIMPLE(cuDeviceGetGraphMemAttribute,
       (g->device, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, OUT(cuuint64_t, 0)))
SIMPLE(cuDeviceSetGraphMemAttribute,
       (g->device, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, OUT(cuuint64_t, 0)))
SIMPLE(cuDeviceGraphMemTrim, (g->device))
static void notified(CUasyncNotificationInfo *info, void *data, CUasyncCallbackHandle handle) {
    (void)info, (void)data, (void)handle;
}
ROW(cuDeviceRegisterAsyncNotification) {
    GATE(cuDeviceRegisterAsyncNotification,
         (g->device, notified, NULL, OUT(CUasyncCallbackHandle, 0)));
    TRY(cuDeviceUnregisterAsyncNotification, (g->device, *OUT(CUasyncCallbackHandle, 0)));
}
ROW(cuDeviceUnregisterAsyncNotification) {
    TRY(cuDeviceRegisterAsyncNotification,
        (g->device, notified, NULL, OUT(CUasyncCallbackHandle, 0)));
    GATE_END(cuDeviceUnregisterAsyncNotification, (g->device, *OUT(CUasyncCallbackHandle, 0)));
}

/* ---- primary contexts ---- */

SIMPLE(cuDevicePrimaryCtxGetState, (g->device, OUT(unsigned, 0), OUT(int, 1)))
SIMPLE(cuDevicePrimaryCtxSetFlags, (g->device, 0))
SIMPLE(cuDevicePrimaryCtxSetFlags_v2, (g->device, 0))
ROW(cuDevicePrimaryCtxRetain) {
    GATE(cuDevicePrimaryCtxRetain, (OUT(CUcontext, 0), g->device));
    TRY(cuDevicePrimaryCtxRelease_v2, (g->device));
}
ROW(cuDevicePrimaryCtxRelease) {
    TRY(cuDevicePrimaryCtxRetain, (OUT(CUcontext, 0), g->device));
    GATE_END(cuDevicePrimaryCtxRelease, (g->device));
}
ROW(cuDevicePrimaryCtxRelease_v2) {
    TRY(cuDevicePrimaryCtxRetain, (OUT(CUcontext, 0), g->device));
    GATE_END(cuDevicePrimaryCtxRelease_v2, (g->device));
}
SIMPLE(cuDevicePrimaryCtxReset, (g->device))
SIMPLE(cuDevicePrimaryCtxReset_v2, (g->device))

/* ---- contexts ---- */

SIMPLE(cuCtxGetCurrent, (OUT(CUcontext, 0)))
SIMPLE(cuCtxSetCurrent, (g->context))
SIMPLE(cuCtxGetDevice, (OUT(CUdevice, 0)))
SIMPLE(cuCtxGetDevice_v2, (OUT(CUdevice, 0), g->context))
SIMPLE(cuCtxGetFlags, (OUT(unsigned, 0)))
ROW(cuCtxSetFlags) {
    TRY(cuCtxGetFlags, (OUT(unsigned, 0)));
    GATE(cuCtxSetFlags, (*OUT(unsigned, 0)));
}
SIMPLE(cuCtxGetId, (g->context, OUT(unsigned long long, 0)))
SIMPLE(cuCtxGetApiVersion, (g->context, OUT(unsigned, 0)))
SIMPLE(cuCtxGetStreamPriorityRange, (OUT(int, 0), OUT(int, 1)))
SIMPLE(cuCtxGetLimit, (OUT(size_t, 0), CU_LIMIT_STACK_SIZE))
ROW(cuCtxSetLimit) {
    TRY(cuCtxGetLimit, (OUT(size_t, 0), CU_LIMIT_STACK_SIZE));
    GATE(cuCtxSetLimit, (CU_LIMIT_STACK_SIZE, *OUT(size_t, 0) + 1024));
    TRY(cuCtxSetLimit, (CU_LIMIT_STACK_SIZE, *OUT(size_t, 0)));
}
SIMPLE(cuCtxGetCacheConfig, (OUT(CUfunc_cache, 0)))
SIMPLE(cuCtxSetCacheConfig, (CU_FUNC_CACHE_PREFER_NONE))
SIMPLE(cuCtxGetSharedMemConfig, (OUT(CUsharedconfig, 0)))
SIMPLE(cuCtxSetSharedMemConfig, (CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE))
SIMPLE(cuCtxGetExecAffinity, (OUT(CUexecAffinityParam, 0), CU_EXEC_AFFINITY_TYPE_SM_COUNT))
SIMPLE(cuCtxGetDevResource, (g->context, OUT(CUdevResource, 0), CU_DEV_RESOURCE_TYPE_SM))
SIMPLE(cuCtxResetPersistingL2Cache, ())
SIMPLE(cuCtxSynchronize, ())
SIMPLE(cuCtxSynchronize_v2, (g->context))

#define PUSH(symbol)                                                                               \
    ROW(symbol) {                                                                                  \
        GATE(symbol, (g->context));                                                                \
        TRY(cuCtxPopCurrent_v2, (OUT(CUcontext, 0)));                                              \
    }
PUSH(cuCtxPushCurrent)
PUSH(cuCtxPushCurrent_v2)
#define POP(symbol)                                                                                \
    ROW(symbol) {                                                                                  \
        TRY(cuCtxPushCurrent_v2, (g->context));                                                    \
        GATE(symbol, (OUT(CUcontext, 0)));                                                         \
    }
POP(cuCtxPopCurrent)
POP(cuCtxPopCurrent_v2)

#define CREATE(symbol, arguments)                                                                  \
    ROW(symbol) {                                                                                  \
        GATE(symbol, arguments);                                                                   \
        TRY(cuCtxDestroy_v2, (*OUT(CUcontext, 0)));                                                \
    }
CREATE(cuCtxCreate, (OUT(CUcontext, 0), 0, g->device))
CREATE(cuCtxCreate_v2, (OUT(CUcontext, 0), 0, g->device))
CREATE(cuCtxCreate_v3, (OUT(CUcontext, 0), NULL, 0, 0, g->device))
CREATE(cuCtxCreate_v4, (OUT(CUcontext, 0), NULL, 0, g->device))
#define DESTROY(symbol)                                                                            \
    ROW(symbol) {                                                                                  \
        CUcontext context = gate_context(g);                                                       \
        GATE_END(symbol, (context));                                                               \
    }
DESTROY(cuCtxDestroy)
DESTROY(cuCtxDestroy_v2)
ROW(cuCtxAttach) {
    CUcontext context = gate_context(g);
    TRY(cuCtxPushCurrent_v2, (context));
    GATE(cuCtxAttach, (OUT(CUcontext, 0), 0));
    TRY(cuCtxDetach, (context));
    TRY(cuCtxDestroy_v2, (context));
}
ROW(cuCtxDetach) {
    CUcontext context = gate_context(g);
    TRY(cuCtxPushCurrent_v2, (context));
    GATE_END(cuCtxDetach, (context));
}
ROW(cuCtxRecordEvent) {
    CUevent event = gate_event(g, CU_EVENT_DISABLE_TIMING);
    GATE(cuCtxRecordEvent, (g->context, event));
    TRY(cuEventDestroy_v2, (event));
}
ROW(cuCtxWaitEvent) {
    CUevent event = gate_event(g, CU_EVENT_DISABLE_TIMING);
    TRY(cuEventRecord, (event, g->side));
    GATE(cuCtxWaitEvent, (g->context, event));
    TRY(cuEventDestroy_v2, (event));
}

/* ---- parts of a device ---- */

ROW(cuDevSmResourceSplitByCount) {
    *OUT(unsigned, 1) = 1;
    TRY(cuDeviceGetDevResource, (g->device, OUT(CUdevResource, 0), CU_DEV_RESOURCE_TYPE_SM));
    GATE(cuDevSmResourceSplitByCount, (OUT(CUdevResource, 2), OUT(unsigned, 1),
                                       OUT(CUdevResource, 0), OUT(CUdevResource, 3), 0, 8));
}
ROW(cuDevResourceGenerateDesc) {
    TRY(cuDeviceGetDevResource, (g->device, OUT(CUdevResource, 0), CU_DEV_RESOURCE_TYPE_SM));
    GATE(cuDevResourceGenerateDesc, (OUT(CUdevResourceDesc, 1), OUT(CUdevResource, 0), 1));
}
ROW(cuGreenCtxCreate) {
    CUdevResourceDesc description = NULL;
    TRY(cuDeviceGetDevResource, (g->device, OUT(CUdevResource, 0), CU_DEV_RESOURCE_TYPE_SM));
    TRY(cuDevResourceGenerateDesc, (&description, OUT(CUdevResource, 0), 1));
    GATE(cuGreenCtxCreate,
         (OUT(CUgreenCtx, 1), description, g->device, CU_GREEN_CTX_DEFAULT_STREAM));
    TRY(cuGreenCtxDestroy, (*OUT(CUgreenCtx, 1)));
}
ROW(cuGreenCtxDestroy) {
    CUgreenCtx green = gate_green(g);
    GATE_END(cuGreenCtxDestroy, (green));
}
#define GREEN(symbol, arguments)                                                                   \
    ROW(symbol) {                                                                                  \
        CUgreenCtx green = gate_green(g);                                                          \
        GATE(symbol, arguments);                                                                   \
        TRY(cuGreenCtxDestroy, (green));                                                           \
    }
GREEN(cuGreenCtxGetDevResource, (green, OUT(CUdevResource, 0), CU_DEV_RESOURCE_TYPE_SM))
GREEN(cuGreenCtxGetId, (green, OUT(unsigned long long, 0)))
GREEN(cuCtxFromGreenCtx, (OUT(CUcontext, 0), green))
ROW(cuGreenCtxStreamCreate) {
    CUgreenCtx green = gate_green(g);
    GATE(cuGreenCtxStreamCreate, (OUT(CUstream, 0), green, CU_STREAM_NON_BLOCKING, 0));
    TRY(cuStreamDestroy_v2, (*OUT(CUstream, 0)));
    TRY(cuGreenCtxDestroy, (green));
}
#define GREEN_EVENT(symbol)                                                                        \
    ROW(symbol) {                                                                                  \
        CUgreenCtx green = gate_green(g);                                                          \
        CUevent event = gate_event(g, CU_EVENT_DISABLE_TIMING);                                    \
        GATE(symbol, (green, event));                                                              \
        TRY(cuEventDestroy_v2, (event));                                                           \
        TRY(cuGreenCtxDestroy, (green));                                                           \
    }
GREEN_EVENT(cuGreenCtxRecordEvent)
GREEN_EVENT(cuGreenCtxWaitEvent)

/* ---- events: recorded behind the gate, where that is legal ---- */

ROW(cuEventCreate) {
    GATE(cuEventCreate, (OUT(CUevent, 0), CU_EVENT_DEFAULT));
    TRY(cuEventDestroy_v2, (*OUT(CUevent, 0)));
}
#define EVENT_DESTROY(symbol)                                                                      \
    ROW(symbol) {                                                                                  \
        CUevent event = gate_event_behind(g);                                                      \
        GATE_END(symbol, (event));                                                                 \
    }
EVENT_DESTROY(cuEventDestroy)
EVENT_DESTROY(cuEventDestroy_v2)
#define EVENT(symbol)                                                                              \
    ROW(symbol) {                                                                                  \
        CUevent event = gate_event_behind(g);                                                      \
        GATE(symbol, (event));                                                                     \
        TRY(cuEventDestroy_v2, (event));                                                           \
    }
EVENT(cuEventQuery)
EVENT(cuEventSynchronize)
#define ELAPSED(symbol)                                                                            \
    ROW(symbol) {                                                                                  \
        CUevent first = gate_event(g, CU_EVENT_DEFAULT), second = gate_event_behind(g);            \
        TRY(cuEventRecord, (first, g->busy));                                                      \
        GATE(symbol, (OUT(float, 0), first, second));                                              \
        TRY(cuEventDestroy_v2, (first));                                                           \
        TRY(cuEventDestroy_v2, (second));                                                          \
    }
ELAPSED(cuEventElapsedTime)
ELAPSED(cuEventElapsedTime_v2)
#define RECORD(symbol, arguments)                                                                  \
    ROW(symbol) {                                                                                  \
        CUevent event = gate_event(g, CU_EVENT_DEFAULT);                                           \
        GATE(symbol, arguments);                                                                   \
        TRY(cuEventDestroy_v2, (event));                                                           \
    }
RECORD(cuEventRecord, (event, g->side))
RECORD(cuEventRecord_ptsz, (event, g->side))
RECORD(cuEventRecordWithFlags, (event, g->side, 0))
RECORD(cuEventRecordWithFlags_ptsz, (event, g->side, 0))
