/*
 * Whether a hook acts or steps aside: the state of the process and the depth of the thread.
 *
 * A hook acts where the state is ON and the thread is not inside a hook already: what the driver, a
 * callback of the driver or the engine itself calls from inside goes straight to the real function.
 * One load and one compare decide; the environment does the rest once.
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
    CUS_STATE_STARTING, /* one has, and its thread starts the engine; everybody else passes through
                         */
    CUS_STATE_OFF,      /* for ever: mode off, drained at exit, or a forked child */
    CUS_STATE_ON = CUS_ENTRY_STATE_ON,
    CUS_STATE_ATTEND,  /* as ON, and the next hook has something to do first (cus_lifecycle_attend)
                        */
    CUS_STATE_GATED,   /* as ON, in mode verify: each hook goes through the gate (verify/gate.h) */
    CUS_STATE_RECORDED /* as ON, and each op is told to the trace */
};

/* The process's is cus_process.hooks, in the line that the hot paths look at anyway; so is
 * cus_thread_self.depth: not 0 where the thread is inside a hook. */
_Static_assert(offsetof(struct cus_process, hooks) == CUS_ENTRY_HOOKS_AT &&
                   offsetof(struct cus_thread, depth) == CUS_ENTRY_DEPTH_AT &&
                   sizeof(cus_thread_self.depth) == 1 &&
                   offsetof(struct cus_thread, cached_stream[1]) ==
                       CUS_ENTRY_CACHED_STREAM_AT(CUS_ABI_PTSZ),
               "as the assembly has it");

struct cus_guard {
    int error;  /* errno as the program left it */
    bool gated; /* the thread is inside the gate */
};

/* True where the thread has gone through the gate. */
bool cus_lifecycle_attend(void);

/* True: the hook acts, and calls cus_guard_leave when it has acted. False: straight to the real
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

/* The short form, for the hot paths: would cus_guard_enter enter, with nothing else to do first? */
static inline bool cus_guard_ready(void) {
    return __builtin_expect(__atomic_load_n(&cus_process.hooks, __ATOMIC_ACQUIRE) == CUS_STATE_ON,
                            1) &&
           __builtin_expect(!CUS_HAZARD(E3) || cus_thread_self.depth == 0, 1);
}

/* The same where a trace is made. */
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
