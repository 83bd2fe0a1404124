/*
 * Build priority: other threads wait a moment in front of the driver while a graph is built. Called
 * by the thread that builds, with the build lock held, and by threads that are about to issue ops.
 * With 16 threads a graph took 80 ms to build without it (tests/gpu/RESULTS.md).
 */
#include <limits.h>

#include "shim/base/clock.h"
#include "shim/base/hazard.h"
#include "shim/base/lock.h"
#include "shim/stream/priority.h"
#include "shim/stream/state.h"

/*
 * Each driver call of a build waits for the driver's lock. Beside many threads that launch, the
 * build hardly ever gets that lock. Without build priority, on an H200 with 16 threads
 * (tests/gpu/RESULTS.md):
 *
 * | measured                                 |  value |
 * | ---------------------------------------- | -----: |
 * | host time to build one graph             |  80 ms |
 * | longest step                             |  3.4 s |
 * | ops in graphs, over 400 steps            |   13 % |
 *
 * So a thread that is about to issue an op or a complete segment waits a moment for a build with
 * priority; threads on demoted streams wait too. The wait is bounded, and the waiting thread holds
 * no lock but its own stream's lock, which a build of another stream does not take.
 *
 * A build has priority from its start while few builds have passed since one that many threads
 * waited for, or that took long. Any other build gets priority once it takes long: the first thread
 * that notices this sets CUS_PRIORITY_NOW for all. */

enum {
    CONTENDED_NS = 7500, /* Per node, in ns: a driver without contention is always faster. */
    CONTENDED_FROM = 8,  /* A smaller graph counts as one of this many nodes. */
    /* Builds that have priority from their start: after the process start, after a build that CROWD
     * threads waited for, and after a build that took long. */
    CONTENDED_BUILDS = 64,
    CROWD = 3, /* Threads that waited for one build */
    /* The longest wait of one op, in ns. */
    YIELD_NS = 1000000,
    /* Waits of one thread, or of one stream's lock holder, for one build. Waits while room is made
     * are not counted, because room.c bounds how long that takes. */
    YIELDS = 4
};

void cus_build_start(void) {
    cus_process.contended = CONTENDED_BUILDS;
}

/* A build of `nodes` nodes that takes longer than this competes for the driver's lock. */
static uint64_t long_ns(uint32_t nodes) {
    return (uint64_t)(nodes > CONTENDED_FROM ? nodes : CONTENDED_FROM) * CONTENDED_NS;
}

bool cus_build_takes_priority(uint32_t nodes) {
    bool now = cus_process.contended > 0;
    cus_process.contended -= now;
    uint32_t next = cus_process.build_number + CUS_PRIORITY_STEP;
    cus_process.build_number = next ? next : CUS_PRIORITY_STEP; /* 0 means: no build has priority */
    __atomic_store_n(&cus_process.priority_from, cus_clock_ns() + long_ns(nodes), __ATOMIC_RELAXED);
    uint32_t flags = (now ? CUS_PRIORITY_NOW : 0) | (nodes ? 0 : CUS_PRIORITY_ROOM);
    __atomic_store_n(&cus_process.build_now, cus_process.build_number | flags, __ATOMIC_RELEASE);
    return now;
}

void cus_build_had_priority(bool now, uint32_t nodes, uint64_t ns) {
    __atomic_store_n(&cus_process.build_now, 0, __ATOMIC_RELEASE);
    cus_futex_wake(&cus_process.build_now, INT_MAX);
    bool crowd = __atomic_exchange_n(&cus_process.waited, 0, __ATOMIC_RELAXED) >= CROWD;
    if (crowd || (!now && nodes >= CONTENDED_FROM && ns > long_ns(nodes)))
        cus_process.contended = CONTENDED_BUILDS;
}

/* Does the build in `*build` have priority by now? If the build already takes long, the
 * calling thread gives it priority, unless the build has ended. Updates `*build`. */
static bool has_priority(uint32_t *build) {
    if (*build & CUS_PRIORITY_NOW)
        return true;
    if (!*build || cus_clock_ns() < __atomic_load_n(&cus_process.priority_from, __ATOMIC_RELAXED))
        return false;
    uint32_t with = *build | CUS_PRIORITY_NOW;
    bool gave = __atomic_compare_exchange_n(&cus_process.build_now, build, with, false,
                                            __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    *build = gave ? with : *build;
    return *build & CUS_PRIORITY_NOW;
}

bool cus_build_wait(struct cus_build_waits *build_waits, uint64_t most_ns) {
    uint32_t build = __atomic_load_n(&cus_process.build_now, __ATOMIC_ACQUIRE);
    if (!most_ns || !has_priority(&build))
        return false;
    if (build_waits->build != build) {
        *build_waits = (struct cus_build_waits){.build = build};
        __atomic_add_fetch(&cus_process.waited, 1, __ATOMIC_RELAXED);
    }
    if (build_waits->n++ >= YIELDS && !(build & CUS_PRIORITY_ROOM))
        return false;
    cus_futex_wait(&cus_process.build_now, build, most_ns < YIELD_NS ? most_ns : YIELD_NS);
    return true;
}
