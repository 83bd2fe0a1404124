/* What each kind of call does. */
#include "tests/seam/probe.h"

#include <cuda.h>
#include <string.h>

#include "shim/include/cusplice.h"
#include "tests/seam/seam_log.h"

static void kinds(void) {
    start();
    word made[4] = {0};
    ANSWERS(0, cuStreamQuery, (word)0x51);
    fake_result("cuStreamQuery", 600);
    ANSWERS(600, cuStreamQuery, (word)0x51);
    ANSWERS(0, cuEventQuery, (word)0xe);
    fake_result("cuEventQuery", 600);
    ANSWERS(600, cuEventQuery, (word)0xe);
    ANSWERS(0, cuEventSynchronize, (word)0xe);
    CHECK(CALL(cuCtxSynchronize) == 0);
    ANSWERS(0, cuMemcpyHtoD_v2, (word)1, (word)2, (word)3);
    ANSWERS(0, cuMemFree_v2, (word)0x1000);
    ANSWERS(0, cuMemFreeAsync, (word)0x1000, (word)0x51);
    word given = 0x2000;
    ANSWERS(0, cuMemAllocAsync, (word)&given, (word)64, (word)0x51);
    ANSWERS(0, cuPointerGetAttribute, (word)&given, (word)2, (word)0x1000); /* MEMORY_TYPE */
    ANSWERS(0, cuPointerGetAttribute, (word)&given, (word)7, (word)0x1000); /* BUFFER_ID */
    ANSWERS(0, cuMemPoolGetAttribute, (word)0x70, (word)7, (word)&given);   /* USED_MEM_CURRENT */
    ANSWERS(0, cuMemPoolGetAttribute, (word)0x70, (word)8, (word)&given);   /* USED_MEM_HIGH */
    word pool = 0x70, props[11] = {1, 3ull << 32 | 1}; /* pinned memory of device 3 */
    ANSWERS(0, cuMemPoolCreate, (word)&pool, (word)props);
    fake_result("cuMemPoolCreate", 1);
    ANSWERS(1, cuMemPoolCreate, (word)&pool, (word)props);
    ANSWERS(0, cuMemPoolExportToShareableHandle, (word)made, (word)0x70, (word)1, (word)0);
    ANSWERS(0, cuMemPoolDestroy, (word)0x70);
    ANSWERS(0, cuStreamDestroy_v2, (word)0x51);
    ANSWERS(0, cuModuleUnload, (word)0x3);
    ANSWERS(0, cuDevicePrimaryCtxReset_v2, (word)0);
    ANSWERS(0, cuCtxDestroy_v2, (word)0xc5);
    fake_result("cuCtxDestroy_v2", 201);
    ANSWERS(201, cuCtxDestroy_v2, (word)0xc5);
    ANSWERS(201, cuCtxDestroy_v2, (word)0xbad); /* one that the engine does not know */
    ANSWERS(0, cuModuleGetFunction, made, (word)0x3, "f");
    ANSWERS(0, cuLibraryGetKernel, made, (word)0x3, "f");
    ANSWERS(0, cuLibraryEnumerateKernels, made, (word)4, (word)0x3);
    ANSWERS(0, cuKernelGetFunction, made, (word)0xe1);
    ANSWERS(0, cuStreamBeginCapture_v2, (word)0x51, (word)0);
    ANSWERS(0, cuStreamEndCapture, (word)0x51, made);
    ANSWERS(0, cuCtxSetLimit, (word)0, (word)1);
    ANSWERS(0, cuLaunchGrid, (word)0xf1, (word)1, (word)1);
    ANSWERS(0, cuModuleGetTexRef, made, (word)0x3, "t");
    ANSWERS(0, cuGraphLaunch, (word)0x77, (word)0x51);
    /* Getters: a setting that lies behind a lock, and one that never changes. */
    ANSWERS(0, cuCtxGetLimit, made, (word)0);
    ANSWERS(0, cuModuleGetLoadingMode, made);
    /* A stream argument that lies on the stack. */
    ANSWERS(0, cuMemcpyBatchAsync_v2, (word)1, (word)2, (word)3, (word)4, (word)5, (word)6, (word)7,
            (word)0x52);
    ANSWERS(0, cuMemAlloc_v2, &given, (word)64);
    ANSWERS(0, cuStreamCopyAttributes, (word)0x51, (word)0x52);
    ANSWERS(0, cuLibraryGetModule, made, (word)0x3);
    ANSWERS(0, cuModuleEnumerateFunctions, made, (word)4, (word)0x3);
    ANSWERS(0, cuGraphicsMapResources, (word)1, made, (word)0x51); /* ends deferring */
}

