/*
 * Real-time threads of the program (HAZARDS G4). A real-time thread that polls memory may keep the
 * watchdog from running. So either the watchdog runs above it, or it defers nothing.
 * cus_realtime_allows runs on program threads under an engine's lock, when a segment begins or a
 * thread takes one over. It asks the kernel about the thread once per STEPS steps, or at each step
 * if the watchdog has one processor, because asking costs as much as some launches.
 * cus_realtime_look runs on the watchdog's thread, once a second. Neither calls the driver.
 */
#include "shim/base/thread.h"

#include "shim/base/clock.h"
#include "shim/base/hazard.h"
#include "shim/base/log.h"
#include "shim/stream/fallback.h"
#include "shim/stream/realtime.h"
#include "shim/stream/state.h"

enum {
    LOOK_NS = 1000000000,
    HIGHEST = 99, /* highest priority of SCHED_FIFO */
    STEPS = 64    /* steps of a thread between two questions, if not asked at each step */
};

static struct {
    int above;      /* atomic: the watchdog's priority; threads below it do no harm */
    uint32_t found; /* atomic: looks that found threads not below the watchdog */
    /* Atomic: the watchdog has more than one processor, so a thread that just became real-time
     * cannot take all of them. */
    uint32_t spare;
    uint32_t crowd;  /* atomic: such threads are as many as the watchdog's processors */
    uint64_t looked; /* watchdog only: time of the last look, in ns */
} urgent;

/* Raises the watchdog above `urgency` and all threads that the process has now. */
static bool (*raise_watchdog)(int priority); /* set at start */

void cus_realtime_start(bool (*raise)(int priority)) {
    raise_watchdog = raise;
}

static bool rise(int urgency) {
    int highest;
    cus_thread_urgent(CUS_URGENCY_NONE + 1, &highest);
    if (highest < urgency || highest >= HIGHEST)
        highest = urgency;
    /* The watchdog cannot run above a thread of SCHED_DEADLINE, which cannot start threads
     * either. */
    if (highest >= HIGHEST || !raise_watchdog(highest + 1))
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

void cus_realtime_drop(void) {
    uint32_t found = urgent.found + 1; /* not what any thread has in `found_urgent` */
    memset(&urgent, 0, sizeof urgent);
    urgent.found = found;
    raise_watchdog = NULL;
}
