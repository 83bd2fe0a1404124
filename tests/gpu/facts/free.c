/*
 * Experiment 2: frees that the driver refuses, and nodes of a graph that name memory of a pool.
 * Only the thread of the trial runs it.
 */
#include "tests/gpu/facts/facts.h"

#include <stdio.h>

enum { BYTES = 1 << 20, AT_ONCE_MS = 500 };

static CUdeviceptr alloc(void) {
    CUdeviceptr memory = 0;
    CALL(cuMemAllocAsync, (&memory, BYTES, lab.a));
    return memory;
}

/* Whether the context still runs a kernel. */
static const char *usable(void) {
    CUdeviceptr target = lab.memory;
    void *parameters[] = {&target};
    fact_step("a kernel behind a failed free");
    CUresult code = cu.cuLaunchKernel(lab.touch, 1, 1, 1, 1, 1, 1, 0, lab.a, parameters, NULL);
    if (code == CUDA_SUCCESS)
        code = cu.cuStreamSynchronize(lab.a);
    return code == CUDA_SUCCESS ? "the context is usable" : fact_code(code);
}

enum { TWICE_DONE, TWICE_GATE, TWICE_OTHER, UNKNOWN, NOTHING, INSIDE, ORDINARY, HOST, SYNC_FREE };

static void wrong(int how) {
    struct fact_call first = {0}, second = {0};
    CUdeviceptr memory = 0;
    int gate = -1;
    if (how == TWICE_DONE || how == TWICE_GATE || how == TWICE_OTHER || how == INSIDE ||
        how == SYNC_FREE)
        memory = alloc();
    if (how == UNKNOWN)
        memory = lab.memory + ((CUdeviceptr)1 << 44);
    if (how == ORDINARY)
        memory = fact_memory(BYTES);
    if (how == HOST)
        memory = lab.words;
    CALL(cuStreamSynchronize, (lab.a));
    if (how == TWICE_GATE || how == TWICE_OTHER)
        gate = fact_gate_close(lab.a);
    WATCH(first, cuMemFreeAsync, (how == INSIDE ? memory + 4096 : memory, lab.a));
    if (how == TWICE_DONE)
        CALL(cuStreamSynchronize, (lab.a));
    if (how == SYNC_FREE)
        WATCH(second, cuMemFree_v2, (memory));
    else
        WATCH(second, cuMemFreeAsync, (memory, how == TWICE_OTHER ? lab.b : lab.a));
    if (gate >= 0)
        fact_gate_open(gate);
    fact_say("free %s; again %s", fact_call_text(first), fact_call_text(second));
    fact_detail("%s", usable());
}

/* ---- nodes that name memory of a pool ---- */

static CUDA_MEMSET_NODE_PARAMS memset_of(CUdeviceptr memory) {
    CUDA_MEMSET_NODE_PARAMS node = {
        .dst = memory, .elementSize = 4, .width = 256, .height = 1, .value = 1};
    return node;
}

static CUDA_MEMCPY3D copy_of(CUdeviceptr to) {
    CUDA_MEMCPY3D node = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                          .srcDevice = lab.memory,
                          .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                          .dstDevice = to,
                          .WidthInBytes = 1024,
                          .Height = 1,
                          .Depth = 1};
    return node;
}

static struct {
    struct fact_chain chain;
    CUgraphNode node;
    CUgraphExec exec;
    bool copy;
} patch;

static void patch_make(bool copy, CUdeviceptr memory) {
    CUDA_MEMSET_NODE_PARAMS set = memset_of(memory);
    CUDA_MEMCPY3D from = copy_of(memory);
    patch.copy = copy;
    patch.chain = fact_chain();
    if (copy)
        CALL(cuGraphAddMemcpyNode, (&patch.node, patch.chain.graph, NULL, 0, &from, lab.context));
    else
        CALL(cuGraphAddMemsetNode, (&patch.node, patch.chain.graph, NULL, 0, &set, lab.context));
    patch.exec = fact_chain_exec(&patch.chain);
}

