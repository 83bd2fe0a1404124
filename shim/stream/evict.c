/*
 * Eviction: if a memory budget has no room for a graph or a path, idle or demoted streams give up
 * theirs. Runs on program threads at the end of a step, no lock held. It takes one engine's lock at
 * a time, and only if the lock is free. It costs two loads while memory suffices.
 */
#include "shim/stream/evict.h"
#include "shim/base/clock.h"
#include "shim/base/hazard.h"
#include "shim/base/mem.h"
#include "shim/stream/access.h"
#include "shim/stream/advice.h"
#include "shim/stream/fallback.h"
#include "shim/stream/state.h"

enum {
    LOOK_NS = 10000000,   /* ns between two looks */
    IDLE_NS = 1000000000, /* ns without an op that make a stream idle */
    SEGMENTS = 64         /* segments dropped at one look */
};

/* Is memory wanted and the time since the last look long enough? True for one thread only. */
static bool may_look(uint64_t now) {
    uint64_t refused = cus_mem_refused();
    bool wanting = __atomic_load_n(&cus_process.wanting, __ATOMIC_RELAXED) ||
                   refused != __atomic_load_n(&cus_process.refused, __ATOMIC_RELAXED);
    uint64_t last = __atomic_load_n(&cus_process.looked_at, __ATOMIC_RELAXED);
    if (!wanting || now - last < LOOK_NS ||
        !__atomic_compare_exchange_n(&cus_process.looked_at, &last, now, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED))
        return false;
    __atomic_store_n(&cus_process.refused, refused, __ATOMIC_RELAXED);
    __atomic_store_n(&cus_process.wanting, false, __ATOMIC_RELAXED);
    return true;
}

/* Can the stream give up its graphs? Engine lock held. */
static bool idle(struct cus_engine *engine, uint64_t now) {
    uint64_t ops = cus_engine_ops(engine);
    if (ops != engine->idle_ops || !engine->idle_since) {
        engine->idle_ops = ops;
        engine->idle_since = now;
    }
    /* A demoted stream counts as idle. Nothing is destroyed while the program may capture here. */
    bool alone = __atomic_load_n(&engine->demoted, __ATOMIC_RELAXED);
    return !engine->closed && !engine->pending && (alone || now - engine->idle_since >= IDLE_NS) &&
           !__atomic_load_n(&engine->context->captures, __ATOMIC_ACQUIRE) &&
           (engine->view.n_segments || cus_plan_nodes(cus_engine_plan(engine)));
}

/* Drops the segments not used for the longest time. Engine lock held. */
static void evict_some(struct cus_engine *engine) {
    bool pushed;
    if (!cus_context_enter(engine->context->handle, &pushed))
        return;
    cus_fallback(CUS_FALLBACK_BUDGET);
    cus_advice_keep(engine);
    engine->dropping = "another stream needs the memory, and this one is idle";
    cus_plan_evict(cus_engine_plan(engine), SEGMENTS);
    engine->dropping = NULL;
    cus_context_leave(pushed);
    /* This stream or another one may hold more that can be dropped. */
    __atomic_store_n(&cus_process.wanting, true, __ATOMIC_RELAXED);
}

void cus_evict_idle(void) {
    if (!__atomic_load_n(&cus_process.wanting, __ATOMIC_RELAXED) &&
        cus_mem_refused() == __atomic_load_n(&cus_process.refused, __ATOMIC_RELAXED))
        return;
    uint64_t now = cus_clock_ns();
    if (!CUS_HAZARD(A19) || !may_look(now))
        return;
    bool done = false;
    uint32_t n = __atomic_load_n(&cus_process.n_engines, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < n && !done; i++) {
        struct cus_engine *engine = cus_process.engines[i];
        if (!cus_lock_try(&engine->lock))
            continue;
        if ((done = idle(engine, now)))
            evict_some(engine);
        cus_engine_unlock(engine);
    }
}
