/*
 * Ops: from the program's call to the plan's answer. Runs on program threads inside hooks. The
 * engine lock is held while an op is offered to the plan and while deferred ops are issued. The
 * lock is not held during the program's own call of an eager op. offer_op decides what becomes of
 * an op; the code before it flushes what other streams and captures demand.
 */
#include <string.h>

#include "shim/api/api.h"
#include "shim/base/clock.h"
#include "shim/base/hazard.h"
#include "shim/base/options.h"
#include "shim/plan/branches.h"
#include "shim/stream/branches.h"
#include "shim/stream/building.h"
#include "shim/stream/call.h"
#include "shim/stream/check_launch.h"
#include "shim/stream/deferred.h"
#include "shim/stream/demotion.h"
#include "shim/stream/events.h"
#include "shim/stream/flush.h"
#include "shim/stream/graphs.h"
#include "shim/stream/ranges.h"
#include "shim/stream/realtime.h"
#include "shim/stream/registry.h"
#include "shim/stream/reserve.h"
#include "shim/stream/room.h"
#include "shim/stream/streams.h"
#include "shim/stream/trace.h"
#include "shim/stream/watchdog.h"

static struct cus_kind *kind_of(struct cus_engine *engine, struct cus_call *call, bool *first) {
    const struct cus_kind *expected = cus_plan_expected(cus_engine_plan(engine));
    if (call->type == CUS_OP_LAUNCH && expected && expected->branch == call->place.branch &&
        cus_kinds_is_launch(expected, call->launch)) {
        *first = false;
        return (struct cus_kind *)(uintptr_t)expected;
    }
    return cus_call_kind(engine, call, first);
}

/* ---- may a segment begin? ---- */

#ifdef CUS_CHECKS
void cus_engine_check(const struct cus_engine *engine) {
    const struct cus_counters *counters = &engine->counters;
    uint32_t deferred = engine->view.segment ? engine->view.n : 0;
    uint64_t came = 0, issued = counters->in_graphs;
    for (unsigned type = 0; type < CUS_OP_TYPES; type++)
        came += counters->ops[type];
    for (unsigned by = 0; by < CUS_EAGERS; by++)
        issued += counters->eager_by[by];
    CUS_CHECK(came >= issued + deferred); /* more while a thread makes its own call */
    CUS_CHECK(!deferred || __atomic_load_n(&engine->pending, __ATOMIC_RELAXED));
    CUS_CHECK(!engine->frees.n || __atomic_load_n(&engine->pending, __ATOMIC_RELAXED));
    cus_plan_check(cus_engine_plan(engine));
}
#endif

/* May a graph of this many nodes be built now? Not while another thread builds. */
static bool may_build(struct cus_engine *engine, uint32_t nodes) {
    if (!cus_lock_try(&cus_process.build_lock))
        return false;
    bool room = cus_room_for(engine, nodes);
    cus_lock_give(&cus_process.build_lock);
    return room;
}

/* Why an op is issued eagerly: for the counters (eager_by), and for the reports. */
struct reason {
    enum cus_eager eager;
    enum cus_why why;
};

static struct reason reason(enum cus_eager eager, enum cus_why why) {
    return (struct reason){eager, why};
}

static bool may_defer(struct cus_engine *engine, struct cus_proposal proposal,
                      struct reason *why_not) {
    *why_not = reason(CUS_EAGER_PASSTHROUGH, CUS_WHY_OFF);
    /* The state is read again under the lock. A thread that switches deferral off changes the
     * state, then takes each lock; so nothing is deferred behind its back. */
    if (__atomic_load_n(&cus_process.state, __ATOMIC_ACQUIRE) != CUS_DEFER)
        return false;
    why_not->why = CUS_WHY_OPENING;
    if (cus_opening_threads())
        return false;
    why_not->why = CUS_WHY_PROFILER;
    if (CUS_HAZARD(E8) && __atomic_load_n(&cus_process.profiling, __ATOMIC_ACQUIRE))
        return false;
    why_not->why = CUS_WHY_CAPTURE;
    if (CUS_HAZARD(D3) && cus_program_captures(engine->context))
        return false;
    CUstreamCaptureStatus status;
    if (CUS_HAZARD(D6) &&
        (cus_process.driver->cuStreamIsCapturing(engine->handle, &status) != CUDA_SUCCESS ||
         status != CU_STREAM_CAPTURE_STATUS_NONE))
        return false;
    why_not->why = CUS_WHY_GONE;
    if (!cus_registry_same(engine)) {
        /* The handle belongs to another stream by now, perhaps with other flags. Its next op finds
         * out. */
        cus_deferred_settle(engine);
        cus_registry_close(engine);
        return false;
    }
    why_not->why = CUS_WHY_REALTIME;
    if (!cus_realtime_allows(&cus_thread_self))
        return false;
    why_not->why = CUS_WHY_OFF;
    if (!cus_watchdog_ready())
        return false;
    *why_not = reason(CUS_EAGER_OBSERVING, CUS_WHY_EAGER_MODE);
    if (!cus_process.may_build)
        return false;
    why_not->why = CUS_WHY_NOT_YET;
    uint32_t to_build = proposal.to_build;
    if (!to_build ||
        (cus_build_fits(engine, to_build, proposal.advised) && may_build(engine, to_build)))
        return true;
    cus_plan_put_off(cus_engine_plan(engine));
    return false;
}

