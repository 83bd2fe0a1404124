/* Set-up; questions about look-up, launches, functions and contexts. */
#include "tests/unit/sim/answers/answers.h"

#include <string.h>

struct answers answers;

const char answers_image[] = ".version 7.8\n"
                             ".target sm_80\n"
                             ".address_size 64\n"
                             ".visible .entry touch(.param .u64 p)\n"
                             "{\n ret;\n}\n"
                             ".visible .entry pair(.param .u64 p, .param .u32 v)\n"
                             "{\n ret;\n}\n";

CUresult answers_launch(CUfunction function, CUstream stream) {
    void *args[] = {&answers.buffer};
    return cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, args, NULL);
}

CUresult answers_end(CUstream stream) {
    CUgraph graph = NULL;
    CUresult result = cuStreamEndCapture(stream, &graph);
    if (graph)
        cuGraphDestroy(graph);
    return result;
}

void answers_open(FILE *out) {
    struct answers *a = &answers;
    a->out = out;
    DO(cuInit(0));
    DO(cuDevicePrimaryCtxRetain(&a->ctx, 0));
    DO(cuCtxSetCurrent(a->ctx));
    DO(cuModuleLoadData(&a->module, answers_image));
    DO(cuModuleGetFunction(&a->touch, a->module, "touch"));
    DO(cuMemAlloc(&a->buffer, 4096));
    DO(cuMemAlloc(&a->second, 4096));
    DO(cuMemAllocManaged(&a->managed, 256, CU_MEM_ATTACH_GLOBAL));
    DO(cuMemHostAlloc((void **)&a->pinned, 4096, 3));
    DO(cuStreamCreate(&a->stream, CU_STREAM_NON_BLOCKING));
    DO(cuStreamCreate(&a->other, CU_STREAM_NON_BLOCKING));
    DO(cuStreamCreate(&a->blocking, CU_STREAM_DEFAULT));
    DO(cuMemAllocAsync(&a->pooled, 256, a->stream));
    DO(cuEventCreate(&a->event, 0));
    DO(cuEventCreate(&a->event2, 0));
    DO(cuEventRecord(a->event, a->stream));
    DO(answers_launch(a->touch, a->stream));
    DO(cuCtxSynchronize());
}

/* Leaves nothing of this process's use of the device behind. */
void answers_close(void) {
    cuCtxSetCurrent(NULL);
}

static void look_up(const char *name, int version, cuuint64_t flags, bool with_status) {
    void *address = &address;
    CUdriverProcAddressQueryResult status = (CUdriverProcAddressQueryResult)9;
    int result = cuGetProcAddress(name, &address, version, flags, with_status ? &status : NULL);
    bool untouched = address == (void *)&address;
    NOTE("look up %s version %d flags %d: %d, status %d, %s\n", name, version, (int)flags, result,
         (int)status,
         untouched ? "untouched"
         : address ? "found"
                   : "NULL");
}

void ask_resolver(void) {
    look_up("cuMemAlloc", 3020, 0, true);
    look_up("cuNoSuchCall", 12000, 0, true);
    look_up("cuNoSuchCall", 12000, 0, false);
    look_up("cuMemAlloc_v2", 12000, 0, true);
    look_up("cuLaunchKernelEx", 11050, 0, true);
    look_up("cuLaunchKernelEx", 11050, 0, false);
    look_up("cuMemAlloc", 99000, 0, true);
    look_up("cuMemAlloc", 12000, CU_GET_PROC_ADDRESS_LEGACY_STREAM, true);
    look_up("cuMemAlloc", 12000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, true);
}

static CUresult shape(unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                      unsigned smem) {
    void *args[] = {&answers.buffer};
    return cuLaunchKernel(answers.touch, gx, gy, gz, bx, by, bz, smem, NULL, args, NULL);
}

static CUresult with(CUlaunchAttribute attribute, unsigned grid) {
    void *args[] = {&answers.buffer};
    CUlaunchConfig config;
    memset(&config, 0, sizeof config);
    config.gridDimX = grid;
    config.gridDimY = config.gridDimZ = 1;
    config.blockDimX = config.blockDimY = config.blockDimZ = 1;
    config.attrs = &attribute;
    config.numAttrs = 1;
    return cuLaunchKernelEx(&config, answers.touch, args, NULL);
}

static CUresult cluster(unsigned x, unsigned grid) {
    CUlaunchAttribute a;
    memset(&a, 0, sizeof a);
    a.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    a.value.clusterDim.x = x;
    a.value.clusterDim.y = a.value.clusterDim.z = 1;
    return with(a, grid);
}

static CUresult attribute(int id, int value, unsigned grid) {
    CUlaunchAttribute a;
    memset(&a, 0, sizeof a);
    a.id = (CUlaunchAttributeID)id;
    a.value.cooperative = value; /* where all of these keep their first member */
    return with(a, grid);
}