/* Events 0x777. may be deferred (fake_engine.c). */
static void events(void) {
    start();
    word made[2] = {0x7771, 0};
    float ms;
    CHECK(CALL(cuEventQuery, (word)0x777f) == CUDA_ERROR_NOT_READY); /* another thread defers it */
    CALL(cuEventCreate, made, (word)0);
    CALL(cuEventCreate, made, (word)CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS);
    CALL(cuEventRecord, (word)0x7771, (word)0x51);
    CALL(cuEventRecordWithFlags, (word)0x7771, (word)0x51, (word)0);
    CALL(cuEventRecordWithFlags, (word)0x7771, (word)0x51, (word)1);
    CALL(cuEventRecord, (word)0x8881, (word)0x51);
    CALL(cuStreamWaitEvent, (word)0x51, (word)0x7772, (word)0);
    CALL(cuStreamWaitEvent, (word)0x51, (word)0x7773, (word)1);
    CALL(cuStreamWaitEvent, (word)0x51, (word)0x7774, (word)0);
    CALL(cuEventElapsedTime, &ms, (word)0x7774, (word)0x7775);
    CALL(cuIpcGetEventHandle, made, (word)0x7776);
    CALL(cuGraphAddEventRecordNode, made, (word)1, (word)0, (word)0, (word)0x7777);
    CALL(cuGraphAddEventWaitNode, made, (word)1, (word)0, (word)0, (word)0x7778);
    CALL(cuGraphEventRecordNodeSetEvent, (word)1, (word)0x7779);
    CALL(cuGraphExecEventWaitNodeSetEvent, (word)1, (word)2, (word)0x777a);
    CALL(cuEventRecordWithFlags_ptsz, (word)0x7770, (word)0, (word)1);
    CALL(cuEventElapsedTime_v2, (word)0x777f, (word)0x7770, (word)0x7775);
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD};
    params.eventRecord.event = (CUevent)0x7779;
    CALL(cuGraphAddNode, made, (word)1, (word)0, (word)0, &params);
    CALL(cuGraphNodeSetParams, (word)1, &params);
    params.type = CU_GRAPH_NODE_TYPE_WAIT_EVENT;
    params.eventWait.event = (CUevent)0x777b;
    CALL(cuGraphAddNode_v2, made, (word)1, (word)0, (word)0, (word)0, &params);
    CALL(cuGraphExecNodeSetParams, (word)1, (word)2, &params);
    params.type = CU_GRAPH_NODE_TYPE_KERNEL; /* names no event */
    CALL(cuGraphNodeSetParams, (word)1, &params);
    CUlaunchAttribute attr = {.id = CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT};
    attr.value.launchCompletionEvent.event = (CUevent)0x777c;
    CALL(cuGraphKernelNodeSetAttribute, (word)1, (word)attr.id, &attr.value);
    CUlaunchAttributeValue other = {.programmaticEvent.event = (CUevent)0x777a};
    CALL(cuGraphKernelNodeSetAttribute, (word)1, (word)CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT,
         &other);
    CALL(cuGraphKernelNodeSetAttribute, (word)1, (word)CU_LAUNCH_ATTRIBUTE_PRIORITY, &other);
    CUlaunchConfig config = {.hStream = (CUstream)0x51, .attrs = &attr, .numAttrs = 1};
    CALL(cuLaunchKernelEx, &config, (word)0xf1, (word)0, (word)0);
    CALL(cuEventDestroy_v2, (word)0x777d);
    CALL(cuEventDestroy, (word)0x777e);
    struct cusplice_counters counters;
    CHECK(cusplice_read_counters(&counters, sizeof counters) == sizeof counters);
    CHECK(counters.launches == 1 && counters.records == 2 && counters.waits == 1 &&
          counters.eager == 4);
}

