/*
 * One call of the program that may be deferred, whichever of the three kinds of ops it is, and the
 * way to make it as it was asked for.
 */
#ifndef CUSPLICE_STREAM_CALL_H
#define CUSPLICE_STREAM_CALL_H

#include "shim/stream/state.h"
#include "shim/trace/format.h"

struct cus_call {
    enum cus_op_type type;
    struct cus_stream_ref stream;
    const struct cus_launch *launch;
    const struct cus_memset *memset;
    const struct cus_copy *copy;
    union {
        struct cus_memset_params memset;
        struct cus_copy_params copy;
    } flat;
    /* For the trace (trace.h). */
    uint64_t began; /* a moment; 0: it is not told */
    struct cst_op *record;
    bool told; /* what it is has been said, if there was room */
    bool deferred;
    enum cus_eager eager; /* otherwise: why not */
    enum cus_why why;
};

/* The op's kind as this engine sees it, or NULL: the function did not run here yet (`*fresh`), or
 * no node can stand for it. Engine lock held. */
struct cus_kind *cus_call_kind(struct cus_engine *engine, const struct cus_call *call, bool *fresh);
/* Fills the op, which points into the call. False: its params cannot be read as the kind says. */
bool cus_call_op(struct cus_call *call, const struct cus_kind *kind, struct cus_op *op);
/* Is it an op that a rule never defers? Costs nothing where there is no such rule. */
bool cus_call_spins(struct cus_context *context, const struct cus_call *call);
/* After the first launch of a function succeeded. */
void cus_call_met(struct cus_context *context, const struct cus_call *call);

/* The program's own call, by the real function of the very symbol that was called. No lock held. */
CUresult cus_call_real(const struct cus_call *call);
/* The same; some launches are timed, for an estimate of what others save. */
CUresult cus_call_timed(const struct cus_call *call);

/* An op that was reported as launched and failed later is answered for by the next one (HAZARDS
 * E4, E6). */
static inline CUresult cus_call_answer(struct cus_engine *engine, CUresult result) {
    if (!CUS_HAZARD(E6) || result != CUDA_SUCCESS ||
        __atomic_load_n(&engine->late_error, __ATOMIC_RELAXED) == CUDA_SUCCESS)
        return result;
    return __atomic_exchange_n(&engine->late_error, CUDA_SUCCESS, __ATOMIC_RELAXED);
}

/* ---- pass.c: nothing of the op is deferred ---- */

/* The stream has no engine, or nothing is deferred in this process now (not `on`). */
CUresult cus_pass_by(struct cus_thread *thread, struct cus_call *call, CUcontext current, bool on);
/* The stream is demoted, or the thread wants to be. */
CUresult cus_pass_left_alone(struct cus_engine *engine, struct cus_call *call);
/* An op of no bytes does nothing and orders nothing: it is no break either, only its errors count
 * (HAZARDS A14). */
CUresult cus_pass_empty(struct cus_call *call);

#endif
