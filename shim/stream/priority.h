/*
 * Build priority (priority.c). Private to shim/stream.
 */
#ifndef CUSPLICE_STREAM_PRIORITY_H
#define CUSPLICE_STREAM_PRIORITY_H

#include "shim/stream/state.h"

/* At process start: the first builds have priority, as nothing is known of other threads. */
void cus_build_start(void);
/* Called with the build lock held around a build of this many nodes, or around making room (0).
 * Returns whether other threads wait at once; the second call ends that, with the time taken. */
bool cus_build_takes_priority(uint32_t nodes);
void cus_build_had_priority(bool now, uint32_t nodes, uint64_t ns);
/* Lets a build with priority go first, before this thread issues an op or a graph. Waits at most
 * `most_ns`, and a few times for one build. A caller without a lock gives the thread's
 * `build_waits`, a holder of an engine lock the engine's. False: did not wait. */
bool cus_build_wait(struct cus_build_waits *build_waits, uint64_t most_ns);
static inline bool cus_build_yield(struct cus_build_waits *build_waits, uint64_t most_ns) {
    return __builtin_expect(__atomic_load_n(&cus_process.build_now, __ATOMIC_RELAXED), 0) &&
           cus_build_wait(build_waits, most_ns);
}

#endif