/* Launches whose attributes name events, each in a list that goes on behind its end. */
static void launch_events(void) {
    start();
    CUlaunchAttribute attrs[3] = {{.id = CU_LAUNCH_ATTRIBUTE_PRIORITY},
                                  {.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT},
                                  {.id = CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT}};
    attrs[0].value.programmaticEvent.event = (CUevent)0x7771; /* means nothing there */
    attrs[1].value.programmaticEvent.event = (CUevent)0x7772;
    attrs[2].value.launchCompletionEvent.event = (CUevent)0x7773;
    CUlaunchConfig config = {.hStream = (CUstream)0x51, .attrs = attrs};
    for (config.numAttrs = 0; config.numAttrs <= 3; config.numAttrs++)
        CALL(cuLaunchKernelEx, &config, (word)0xf1, (word)0, (word)0);
    config.attrs = NULL; /* the driver says what is wrong with it */
    CALL(cuLaunchKernelEx, &config, (word)0xf1, (word)0, (word)0);
}

/* Another library has started the driver by a look-up of its own. */
static void cold_launch(void) {
    open_cuda();
    fake_result("cuStreamSynchronize", 3);
    ANSWERS(3, cuStreamSynchronize, (word)0x51);
    fake_result("cuMemsetD8Async", 3);
    ANSWERS(3, cuMemsetD8Async, (word)0x1000, (word)7, (word)64, (word)0x51);
    seam_log("failed");
    fake_result("cuMemsetD8Async", 0);
    ANSWERS(0, cuMemsetD8Async, (word)0x1000, (word)7, (word)64, (word)0x51);
    ANSWERS(0, cuMemsetD8Async, (word)0x1000, (word)7, (word)64, (word)0x51);
}

/* The process rests from the first wait on. */
static void rests(void) {
    start();
    ANSWERS(0, cuEventQuery, (word)0xe);
    ANSWERS(0, cuStreamSynchronize, (word)0x51);
    seam_log("rests");
    ANSWERS(0, cuEventRecord, (word)0xe, (word)0x51);
    ANSWERS(0, cuEventRecordWithFlags, (word)0xe, (word)0x51, (word)0);
    ANSWERS(0, cuStreamWaitEvent, (word)0x51, (word)0xe, (word)0);
    ANSWERS(0, cuEventQuery, (word)0xe);
    ANSWERS(0, cuStreamQuery, (word)0x51);
    word ms;
    ANSWERS(0, cuEventElapsedTime, (word)&ms, (word)0xe, (word)0xe);
    ANSWERS(0, cuStreamQuery, (word)0x2);
    seam_log("waits");
    ANSWERS(0, cuStreamSynchronize, (word)0x51);
    ANSWERS(0, cuEventSynchronize, (word)0xe);
    ANSWERS(0, cuCtxSynchronize);
    ANSWERS(0, cuMemcpyHtoD_v2, (word)1, (word)2, (word)3);
    ANSWERS(0, cuGraphLaunch, (word)0x77, (word)0x51);
    ANSWERS(0, cuStreamSynchronize, (word)0x2); /* the thread's own stream */
    seam_log("with flags");
    ANSWERS(0, cuEventRecordWithFlags, (word)0xe, (word)0x51, (word)1);
    ANSWERS(0, cuStreamWaitEvent, (word)0x51, (word)0xe, (word)1);
    /* The upper half of the register is not the argument's. */
    ANSWERS(0, cuStreamWaitEvent, (word)0x51, (word)0xe, (word)1 << 32);
    seam_log("everything else");
    ANSWERS(0, cuMemFree_v2, (word)0x1000);
    ANSWERS(0, cuStreamDestroy_v2, (word)0x51);
    ANSWERS(0, cuEventDestroy_v2, (word)0xe);
}

static void hold_unseen(int more) {
    ((void (*)(int))find("fake_hold"))(more);
}

