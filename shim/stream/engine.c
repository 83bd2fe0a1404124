/*
 * Ops: from the program's call to the answer. Runs on program threads inside hooks. The engine lock
 * is held while an op is offered to the plan (offer.c) and while deferred ops are issued. The lock
 * is not held during the program's own call of an eager op. carry_out flushes what other streams
 * and captures demand, and finds out whether an op on a side stream is one of its home
 * (branches.md).
 */
#include <string.h>

#include "shim/api/api.h"
#include "shim/base/hazard.h"
#include "shim/base/options.h"
#include "shim/stream/branches.h"
#include "shim/stream/call.h"
#include "shim/stream/deferred.h"
#include "shim/stream/demotion.h"
#include "shim/stream/events.h"
#include "shim/stream/flush.h"
#include "shim/stream/news.h"
#include "shim/stream/offer.h"
#include "shim/stream/realtime.h"
#include "shim/stream/registry.h"
#include "shim/stream/reserve.h"
#include "shim/stream/rest.h"
#include "shim/stream/streams.h"
#include "shim/stream/trace.h"
#include "shim/stream/watchdog.h"

/* Called after the program's own call succeeded: learns the function if it is the `first` launch,
 * and records the op. An op that had no kind for another reason is not looked up again. Returns the
 * reason under which a first launch is counted. */
static enum cus_why learn(struct cus_engine *engine, struct cus_context *context,
                          struct cus_call *call, struct cus_kind *kind, bool first,
                          uint32_t generation) {
    struct cus_op op;
    enum cus_why why = CUS_WHY_FIRST;
    if (first)
        cus_call_note_function(context, call);
    if (!kind && !first)
        return why;
    cus_lock_take(&engine->lock);
    if (engine->generation == generation && !engine->closed && !engine->view.segment) {
        bool first_again;
        if (!kind)
            kind = cus_call_kind(engine, call, &first_again);
        if (kind && cus_call_op(call, kind, &op)) {
            cus_kinds_read_limit(engine->context, kind);
            cus_kinds_ran(engine->context, kind, op.dims);
            cus_plan_record(cus_engine_plan(engine), &op);
            if (call->began)
                cus_trace_op_is(call, engine, kind, &op);
            if (first && !cus_plan_allows(cus_engine_plan(engine), &op)) {
                /* counted as OBSERVING before the function's name, and so its rule, was known */
                engine->counters.eager_by[CUS_EAGER_OBSERVING]--;
                struct cus_reason known = cus_offer_forbidden(cus_engine_plan(engine), &op);
                engine->counters.eager_by[known.eager]++;
                why = known.why;
                call->eager = known.eager;
            }
            cus_demotion_decide(engine);
        }
    }
    cus_engine_unlock(engine);
    return why;
}

/* May the op be recorded before it is issued, while the lock is held anyway? Only if nothing can be
 * learned from its success: a known function, in a shape that ran before, that marks no step. */
static bool may_record_now(const struct cus_offered *offer) {
    return offer->offered && (!cus_process.learns ||
                              (!offer->kind->step && cus_kind_allows(offer->kind, offer->op.dims)));
}

static void record_now(struct cus_engine *engine, const struct cus_offered *offer,
                       struct cus_plan_mark *mark) {
    cus_plan_record_offered(cus_engine_plan(engine), &offer->op, mark);
    if (cus_process.learns)
        cus_demotion_decide(engine);
}

/* Takes back the record of an op that failed: it is not part of the path. */
static void take_back(struct cus_engine *engine, const struct cus_plan_mark *mark,
                      uint32_t generation) {
    cus_lock_take(&engine->lock);
    if (engine->generation == generation && !engine->closed && !engine->view.segment)
        cus_plan_take_back(cus_engine_plan(engine), mark);
    cus_engine_unlock(engine);
}

/* Counts an eager op. `ended`: a run ended with it. */
static void count_alone(struct cus_tally *tally, enum cus_why why, bool ended) {
    cus_tally_alone(tally, why);
    if (ended) {
        cus_tally_cut(tally, why, 0);
        cus_news_cut(tally, why, 0);
    }
}

/* Counts an eager op for the counters and the trace. True: a run ended with it. Engine lock
 * held. */
