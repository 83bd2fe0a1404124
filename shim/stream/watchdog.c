/*
 * The watchdog: a thread that flushes every op deferred for longer than hold_us. Without it, a host
 * that polls memory written by a deferred op, and calls no CUDA, would wait for ever. One thread
 * per process. It starts when ops are first deferred, looks twice per hold_us, and sleeps while
 * nothing is deferred. It takes the gate, then one engine lock if that is free: its holder is
 * issuing work itself. It calls the driver; it also serves live.c and realtime.c.
 */
#include "shim/stream/watchdog.h"
#include "shim/base/clock.h"
#include "shim/base/hazard.h"
#include "shim/base/log.h"
#include "shim/base/thread.h"
#include "shim/stream/flush.h"
#include "shim/stream/live.h"
#include "shim/stream/realtime.h"
#include "shim/stream/state.h"
#include "shim/stream/virtual.h"
#include "shim/verify/gate.h"

enum {
    /* Looks that find no deferred ops before the thread sleeps until kicked. */
    LINGER = CUS_TURNS(64)
};

/* The watchdog holds this while it may be inside the driver. A call that must keep it out holds it
 * too. */
static struct cus_lock gate = CUS_LOCK_OF(CUS_RANK_GATE);
static uint32_t asleep; /* atomic, futex: 1 while the thread sleeps until kicked */
/* Atomic. 1: a thread was asked for. 2: no thread could be started. */
static uint32_t started;
static uint32_t stopping; /* atomic */

static struct cus_lock self_lock = CUS_LOCK_OF(CUS_RANK_INNERMOST);
static pthread_t self; /* self_lock: the thread, while `alive` */
static bool alive;     /* self_lock */

static uint64_t looked_ns; /* when the thread looked last; only this thread uses it */

/* ---- was the owning thread running? ----
 *
 * A thread that polls or sleeps in a call comes to the same place again, so a segment should end
 * there. One that had no processor, or whose process was stopped, may lose it anywhere. */

static uint64_t ran_ns(pid_t tid) {
    if (cus_virtual.on)
        return cus_virtual.ran_ns ? cus_virtual.ran_ns(tid) : 0;
    return cus_thread_ran_ns(tid);
}

static bool is_runnable(pid_t tid) {
    if (cus_virtual.on)
        return cus_virtual.runnable && cus_virtual.runnable(tid);
    return cus_thread_runnable(tid);
}

/* Notes what the owning thread has run so far. */
static void note(struct cus_engine *engine, uint64_t now) {
    pid_t tid = __atomic_load_n(&engine->owner_tid, __ATOMIC_RELAXED);
    engine->noted.at_ns = now;
    engine->noted.ran_ns = ran_ns(tid);
}

/* Has the thread been ready to run since the note, and got less than half of a processor? Only
 * where no look was late: then the note is of this segment and its owner. */
static bool was_paused(const struct cus_engine *engine, uint64_t now) {
    if (!engine->noted.ran_ns)
        return false;
    pid_t tid = __atomic_load_n(&engine->owner_tid, __ATOMIC_RELAXED);
    uint64_t ran = ran_ns(tid) - engine->noted.ran_ns;
    return 2 * ran < now - engine->noted.at_ns && is_runnable(tid);
}

/* This thread itself looks much too late: the process was stopped, or has no processor. What the
 * other thread did meanwhile is not known. If ops are overdue at the first look after a long sleep,
 * the look is late as well: the thread was woken when they were deferred. */
static bool is_late(uint64_t now) {
    return now - looked_ns > cus_process.hold_ns;
}

/* If so, the owning thread gets another half of hold_us, once for each segment: it has only just
 * begun to run again. */
static bool was_waited_for(const struct cus_engine *engine) {
    return engine->noted.waited_since == __atomic_load_n(&engine->pending_since, __ATOMIC_RELAXED);
}

static bool may_wait(struct cus_engine *engine, uint64_t now) {
    if (!is_late(now) || was_waited_for(engine))
        return false;
    engine->noted.waited_since = __atomic_load_n(&engine->pending_since, __ATOMIC_RELAXED);
    return true;
}

static bool overdue(const struct cus_engine *engine, uint64_t now) {
    uint64_t since = __atomic_load_n(&engine->pending_since, __ATOMIC_RELAXED);
    return now > since && now - since > cus_process.hold_ns;
}

