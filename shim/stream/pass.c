/*
 * Ops that pass: on streams that have no engine or are demoted, of threads that suspended deferral,
 * and ops that do nothing. Runs on program threads inside hooks, without a lock except while a
 * trace record is written. Ops that other streams defer are issued first, as in engine.c.
 */
#include "shim/base/hazard.h"
#include "shim/stream/call.h"
#include "shim/stream/demotion.h"
#include "shim/stream/flush.h"
#include "shim/stream/passed.h"
#include "shim/stream/priority.h"
#include "shim/stream/room.h"
#include "shim/stream/streams.h"
#include "shim/stream/trace.h"

/* Flushes what goes first: ops deferred by this thread, ops on the legacy stream, and ops that
 * another context defers on this very stream. */
static void flush_before_passing(struct cus_thread *thread, const struct cus_call *call,
                                 CUcontext current, struct cus_context *context) {
    thread->away = true;
    cus_flush_own(thread);
    struct cus_engine *engine = cus_streams_peek(thread, call->stream, current);
    if (engine) {
        __atomic_add_fetch(&engine->calls, 1, __ATOMIC_SEQ_CST);
        cus_flush_branch(engine, CUS_CAUSE_OTHER_STREAM);
        cus_flush_ties(thread, engine);
        cus_flush_engine(engine, CUS_CAUSE_OTHER_STREAM, CUS_BREAK_OTHER_STREAM, CUS_CUT_OTHER);
    }
    struct cus_engine *legacy = context ? cus_context_legacy(context) : NULL;
    if (CUS_HAZARD(B1) && legacy)
        cus_flush_engine(legacy, CUS_CAUSE_LEGACY, CUS_BREAK_LEGACY, CUS_CUT_OTHER);
}

/* Writes the trace record of an op that passes. */
static void tell(struct cus_engine *engine, struct cus_call *call) {
    struct cus_op op;
    bool fresh;
    cus_lock_take(&engine->lock);
    struct cus_kind *kind = engine->closed ? NULL : cus_call_kind(engine, call, &fresh);
    if (kind && cus_call_op(call, kind, &op))
        cus_trace_op_is(call, engine, kind, &op);
    cus_engine_unlock(engine);
}

/* Makes the program's own call. Function and rule must be known all the same, because the first
 * launch may wait (HAZARDS C5), and the kernel may too (B7). `engine` is NULL for an untracked
 * stream (room.c). */
static CUresult pass(struct cus_engine *engine, struct cus_context *context,
                     struct cus_call *call) {
    bool fresh =
        context && call->type == CUS_OP_LAUNCH && !cus_kinds_know(context, call->launch->f);
    bool spinner = cus_call_spins(context, call);
    cus_build_yield(&cus_thread_self.build_waits, cus_process.hold_ns);
    if (spinner || (CUS_HAZARD(C5) && fresh))
        cus_flush_everything(spinner ? CUS_CAUSE_RULE : CUS_CAUSE_UNSUPPORTED,
                             CUS_BREAK_OTHER_STREAM);
    CUcontext current = context ? context->handle : NULL;
    bool untracked = !engine && !cus_streams_peek(&cus_thread_self, call->stream, current);
    if (untracked)
        cus_room_begins(call->stream, current);
    CUresult result = cus_call_real(call);
    if (untracked)
        cus_room_begins(call->stream, current);
    if (fresh && result == CUDA_SUCCESS)
        cus_call_note_function(context, call);
    if (engine && call->began)
        tell(engine, call);
    return result;
}

/* Where a record is that passes, nobody looks up. */
static void note_record(const struct cus_call *call) {
    if (call->type == CUS_OP_RECORD)
        cus_events_recorded(call->event->event, (struct cus_event_place){.engine = NULL});
}

CUresult cus_pass_by(struct cus_thread *thread, struct cus_call *call, CUcontext current, bool on) {
    struct cus_context *context = on ? cus_streams_context(current) : NULL;
    if (__atomic_load_n(&cus_process.n_engines, __ATOMIC_ACQUIRE))
        flush_before_passing(thread, call, current, context);
    note_record(call);
    call->why = !on                                   ? CUS_WHY_OFF
                : cus_ref_is_per_thread(call->stream) ? CUS_WHY_PER_THREAD
                                                      : CUS_WHY_STREAM;
    cus_passed_by(thread, call->type, call->why);
    return on ? pass(NULL, context, call) : cus_call_real(call);
}

CUresult cus_pass_demoted(struct cus_engine *engine, struct cus_call *call) {
    note_record(call);
    uint64_t left = __atomic_load_n(&engine->demoted, __ATOMIC_RELAXED);
    if (left)
        cus_demoted_op(engine, left, call->type,
                       call->type == CUS_OP_LAUNCH ? call->launch->f : NULL);
    else
        __atomic_add_fetch(&engine->passed[call->type], 1, __ATOMIC_RELAXED);
    return cus_call_answer(engine, pass(engine, engine->context, call));
}

CUresult cus_pass_empty(struct cus_call *call) {
    __atomic_add_fetch(&cus_process.counters.ops[call->type], 1, __ATOMIC_RELAXED);
    __atomic_add_fetch(&cus_process.counters.eager_by[CUS_EAGER_PASSTHROUGH], 1, __ATOMIC_RELAXED);
    call->why = CUS_WHY_EMPTY;
    cus_tally_alone(&cus_tally_none, call->why);
    return cus_call_real(call);
}
