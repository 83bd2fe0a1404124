/*
 * What host functions and small uploads cost as nodes, and between graphs. Only the thread of the
 * trial runs it, but for the host function.
 */
#include "tests/gpu/facts/facts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { KERNELS = 10, SMALL = 4, LARGE = 16384 };

static void nothing(void *data) {
    (void)data;
}

/* What a form issues. */
struct work {
    CUgraphExec first, second; /* second may be NULL */
    bool function;             /* cuLaunchHostFunc in between */
    unsigned upload;           /* bytes of a pageable copy in front */
};

static unsigned char pageable[LARGE];

static void issue(const void *data) {
    const struct work *work = data;
    if (work->upload)
        cu.cuMemcpyHtoDAsync_v2(lab.memory + 65536, pageable, work->upload, lab.a);
    cu.cuGraphLaunch(work->first, lab.a);
    if (work->function)
        cu.cuLaunchHostFunc(lab.a, nothing, NULL);
    if (work->second)
        cu.cuGraphLaunch(work->second, lab.a);
}

/* Two times KERNELS kernels with a host node in between. */
static CUgraphExec with_host_node(void) {
    struct fact_chain chain = fact_chain();
    CUDA_HOST_NODE_PARAMS node = {.fn = nothing};
    for (int i = 0; i < KERNELS; i++)
        fact_chain_touch(&chain);
    CUgraphNode before = chain.last;
    CALL(cuGraphAddHostNode, (&chain.last, chain.graph, &before, 1, &node));
    for (int i = 0; i < KERNELS; i++)
        fact_chain_touch(&chain);
    return fact_chain_exec(&chain);
}

static void host_node(int arg) {
    (void)arg;
    CUgraphExec half = fact_touches(KERNELS), other_half = fact_touches(KERNELS);
    const struct work without = {.first = fact_touches(2 * KERNELS)},
                      node = {.first = with_host_node()},
                      call = {.first = half, .second = other_half, .function = true},
                      halves = {.first = half, .second = other_half};
    struct fact_form forms[] = {
        {.name = "without", .run = issue, .work = &without},
        {.name = "host node", .run = issue, .work = &node},
        {.name = "cuLaunchHostFunc between two graphs", .run = issue, .work = &call},
        {.name = "two graphs", .run = issue, .work = &halves}};
    fact_forms(forms, 4);
    fact_detail("us for 20 kernels");
}

static CUgraphExec with_upload(const void *pinned, unsigned bytes) {
    struct fact_chain chain = fact_chain();
    CUDA_MEMCPY3D copy = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                          .srcHost = pinned,
                          .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                          .dstDevice = lab.memory + 65536,
                          .WidthInBytes = bytes,
                          .Height = 1,
                          .Depth = 1};
    CALL(cuGraphAddMemcpyNode, (&chain.last, chain.graph, NULL, 0, &copy, lab.context));
    for (int i = 0; i < KERNELS; i++)
        fact_chain_touch(&chain);
    return fact_chain_exec(&chain);
}

static void upload(int arg) {
    (void)arg;
    void *pinned = NULL;
    CALL(cuMemHostAlloc, (&pinned, LARGE, 0));
    const struct work without = {.first = fact_touches(KERNELS)},
                      small = {.first = with_upload(pinned, SMALL)},
                      large = {.first = with_upload(pinned, LARGE)},
                      pageable_small = {.first = without.first, .upload = SMALL},
                      pageable_large = {.first = without.first, .upload = LARGE};
    struct fact_form forms[] = {{.name = "without", .run = issue, .work = &without},
                                {.name = "node of 4 bytes", .run = issue, .work = &small},
                                {.name = "node of 16 KB", .run = issue, .work = &large},
                                {.name = "pageable 4 bytes", .run = issue, .work = &pageable_small},
                                {.name = "pageable 16 KB", .run = issue, .work = &pageable_large}};
    fact_forms(forms, 5);
    fact_detail("us for 10 kernels, a copy in front");
}

