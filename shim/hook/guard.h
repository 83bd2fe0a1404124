/*
 * Decides whether a hook acts: by the state of the process and the depth of the thread.
 *
 * A hook acts if the state is ON or above and the thread is not inside a hook. If the driver, a
 * callback of the driver or the engine calls from inside a hook, the call goes straight to the real
 * function. Each hook calls cus_guard_enter, on the program's thread, without a lock. The decision
 * takes one load and one compare.
 */
#ifndef CUSPLICE_HOOK_GUARD_H
#define CUSPLICE_HOOK_GUARD_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/base/hazard.h"
#include "shim/hook/entry.h"
#include "shim/stream/state.h"
#include "shim/verify/gate.h"

enum cus_state {
    CUS_STATE_COLD,     /* no cuInit has succeeded */
    CUS_STATE_STARTING, /* cuInit has succeeded; its thread starts the engine, others pass */
    CUS_STATE_OFF,      /* for ever: mode off, drained at exit, or a forked child */
    CUS_STATE_ON = CUS_ENTRY_STATE_ON,
    CUS_STATE_ATTEND,  /* as ON; the next hook first calls cus_lifecycle_attend */
    CUS_STATE_GATED,   /* as ON, in mode verify: each hook goes through the gate (verify/gate.h) */
    CUS_STATE_RECORDED /* as ON; each op goes into the trace */
};

/* cus_process.hooks holds the process's state, and cus_thread_self.depth is not 0 while the
 * thread is inside a hook. Both lie in cache lines that the hot paths read anyway. */
_Static_assert(offsetof(struct cus_process, hooks) == CUS_ENTRY_HOOKS_AT &&
                   offsetof(struct cus_process, resting) == CUS_ENTRY_RESTING_AT &&
                   offsetof(struct cus_thread, depth) == CUS_ENTRY_DEPTH_AT &&
                   sizeof(cus_thread_self.depth) == 1 &&
                   offsetof(struct cus_thread, cached_stream[1]) ==
                       CUS_ENTRY_CACHED_STREAM_AT(CUS_ABI_PTSZ),
               "as the assembly has it");

struct cus_guard {
    int error;  /* errno at the time of the program's call */
    bool gated; /* the thread is inside the gate */
};

/* True: the thread went through the gate. */
bool cus_lifecycle_attend(void);

/* True: the hook acts, and calls cus_guard_leave afterwards. False: the hook calls the real
 * function. */
static inline bool cus_guard_enter(struct cus_guard *guard) {
    uint32_t state = __atomic_load_n(&cus_process.hooks, __ATOMIC_ACQUIRE);
    if (__builtin_expect(state < CUS_STATE_ON || (CUS_HAZARD(E3) && cus_thread_self.depth != 0), 0))
        return false;
    cus_thread_self.depth = 1;
    guard->error = errno;
    guard->gated = __builtin_expect(state != CUS_STATE_ON, 0) && cus_lifecycle_attend();
    return true;
}

/* The short form for the hot paths. True: cus_guard_enter would return true and has nothing to
 * do first. */
static inline bool cus_guard_ready(void) {
    return __builtin_expect(__atomic_load_n(&cus_process.hooks, __ATOMIC_ACQUIRE) == CUS_STATE_ON,
                            1) &&
           __builtin_expect(!CUS_HAZARD(E3) || cus_thread_self.depth == 0, 1);
}

/* The same while a trace is made. */
static inline bool cus_guard_recorded(void) {
    return __atomic_load_n(&cus_process.hooks, __ATOMIC_ACQUIRE) == CUS_STATE_RECORDED &&
           (!CUS_HAZARD(E3) || cus_thread_self.depth == 0);
}

static inline void cus_guard_leave(const struct cus_guard *guard) {
    if (__builtin_expect(guard->gated, 0))
        cus_gate_leave();
    errno = guard->error;
    cus_thread_self.depth = 0;
}

#endif
