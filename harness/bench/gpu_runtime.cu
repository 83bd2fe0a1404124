/*
 * Implements gpu.h with the CUDA runtime, as most programs use CUDA: kernels are launched by
 * <<<>>>. The build decides whether cudart is static or shared.
 */
#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>

#include "harness/bench/gpu.h"
#include "harness/bench/hostloop_kernels.h"

#define CHECK(call)                                                                                \
    do {                                                                                           \
        cudaError_t status_ = (call);                                                              \
        if (status_ != cudaSuccess) {                                                              \
            fprintf(stderr, "hostloop: %s: %s (line %d)\n", #call, cudaGetErrorString(status_),    \
                    __LINE__);                                                                     \
            exit(2);                                                                               \
        }                                                                                          \
    } while (0)

typedef void (*kernel_fn)(unsigned *, unsigned, unsigned);
#define NAME(n) bench_small_##n,
static const kernel_fn kernels[KERNELS + 1] = {HOSTLOOP_KERNELS(NAME) bench_eager};

const char *const gpu_api = "runtime";

void gpu_start(void) {
    CHECK(cudaFree(NULL));
}

void gpu_thread(void) {}

void gpu_wait(void) {
    CHECK(cudaDeviceSynchronize());
}

void gpu_checked(void) {
    CHECK(cudaGetLastError());
}

size_t gpu_used(void) {
    size_t free_bytes = 0, total = 0;
    CHECK(cudaMemGetInfo(&free_bytes, &total));
    return total - free_bytes;
}

unsigned *gpu_buffer(void) {
    unsigned *state = NULL;
    CHECK(cudaMalloc(&state, WORDS * sizeof *state));
    CHECK(cudaMemset(state, 1, WORDS * sizeof *state));
    return state;
}

void gpu_read(unsigned host[WORDS], const unsigned *state) {
    CHECK(cudaMemcpy(host, state, WORDS * sizeof *host, cudaMemcpyDeviceToHost));
}

gpu_stream gpu_stream_new(int nonblocking) {
    cudaStream_t stream;
    CHECK(cudaStreamCreateWithFlags(&stream,
                                    nonblocking ? cudaStreamNonBlocking : cudaStreamDefault));
    return stream;
}

void gpu_stream_wait(gpu_stream stream) {
    CHECK(cudaStreamSynchronize((cudaStream_t)stream));
}

void gpu_launch(gpu_stream stream, const struct gpu_launch *l) {
    kernels[l->kernel]<<<l->grid, l->block, l->shared, (cudaStream_t)stream>>>(l->state, WORDS,
                                                                               l->scalar);
}

void gpu_set(gpu_stream stream, void *to, int byte, size_t bytes) {
    CHECK(cudaMemsetAsync(to, byte, bytes, (cudaStream_t)stream));
}

void gpu_copy(gpu_stream stream, void *to, const void *from, size_t bytes) {
    CHECK(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, (cudaStream_t)stream));
}

void *gpu_alloc(gpu_stream stream, size_t bytes) {
    void *at = NULL;
    CHECK(cudaMallocAsync(&at, bytes, (cudaStream_t)stream));
    return at;
}

void gpu_free(gpu_stream stream, void *memory) {
    CHECK(cudaFreeAsync(memory, (cudaStream_t)stream));
}

size_t gpu_pool_most(void) {
    int device = 0;
    cudaMemPool_t pool;
    unsigned long long most = 0; /* 64 bits, as cuuint64_t */
    CHECK(cudaGetDevice(&device));
    CHECK(cudaDeviceGetDefaultMemPool(&pool, device));
    CHECK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemHigh, &most));
    return most;
}

void *gpu_memory(size_t bytes) {
    void *memory;
    CHECK(cudaMalloc(&memory, bytes));
    return memory;
}

void gpu_upload(gpu_stream stream, void *to, const void *from, size_t bytes) {
    CHECK(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, (cudaStream_t)stream));
}

gpu_event gpu_event_new(int timed) {
    cudaEvent_t event;
    CHECK(cudaEventCreateWithFlags(&event, timed ? cudaEventDefault : cudaEventDisableTiming));
    return event;
}

void gpu_event_record(gpu_event event, gpu_stream stream) {
    CHECK(cudaEventRecord((cudaEvent_t)event, (cudaStream_t)stream));
}