static void primaries(void) {
    start();
    word made;
    /* A pair around a hold that was not seen, and one that was. */
    hold_unseen(1);
    CALL(cuDevicePrimaryCtxRetain, &made, (word)0);
    CALL(cuDevicePrimaryCtxRelease_v2, (word)0);
    hold_unseen(-1);
    CALL(cuDevicePrimaryCtxRetain, &made, (word)0);
    CALL(cuDevicePrimaryCtxRetain, &made, (word)0);
    CALL(cuDevicePrimaryCtxRelease_v2, (word)0);
    /* Ends it. */
    CALL(cuDevicePrimaryCtxRelease, (word)0);
    /* Somebody gives a hold back unseen. */
    hold_unseen(1);
    CALL(cuDevicePrimaryCtxRetain, &made, (word)0);
    CALL(cuFuncSetAttribute, (word)0xf1, (word)8, (word)65536);
    CALL(cuFuncGetAttribute, &made, (word)0, (word)0xf1);
    hold_unseen(-1);
    CALL(cuDevicePrimaryCtxRelease_v2, (word)0);
    CALL(cuFuncSetAttribute, (word)0xf1, (word)8, (word)65536);
    CALL(cuFuncGetAttribute, &made, (word)0, (word)0xf1);
    /* Nothing is known behind a reset, and a release that fails gives nothing back. */
    CALL(cuDevicePrimaryCtxRetain, &made, (word)0);
    CALL(cuDevicePrimaryCtxRetain, &made, (word)0);
    CALL(cuDevicePrimaryCtxReset_v2, (word)0);
    fake_result("cuDevicePrimaryCtxRelease_v2", 201);
    CALL(cuDevicePrimaryCtxRelease_v2, (word)0);
    CALL(cuDevicePrimaryCtxRetain, &made, (word)0);
    CALL(cuDevicePrimaryCtxRelease_v2, (word)0);
    CALL(cuDevicePrimaryCtxRelease_v2, (word)0);
}

static void touches(void) {
    start();
    word out;
    CALL(cuFuncGetAttribute, &out, (word)0, (word)0xf1); /* flush */
    CALL(cuFuncGetAttribute, &out, (word)1, (word)0xf1);
    CALL(cuOccupancyMaxActiveBlocksPerMultiprocessor, &out, (word)0xf1, (word)32, (word)0);
    CALL(cuFuncGetAttribute, &out, (word)0, (word)0xf2); /* flush */
    ((void (*)(word))find("fake_context"))(0xc1);
    CALL(cuFuncGetAttribute, &out, (word)0, (word)0xf1); /* flush: another context */
    ((void (*)(word))find("fake_context"))(0xc0);
    CALL(cuFuncGetAttribute, &out, (word)0, (word)0xf1);
    CALL(cuModuleUnload, (word)0x3);                     /* flush of its own */
    CALL(cuFuncGetAttribute, &out, (word)0, (word)0xf1); /* flush: may be another function */
    CALL(cuFuncGetAttribute, &out, (word)0, (word)0xf1);
}

static void settings(void) {
    start();
    for (int i = 0; i < 100; i++)
        CALL(cuFuncSetAttribute, (word)0xf1, (word)8, (word)65536);        /* one flush */
    CALL(cuFuncSetAttribute, (word)0xf1, (word)8, (word)32768);            /* flush */
    CALL(cuFuncSetAttribute, (word)0xf2, (word)8, (word)32768);            /* flush */
    CALL(cuKernelSetAttribute, (word)8, (word)32768, (word)0xe1, (word)0); /* flush */
    CALL(cuKernelSetAttribute, (word)8, (word)32768, (word)0xe1, (word)1); /* flush: other device */
    CALL(cuKernelSetAttribute, (word)8, (word)32768, (word)0xe1, (word)0);
    fake_result("cuFuncSetAttribute", 1);
    CALL(cuFuncSetAttribute, (word)0xf3, (word)8, (word)1); /* flush, fails: nothing changed */
    CALL(cuFuncSetAttribute, (word)0xf3, (word)8, (word)1); /* flush */
    union {
        int number;
        unsigned char bytes[64];
    } value = {.bytes = {0}};
    value.number = -1;
    CALL(cuStreamSetAttribute, (word)0x51, (word)8, &value); /* flush */
    value.bytes[20] = 0xaa;                                  /* garbage behind the value */
    CALL(cuStreamSetAttribute, (word)0x51, (word)8, &value);
    CALL(cuStreamSetAttribute, (word)0, (word)8, &value);    /* flush */
    CALL(cuStreamSetAttribute, (word)0, (word)8, &value);    /* flush: who knows which stream 0 */
    CALL(cuStreamDestroy_v2, (word)0x51);                    /* flush of its own */
    CALL(cuStreamSetAttribute, (word)0x51, (word)8, &value); /* flush: may be another stream */
}

