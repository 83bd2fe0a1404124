/*
 * Experiment 2: an allocation from a pool whose memory is free only behind a gate, growth while a
 * gate spins, and what a free that comes later costs. Only the thread of the trial runs it, but for
 * the thread that copies in grow.
 */
#include "tests/gpu/facts/facts.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB ((size_t)1 << 20)

enum { SOON_MS = 100, AT_ONCE_MS = 300 };

/* ---- pools ---- */

/* Of a trial's arg: which reuse is allowed, and what makes the pool full. */
enum {
    FOLLOW = 1,
    OPPORTUNISTIC = 2,
    INTERNAL = 4,
    ALL = FOLLOW | OPPORTUNISTIC | INTERNAL,
    DEVICE = 8, /* all memory of the device is taken; else the pool has a largest size */
    ROOM = 16   /* neither: the pool can grow */
};

static CUmemoryPool pool_make(size_t most, int reuse) {
    CUmemPoolProps properties = {
        .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = lab.device},
        .maxSize = most};
    static const CUmemPool_attribute attributes[] = {
        CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC,
        CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES};
    CUmemoryPool pool = NULL;
    cuuint64_t keep = UINT64_MAX;
    CALL(cuMemPoolCreate, (&pool, &properties));
    CALL(cuMemPoolSetAttribute, (pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep));
    for (int i = 0; i < 3; i++) {
        int on = (reuse >> i) & 1;
        CALL(cuMemPoolSetAttribute, (pool, attributes[i], &on));
    }
    return pool;
}

static CUdeviceptr pool_alloc(CUmemoryPool pool, size_t bytes, CUstream stream) {
    CUdeviceptr memory = 0;
    CALL(cuMemAllocFromPoolAsync, (&memory, bytes, pool, stream));
    return memory;
}

/* Takes what is left of the device, down to pieces that no trial asks for. */
static size_t device_fill(void) {
    size_t taken = 0;
    for (size_t piece = 1024 * MIB; piece >= 8 * MIB;) {
        CUdeviceptr memory = 0;
        fact_step("filling the device");
        if (cu.cuMemAlloc_v2(&memory, piece) == CUDA_SUCCESS)
            taken += piece;
        else
            piece /= 2;
    }
    return taken;
}

/* ---- a full pool ---- */

/* Watches an allocation on stream a behind its gate, and a kernel behind it; then opens that gate
 * alone. False: the gates are open now, so that the rest of the trial says nothing. */
static bool alloc_judge(CUmemoryPool pool, size_t bytes, int gate, char *text, size_t size,
                        CUdeviceptr *memory) {
    struct fact_call alloc;
    *memory = 0;
    WATCH(alloc, cuMemAllocFromPoolAsync, (memory, bytes, pool, lab.a));
    snprintf(text, size, "alloc %s", fact_call_text(alloc));
    if (alloc.waited)
        return false;
    if (alloc.code == CUDA_SUCCESS)
        fact_touch(lab.a, *memory);
    if (gate >= 0) {
        fact_gate_open(gate);
        if (alloc.code == CUDA_SUCCESS)
            snprintf(text, size, "alloc returns after %.0f us; K(A) %s", alloc.us,
                     fact_done(lab.a, AT_ONCE_MS) ? "runs at once" : "waits for B's gate");
    }
    return true;
}

/* Memory that is freed on stream b behind b's gate; an allocation on a behind a's gate. */
static void full(int arg) {
    size_t size = 64 * MIB, taken = 0;
    char text[160];
    CUmemoryPool pool = pool_make(arg & (DEVICE | ROOM) ? 0 : size, arg & ALL);
    CUdeviceptr freed = pool_alloc(pool, size, lab.b), memory;
    CALL(cuStreamSynchronize, (lab.b));
    if (arg & DEVICE)
        taken = device_fill();
    int gate_b = fact_gate_close(lab.b);
    int gate_a = fact_gate_close(lab.a);
    fact_touch(lab.b, freed);
    CALL(cuMemFreeAsync, (freed, lab.b));
    alloc_judge(pool, size / 2, gate_a, text, sizeof text, &memory);
    fact_say("%s", text);
    fact_gate_open(gate_b);
    fact_detail("%s memory; with B's gate open A %s; %zu MiB taken",
                !memory           ? "no"
                : memory == freed ? "the freed"
                                  : "other",
                fact_done(lab.a, 1000) ? "ends" : "hangs", taken / MIB);
}

