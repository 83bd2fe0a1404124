/*
 * Questions about captures: how they end, what spoils them, and which calls are unsafe meanwhile.
 */
#include "tests/unit/sim/answers/answers.h"

#include <pthread.h>

#define RELAXED CU_STREAM_CAPTURE_MODE_RELAXED

static void begin(CUstream stream) {
    DO(cuStreamBeginCapture(stream, RELAXED));
}

static int status_of(CUstream stream) {
    CUstreamCaptureStatus status = (CUstreamCaptureStatus)9;
    CUresult result = cuStreamIsCapturing(stream, &status);
    return result == CUDA_SUCCESS ? (int)status : (int)result;
}

static void ask_ends(void) {
    struct answers *a = &answers;
    CUevent never;
    float ms;
    ASK(cuStreamBeginCapture(NULL, CU_STREAM_CAPTURE_MODE_GLOBAL));
    ASK(answers_end(a->stream));
    begin(a->stream);
    ASK(cuStreamBeginCapture(a->stream, RELAXED));
    ASK(answers_end(a->stream));
    begin(a->stream);
    ASK(cuStreamWaitEvent(a->stream, a->event, 0)); /* recorded outside */
    ASK(answers_end(a->stream));
    DO(cuEventCreate(&never, 0));
    begin(a->stream);
    ASK(cuStreamWaitEvent(a->stream, never, 0));
    ASK(answers_end(a->stream));
    DO(cuEventDestroy(never));
    begin(a->stream);
    DO(cuEventRecord(a->event2, a->stream));
    ASK(cuEventQuery(a->event2));
    ASK(status_of(a->stream));
    ASK(answers_end(a->stream));
    begin(a->stream);
    DO(cuEventRecord(a->event2, a->stream));
    ASK(answers_end(a->stream));
    ASK(cuEventQuery(a->event2)); /* last recorded in a capture that has ended */
    ASK(cuEventSynchronize(a->event2));
    ASK(cuStreamWaitEvent(a->other, a->event2, 0));
    ASK(cuEventElapsedTime(&ms, a->event2, a->event));
    DO(cuEventRecord(a->event2, a->other));
    ASK(cuEventSynchronize(a->event2));
}

static void ask_forks(void) {
    struct answers *a = &answers;
    begin(a->stream);
    DO(cuEventRecord(a->event2, a->stream));
    DO(cuStreamWaitEvent(a->other, a->event2, 0));
    ASK(status_of(a->other));
    ASK(answers_end(a->other));
    ASK(answers_end(a->stream));
    begin(a->stream);
    DO(answers_launch(a->touch, a->stream));
    DO(cuEventRecord(a->event2, a->stream));
    DO(cuStreamWaitEvent(a->other, a->event2, 0));
    DO(answers_launch(a->touch, a->other));
    ASK(answers_end(a->stream)); /* not joined */
    ASK(status_of(a->other));
    begin(a->stream);
    DO(cuEventRecord(a->event2, a->stream));
    DO(cuStreamWaitEvent(a->other, a->event2, 0));
    ASK(answers_end(a->stream)); /* nothing to join */
    begin(a->stream);
    begin(a->other);
    DO(cuEventRecord(a->event2, a->other));
    ASK(cuStreamWaitEvent(a->stream, a->event2, 0));
    ASK(answers_end(a->stream));
    ASK(answers_end(a->other));
}

/* One call while a stream captures (relaxed), and how the capture ends. */
#define WHILE(capturing, call)                                                                     \
    do {                                                                                           \
        begin(capturing);                                                                          \
        int while_result_ = (int)(call);                                                           \
        NOTE("%s while %s captures = %d, end %d\n", #call, #capturing, while_result_,              \
             (int)answers_end(capturing));                                                         \
    } while (0)