/* May the deferred ops go on as another segment? Only if a graph of that segment may be built. */
static bool may_turn(struct cus_engine *engine, uint32_t to_build) {
    return cus_graphs_fit(to_build) && cus_build_fits(engine, to_build, false) &&
           may_build(engine, to_build);
}

static void tell_segment(struct cus_engine *engine) {
    if (cus_recording() && engine->view.segment->begun == 1)
        cus_trace_segment(engine, engine->view.segment);
}

static void begin(struct cus_engine *engine, const struct cus_op *op) {
    cus_plan_accept(cus_engine_plan(engine), op, cus_ranges_epoch());
    tell_segment(engine);
    engine->records.begun = engine->records.deferred;
    __atomic_store_n(&engine->pending_since, cus_clock_ns(), __ATOMIC_RELAXED);
    if (!engine->pending) { /* nothing is submitted */
        if (engine->blocking && !engine->legacy)
            __atomic_add_fetch(&engine->context->blocking_pending, 1, __ATOMIC_ACQ_REL);
        /* Sequentially consistent: the watchdog may be about to sleep. */
        __atomic_add_fetch(cus_group_pending(engine), 1, __ATOMIC_SEQ_CST);
    }
    __atomic_store_n(&engine->pending, 1, __ATOMIC_SEQ_CST);
    /* Waking the watchdog takes as long as some ops. That time is not part of the program's
     * pace. */
    if (cus_watchdog_kick())
        __atomic_store_n(&engine->pending_since, cus_clock_ns(), __ATOMIC_RELAXED);
}

/* ---- the op ---- */

/* Why an op may not be in a graph of its step. A rule names the op, the step's size is not in
 * [step], or the mode allows no graph in such steps. */
static struct reason forbidden(const struct cus_plan *plan, const struct cus_op *op) {
    if (op->kind->policy == CUS_POLICY_NEVER_DEFER)
        return reason(CUS_EAGER_RULE, CUS_WHY_NEVER_DEFER);
    if (cus_plan_step(plan, op) == CUS_STEP_OUTSIDE)
        return reason(CUS_EAGER_SIZE, CUS_WHY_SIZE);
    if (op->kind->policy == CUS_POLICY_GRAPH)
        return reason(CUS_EAGER_PASSTHROUGH, CUS_WHY_MODE);
    return reason(CUS_EAGER_RULE,
                  op->kind->policy == CUS_POLICY_EAGER ? CUS_WHY_RULE : CUS_WHY_UNIFORM);
}

/* Why an op is issued eagerly although the plan does not object to it. */
static enum cus_why why_eager(struct cus_engine *engine, const struct cus_op *op) {
    if (!cus_process.may_build)
        return CUS_WHY_EAGER_MODE;
    enum cus_why why = cus_plan_why(cus_engine_plan(engine), op);
    return why == CUS_WHY_SHORT && !cus_kind_allows(op->kind, op->dims) ? CUS_WHY_SHAPE : why;
}

/* Where an op without a kind is counted, and why it has none. NULL: a function that did not run
 * yet. */
static struct cus_tally *no_kind(struct cus_engine *engine, const struct cus_call *call,
                                 enum cus_why *why) {
    static const char *const names[] = {
        [CUS_OP_MEMSET] = "memset",
        [CUS_OP_COPY] = "memcpy",
        [CUS_OP_RECORD] = "record",
        [CUS_OP_WAIT] = "wait",
    };
    *why =
        call->type == CUS_OP_RECORD || call->type == CUS_OP_WAIT ? CUS_WHY_EVENT : CUS_WHY_MEMORY;
    if (call->type != CUS_OP_LAUNCH)
        return cus_tally_of(names[call->type], false);
    return cus_kinds_tally(engine->context, call->launch->f, why);
}

/* The deferred ops were flushed because of this kernel: counts them under the kernel, not under the
 * cause of the flush. */
