/*
 * Real-time threads of the program: one that polls memory may keep the watchdog from running for
 * as long as it likes. So either the watchdog is above it, or it defers nothing (HAZARDS G4).
 *
 * cus_realtime_allows runs on program threads, under an engine's lock, where a segment begins or a
 * thread takes one over. The kernel is asked for a thread at each step where the watchdog has one
 * processor, else at every 64th: a question costs as much as some launches. cus_realtime_look runs
 * on the watchdog's thread, once a second. Neither calls the driver.
 */
#include "shim/base/thread.h"

#include "shim/base/clock.h"
#include "shim/base/hazard.h"
#include "shim/base/log.h"
#include "shim/stream/state.h"

enum {
    LOOK_NS = 1000000000,
    HIGHEST = 99, /* of SCHED_FIFO */
    STEPS = 64    /* of a thread between two questions, where it is not asked for at each */
};

static struct {
    int above;       /* atomic: the watchdog's own priority; what is below it does no harm */
    uint32_t found;  /* atomic: looks that found threads which are not below */
    uint32_t spare;  /* atomic: the watchdog has more than one processor, so that a thread that has
                        just become real-time leaves it one */
    uint32_t crowd;  /* atomic: as many as there are processors for the watchdog */
    uint64_t looked; /* the watchdog's: when, in ns */
} urgent;

/* Puts the watchdog above `urgency` and all threads of the process that are there. */
static bool rise(int urgency) {
    int highest;
    cus_thread_urgent(CUS_URGENCY_NONE + 1, &highest);
    if (highest < urgency || highest >= HIGHEST)
        highest = urgency;
    /* A thread of SCHED_DEADLINE can neither be outrun nor start another one. */
    if (highest >= HIGHEST || !cus_watchdog_ready() || !cus_watchdog_raise(highest + 1))
        return false;
    __atomic_store_n(&urgent.above, highest + 1, __ATOMIC_RELEASE);
    CUS_LOG_ONCE(CUS_INFO, "stream", "a real-time thread launches: the watchdog runs above it");
    return true;
}

static bool is_below(int urgency) {
    return urgency == CUS_URGENCY_NONE ||
           urgency < __atomic_load_n(&urgent.above, __ATOMIC_ACQUIRE) || rise(urgency);
}

bool cus_realtime_allows(struct cus_thread *thread) {
    if (cus_virtual.on || !CUS_HAZARD(G4))
        return true;
    uint8_t found = (uint8_t)__atomic_load_n(&urgent.found, __ATOMIC_RELAXED);
    if (!thread->scheduled || thread->found_urgent != found) {
        thread->urgency = (uint8_t)cus_thread_urgency(0);
        thread->barred = !is_below(thread->urgency);
        thread->scheduled = __atomic_load_n(&urgent.spare, __ATOMIC_RELAXED) ? STEPS : 1;
        thread->found_urgent = found;
    }
    if (!thread->barred && !__atomic_load_n(&urgent.crowd, __ATOMIC_RELAXED))
        return true;
    CUS_LOG_ONCE(CUS_WARN, "stream",
                 "real-time threads keep the watchdog from running, and it may not run above them "
                 "(RLIMIT_RTPRIO, RLIMIT_RTTIME): they defer nothing");
    cus_fallback(CUS_FALLBACK_REALTIME);
    return false;
}

bool cus_realtime_look(void) {
    uint64_t now = cus_clock_ns();
    if (now - urgent.looked < LOOK_NS || !CUS_HAZARD(G4))
        return __atomic_load_n(&urgent.crowd, __ATOMIC_RELAXED);
    urgent.looked = now;
    int highest, above = __atomic_load_n(&urgent.above, __ATOMIC_RELAXED);
    unsigned n = cus_thread_urgent(above > 0 ? above : CUS_URGENCY_NONE + 1, &highest);
    unsigned processors = cus_thread_processors();
    bool crowd = n > 0 && n >= processors && !rise(highest);
    __atomic_store_n(&urgent.spare, processors > 1, __ATOMIC_RELAXED);
    __atomic_add_fetch(&urgent.found, n > 0, __ATOMIC_RELAXED);
    __atomic_store_n(&urgent.crowd, crowd, __ATOMIC_RELAXED);
    return crowd;
}