static bool count_eager(struct cus_engine *engine, struct cus_call *call, struct cus_reason why) {
    if (why.eager == CUS_EAGER_RULE) {
        engine->counters.breaks[CUS_BREAK_RULE]++;
        engine->counters.runs++;
    }
    engine->counters.eager_by[why.eager]++;
    call->eager = why.eager;
    call->why = why.why;
    return cus_run_ended(engine);
}

/* Issues the op by the program's own call, with nothing left to learn. Called with the engine lock
 * held, returns without it. */
static CUresult issue_known(struct cus_engine *engine, struct cus_call *call,
                            const struct cus_offered *offer) {
    uint32_t generation = engine->generation;
    struct cus_plan_mark mark;
    bool ended = count_eager(engine, call, offer->why);
    record_now(engine, offer, &mark);
    cus_engine_unlock(engine);
    count_alone(offer->tally, offer->why.why, ended);
    CUresult result = cus_call_timed(call);
    if (__builtin_expect(result != CUDA_SUCCESS, 0))
        take_back(engine, &mark, generation);
    return result;
}

/* Issues the op by the program's own call, and learns from its success. Flushes every engine first
 * if nothing may be deferred meanwhile. Called with the engine lock held, returns without it. */
static CUresult issue_now(struct cus_engine *engine, struct cus_call *call,
                          const struct cus_offered *offer) {
    uint32_t generation = engine->generation;
    struct cus_context *context = engine->context;
    struct cus_reason why = offer->why;
    bool first = offer->first;
    /* A launch that cannot be read (attributes, packed arguments) has no kind. Then the rule of its
     * function counts. */
    bool never_defer =
        offer->kind ? offer->kind->policy == CUS_POLICY_NEVER_DEFER : cus_call_spins(context, call);
    if (!never_defer && !first && may_record_now(offer))
        return issue_known(engine, call, offer);
    bool ended = count_eager(engine, call, why);
    cus_engine_unlock(engine);
    if (!first)
        count_alone(offer->tally, why.why, ended);
    /* A kernel that may wait for other kernels goes after everything issued so far (B7). The first
     * launch of a function may wait in the driver. */
    if ((CUS_HAZARD(B7) && never_defer) || (CUS_HAZARD(C5) && first))
        cus_flush_everything(never_defer ? CUS_CAUSE_RULE : CUS_CAUSE_UNSUPPORTED,
                             CUS_BREAK_OTHER_STREAM);
    /* As around a call that waits: the step ends before the host waits. */
    bool waits = call->type == CUS_OP_COPY && call->waits;
    if (waits)
        cus_engine_step_end(&call->stream);
    CUresult result = cus_call_timed(call);
    if (waits && result == CUDA_SUCCESS)
        cus_room_waited(call->side);
    if (result == CUDA_SUCCESS)
        why.why = learn(engine, context, call, offer->kind, first, generation);
    if (first) {
        call->why = why.why;
        enum cus_why unused;
        count_alone(cus_kinds_tally(context, call->launch->f, &unused), why.why, ended);
    }
    return result;
}

/* The thread takes over what another thread defers here, or flushes it if it may not defer. */
__attribute__((noinline, cold)) static void take_over(struct cus_thread *thread,
                                                      struct cus_engine *engine) {
    if (engine->pending && !cus_realtime_allows(thread))
        cus_flush_locked(engine, CUS_CAUSE_WATCHDOG, CUS_BREAK_FOREIGN_THREAD, CUS_CUT_OTHER);
}

/* The engine of which the call is to be an op, if it is one on a side stream. */
static struct cus_engine *home_of(const struct cus_thread *thread, struct cus_engine *engine) {
    struct cus_engine *home = __atomic_load_n(&engine->home, __ATOMIC_SEQ_CST);
    return !home || thread->suspended ? engine : home;
}

/* Is the op one of a branch of this engine? Engine lock held. */
static bool enter(struct cus_engine *engine, struct cus_call *call) {
    if (call->type != CUS_OP_WAIT)
        return cus_branch_enter(engine, call->side, call);
    if (!engine->view.segment)
        cus_deferred_settle(engine); /* a stream may take another one's branch */
    return cus_branch_enter_wait(engine, call->side, call);
}