/* Within a capture, so that nothing runs with arguments that are not there. */
static CUresult packed(const char *name, size_t bytes) {
    unsigned char buffer[64] = {0};
    CUfunction function;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                     CU_LAUNCH_PARAM_END};
    DO(cuModuleGetFunction(&function, answers.module, name));
    DO(cuStreamBeginCapture(answers.stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    CUresult result = cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, answers.stream, NULL, extra);
    answers_end(answers.stream);
    return result;
}

static CUresult set_dynamic(int bytes) {
    return cuFuncSetAttribute(answers.touch, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                              bytes);
}

void ask_launch(void) {
    struct answers *a = &answers;
    void *args[] = {&a->buffer};
    size_t bytes = 8;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &a->buffer, CU_LAUNCH_PARAM_BUFFER_SIZE,
                     &bytes, CU_LAUNCH_PARAM_END};
    ASK(shape(1, 1, 1, 1, 1, 1, 0));
    ASK(shape(0, 1, 1, 1, 1, 1, 0));
    ASK(shape(1, 65536, 1, 1, 1, 1, 0));
    ASK(shape(1, 1, 65536, 1, 1, 1, 0));
    ASK(shape(0x80000000u, 1, 1, 1, 1, 1, 0));
    ASK(shape(1, 1, 1, 0, 1, 1, 0));
    ASK(shape(1, 1, 1, 1025, 1, 1, 0));
    ASK(shape(1, 1, 1, 32, 32, 2, 0));
    ASK(shape(1, 1, 1, 1, 1, 65, 0));
    ASK(shape(1, 1, 1, 1, 1, 1, 49152));
    ASK(shape(1, 1, 1, 1, 1, 1, 49153));
    ASK(shape(1, 1, 1, 1, 1, 1, 300000));
    ASK(set_dynamic(232448));
    ASK(set_dynamic(232449));
    ASK(shape(1, 1, 1, 1, 1, 1, 232448));
    ASK(set_dynamic(49152));
    ASK(cluster(4, 8));
    ASK(cluster(4, 6));
    ASK(cluster(16, 32));
    ASK(cluster(0, 32));
    ASK(attribute(77, 0, 1));
    ASK(attribute(CU_LAUNCH_ATTRIBUTE_IGNORE, 0, 1));
    ASK(attribute(CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE, 1, 1));
    ASK(attribute(CU_LAUNCH_ATTRIBUTE_COOPERATIVE, 1, 1));
    ASK(attribute(CU_LAUNCH_ATTRIBUTE_COOPERATIVE, 1, 1000000));
    ASK(cuLaunchKernel(a->touch, 1, 1, 1, 1, 1, 1, 0, a->stream, args, extra));
    ASK(cuLaunchKernel(a->touch, 1, 1, 1, 1, 1, 1, 0, a->stream, NULL, extra));
    ASK(cuLaunchKernel(a->touch, 1, 1, 1, 1, 1, 1, 0, a->stream, NULL, NULL));
    ASK(cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, a->stream, args, NULL));
    ASK(cuLaunchCooperativeKernel(a->touch, 1000000, 1, 1, 1024, 1, 1, 0, a->stream, args));
    ASK(packed("touch", 4));
    ASK(packed("touch", 8));
    ASK(packed("touch", 12));
    ASK(packed("touch", 16));
    ASK(packed("pair", 11));
    ASK(packed("pair", 12));
    ASK(packed("pair", 13));
    ASK(packed("pair", 16));
    ASK(packed("pair", 17));
    ASK(cuCtxSynchronize());
}

static const char *name_of(const void *handle, const void *kernel, const void *derived) {
    return !handle                           ? "NULL"
           : handle == kernel                ? "the kernel"
           : handle == derived               ? "the kernel's function"
           : handle == (void *)answers.touch ? "the function"
                                             : "something else";
}

