/*
 * Implements gpu.h with the driver alone, without cudart. The kernels are an image in the program;
 * the linker binds the driver.
 */
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>

#include "harness/bench/gpu.h"
#include "harness/bench/hostloop_kernels.h"

extern const unsigned char hostloop_image_fatbin[];

#define NAME(n) "bench_small_" #n,
static const char *const names[KERNELS + 1] = {HOSTLOOP_KERNELS(NAME) "bench_eager"};
/* gpu_start sets it; later code only reads it. */
static CUcontext context;
static CUfunction functions[KERNELS + 1];

const char *const gpu_api = "driver";

static void check(CUresult code, const char *call, int line) {
    if (code == CUDA_SUCCESS)
        return;
    const char *name = "?";
    cuGetErrorName(code, &name);
    fprintf(stderr, "hostloop: %s: %s (line %d)\n", call, name, line);
    exit(2);
}
#define CHECK(call) check((call), #call, __LINE__)

void gpu_start(void) {
    CUdevice device;
    CUmodule module;
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuModuleLoadData(&module, hostloop_image_fatbin));
    for (unsigned k = 0; k <= KERNELS; k++)
        CHECK(cuModuleGetFunction(&functions[k], module, names[k]));
}

void gpu_thread(void) {
    CHECK(cuCtxSetCurrent(context));
}

void gpu_wait(void) {
    CHECK(cuCtxSynchronize());
}

void gpu_checked(void) {}

size_t gpu_used(void) {
    size_t free_bytes = 0, total = 0;
    CHECK(cuMemGetInfo(&free_bytes, &total));
    return total - free_bytes;
}

static CUdeviceptr address(const void *at) {
    return (CUdeviceptr)(uintptr_t)at;
}

unsigned *gpu_buffer(void) {
    CUdeviceptr at = 0;
    CHECK(cuMemAlloc(&at, WORDS * sizeof(unsigned)));
    CHECK(cuMemsetD8(at, 1, WORDS * sizeof(unsigned)));
    return (unsigned *)(uintptr_t)at;
}

void gpu_read(unsigned host[WORDS], const unsigned *state) {
    CHECK(cuMemcpyDtoH(host, address(state), WORDS * sizeof *host));
}

gpu_stream gpu_stream_new(int nonblocking) {
    CUstream stream;
    CHECK(cuStreamCreate(&stream, nonblocking ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT));
    return stream;
}

void gpu_stream_wait(gpu_stream stream) {
    CHECK(cuStreamSynchronize(stream));
}

void gpu_launch(gpu_stream stream, const struct gpu_launch *l) {
    unsigned words = WORDS;
    void *args[] = {(void *)&l->state, &words, (void *)&l->scalar};
    CHECK(cuLaunchKernel(functions[l->kernel], l->grid, 1, 1, l->block, 1, 1, l->shared, stream,
                         args, NULL));
}

void gpu_set(gpu_stream stream, void *to, int byte, size_t bytes) {
    CHECK(cuMemsetD8Async(address(to), (unsigned char)byte, bytes, stream));
}

void gpu_copy(gpu_stream stream, void *to, const void *from, size_t bytes) {
    CHECK(cuMemcpyDtoDAsync(address(to), address(from), bytes, stream));
}

void *gpu_alloc(gpu_stream stream, size_t bytes) {
    CUdeviceptr at = 0;
    CHECK(cuMemAllocAsync(&at, bytes, stream));
    return (void *)(uintptr_t)at;
}

void gpu_free(gpu_stream stream, void *memory) {
    CHECK(cuMemFreeAsync(address(memory), stream));
}

size_t gpu_pool_most(void) {
    CUdevice device;
    CUmemoryPool pool;
    cuuint64_t most = 0;
    CHECK(cuCtxGetDevice(&device));
    CHECK(cuDeviceGetDefaultMemPool(&pool, device));
    CHECK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, &most));
    return most;
}

void *gpu_memory(size_t bytes) {
    CUdeviceptr memory;
    CHECK(cuMemAlloc(&memory, bytes));
    return (void *)(uintptr_t)memory;
}

void gpu_upload(gpu_stream stream, void *to, const void *from, size_t bytes) {
    CHECK(cuMemcpyHtoDAsync(address(to), from, bytes, stream));
}