/* Each of these changes something but for those that say so. */
static void settings_of_functions(void) {
    start();
    const word high = (word)7 << 32; /* of no meaning */
    ANSWERS(0, cuFuncSetAttribute, (word)0xf1, (word)8, (word)65536);
    ANSWERS(0, cuFuncSetAttribute, (word)0xf1, high | 8, high | 65536); /* the same */
    ANSWERS(0, cuFuncSetAttribute, (word)0xf1, (word)9, (word)65536);
    ANSWERS(0, cuFuncSetCacheConfig, (word)0xf1, (word)1);
    ANSWERS(0, cuFuncSetCacheConfig, (word)0xf1, (word)1); /* the same */
    ANSWERS(0, cuFuncSetCacheConfig, (word)0xf1, (word)2);
    ANSWERS(0, cuFuncSetSharedMemConfig, (word)0xf1, (word)2);
    ANSWERS(0, cuKernelSetCacheConfig, (word)0xe1, (word)2, (word)0);
    ANSWERS(0, cuKernelSetCacheConfig, (word)0xe1, (word)2, high); /* the same */
    ANSWERS(0, cuKernelSetCacheConfig, (word)0xe1, (word)2, (word)1);
    ANSWERS(0, cuKernelSetAttribute, (word)8, (word)2, (word)0xe1, (word)0);
    ANSWERS(0, cuKernelSetAttribute, (word)8, (word)2, (word)0xe1, high); /* the same */
    ANSWERS(0, cuKernelSetAttribute, (word)8, (word)2, (word)0xe1, (word)1);
    ANSWERS(0, cuKernelSetAttribute, (word)9, (word)2, (word)0xe1, (word)0);
    ANSWERS(0, cuKernelSetAttribute, (word)9, (word)3, (word)0xe1, (word)0);
    ((void (*)(word))find("fake_context"))(0xc1);
    ANSWERS(0, cuKernelSetAttribute, (word)9, (word)3, (word)0xe1, (word)0); /* the same */
    ANSWERS(0, cuFuncSetAttribute, (word)0xf1, (word)9, (word)65536);
    /* Behind these a handle may be another function. */
    ANSWERS(0, cuModuleUnload, (word)0x3);
    ANSWERS(0, cuFuncSetAttribute, (word)0xf1, (word)9, (word)65536);
    ANSWERS(0, cuCtxDestroy, (word)0xc5);
    ANSWERS(0, cuFuncSetAttribute, (word)0xf1, (word)9, (word)65536);
    ANSWERS(0, cuDevicePrimaryCtxReset, (word)0);
    ANSWERS(0, cuFuncSetAttribute, (word)0xf1, (word)9, (word)65536);
    fake_result("cuFuncSetAttribute", 1);
    ANSWERS(1, cuFuncSetAttribute, (word)0xf1, (word)9, (word)1);
    ANSWERS(1, cuFuncSetAttribute, (word)0xf1, (word)9, (word)65536); /* the same */
}

/* The bytes of each attribute count, and no byte behind them. */
static void settings_of_streams(void) {
    static const struct {
        word id;
        size_t bytes;
    } attributes[] = {
        {CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW, sizeof(CUaccessPolicyWindow)},
        {CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, sizeof(CUsynchronizationPolicy)},
        {CU_STREAM_ATTRIBUTE_PRIORITY, sizeof(int)},
        {CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP, sizeof(CUlaunchMemSyncDomainMap)},
        {CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN, sizeof(CUlaunchMemSyncDomain)},
        {77, 0}, /* nobody knows which bytes count: each call changes the stream */
    };
    unsigned char value[128];
    start();
    for (unsigned i = 0; i < sizeof attributes / sizeof *attributes; i++) {
        seam_log("attribute %u", i);
        memset(value, 0, sizeof value);
        const word stream = 0x60, id = attributes[i].id;
        ANSWERS(0, cuStreamSetAttribute, stream, id, value);
        ANSWERS(0, cuStreamSetAttribute, stream, id, NULL);
        value[attributes[i].bytes] = 0xaa;
        ANSWERS(0, cuStreamSetAttribute, stream, id, value); /* the same */
        if (attributes[i].bytes)
            value[attributes[i].bytes - 1] = 0xaa;
        ANSWERS(0, cuStreamSetAttribute, stream, id, value);
    }
    seam_log("streams");
    const word id = CU_STREAM_ATTRIBUTE_PRIORITY;
    ANSWERS(0, cuStreamSetAttribute, (word)2, id, value); /* another stream in each thread */
    ANSWERS(0, cuStreamSetAttribute, (word)2, id, value);
    ANSWERS(0, cuStreamSetAttribute, (word)3, id, value);
    ANSWERS(0, cuStreamSetAttribute, (word)3, id, value); /* the same */
    seam_log("copies");
    ANSWERS(0, cuStreamCopyAttributes, (word)3, (word)4);
    ANSWERS(0, cuStreamSetAttribute, (word)3, id, value); /* it may have another value by now */
    fake_result("cuStreamCopyAttributes", 1);
    ANSWERS(1, cuStreamCopyAttributes, (word)3, (word)4);
    ANSWERS(0, cuStreamSetAttribute, (word)3, id, value); /* the same */
    fake_result("cuStreamCopyAttributes", 0);
    ANSWERS(0, cuStreamCopyAttributes, (word)0, (word)4);
    ANSWERS(0, cuStreamSetAttribute, (word)3, id, value); /* the same */
    seam_log("ids");
    ANSWERS(0, cuStreamSetAttribute, (word)4, id, value);
    ANSWERS(0, cuStreamSetAttribute, (word)4, (word)CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN, value);
    seam_log("failures");
    fake_result("cuStreamSetAttribute", 1);
    ANSWERS(1, cuStreamSetAttribute, (word)5, id, value);
    ANSWERS(1, cuStreamSetAttribute, (word)5, id, value); /* it is not set */
}