void ask_function(void) {
    struct answers *a = &answers;
    CUlibrary library;
    CUkernel kernel;
    CUfunction derived, got;
    CUmodule module;
    const char *name;
    size_t offset, size;
    int value;
    DO(cuLibraryLoadData(&library, answers_image, NULL, NULL, 0, NULL, NULL, 0));
    DO(cuLibraryGetKernel(&kernel, library, "touch"));
    DO(cuKernelGetFunction(&derived, kernel));
    CUfunction as_function = (CUfunction)kernel;
    CUkernel as_kernel = (CUkernel)a->touch;
    ASK(cuFuncGetName(&name, as_function));
    ASK(cuFuncGetParamInfo(as_function, 0, &offset, &size));
    ASK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, as_function));
    ASK(cuFuncSetAttribute(as_function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1024));
    ASK(cuFuncGetModule(&module, as_function));
    ASK(cuKernelGetName(&name, as_kernel));
    ASK(cuKernelGetParamInfo(as_kernel, 0, &offset, &size));
    ASK(cuKernelGetFunction(&got, as_kernel));
    ASK(cuFuncGetParamInfo(a->touch, 1, &offset, &size));
    ASK(answers_launch(as_function, a->stream));
    ASK(cuModuleGetFunction(&got, a->module, "nope"));
    ASK(cuLibraryGetKernel(&as_kernel, library, "nope"));
    CUgraph graph;
    CUgraphNode nodes[3];
    size_t n = 3;
    DO(cuStreamBeginCapture(a->stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    DO(answers_launch(as_function, a->stream));
    DO(answers_launch(a->touch, a->stream));
    DO(answers_launch(derived, a->stream));
    DO(cuStreamEndCapture(a->stream, &graph));
    DO(cuGraphGetNodes(graph, nodes, &n));
    for (size_t i = 0; i < n; i++) {
        CUDA_KERNEL_NODE_PARAMS p;
        memset(&p, 0x55, sizeof p);
        DO(cuGraphKernelNodeGetParams(nodes[i], &p));
        NOTE("node %zu: func is %s, kern is %s, ctx %s, extra %s\n", i,
             name_of(p.func, kernel, derived), name_of(p.kern, kernel, derived),
             p.ctx == a->ctx ? "there" : "not there", p.extra ? "there" : "not there");
    }
    DO(cuGraphDestroy(graph));
    DO(cuCtxSynchronize());
    ASK(cuLibraryUnload(library));
}

static void without_context(void) {
    struct answers *a = &answers;
    unsigned long long id;
    CUstreamCaptureStatus status;
    CUdeviceptr p;
    CUcontext current;
    CUfunction function;
    CUevent event;
    CUgraph graph;
    const char *name;
    int value;
    DO(cuCtxSetCurrent(NULL));
    ASK(cuCtxGetCurrent(&current));
    NOTE("current: %s\n", current ? "there" : "NULL");
    ASK(cuCtxPopCurrent(&current));
    ASK(answers_launch(a->touch, a->stream));
    ASK(answers_launch(a->touch, NULL));
    ASK(cuMemsetD8Async(a->buffer, 0, 4, a->stream));
    ASK(cuEventRecord(a->event, a->stream));
    ASK(cuStreamSynchronize(a->stream));
    ASK(cuEventQuery(a->event));
    ASK(cuStreamWaitEvent(a->stream, a->event, 0));
    ASK(cuStreamSynchronize(NULL));
    ASK(cuStreamGetId(a->stream, &id));
    ASK(cuStreamIsCapturing(a->stream, &status));
    ASK(cuMemAlloc(&p, 4));
    ASK(cuMemFree(0));
    ASK(cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, a->buffer));
    CUpointer_attribute attribute_id = CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL;
    void *out = &value;
    ASK(cuPointerGetAttributes(1, &attribute_id, &out, a->buffer));
    ASK(cuMemGetAddressRange(&p, NULL, a->buffer));
    ASK(cuEventCreate(&event, 0));
    ASK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, a->touch));
    ASK(cuFuncGetName(&name, a->touch));
    ASK(cuModuleGetFunction(&function, a->module, "touch"));
    ASK(cuGraphCreate(&graph, 0));
    DO(cuCtxSetCurrent(a->ctx));
}

void ask_context(void) {
    struct answers *a = &answers;
    CUcontext other;
    CUstream stream;
    CUevent event;
    DO(cuCtxCreate(&other, NULL, 0, 0));
    DO(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    DO(cuEventCreate(&event, 0));
    ASK(answers_launch(a->touch, stream));
    ASK(answers_launch(a->touch, NULL));
    ASK(answers_launch(a->touch, a->stream));
    ASK(cuEventRecord(event, a->stream));
    ASK(cuEventRecord(a->event, a->stream));
    ASK(cuStreamWaitEvent(a->stream, event, 0));
    ASK(cuMemsetD8Async(a->buffer, 0, 4, a->stream));
    ASK(cuStreamSynchronize(a->stream));
    ASK(cuMemsetD8Async(a->buffer, 0, 4, stream));
    ASK(cuStreamSynchronize(stream));
    DO(cuCtxDestroy(other));
    without_context();
    ASK(cuStreamDestroy(NULL));
    ASK(cuStreamDestroy(CU_STREAM_LEGACY));
    ASK(cuStreamDestroy(CU_STREAM_PER_THREAD));
    ASK(cuStreamCreate(&stream, 5));
    int priority = 1;
    DO(cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, -9));
    DO(cuStreamGetPriority(stream, &priority));
    NOTE("priority -9 becomes %d\n", priority);
    DO(cuStreamDestroy(stream));
}

void ask_end(void) {
    struct answers *a = &answers;
    CUdeviceptr p;
    ASK(cuModuleUnload(a->module));
    ASK(cuCtxSynchronize());
    ASK(cuDevicePrimaryCtxReset(0));
    ASK(cuCtxSynchronize());
    ASK(cuMemAlloc(&p, 4));
    DO(cuDevicePrimaryCtxRetain(&a->ctx, 0));
    ASK(cuCtxSynchronize()); /* the handle that stayed current means the new one */
    DO(cuDevicePrimaryCtxReset(0));
}

void ask_all(FILE *out) {
    answers_open(out);
    ask_resolver();
    ask_launch();
    ask_function();
    ask_context();
    ask_pointer();
    ask_memory();
    ask_event();
    ask_capture();
    ask_unsafe();
    ask_node();
    ask_exec();
    ask_end();
    answers_close();
    fflush(out);
}