static const char *patch_to(CUdeviceptr memory) {
    struct fact_call call;
    CUDA_MEMSET_NODE_PARAMS set = memset_of(memory);
    CUDA_MEMCPY3D from = copy_of(memory);
    if (patch.copy)
        WATCH(call, cuGraphExecMemcpyNodeSetParams, (patch.exec, patch.node, &from, lab.context));
    else
        WATCH(call, cuGraphExecMemsetNodeSetParams, (patch.exec, patch.node, &set, lab.context));
    return fact_call_text(call);
}

static const char *patch_launch(void) {
    struct fact_call call;
    WATCH(call, cuGraphLaunch, (patch.exec, lab.a));
    if (call.code == CUDA_SUCCESS && !call.waited)
        WATCH(call, cuStreamSynchronize, (lab.a));
    return call.code == CUDA_SUCCESS ? "runs" : fact_call_text(call);
}

/* A node is given live memory of a pool; memory that is freed, behind a gate and done; and memory
 * that came anew. */
static void patched(int copy) {
    char text[400], detail[400];
    patch_make(copy != 0, lab.memory + 8192);
    CUdeviceptr first = alloc();
    const char *set = patch_to(first);
    snprintf(text, sizeof text, "live: set %s, launch %s", set, patch_launch());
    int gate = fact_gate_close(lab.a);
    CALL(cuMemFreeAsync, (first, lab.a));
    CUdeviceptr unreached = alloc();
    const char *anew = patch_to(unreached);
    fact_gate_open(gate);
    snprintf(detail, sizeof detail, "anew behind a gate (%s address): set %s, launch %s",
             unreached == first ? "same" : "other", anew, patch_launch());
    CALL(cuMemFreeAsync, (unreached, lab.a));
    CALL(cuStreamSynchronize, (lab.a));
    const char *dead = patch_to(unreached);
    fact_say("%s; freed: set %s", text, dead);
    CUdeviceptr last = alloc();
    const char *again = patch_to(last);
    fact_detail("%s; anew (%s address): set %s, launch %s", detail,
                last == unreached ? "same" : "other", again, patch_launch());
}

/* The memory that a node was given is freed and gone; then it is given other memory of the pool. */
static void moved(int copy) {
    CUdeviceptr before = alloc(), after = alloc();
    CUmemoryPool pool;
    patch_make(copy != 0, before);
    CALL(cuMemFreeAsync, (before, lab.a));
    CALL(cuStreamSynchronize, (lab.a));
    CALL(cuDeviceGetDefaultMemPool, (&pool, 0));
    CALL(cuMemPoolTrimTo, (pool, 0));
    const char *set = patch_to(after);
    fact_say("set %s, launch %s", set, patch_launch());
}

/* An exec whose node names memory that is freed now is launched all the same, as one would be that
 * is launched again with another node patched. */
static void stale(int copy) {
    patch_make(copy != 0, lab.memory + 8192);
    CUdeviceptr memory = alloc();
    struct fact_call again;
    CUgraphExec exec = NULL;
    patch_to(memory);
    CALL(cuMemFreeAsync, (memory, lab.a));
    CALL(cuStreamSynchronize, (lab.a));
    const char *launched = patch_launch();
    fact_say("launch of the exec %s", launched);
    WATCH(again, cuGraphInstantiateWithFlags, (&exec, patch.chain.graph, 0));
    fact_detail("its graph instantiated again %s; %s", fact_call_text(again), usable());
}

const struct fact_trial fact_free[] = {
    {"free-twice/done", wrong, TWICE_DONE, 0},
    {"free-twice/gate", wrong, TWICE_GATE, 0},
    {"free-twice/other-stream", wrong, TWICE_OTHER, 0},
    {"free-twice/by-cuMemFree", wrong, SYNC_FREE, 0},
    {"free-unknown", wrong, UNKNOWN, 0},
    {"free-null", wrong, NOTHING, 0},
    {"free-inside", wrong, INSIDE, 0},
    {"free-of-cuMemAlloc", wrong, ORDINARY, 0},
    {"free-of-host-memory", wrong, HOST, 0},
    {"pool-memset-node", patched, 0, 0},
    {"pool-memcpy-node", patched, 1, 0},
    {"pool-memset-moved", moved, 0, 0},
    {"pool-memcpy-moved", moved, 1, 0},
    {"pool-stale-memset", stale, 0, 0},
    {"pool-stale-memcpy", stale, 1, 0},
    {0},
};