/* Would the wait be an edge from the record that it is for? If not, what is deferred is issued. */
static bool edge_fits(const struct cus_engine *engine, const struct cus_call *call) {
    uint32_t n = cus_plan_deferred(&engine->view);
    if (!call->place.back || call->place.back > n)
        return true;
    uint32_t i = n - call->place.back;
    const struct cus_kind *kind = engine->view.segment->places[i].kind;
    struct cus_record_params params;
    memcpy(&params, cus_plan_values(cus_engine_plan(engine), i)->params, sizeof params);
    return kind->type == CUS_OP_RECORD && kind->branch == call->place.from &&
           params.event == (uint64_t)(uintptr_t)call->wait->event;
}

static CUresult refuse(struct cus_call *call) {
    call->refused = true;
    return CUDA_SUCCESS;
}

static CUresult carry_out(struct cus_call *call) {
    struct cus_thread *thread = &cus_thread_self;
    CUcontext current = NULL;
    int state = __atomic_load_n(&cus_process.state, __ATOMIC_ACQUIRE);
    if (call->type == CUS_OP_WAIT && (state != CUS_DEFER || thread->suspended))
        return refuse(call);
    if (state == CUS_OFF)
        return cus_call_real(call);
    cus_process.driver->cuCtxGetCurrent(&current);
    struct cus_engine *engine;
    bool arrives;
    for (;;) {
        engine = state >= CUS_RESTING ? cus_registry_find(thread, call->stream, current) : NULL;
        call->side = engine;
        call->place = (struct cus_place_of_op){.branch = 0};
        if (call->type == CUS_OP_WAIT) {
            if (!engine || __atomic_load_n(&call->home->demoted, __ATOMIC_RELAXED))
                return refuse(call);
            engine = call->home;
        } else if (engine) {
            engine = home_of(thread, engine);
            if (engine == call->side) {
                __atomic_add_fetch(&engine->calls, 1, __ATOMIC_SEQ_CST);
                cus_flush_branch(engine, CUS_CAUSE_OTHER_STREAM);
            }
        }
        if (!engine) {
            if (state >= CUS_RESTING && cus_options()->live)
                cus_watchdog_ready(); /* its thread makes the page */
            return cus_pass_by(thread, call, current, state >= CUS_RESTING);
        }
        /* If nothing is deferred elsewhere and legacy ordering does not apply, nothing goes
         * first. */
        if ((thread->pending && thread->pending != engine) || engine->blocking)
            cus_flush_ties(thread, engine);
        if (engine != call->side && __atomic_load_n(&engine->demoted, __ATOMIC_RELAXED)) {
            cus_flush_branch(call->side, CUS_CAUSE_OTHER_STREAM);
            continue;
        }
        arrives = thread->last != engine || thread->away;
        thread->last = engine;
        thread->away = false;
        if (thread->suspended) {
            /* Flushes what other threads defer on this stream. A rule about never deferring still
             * applies. */
            cus_flush_engine(engine, CUS_CAUSE_APP, CUS_BREAK_FOREIGN_THREAD, CUS_CUT_OTHER);
            call->why = CUS_WHY_SUSPENDED;
            cus_tally_alone(&cus_tally_none, call->why);
            return cus_pass_demoted(engine, call);
        }
        call->why = CUS_WHY_DEMOTED;
        if (state == CUS_RESTING && !__atomic_load_n(&engine->demoted, __ATOMIC_RELAXED))
            cus_rest_op(engine);
        if (__atomic_load_n(&engine->demoted, __ATOMIC_RELAXED)) {
            /* Before this demotion, another thread may have deferred the first ops of a segment
             * that is kept. */
            cus_flush_engine(engine, CUS_CAUSE_OTHER_STREAM, CUS_BREAK_FOREIGN_THREAD,
                             CUS_CUT_OTHER);
            return cus_pass_demoted(engine, call);
        }
        cus_lock_take(&engine->lock);
        /* Before the lock was taken, another thread may have closed the engine because a context
         * died, and given the object to another stream. */
        bool branch = call->type == CUS_OP_WAIT || call->side != engine;
        if (cus_streams_current(thread) && (!branch || enter(engine, call)))
            break;
        cus_engine_unlock(engine);
        if (branch && call->type == CUS_OP_WAIT)
            return refuse(call);
        if (branch)
            cus_flush_branch(call->side, CUS_CAUSE_OTHER_STREAM);
    }
    if (cus_submit_ended(&engine->submit) && !engine->view.segment)
        cus_deferred_settle(engine);

    struct cus_offered offer;
    CUresult result;
    engine->counters.ops[call->type]++;
    engine->arrived += arrives;
    /* The thread comes back from another stream. Ops that the thread had deferred here were issued
     * when it left. If there were none, the plan hears of the break only now. */
    if (__atomic_load_n(&engine->owner, __ATOMIC_RELAXED) != thread)
        take_over(thread, engine);
    else if (arrives && !engine->pending)
        cus_plan_break(cus_engine_plan(engine));
    __atomic_store_n(&engine->owner, thread, __ATOMIC_RELAXED);
    if (call->type == CUS_OP_WAIT && !edge_fits(engine, call))
        cus_deferred_flush(engine, CUS_ROW_cuStreamWaitEvent, CUS_BREAK_API, CUS_CUT_OTHER,
                           CUS_EAGER_FLUSHED);
    if (cus_offer_op(thread, engine, call, &offer, &result))
        cus_engine_unlock(engine);
    else {
        if (call->type == CUS_OP_RECORD)
            cus_events_recorded(call->event->event, cus_record_place(engine, call));
        cus_deferred_settle(engine);
        cus_branch_stream(engine, call->place.branch);
        result = issue_now(engine, call, &offer);
    }
    return cus_call_answer(engine, result);
}