static void attribute(struct cus_engine *engine, unsigned cause, uint32_t ops,
                      struct cus_tally *tally, enum cus_why why) {
    if (!ops || !tally)
        return;
    engine->counters.cut_ops[cause] -= ops;
    engine->counters.cuts[cause]--;
    cus_tally_cut(tally, why, ops);
}

/* What is known of an op before it is issued eagerly. */
struct offer {
    struct cus_op op;
    struct cus_kind *kind; /* NULL: the op has no kind */
    bool first;            /* the function did not run in this context yet */
    bool offered;          /* the plan was asked about the op, and may record it */
    struct reason why;
    struct cus_tally *tally;
};

/* Where the record is made, which is the engine's last op so far. Engine lock held. */
static struct cus_event_place record_place(struct cus_engine *engine, const struct cus_call *call) {
    uint64_t ops = cus_engine_ops(engine);
    bool own = call->side == engine;
    uint64_t calls = __atomic_load_n(&engine->calls, __ATOMIC_RELAXED);
    return (struct cus_event_place){
        .engine = engine, .stream = call->side, .position = own ? ops + calls + 1 : 0, .ops = ops};
}

static void record_deferred(struct cus_engine *engine, struct cus_call *call) {
    uint32_t before, at = engine->view.n - 1;
    enum cus_event_is is =
        cus_events_deferred(call->event->event, record_place(engine, call), at, &before);
    if (is == CUS_EVENT_AGAIN)
        cus_plan_supersede(cus_engine_plan(engine), before);
    if (is == CUS_EVENT_UNKNOWN)
        call->unknown = engine;
}

static enum cus_offer offer_to_plan(struct cus_engine *engine, struct cus_call *call,
                                    const struct cus_op *op, struct cus_proposal *proposal) {
    enum cus_offer offer = cus_plan_offer(cus_engine_plan(engine), op, proposal);
    if (offer == CUS_OFFER_DEFERRED || offer == CUS_OFFER_FULL) {
        if (engine->view.timed)
            cus_plan_note_time(cus_engine_plan(engine), cus_clock_ns());
        if (engine->shadow)
            cus_check_requested(engine, op);
        if (op->kind->type == CUS_OP_RECORD)
            record_deferred(engine, call);
    }
    return offer;
}

/* Offers the op until the plan is content. True: the op is deferred or launched, and `*result` is
 * the answer. False: the op must be issued now, counted under `offer->why`. Engine lock held. */
static bool offer_op(struct cus_thread *thread, struct cus_engine *engine, struct cus_call *call,
                     struct offer *offer, CUresult *result) {
    struct cus_op *op = &offer->op;
    struct reason *why = &offer->why;
    *result = CUDA_SUCCESS;
    *why = reason(CUS_EAGER_UNSUPPORTED, CUS_WHY_ARGUMENTS);
    offer->offered = false;
    for (;;) {
        uint32_t deferred = cus_plan_deferred(&engine->view);
        struct cus_kind *kind = kind_of(engine, call, &offer->first);
        offer->kind = kind;
        offer->tally = kind ? kind->tally : NULL;
        if (!kind || !cus_call_op(call, kind, op)) {
            if (!kind)
                offer->tally = no_kind(engine, call, &why->why);
            offer->kind = NULL;
            if (offer->first)
                *why = reason(CUS_EAGER_OBSERVING, CUS_WHY_FIRST);
            cus_deferred_flush(engine, CUS_CAUSE_UNSUPPORTED, CUS_BREAK_UNSUPPORTED, CUS_CUT_OWNER,
                               CUS_EAGER_FLUSHED);
            attribute(engine, CUS_CAUSE_UNSUPPORTED, deferred, offer->tally, why->why);
            if (!offer->first)
                cus_plan_break(cus_engine_plan(engine));
            return false;
        }
        if (call->began)
            cus_trace_op_is(call, engine, kind, op);
        struct cus_proposal proposal;
        switch (offer_to_plan(engine, call, op, &proposal)) {
        case CUS_OFFER_DEFERRED:
            __atomic_store_n(&engine->pending, engine->view.n, __ATOMIC_RELEASE);
            cus_thread_pends(thread, engine); /* another thread may have begun the segment */
            call->deferred = true;
            return true;
        case CUS_OFFER_FULL:
            call->deferred = true;
            *result = cus_deferred_fire(engine);
            if (engine->pending)
                cus_thread_pends(thread, engine);
            return true;
        case CUS_OFFER_OTHER:
            if (may_turn(engine, proposal.to_build)) {
                cus_plan_accept(cus_engine_plan(engine), op, cus_ranges_epoch());
                tell_segment(engine);
                break;
            }
            /* fall through */
        case CUS_OFFER_DIVERGED: {
            bool rule = !cus_plan_allows(cus_engine_plan(engine), op);
            cus_deferred_flush(engine, rule ? CUS_CAUSE_RULE : CUS_CAUSE_DIVERGED,
                               rule ? CUS_BREAK_RULE : CUS_BREAK_DIVERGED, CUS_CUT_DIVERGED,
                               CUS_EAGER_DIVERGED);
            attribute(engine, rule ? CUS_CAUSE_RULE : CUS_CAUSE_DIVERGED, deferred, offer->tally,
                      rule ? forbidden(cus_engine_plan(engine), op).why : CUS_WHY_DIVERGED);
            break;
        }
        case CUS_OFFER_UNSUPPORTED:
            if (cus_kinds_read_limit(engine->context, kind) && cus_kind_allows(kind, op->dims))
                break;
            cus_deferred_flush(engine, CUS_CAUSE_UNSUPPORTED, CUS_BREAK_UNSUPPORTED, CUS_CUT_OTHER,
                               CUS_EAGER_FLUSHED);
            why->why = CUS_WHY_SHAPE;
            attribute(engine, CUS_CAUSE_UNSUPPORTED, deferred, offer->tally, why->why);
            return false;
        case CUS_OFFER_BEGIN:
            if (!may_defer(engine, proposal, why)) {
                offer->offered = !engine->closed;
                return false;
            }
            begin(engine, op);
            break;
        case CUS_OFFER_EAGER:
            offer->offered = true;
            if (!cus_plan_allows(cus_engine_plan(engine), op))
                *why = forbidden(cus_engine_plan(engine), op);
            else if (!kind->deferrable)
                why->why = CUS_WHY_NODE;
            else
                *why = reason(CUS_EAGER_OBSERVING, why_eager(engine, op));
            return false;
        }
    }
}

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
                struct reason known = forbidden(cus_engine_plan(engine), &op);
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
static bool may_record_now(const struct offer *offer) {
    return offer->offered && (!cus_process.learns ||
                              (!offer->kind->step && cus_kind_allows(offer->kind, offer->op.dims)));
}