static void out_of_memory(void) {
    start();
    word made;
    CALL(cuMemAlloc_v2, &made, (word)64);
    fake_result("cuMemAlloc_v2", 1);
    CALL(cuMemAlloc_v2, &made, (word)65);
    fake_result("cuMemAlloc_v2", 2);
    CALL(cuMemAlloc_v2, &made, (word)66);
    /* Whoever gives memory back is told how much is wanted of the device. */
    fake_result("cuMemAllocPitch_v2", 2);
    ANSWERS(2, cuMemAllocPitch_v2, &made, &made, (word)64, (word)67, (word)4);
    fake_result("cuMemCreate", 2);
    ANSWERS(2, cuMemCreate, &made, (word)68, (word)0, (word)0);
    fake_result("cuMemAllocAsync", 2);
    ANSWERS(2, cuMemAllocAsync, &made, (word)69, (word)0x51);
    fake_result("cuMemAllocAsync_ptsz", 2);
    ANSWERS(2, cuMemAllocAsync_ptsz, &made, (word)70, (word)0);
    fake_result("cuMemAllocFromPoolAsync", 2);
    ANSWERS(2, cuMemAllocFromPoolAsync, &made, (word)71, (word)0x70, (word)0x51);
    fake_result("cuMemAllocFromPoolAsync_ptsz", 2);
    ANSWERS(2, cuMemAllocFromPoolAsync_ptsz, &made, (word)72, (word)0x70, (word)0);
}

/* What is allocated. The engine says of sizes over half of all addresses that they cannot fit. */
static void allocations(void) {
    start();
    word made = 0x9000, huge = ~(word)0;
    ANSWERS(2, cuMemAlloc_v2, &made, huge);
    ANSWERS(0, cuMemAlloc_v2, NULL, huge); /* the driver says what is wrong with it */
    ANSWERS(0, cuMemAllocManaged, &made, huge, (word)1);
    ANSWERS(0, cuMemAlloc_v2, &made, (word)64);
    ANSWERS(0, cuMemAllocPitch_v2, &made, &made, (word)64, (word)64, (word)4);
    fake_result("cuMemAlloc_v2", 1);
    ANSWERS(1, cuMemAlloc_v2, &made, (word)64);
    ANSWERS(0, cuStreamCreate, &made, (word)0);
    ANSWERS(0, cuStreamCreateWithPriority, &made, (word)0, (word)0);
    ANSWERS(0, cuGraphInstantiate, &made, (word)0x77, NULL, NULL, (word)0);
    ANSWERS(0, cuGraphInstantiate_v2, &made, (word)0x77, NULL, NULL, (word)0);
    ANSWERS(0, cuGraphInstantiateWithFlags, &made, (word)0x77, (word)0);
    ANSWERS(0, cuGraphInstantiateWithParams, &made, (word)0x77, NULL);
    ANSWERS(0, cuGraphInstantiateWithParams_ptsz, &made, (word)0x77, NULL);
    fake_result("cuStreamCreate", 1);
    ANSWERS(1, cuStreamCreate, &made, (word)0);
}

