/*
 * A call of the program that may be deferred (a launch, memset, copy, record or wait), and
 * functions that make it as the program asked. For engine.c, pass.c and trace.c, on program
 * threads.
 */
#ifndef CUSPLICE_STREAM_CALL_H
#define CUSPLICE_STREAM_CALL_H

#include "shim/stream/events.h"
#include "shim/stream/state.h"
#include "shim/trace/format.h"

struct cus_call {
    enum cus_op_type type;
    struct cus_stream_ref stream;
    const struct cus_launch *launch;
    const struct cus_memset *memset;
    const struct cus_copy *copy;
    const struct cus_record *event; /* of a record */
    const struct cus_wait *wait;
    /* An op on a side stream is of a branch of its home's engine (branches.c); other ops are of
     * branch 0. A wait has all of `place`. */
    struct cus_place_of_op place;
    struct cus_engine *side; /* engine of the op's stream */
    /* Of a wait: where its event was recorded, of which engine it is to be an op, and whether it
     * may make its stream a branch, which has moved so far, in this life of the engine. */
    struct cus_event_place record_at;
    struct cus_engine *home;
    bool may_fork;
    uint64_t moves, life;
    bool refused; /* a wait that is no op; nothing was done */
    /* A copy of at most 4 bytes from pageable memory (`is_value`): what the memory held at the
     * call. */
    bool is_value;
    uint32_t value;
    bool waits;                 /* a copy that waits for its stream (cus_call_kind) */
    struct cus_engine *unknown; /* where a record is deferred that may not be (events.h) */
    union {
        struct cus_memset_params memset;
        struct cus_copy_params copy;
        struct cus_record_params record;
    } flat;
    /* For the trace (trace.h). */
    uint64_t began; /* trace ticks; 0: the call is not recorded */
    struct cst_op *record;
    bool traced; /* the op was described to the trace, if there was room */
    bool deferred;
    enum cus_eager eager; /* if not deferred: the counter */
    enum cus_why why;
};

/* The op's kind for this engine. NULL: the function did not run here yet (`*fresh`), or no node can
 * stand for the op. Engine lock held. */
struct cus_kind *cus_call_kind(struct cus_engine *engine, struct cus_call *call, bool *fresh);
/* Is this the kind of this launch, record or wait? False of other ops. */
bool cus_call_is(const struct cus_engine *engine, const struct cus_call *call,
                 const struct cus_kind *kind);
/* Called for a copy before any lock is taken: sets `is_value` and `value`. */
void cus_call_value(struct cus_call *call);
/* Fills the op, which points into the call. False: its params do not fit the layout of the kind. */
bool cus_call_op(struct cus_call *call, const struct cus_kind *kind, struct cus_op *op);
/* Does a rule say never_defer about this op? Costs one load if there is no such rule. */
bool cus_call_spins(struct cus_context *context, const struct cus_call *call);
/* Called after the first launch of a function succeeded. */
void cus_call_note_function(struct cus_context *context, const struct cus_call *call);

/* Makes the program's own call, through the real function of the symbol it called. No lock held. */
CUresult cus_call_real(const struct cus_call *call);
/* The same, after a wait for a build with priority. Times some launches, to estimate what the other
 * launches save. */
CUresult cus_call_timed(const struct cus_call *call);

/* Returns the result of an op. If an op failed that was reported as launched, the next op returns
 * that error (HAZARDS E4, E6). */
static inline CUresult cus_call_answer(struct cus_engine *engine, CUresult result) {
    if (!CUS_HAZARD(E6) || result != CUDA_SUCCESS ||
        __atomic_load_n(&engine->late_error, __ATOMIC_RELAXED) == CUDA_SUCCESS)
        return result;
    return __atomic_exchange_n(&engine->late_error, CUDA_SUCCESS, __ATOMIC_RELAXED);
}

/* A wait that may be an op: engine.c carries it out, or refuses it and sets `refused`, which is
 * false before. */
CUresult cus_engine_carry_out_wait(struct cus_call *call);

/* ---- pass.c: ops that are not deferred ---- */

/* The stream has no engine, or nothing is deferred in this process now (not `on`). */
CUresult cus_pass_by(struct cus_thread *thread, struct cus_call *call, CUcontext current, bool on);
/* The stream is demoted, or the thread has suspended deferral. */
CUresult cus_pass_demoted(struct cus_engine *engine, struct cus_call *call);
/* An op of no bytes does nothing and orders nothing, so it is no break. Only its errors matter
 * (HAZARDS A14). */
CUresult cus_pass_empty(struct cus_call *call);

#endif