static void ask_conflicts(void) {
    struct answers *a = &answers;
    CUstream stream = a->stream, blocking = a->blocking, made;
    unsigned flags;
    unsigned long long id;
    CUcontext ctx;
    CUstreamAttrValue value;
    CUstreamCaptureStatus status;
    CUdeviceptr p;
    int priority, zero = 0;
    WHILE(stream, cuStreamSynchronize(stream));
    WHILE(stream, cuStreamQuery(stream));
    WHILE(stream, cuCtxSynchronize());
    WHILE(stream, cuStreamAddCallback(stream, (CUstreamCallback)1, NULL, 0));
    WHILE(stream, answers_launch(a->touch, NULL));
    WHILE(stream, cuStreamIsCapturing(NULL, &status));
    WHILE(stream, cuStreamSynchronize(NULL));
    WHILE(stream, cuMemcpyHtoD(a->buffer, &zero, 4));
    WHILE(stream, cuStreamGetFlags(a->other, &flags));
    WHILE(stream, cuStreamGetFlags(stream, &flags));
    WHILE(stream, cuStreamGetPriority(stream, &priority));
    WHILE(stream, cuStreamGetId(stream, &id));
    WHILE(stream, cuStreamGetCtx(stream, &ctx));
    WHILE(stream, cuStreamGetAttribute(stream, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
    WHILE(stream, cuStreamCopyAttributes(a->other, stream));
    WHILE(blocking, answers_launch(a->touch, NULL));
    WHILE(blocking, cuStreamSynchronize(NULL));
    WHILE(blocking, cuStreamQuery(NULL));
    WHILE(blocking, cuEventRecord(a->event, NULL));
    WHILE(blocking, cuStreamWaitEvent(NULL, a->event, 0));
    WHILE(blocking, cuMemcpyHtoD(a->buffer, &zero, 4));
    WHILE(blocking, cuMemsetD8(a->buffer, 0, 4));
    WHILE(blocking, cuMemAllocAsync(&p, 64, NULL));
    WHILE(blocking, cuGraphUpload(NULL, NULL));
    WHILE(blocking, cuStreamIsCapturing(NULL, &status));
    WHILE(blocking, cuStreamGetCaptureInfo(NULL, &status, NULL, NULL, NULL, NULL, NULL));
    WHILE(blocking, cuStreamGetFlags(NULL, &flags));
    WHILE(blocking, cuStreamGetId(NULL, &id));
    WHILE(blocking, cuStreamGetCtx(NULL, &ctx));
    WHILE(blocking, cuStreamGetPriority(NULL, &priority));
    WHILE(blocking, cuStreamGetAttribute(NULL, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
    WHILE(blocking, cuCtxGetId(a->ctx, &id));
    WHILE(blocking, cuEventQuery(a->event));
    WHILE(blocking, cuStreamCreate(&made, CU_STREAM_DEFAULT));
    begin(blocking);
    ASK(answers_launch(a->touch, NULL));
    ASK(answers_launch(a->touch, blocking)); /* its capture is spoilt */
    ASK(answers_end(blocking));
    DO(cuCtxSynchronize());
}

void ask_capture(void) {
    ask_ends();
    ask_forks();
    ask_conflicts();
}

/* ---- calls that are unsafe while a capture is open ---- */

static CUstream side; /* does not capture */
static CUevent done;  /* recorded on it */
static CUgraph graph;
static CUdeviceptr block, async_block;

static int alloc(void) {
    CUdeviceptr p;
    CUresult result = cuMemAlloc(&p, 64);
    if (result == CUDA_SUCCESS)
        cuMemFree(p);
    return (int)result;
}
static int release(void) {
    return (int)cuMemFree(block);
}
static int host_alloc(void) {
    void *p;
    return (int)cuMemHostAlloc(&p, 64, 0);
}
static int alloc_async(void) {
    CUdeviceptr p;
    return (int)cuMemAllocAsync(&p, 64, side);
}
static int free_async(void) {
    return (int)cuMemFreeAsync(async_block, side);
}
static int event_query(void) {
    return (int)cuEventQuery(done);
}
static int event_synchronize(void) {
    return (int)cuEventSynchronize(done);
}
static int stream_query(void) {
    return (int)cuStreamQuery(side);
}
static int stream_synchronize(void) {
    return (int)cuStreamSynchronize(side);
}
static int ctx_synchronize(void) {
    return (int)cuCtxSynchronize();
}
static int stream_create(void) {
    CUstream s;
    return (int)cuStreamCreate(&s, CU_STREAM_NON_BLOCKING);
}
static int event_create(void) {
    CUevent e;
    return (int)cuEventCreate(&e, 0);
}
static int graph_instantiate(void) {
    CUgraphExec exec;
    return (int)cuGraphInstantiate(&exec, graph, 0);
}
static int module_load(void) {
    CUmodule module;
    return (int)cuModuleLoadData(&module, answers_image);
}
static int module_unload(void) {
    CUmodule module;
    CUstreamCaptureMode mode = RELAXED; /* the load is not what is asked about */
    cuThreadExchangeStreamCaptureMode(&mode);
    CUresult result = cuModuleLoadData(&module, answers_image);
    cuThreadExchangeStreamCaptureMode(&mode);
    return result == CUDA_SUCCESS ? (int)cuModuleUnload(module) : -1;
}
static int copy_down(void) {
    int host;
    return (int)cuMemcpyDtoH(&host, answers.buffer, 4);
}
static int copy_up(void) {
    int host = 0;
    return (int)cuMemcpyHtoD(answers.buffer, &host, 4);
}
static int fill(void) {
    return (int)cuMemsetD8(answers.buffer, 0, 4);
}
static int copy_async(void) {
    int host = 0;
    return (int)cuMemcpyHtoDAsync(answers.buffer, &host, 4, side);
}
static int launch(void) {
    return (int)answers_launch(answers.touch, side);
}
static int pointer(void) {
    unsigned type;
    return (int)cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, answers.buffer);
}
static int memory_info(void) {
    size_t a, b;
    return (int)cuMemGetInfo(&a, &b);
}
static int function_set(void) {
    return (int)cuFuncSetAttribute(answers.touch, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                   49152);
}

struct call {
    int (*run)(void);
    int result;
};

static void *elsewhere(void *argument) {
    struct call *call = argument;
    cuCtxSetCurrent(answers.ctx);
    call->result = call->run();
    return NULL;
}

static void unsafe(const char *name, int (*run)(void)) {
    NOTE("%s:", name);
    for (int own = 0; own < 2; own++)
        for (int mode = CU_STREAM_CAPTURE_MODE_GLOBAL; mode <= CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
             mode++) {
            struct call call = {.run = run};
            pthread_t thread;
            DO(cuStreamCreate(&side, CU_STREAM_NON_BLOCKING));
            DO(cuEventCreate(&done, 0));
            DO(cuEventRecord(done, side));
            DO(cuMemAlloc(&block, 64));
            DO(cuMemAllocAsync(&async_block, 4096, side));
            DO(cuCtxSynchronize());
            DO(cuStreamBeginCapture(answers.stream, (CUstreamCaptureMode)mode));
            if (own) {
                call.result = run();
            } else {
                pthread_create(&thread, NULL, elsewhere, &call);
                pthread_join(thread, NULL);
            }
            NOTE(" %s thread, mode %d: %d, end %d;", own ? "own" : "other", mode, call.result,
                 (int)answers_end(answers.stream));
            cuCtxSynchronize();
            cuMemFree(block); /* fails where the call freed it */
            DO(cuStreamDestroy(side));
            DO(cuEventDestroy(done));
        }
    NOTE("\n");
}

void ask_unsafe(void) {
    CUgraphNode node;
    DO(cuGraphCreate(&graph, 0));
    DO(cuGraphAddEmptyNode(&node, graph, NULL, 0));
    unsafe("alloc", alloc);
    unsafe("release", release);
    unsafe("host_alloc", host_alloc);
    unsafe("alloc_async", alloc_async);
    unsafe("free_async", free_async);
    unsafe("event_query", event_query);
    unsafe("event_synchronize", event_synchronize);
    unsafe("stream_query", stream_query);
    unsafe("stream_synchronize", stream_synchronize);
    unsafe("ctx_synchronize", ctx_synchronize);
    unsafe("stream_create", stream_create);
    unsafe("event_create", event_create);
    unsafe("graph_instantiate", graph_instantiate);
    unsafe("module_load", module_load);
    unsafe("module_unload", module_unload);
    unsafe("copy_up", copy_up);
    unsafe("copy_down", copy_down);
    unsafe("fill", fill);
    unsafe("copy_async", copy_async);
    unsafe("launch", launch);
    unsafe("pointer", pointer);
    unsafe("memory_info", memory_info);
    unsafe("function_set", function_set);
    DO(cuGraphDestroy(graph));
}