/* Stream-ordered memory. fake_engine.c says what each size and address is. */
static void stream_memory(void) {
    start();
    word made = 0x9000;
    ANSWERS(0, cuMemAllocAsync, &made, (word)0x100, (word)0x51);
    CHECK(made == 0x7100);
    ANSWERS(0, cuMemAllocAsync, &made, (word)0x200, (word)0x51);
    made = 0x9000;
    ANSWERS(0, cuMemAllocFromPoolAsync, &made, (word)0x300, (word)0x70, (word)0x51);
    ANSWERS(0, cuMemAllocFromPoolAsync_ptsz, &made, (word)0x300, (word)0x70, (word)0);
    /* The driver says what is wrong with these. */
    ANSWERS(0, cuMemAllocAsync, NULL, (word)0x100, (word)0x51);
    ANSWERS(0, cuMemAllocAsync, &made, (word)0, (word)0x51);
    ANSWERS(0, cuMemFreeAsync, (word)0x7200, (word)0x51);
    ANSWERS(0, cuMemFreeAsync, (word)0x7100, (word)0x51);
    ANSWERS(0, cuMemFreeAsync, (word)0x7300, (word)0x51);
    fake_result("cuMemAllocAsync", 1);
    ANSWERS(1, cuMemAllocAsync, &made, (word)0x300, (word)0x51);
    fake_result("cuMemAllocAsync", 2);
    ANSWERS(2, cuMemAllocAsync, &made, (word)0x300, (word)0x51);
    ANSWERS(2, cuMemAllocAsync, &made, (word)0x300, (word)0x51);
    ANSWERS(0, cuMemFree_v2, (word)0x1000);
}

/* Calls that wait, and fail. */
static void waits_that_fail(void) {
    start();
    fake_result("cuCtxSynchronize", 700);
    CHECK(CALL(cuCtxSynchronize) == 700);
    fake_result("cuMemcpyHtoD_v2", 1);
    ANSWERS(1, cuMemcpyHtoD_v2, (word)1, (word)2, (word)3);
    fake_result("cuStreamQuery", 700);
    ANSWERS(700, cuStreamQuery, (word)0x51);
    fake_result("cuStreamBeginCapture_v2", 401);
    ANSWERS(401, cuStreamBeginCapture_v2, (word)0x51, (word)0);
}

/* Calls about events that fail: the engine hears no more of the event. */
static void events_that_fail(void) {
    start();
    word made = 0x7771;
    float ms;
    fake_result("cuEventCreate", 2);
    ANSWERS(2, cuEventCreate, &made, (word)0);
    fake_result("cuEventRecord", 700);
    ANSWERS(700, cuEventRecord, (word)0x8881, (word)0x51);
    fake_result("cuStreamWaitEvent", 700);
    ANSWERS(700, cuStreamWaitEvent, (word)0x51, (word)0x7772, (word)0);
    fake_result("cuEventQuery", 700);
    ANSWERS(700, cuEventQuery, (word)0xe);
    fake_result("cuEventElapsedTime", 600);
    ANSWERS(600, cuEventElapsedTime, &ms, (word)1, (word)2);
}

/* State of the device that launches and pools read. */
static void state(void) {
    start();
    word made = 0;
    ANSWERS(0, cuDeviceSetMemPool, (word)0, (word)0x70);
    ANSWERS(0, cuMemSetMemPool, (word)0, (word)1, (word)0x70);
    for (word attribute = CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT;
         attribute <= CU_MEMPOOL_ATTR_USED_MEM_HIGH; attribute++)
        ANSWERS(0, cuMemPoolSetAttribute, (word)0x70 + attribute, attribute, &made);
    ANSWERS(0, cuCtxSetLimit, (word)0, (word)CU_MEMPOOL_ATTR_USED_MEM_HIGH);
    ANSWERS(0, cuMemPoolTrimTo, (word)0x79, (word)CU_MEMPOOL_ATTR_USED_MEM_HIGH);
    ANSWERS(0, cuMemPoolGetAttribute, (word)0x7a, (word)CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, &made);
    fake_result("cuDeviceSetMemPool", 1);
    ANSWERS(1, cuDeviceSetMemPool, (word)0, (word)0x70);
}