static void record_now(struct cus_engine *engine, const struct offer *offer,
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
    if (ended)
        cus_tally_cut(tally, why, 0);
}

/* Counts an eager op for the counters and the trace. True: a run ended with it. Engine lock
 * held. */
static bool count_eager(struct cus_engine *engine, struct cus_call *call, struct reason why) {
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
                            const struct offer *offer) {
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
                          const struct offer *offer) {
    uint32_t generation = engine->generation;
    struct cus_context *context = engine->context;
    struct reason why = offer->why;
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
    return call->type == CUS_OP_WAIT ? cus_branch_enter_wait(engine, call->side, call)
                                     : cus_branch_enter(engine, call->side, call);
}

/* Would the wait be an edge from the record that it is for, and all that its stream must be behind?
 * If not, what is deferred is issued. */
static bool edge_fits(const struct cus_engine *engine, const struct cus_call *call) {
    uint32_t n = cus_plan_deferred(&engine->view);
    if (call->apart)
        return false;
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
        engine = state == CUS_DEFER ? cus_registry_find(thread, call->stream, current) : NULL;
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
            if (state == CUS_DEFER && cus_options()->live)
                cus_watchdog_ready(); /* its thread makes the page */
            return cus_pass_by(thread, call, current, state == CUS_DEFER);
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
        if (call->type == CUS_OP_WAIT && !engine->view.segment)
            cus_deferred_settle(engine); /* a stream may take another one's branch */
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

    struct offer offer;
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
        cus_deferred_flush(engine, CUS_ROW_cuStreamWaitEvent, CUS_BREAK_API,
                           call->apart ? CUS_CUT_OWNER : CUS_CUT_OTHER, CUS_EAGER_FLUSHED);
    if (offer_op(thread, engine, call, &offer, &result))
        cus_engine_unlock(engine);
    else {
        if (call->type == CUS_OP_RECORD)
            cus_events_recorded(call->event->event, record_place(engine, call));
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
    CUresult result = carry_out(call);
    if (thread->pending && thread->cached_engine != thread->pending &&
        call->side != thread->pending)
        cus_registry_turn(thread, before);
    return result;
}

static inline CUresult run(struct cus_call *call, CUresult (*go)(struct cus_call *)) {
    call->began = 0;
    if (!cus_recording())
        return go(call);
    call->record = NULL;
    call->traced = call->deferred = false;
    call->eager = CUS_EAGER_PASSTHROUGH;
    call->why = (enum cus_why)0;
    cus_trace_op_begin(call);
    CUresult result = go(call);
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
    call->refused = false;
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