/* The same where stream a has waited for an event behind b's free. */
static void full_event(int arg) {
    size_t size = 64 * MIB;
    char text[160];
    CUmemoryPool pool = pool_make(size, arg & ALL);
    CUdeviceptr freed = pool_alloc(pool, size, lab.b), memory;
    CUevent event = fact_event(CU_EVENT_DISABLE_TIMING);
    CALL(cuStreamSynchronize, (lab.b));
    int gate_b = fact_gate_close(lab.b);
    CALL(cuMemFreeAsync, (freed, lab.b));
    CALL(cuEventRecord, (event, lab.b));
    CALL(cuStreamWaitEvent, (lab.a, event, 0));
    alloc_judge(pool, size / 2, -1, text, sizeof text, &memory);
    fact_say("%s", text);
    fact_gate_open(gate_b);
    fact_detail("%s memory; A waits for an event behind B's free",
                memory == freed ? "the freed" : "other");
}

/* Stream a has a free of its own behind its gate: does an allocation use that first, and what does
 * one do that fits in neither. */
static void retry(int arg) {
    static const size_t sizes[] = {16 * MIB, 32 * MIB, 48 * MIB};
    char text[160], detail[3][200];
    for (int i = 0; i < 3; i++) {
        CUmemoryPool pool = pool_make(64 * MIB, arg & ALL);
        CUdeviceptr own = pool_alloc(pool, 32 * MIB, lab.a), memory;
        CUdeviceptr others = pool_alloc(pool, 32 * MIB, lab.b);
        CALL(cuStreamSynchronize, (lab.a));
        CALL(cuStreamSynchronize, (lab.b));
        int gate_b = fact_gate_close(lab.b);
        int gate_a = fact_gate_close(lab.a);
        fact_touch(lab.b, others);
        CALL(cuMemFreeAsync, (others, lab.b));
        fact_touch(lab.a, own);
        CALL(cuMemFreeAsync, (own, lab.a));
        alloc_judge(pool, sizes[i], gate_a, text, sizeof text, &memory);
        snprintf(detail[i], sizeof detail[i], "%zu MiB: %s, %s", sizes[i] / MIB, text,
                 !memory            ? "no memory"
                 : memory == own    ? "its own memory"
                 : memory == others ? "B's memory"
                                    : "other memory");
        fact_gate_open(gate_b);
        fact_gate_open(gate_a);
        fact_done(lab.a, 500);
        fact_done(lab.b, 500);
    }
    fact_say("%s; %s; %s", detail[0], detail[1], detail[2]);
    fact_detail("a pool of 64 MiB; 32 MiB freed on A behind A's gate, 32 MiB on B behind B's");
}

/* ---- growth and costs while a gate spins ---- */

static volatile bool copying, copied;
static char *copy_target;

static void *copy_behind_gate(void *data) {
    (void)data;
    cu.cuCtxSetCurrent(lab.context);
    copying = true;
    cu.cuMemcpyDtoHAsync_v2(copy_target, lab.memory, FACT_BYTES, lab.b);
    copied = true;
    return NULL;
}

enum { GROW_IDLE, GROW_GATE, GROW_PAGEABLE };

/* The pool has to take 1 GiB more of the device. */
static void grow(int how) {
    CUmemoryPool pool = pool_make(0, ALL);
    CUdeviceptr warm = pool_alloc(pool, 2 * MIB, lab.a), memory = 0;
    struct fact_call alloc, launch, freed;
    pthread_t thread;
    CALL(cuMemFreeAsync, (warm, lab.a));
    CALL(cuStreamSynchronize, (lab.a));
    int gate = how == GROW_IDLE ? -1 : fact_gate_close(lab.b);
    if (how == GROW_PAGEABLE) {
        copy_target = calloc(1, FACT_BYTES);
        pthread_create(&thread, NULL, copy_behind_gate, NULL);
        while (!copying)
            fact_nap(1);
        fact_nap(SOON_MS);
    }
    bool inside = how == GROW_PAGEABLE && !copied;
    WATCH(alloc, cuMemAllocFromPoolAsync, (&memory, 1024 * MIB, pool, lab.a));
    fact_say("alloc %s after %.0f us", fact_call_text(alloc), alloc.us);
    const char *copy = how != GROW_PAGEABLE ? "no copy"
                       : inside             ? "a copy inside the driver"
                                            : "a copy that did not wait";
    fact_detail("%s", copy);
    if (alloc.code == CUDA_SUCCESS && !alloc.waited) {
        void *parameters[] = {&memory};
        WATCH(launch, cuLaunchKernel, (lab.touch, 1, 1, 1, 1, 1, 1, 0, lab.a, parameters, NULL));
        WATCH(freed, cuMemFreeAsync, (memory, lab.a));
        fact_detail("%s; a launch %s, a free %s after %.0f us, the stream %s", copy,
                    fact_call_text(launch), fact_call_text(freed), freed.us,
                    fact_done(lab.a, AT_ONCE_MS) ? "ends" : "does not end");
    }
    if (gate >= 0)
        fact_gate_open(gate);
    if (how == GROW_PAGEABLE)
        pthread_join(thread, NULL);
}