/* A copy from pageable memory behind a gate, whose source changes once the call is back. */
static void upload_source(int bytes) {
    unsigned char *source = malloc((size_t)bytes), first = 0, last = 0;
    CUdeviceptr target = fact_memory((size_t)bytes);
    struct fact_call copy;
    CUmemorytype type = 0;
    unsigned managed = 0;
    int access = 0;
    size_t size = 0;
    CUpointer_attribute ids[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                 CU_POINTER_ATTRIBUTE_RANGE_SIZE};
    void *values[] = {&type, &managed, &size};
    CALL(cuDeviceGetAttribute, (&access, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, lab.device));
    CUresult asked = cu.cuPointerGetAttributes(3, ids, values, (CUdeviceptr)(uintptr_t)source);
    memset(source, 1, (size_t)bytes);
    int gate = fact_gate_close(lab.a);
    WATCH(copy, cuMemcpyHtoDAsync_v2, (target, source, (size_t)bytes, lab.a));
    memset(source, 2, (size_t)bytes);
    fact_gate_open(gate);
    CALL(cuStreamSynchronize, (lab.a));
    CALL(cuMemcpyDtoH_v2, (&first, target, 1));
    CALL(cuMemcpyDtoH_v2, (&last, target + (CUdeviceptr)bytes - 1, 1));
    fact_say("the call %s, and the device gets what the source held %s", fact_call_text(copy),
             first == 1 && last == 1   ? "at the call"
             : first == 2 && last == 2 ? "behind the call"
                                       : "partly at the call");
    fact_detail("PAGEABLE_MEMORY_ACCESS %d; attributes of the source: %s, type %d, managed %u, %zu "
                "bytes",
                access, asked == CUDA_SUCCESS ? "success" : fact_code(asked), (int)type, managed,
                size);
}

/* A copy to pageable memory behind a gate: does the call wait for it? */
static void download(int bytes) {
    unsigned char *target = malloc((size_t)bytes);
    CUdeviceptr source = fact_memory((size_t)bytes);
    struct fact_call copy;
    fact_gate_close(lab.a);
    WATCH(copy, cuMemcpyDtoHAsync_v2, (target, source, (size_t)bytes, lab.a));
    CUresult behind = cu.cuStreamQuery(lab.a);
    fact_say("the call %s; the stream is then %s", fact_call_text(copy),
             behind == CUDA_SUCCESS ? "complete" : fact_code(behind));
    CALL(cuStreamSynchronize, (lab.a));
    free(target);
}

/* An upload whose source is no memory. */
enum { SOURCE_NULL, SOURCE_UNMAPPED, SOURCE_FREED };
static void upload_bad(int which) {
    CUdeviceptr target = fact_memory(4096), freed = 0;
    struct fact_call copy;
    char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(page, 4096);
    CALL(cuMemAlloc_v2, (&freed, 4096));
    CALL(cuMemFree_v2, (freed));
    const void *source = which == SOURCE_NULL       ? NULL
                         : which == SOURCE_UNMAPPED ? page
                                                    : (const void *)(uintptr_t)freed;
    WATCH(copy, cuMemcpyHtoDAsync_v2, (target, source, 4, lab.a));
    fact_say("the call %s", fact_call_text(copy));
    fact_detail("the stream is then %s", fact_code(cu.cuStreamSynchronize(lab.a)));
}

const struct fact_trial fact_host[] = {
    {"host-node", host_node, 0, 0},
    {"upload-node", upload, 0, 0},
    {"upload-bad/null", upload_bad, SOURCE_NULL, 0},
    {"upload-bad/unmapped", upload_bad, SOURCE_UNMAPPED, 0},
    {"upload-bad/freed", upload_bad, SOURCE_FREED, 0},
    {"download/1", download, 1, 0},
    {"download/4", download, 4, 0},
    {"download/16KB", download, 16 << 10, 0},
    {"download/1MB", download, 1 << 20, 0},
    {"upload-source/4", upload_source, 4, 0},
    {"upload-source/1KB", upload_source, 1 << 10, 0},
    {"upload-source/16KB", upload_source, 16 << 10, 0},
    {"upload-source/64KB", upload_source, 64 << 10, 0},
    {"upload-source/65KB", upload_source, 65 << 10, 0},
    {"upload-source/1MB", upload_source, 1 << 20, 0},
    {0},
};