/* Flushes the overdue engines. True: ops are deferred somewhere. */
static bool look(void) {
    bool any = false;
    uint64_t now = cus_clock_ns();
    struct cus_walk walk = {.n = __atomic_load_n(&cus_process.n_engines, __ATOMIC_SEQ_CST)};
    for (struct cus_engine *engine; (engine = cus_walk_pending(&walk));) {
        any = true;
        if (!CUS_HAZARD(C13) || !overdue(engine, now)) {
            note(engine, now);
            continue;
        }
        if (may_wait(engine, now) || !cus_gate_try())
            continue;
        bool paused = was_waited_for(engine) || was_paused(engine, now);
        cus_lock_take(&gate);
        if (cus_lock_try(&engine->lock)) {
            /* The submit thread's launch in front may wait for the GPU. It is not waited for
             * here. */
            if (CUS_HAZARD(B12) && engine->pending && overdue(engine, now) &&
                cus_submit_wait_for(&engine->submit, 0))
                cus_flush_locked(engine, CUS_CAUSE_WATCHDOG, CUS_BREAK_WATCHDOG,
                                 paused ? CUS_CUT_PAUSED : CUS_CUT_WATCHDOG);
            cus_engine_unlock(engine);
        }
        cus_lock_give(&gate);
        cus_gate_leave();
    }
    looked_ns = now;
    return any;
}

static void *run(void *unused) {
    (void)unused;
    cus_thread_self.depth = 1; /* as in a hook: calls from driver callbacks pass */
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    cus_process.driver->cuThreadExchangeStreamCaptureMode(&mode);
    unsigned idle = 0;
    cus_live_start();
    while (!__atomic_load_n(&stopping, __ATOMIC_ACQUIRE)) {
        bool any = look();
        cus_live_look();
        idle = cus_realtime_look() || any ? 0 : idle + 1;
        if (idle < LINGER) {
            cus_futex_wait(&stopping, 0, cus_process.hold_ns / 2);
            continue;
        }
        /* Sets `asleep`, then looks at `pending` and `stopping`. A thread that begins to defer sets
         * `pending`, then reads `asleep`; cus_watchdog_stop sets `stopping`, then clears `asleep`.
         * So one of the two sees the other. */
        __atomic_store_n(&asleep, 1, __ATOMIC_SEQ_CST);
        any = look();
        while (!any && __atomic_load_n(&asleep, __ATOMIC_SEQ_CST) &&
               !__atomic_load_n(&stopping, __ATOMIC_SEQ_CST)) {
            cus_live_wait(&asleep, 1);
            cus_live_look();
        }
        __atomic_store_n(&asleep, 0, __ATOMIC_SEQ_CST);
        idle = 0;
    }
    cus_lock_take(&self_lock);
    alive = false;
    cus_lock_give(&self_lock);
    return NULL;
}

static struct cus_own_thread thread = {.name = "cusplice", .run = run};

static void start(void) {
    uint32_t expected = 0;
    if (!__atomic_compare_exchange_n(&started, &expected, 1, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE))
        return;
    cus_live_place();
    cus_lock_take(&self_lock);
    alive = cus_thread_start(&thread, &self) == 0;
    bool failed = !alive;
    cus_lock_give(&self_lock);
    if (failed) {
        /* A host that polls could hang without the watchdog. */
        __atomic_store_n(&started, 2, __ATOMIC_RELEASE);
        cus_log(CUS_WARN, "watchdog", "no thread could be started: nothing is deferred");
    }
}

bool cus_watchdog_ready(void) {
    if (cus_virtual.on)
        return true; /* the tool that moves the clock looks (virtual.h) */
    if (!__atomic_load_n(&started, __ATOMIC_ACQUIRE))
        start();
    return __atomic_load_n(&started, __ATOMIC_ACQUIRE) == 1;
}

bool cus_watchdog_kick(void) {
    if (!__atomic_load_n(&asleep, __ATOMIC_SEQ_CST))
        return false;
    __atomic_store_n(&asleep, 0, __ATOMIC_SEQ_CST);
    cus_futex_wake(&asleep, 1);
    return true;
}

bool cus_watchdog_raise(int priority) {
    if (!cus_watchdog_ready())
        return false;
    cus_lock_take(&self_lock);
    bool raised = alive && cus_thread_raise(self, priority);
    cus_lock_give(&self_lock);
    return raised;
}

void cus_watchdog_hold(void) {
    cus_lock_take(&gate);
}

void cus_watchdog_release(void) {
    cus_lock_give(&gate);
}

void cus_watchdog_stop(void) {
    __atomic_store_n(&stopping, 1, __ATOMIC_SEQ_CST);
    __atomic_store_n(&asleep, 0, __ATOMIC_SEQ_CST);
    cus_futex_wake(&stopping, 1);
    cus_futex_wake(&asleep, 1);
    cus_live_end();
}

void cus_watchdog_drop(void) {
    cus_watchdog_stop();
    cus_thread_await(&thread);
    started = stopping = asleep = 0;
    looked_ns = 0;
}

/* ---- for a tool that moves the clock (virtual.h) ---- */

uint64_t cus_watchdog_due(void) {
    uint64_t due = UINT64_MAX;
    for (uint32_t i = 0; i < cus_process.n_engines; i++) {
        const struct cus_engine *engine = cus_process.engines[i];
        if (engine->pending && engine->pending_since + cus_process.hold_ns + 1 < due)
            due = engine->pending_since + cus_process.hold_ns + 1;
    }
    return due;
}

void cus_watchdog_look(void) {
    look();
}

void cus_watchdog_issue(void) {
    looked_ns = cus_clock_ns();
    look();
}