/* As carry_out. An op on a side stream leaves the look-up of the home's stream as the thread's
 * last one, so that the ops there take the hot path. */
static CUresult carry_out_here(struct cus_call *call) {
    struct cus_thread *thread = &cus_thread_self;
    struct cus_stream_ref before = thread->ref;
    call->side = NULL;
    CUresult result = carry_out(call);
    if (__builtin_expect(result != CUDA_SUCCESS, 0))
        cus_engine_failed(result);
    if (thread->pending && thread->cached_engine != thread->pending &&
        call->side != thread->pending)
        cus_registry_turn(thread, before);
    return result;
}

static inline CUresult run(struct cus_call *call, CUresult (*go)(struct cus_call *)) {
    call->began = 0;
    if (!cus_recording())
        return go(call);
    call->traced = call->deferred = false;
    call->eager = CUS_EAGER_PASSTHROUGH;
    call->why = (enum cus_why)0;
    cus_trace_op_begin(call);
    CUresult result = go(call);
    if (call->type == CUS_OP_WAIT && call->refused)
        cus_trace_op_drop(call);
    else
        cus_trace_op_end(call, result);
    return result;
}

/* Sets only the fields that are read, because this runs for each op. */
CUresult cus_engine_launch(const struct cus_launch *launch) {
    struct cus_call call;
    call.type = CUS_OP_LAUNCH;
    call.stream = launch->stream;
    call.launch = launch;
    return run(&call, carry_out_here);
}

CUresult cus_engine_memset(const struct cus_memset *memset) {
    struct cus_call call;
    call.type = CUS_OP_MEMSET;
    call.stream = memset->stream;
    call.memset = memset;
    return run(&call, memset->width && memset->height ? carry_out_here : cus_pass_empty);
}

CUresult cus_engine_copy(const struct cus_copy *copy) {
    struct cus_call call;
    call.type = CUS_OP_COPY;
    call.stream = copy->stream;
    call.copy = copy;
    call.waits = false;
    if (!copy->bytes)
        return run(&call, cus_pass_empty);
    cus_call_value(&call);
    return run(&call, carry_out_here);
}

CUresult cus_engine_carry_out_wait(struct cus_call *call) {
    call->type = CUS_OP_WAIT;
    return run(call, carry_out_here);
}

CUresult cus_engine_record(const struct cus_record *record) {
    struct cus_call call;
    call.type = CUS_OP_RECORD;
    call.stream = record->stream;
    call.event = record;
    call.unknown = NULL;
    CUresult result = run(&call, carry_out_here);
    if (call.unknown)
        cus_flush_engine(call.unknown, CUS_ROW_cuEventRecord, CUS_BREAK_API, CUS_CUT_OTHER);
    return result;
}