gpu_event gpu_event_new(int timed) {
    CUevent event;
    CHECK(cuEventCreate(&event, timed ? CU_EVENT_DEFAULT : CU_EVENT_DISABLE_TIMING));
    return event;
}

void gpu_event_record(gpu_event event, gpu_stream stream) {
    CHECK(cuEventRecord(event, stream));
}

void gpu_event_wait(gpu_event event, gpu_stream stream) {
    CHECK(cuStreamWaitEvent(stream, event, 0));
}

double gpu_event_us(gpu_event from, gpu_event to) {
    float ms = 0;
    CHECK(cuEventElapsedTime(&ms, from, to));
    return ms * 1e3;
}

/* Returns a launch's node in the driver's form, and fills `args`. */
static CUDA_KERNEL_NODE_PARAMS node_params(const struct gpu_launch *l, unsigned *words,
                                           void *args[3]) {
    *words = WORDS;
    args[0] = (void *)&l->state, args[1] = words, args[2] = (void *)&l->scalar;
    return (CUDA_KERNEL_NODE_PARAMS){
        .func = functions[l->kernel],
        .gridDimX = l->grid,
        .gridDimY = 1,
        .gridDimZ = 1,
        .blockDimX = l->block,
        .blockDimY = 1,
        .blockDimZ = 1,
        .sharedMemBytes = l->shared,
        .kernelParams = args,
    };
}

gpu_graph gpu_graph_new(void) {
    CUgraph graph;
    CHECK(cuGraphCreate(&graph, 0));
    return graph;
}

gpu_node gpu_graph_launch(gpu_graph graph, gpu_node behind, const struct gpu_launch *l) {
    CUgraphNode node, before = behind;
    unsigned words;
    void *args[3];
    CUDA_KERNEL_NODE_PARAMS p = node_params(l, &words, args);
    CHECK(cuGraphAddKernelNode(&node, graph, &before, before != NULL, &p));
    return node;
}

gpu_node gpu_graph_set(gpu_graph graph, gpu_node behind, void *to, int byte, size_t bytes) {
    CUgraphNode node, before = behind;
    CUDA_MEMSET_NODE_PARAMS p = {
        .dst = address(to), .value = (unsigned)byte, .elementSize = 1, .width = bytes, .height = 1};
    CHECK(cuGraphAddMemsetNode(&node, graph, &before, before != NULL, &p, context));
    return node;
}

gpu_node gpu_graph_record(gpu_graph graph, gpu_node behind, gpu_event event) {
    CUgraphNode node, before = behind;
    CHECK(cuGraphAddEventRecordNode(&node, graph, &before, before != NULL, event));
    return node;
}

gpu_node gpu_graph_copy(gpu_graph graph, gpu_node behind, void *to, const void *from,
                        size_t bytes) {
    CUgraphNode node, before = behind;
    CUDA_MEMCPY3D p = {
        .srcMemoryType = CU_MEMORYTYPE_DEVICE,
        .srcDevice = address(from),
        .srcPitch = bytes,
        .srcHeight = 1,
        .dstMemoryType = CU_MEMORYTYPE_DEVICE,
        .dstDevice = address(to),
        .dstPitch = bytes,
        .dstHeight = 1,
        .WidthInBytes = bytes,
        .Height = 1,
        .Depth = 1,
    };
    CHECK(cuGraphAddMemcpyNode(&node, graph, &before, before != NULL, &p, context));
    return node;
}

void gpu_graph_edge(gpu_graph graph, gpu_node before, gpu_node node) {
    CUgraphNode from = before, to = node;
    CHECK(cuGraphAddDependencies(graph, &from, &to, NULL, 1));
}

gpu_exec gpu_exec_new(gpu_graph graph, gpu_stream stream) {
    CUgraphExec exec;
    CHECK(cuGraphInstantiate(&exec, graph, 0));
    CHECK(cuGraphUpload(exec, stream));
    CHECK(cuStreamSynchronize(stream));
    return exec;
}

void gpu_exec_launch(gpu_exec exec, gpu_stream stream) {
    CHECK(cuGraphLaunch(exec, stream));
}

void gpu_exec_patch(gpu_exec exec, gpu_node node, const struct gpu_launch *l) {
    unsigned words;
    void *args[3];
    CUDA_KERNEL_NODE_PARAMS p = node_params(l, &words, args);
    CHECK(cuGraphExecKernelNodeSetParams(exec, node, &p));
}