/* An allocation and a free of memory that the pool has. */
static void cost(int behind) {
    enum { TIMES = 150 };
    static double alloc[TIMES], freed[TIMES];
    CUmemoryPool pool = pool_make(0, ALL);
    CUdeviceptr warm = pool_alloc(pool, 64 * MIB, lab.a), first = 0;
    struct fact_call call;
    int same = 0, waits = 0;
    CALL(cuMemFreeAsync, (warm, lab.a));
    CALL(cuStreamSynchronize, (lab.a));
    int gate = behind ? fact_gate_close(lab.a) : -1;
    for (int i = 0; i < TIMES; i++) {
        CUdeviceptr memory = 0;
        WATCH(call, cuMemAllocFromPoolAsync, (&memory, MIB, pool, lab.a));
        if (call.code != CUDA_SUCCESS)
            fact_give_up("cuMemAllocFromPoolAsync", call.code);
        alloc[i] = call.us;
        waits += call.waited;
        first = first ? first : memory;
        same += memory == first;
        fact_touch(lab.a, memory);
        WATCH(call, cuMemFreeAsync, (memory, lab.a));
        freed[i] = call.us;
        waits += call.waited;
    }
    if (behind)
        fact_gate_open(gate);
    fact_say("alloc %.0f ns, free %.0f ns", 1000 * fact_median(alloc, TIMES),
             1000 * fact_median(freed, TIMES));
    fact_detail("%d of %d had the same address; %d calls waited; a kernel in between", same, TIMES,
                waits);
}

/* ---- what a free that comes later does ---- */

static cuuint64_t high(CUmemoryPool pool, CUmemPool_attribute attribute) {
    cuuint64_t value = 0;
    CALL(cuMemPoolGetAttribute, (pool, attribute, &value));
    return value;
}

/* alloc p, K(p), free p, alloc q, K(q), free q; deferred: each free behind the next allocation. */
static void later(int arg) {
    (void)arg;
    char text[2][160];
    for (int deferred = 0; deferred < 2; deferred++) {
        CUmemoryPool pool = pool_make(0, ALL);
        CUdeviceptr before = 0, first = 0;
        int same = 0;
        int gate = fact_gate_close(lab.a);
        for (int i = 0; i < 8; i++) {
            CUdeviceptr p = pool_alloc(pool, 8 * MIB, lab.a);
            first = first ? first : p;
            same += p == first;
            if (deferred && before)
                CALL(cuMemFreeAsync, (before, lab.a));
            fact_touch(lab.a, p);
            if (!deferred)
                CALL(cuMemFreeAsync, (p, lab.a));
            before = p;
        }
        if (deferred)
            CALL(cuMemFreeAsync, (before, lab.a));
        fact_gate_open(gate);
        CALL(cuStreamSynchronize, (lab.a));
        snprintf(text[deferred], sizeof text[deferred],
                 "used at most %llu MiB, reserved %llu MiB, %d of 8 at the first address",
                 (unsigned long long)(high(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH) / MIB),
                 (unsigned long long)(high(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH) / MIB), same);
    }
    fact_say("at its place: %s; one allocation later: %s", text[0], text[1]);
    fact_detail("8 allocations of 8 MiB behind a gate");
}

const struct fact_trial fact_pool[] = {
    {"pool-largest/all", full, ALL, 0},
    {"pool-largest/no-follow", full, ALL & ~FOLLOW, 0},
    {"pool-largest/no-opportunistic", full, ALL & ~OPPORTUNISTIC, 0},
    {"pool-largest/no-internal", full, ALL & ~INTERNAL, 0},
    {"pool-largest/none", full, 0, 0},
    {"pool-device/all", full, DEVICE | ALL, 8000},
    {"pool-device/no-opportunistic", full, DEVICE | (ALL & ~OPPORTUNISTIC), 8000},
    {"pool-device/no-internal", full, DEVICE | (ALL & ~INTERNAL), 8000},
    {"pool-device/none", full, DEVICE, 8000},
    {"pool-room/all", full, ROOM | ALL, 0},
    {"pool-room/no-opportunistic", full, ROOM | (ALL & ~OPPORTUNISTIC), 0},
    {"pool-room/no-internal", full, ROOM | (ALL & ~INTERNAL), 0},
    {"pool-event/all", full_event, ALL, 0},
    {"pool-event/no-follow", full_event, ALL & ~FOLLOW, 0},
    {"pool-event/none", full_event, 0, 0},
    {"pool-own-free/all", retry, ALL, 0},
    {"pool-own-free/no-internal", retry, ALL & ~INTERNAL, 0},
    {"pool-grow/idle", grow, GROW_IDLE, 0},
    {"pool-grow/gate", grow, GROW_GATE, 0},
    {"pool-grow/pageable", grow, GROW_PAGEABLE, 0},
    {"pool-cost/idle", cost, 0, 0},
    {"pool-cost/gate", cost, 1, 0},
    {"pool-later-free", later, 0, 0},
    {0},
};