/* Who asks for the number of an allocation, or sets what new memory would not have. */
static void numbers(void) {
    static const CUpointer_attribute ids[] = {CU_POINTER_ATTRIBUTE_BUFFER_ID,
                                              CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                              CU_POINTER_ATTRIBUTE_BUFFER_ID};
    start();
    word got[2];
    void *to[2] = {&got[0], &got[1]};
    ANSWERS(0, cuMemGetInfo_v2, &got[0], &got[1]);
    ANSWERS(0, cuPointerGetAttributes, (word)1, ids + 1, to, (word)0x1000);
    ANSWERS(0, cuPointerGetAttributes, (word)1, NULL, to, (word)0x1000);
    seam_log("asks");
    ANSWERS(0, cuPointerGetAttributes, (word)7 << 32 | 2, ids, to, (word)0x1000);
    ANSWERS(0, cuPointerGetAttributes, (word)2, ids + 1, to, (word)0x1000);
    seam_log("asked");
    ANSWERS(0, cuPointerSetAttribute, got, (word)CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, (word)0x1000);
}

/* Functions that calls make, and those that make none. */
static void handles(void) {
    start();
    word made[4] = {0};
    ANSWERS(0, cuModuleEnumerateFunctions, made, (word)1 << 32 | 1, (word)0x3);
    ANSWERS(0, cuModuleEnumerateFunctions, made, (word)4, (word)0x3);
    ANSWERS(0, cuModuleEnumerateFunctions, NULL, (word)4, (word)0x3);
    ANSWERS(0, cuKernelGetFunction, made, (word)0xe1, (word)0);
    ANSWERS(0, cuKernelGetFunction, made, (word)0xe2, (word)0);
    ANSWERS(0, cuKernelGetFunction, made, (word)0xe1, (word)0); /* no flush: the second touch */
    fake_result("cuModuleGetFunction", 500);
    ANSWERS(500, cuModuleGetFunction, made, (word)0x3, "f");
    fake_result("cuModuleGetFunctionCount", 1);
    ANSWERS(0, cuModuleEnumerateFunctions, made, (word)4, (word)0x3);
}

/* A release that the driver makes itself, inside another call, leaves nothing known. */
static void release_inside(void) {
    CALL(cuDevicePrimaryCtxRelease_v2, (word)0);
}

static void primary_inside(void) {
    start();
    word made;
    CALL(cuDevicePrimaryCtxRetain, &made, (word)0);
    CALL(cuDevicePrimaryCtxRetain, &made, (word)0);
    CALL(cuDevicePrimaryCtxRetain, &made, (word)0);
    ((void (*)(void (*)(void)))find("fake_callback"))(release_inside);
    CALL(cuStreamSynchronize, (word)0x51);
    CALL(cuDevicePrimaryCtxRelease_v2, (word)0); /* a barrier */
    CALL(cuDevicePrimaryCtxRetain, &made, (word)0);
    fake_result("cuDevicePrimaryCtxRetain", 1);
    ANSWERS(1, cuDevicePrimaryCtxRetain, &made, (word)0); /* holds nothing */
    CALL(cuDevicePrimaryCtxRelease_v2, (word)0);
    CALL(cuDevicePrimaryCtxRelease_v2, (word)0); /* a barrier */
}

/* Which of two calls that end contexts ends the primary one. */
static void primary_ends(void) {
    start();
    word made;
    CALL(cuDevicePrimaryCtxRetain, &made, (word)0);
    CALL(cuDevicePrimaryCtxRetain, &made, (word)0);
    CALL(cuCtxDestroy, (word)0xc5);
    CALL(cuDevicePrimaryCtxRelease_v2, (word)0);
    CALL(cuDevicePrimaryCtxRetain, &made, (word)0);
    CALL(cuDevicePrimaryCtxReset, (word)0);
    CALL(cuDevicePrimaryCtxRelease_v2, (word)0); /* a barrier: nothing is known any more */
}

const struct probe probes_of_calls[] = {
    {"allocations", allocations},
    {"cold_launch", cold_launch},
    {"events", events},
    {"events_that_fail", events_that_fail},
    {"handles", handles},
    {"kinds", kinds},
    {"launch_events", launch_events},
    {"numbers", numbers},
    {"out_of_memory", out_of_memory},
    {"primaries", primaries},
    {"primary_ends", primary_ends},
    {"primary_inside", primary_inside},
    {"rests", rests},
    {"settings", settings},
    {"settings_of_functions", settings_of_functions},
    {"settings_of_streams", settings_of_streams},
    {"state", state},
    {"stream_memory", stream_memory},
    {"touches", touches},
    {"waits_that_fail", waits_that_fail},
    {NULL, NULL},
};