void gpu_event_wait(gpu_event event, gpu_stream stream) {
    CHECK(cudaStreamWaitEvent((cudaStream_t)stream, (cudaEvent_t)event, 0));
}

double gpu_event_us(gpu_event from, gpu_event to) {
    float ms = 0;
    CHECK(cudaEventElapsedTime(&ms, (cudaEvent_t)from, (cudaEvent_t)to));
    return ms * 1e3;
}

/* Returns a launch's node in the runtime's form, and fills `args`. */
static cudaKernelNodeParams node_params(const struct gpu_launch *l, unsigned *words,
                                        void *args[3]) {
    *words = WORDS;
    args[0] = (void *)&l->state, args[1] = words, args[2] = (void *)&l->scalar;
    cudaKernelNodeParams p = {};
    p.func = (void *)kernels[l->kernel];
    p.gridDim = dim3(l->grid);
    p.blockDim = dim3(l->block);
    p.sharedMemBytes = l->shared;
    p.kernelParams = args;
    return p;
}

gpu_graph gpu_graph_new(void) {
    cudaGraph_t graph;
    CHECK(cudaGraphCreate(&graph, 0));
    return graph;
}

gpu_node gpu_graph_launch(gpu_graph graph, gpu_node behind, const struct gpu_launch *l) {
    cudaGraphNode_t node, before = (cudaGraphNode_t)behind;
    unsigned words;
    void *args[3];
    cudaKernelNodeParams p = node_params(l, &words, args);
    CHECK(cudaGraphAddKernelNode(&node, (cudaGraph_t)graph, &before, before != NULL, &p));
    return node;
}

gpu_node gpu_graph_set(gpu_graph graph, gpu_node behind, void *to, int byte, size_t bytes) {
    cudaGraphNode_t node, before = (cudaGraphNode_t)behind;
    cudaMemsetParams p = {};
    p.dst = to;
    p.value = (unsigned)byte;
    p.elementSize = 1;
    p.width = bytes;
    p.height = 1;
    CHECK(cudaGraphAddMemsetNode(&node, (cudaGraph_t)graph, &before, before != NULL, &p));
    return node;
}

gpu_node gpu_graph_record(gpu_graph graph, gpu_node behind, gpu_event event) {
    cudaGraphNode_t node, before = (cudaGraphNode_t)behind;
    CHECK(cudaGraphAddEventRecordNode(&node, (cudaGraph_t)graph, &before, before != NULL,
                                      (cudaEvent_t)event));
    return node;
}

gpu_node gpu_graph_copy(gpu_graph graph, gpu_node behind, void *to, const void *from,
                        size_t bytes) {
    cudaGraphNode_t node, before = (cudaGraphNode_t)behind;
    CHECK(cudaGraphAddMemcpyNode1D(&node, (cudaGraph_t)graph, &before, before != NULL, to, from,
                                   bytes, cudaMemcpyDeviceToDevice));
    return node;
}

void gpu_graph_edge(gpu_graph graph, gpu_node before, gpu_node node) {
    cudaGraphNode_t from = (cudaGraphNode_t)before, to = (cudaGraphNode_t)node;
    CHECK(cudaGraphAddDependencies((cudaGraph_t)graph, &from, &to, NULL, 1));
}

gpu_exec gpu_exec_new(gpu_graph graph, gpu_stream stream) {
    cudaGraphExec_t exec;
    CHECK(cudaGraphInstantiate(&exec, (cudaGraph_t)graph, 0));
    CHECK(cudaGraphUpload(exec, (cudaStream_t)stream));
    CHECK(cudaStreamSynchronize((cudaStream_t)stream));
    return exec;
}

void gpu_exec_launch(gpu_exec exec, gpu_stream stream) {
    CHECK(cudaGraphLaunch((cudaGraphExec_t)exec, (cudaStream_t)stream));
}

void gpu_exec_patch(gpu_exec exec, gpu_node node, const struct gpu_launch *l) {
    unsigned words;
    void *args[3];
    cudaKernelNodeParams p = node_params(l, &words, args);
    CHECK(cudaGraphExecKernelNodeSetParams((cudaGraphExec_t)exec, (cudaGraphNode_t)node, &p));
}
