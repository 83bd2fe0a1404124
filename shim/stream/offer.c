/*
 * Offers an op to the plan and does what the plan answers: the op is deferred, a segment begins or
 * is launched, or the op is to be issued now. engine.c calls it on program threads inside hooks,
 * with the engine's lock held and the engine's context current.
 */
#include "shim/stream/offer.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "shim/base/clock.h"
#include "shim/base/hazard.h"
#include "shim/stream/building.h"
#include "shim/stream/check_launch.h"
#include "shim/stream/deferred.h"
#include "shim/stream/events.h"
#include "shim/stream/graphs.h"
#include "shim/stream/news.h"
#include "shim/stream/ranges.h"
#include "shim/stream/realtime.h"
#include "shim/stream/registry.h"
#include "shim/stream/room.h"
#include "shim/stream/streams.h"
#include "shim/stream/trace.h"
#include "shim/stream/watchdog.h"

static struct cus_kind *kind_of(struct cus_engine *engine, struct cus_call *call, bool *first) {
    const struct cus_kind *expected = cus_plan_expected(cus_engine_plan(engine));
    *first = false;
    if (expected && cus_call_is(engine, call, expected))
        return (struct cus_kind *)(uintptr_t)expected;
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

static struct cus_reason reason(enum cus_eager eager, enum cus_why why) {
    return (struct cus_reason){eager, why};
}

static bool may_defer(struct cus_engine *engine, struct cus_proposal proposal,
                      struct cus_reason *why_not) {
    *why_not = reason(CUS_EAGER_PASSTHROUGH, CUS_WHY_OFF);
    /* The state is read again under the lock. A thread that switches deferral off changes the
     * state, then takes each lock; so nothing is deferred behind its back. It may miss an engine
     * that this thread has just added: then this thread sees the state, as both are sequentially
     * consistent with `n_engines`. */
    if (__atomic_load_n(&cus_process.state, __ATOMIC_SEQ_CST) != CUS_DEFER)
        return false;
    why_not->why = CUS_WHY_OPENING;
    if (cus_opening_threads())
        return false;
    why_not->why = CUS_WHY_PROFILER;
    if (CUS_HAZARD(E8) && __atomic_load_n(&cus_process.profiling, __ATOMIC_SEQ_CST))
        return false;
    why_not->why = CUS_WHY_CAPTURE;
    if (CUS_HAZARD(D3) && cus_program_captures(engine->context))
        return false;
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    CUresult asked = cus_process.driver->cuStreamIsCapturing(engine->handle, &status);
    bool captures = asked == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT ||
                    (asked == CUDA_SUCCESS && status != CU_STREAM_CAPTURE_STATUS_NONE);
    bool lost = asked != CUDA_SUCCESS && asked != CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    if ((CUS_HAZARD(D6) && captures) || (CUS_HAZARD(E14) && lost))
        return false;
    why_not->why = CUS_WHY_GONE;
    if (!cus_streams_same(engine)) {
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

static void begin(struct cus_thread *thread, struct cus_engine *engine, const struct cus_op *op) {
    if (!thread->tid)
        thread->tid = (pid_t)syscall(SYS_gettid);
    __atomic_store_n(&engine->owner_tid, thread->tid, __ATOMIC_RELAXED);
    engine->view.came_ns = cus_clock_ns();
    cus_plan_accept(cus_engine_plan(engine), op, cus_ranges_epoch());
    tell_segment(engine);
    engine->records.begun = engine->records.deferred;
    __atomic_store_n(&engine->pending_since, engine->view.came_ns, __ATOMIC_RELAXED);
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

struct cus_reason cus_offer_forbidden(const struct cus_plan *plan, const struct cus_op *op) {
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
    cus_news_cut(tally, why, ops);
}

struct cus_event_place cus_record_place(struct cus_engine *engine, const struct cus_call *call) {
    uint64_t ops = cus_engine_ops(engine);
    bool own = call->side == engine;
    uint64_t calls = __atomic_load_n(&engine->calls, __ATOMIC_RELAXED);
    return (struct cus_event_place){
        .engine = engine, .stream = call->side, .position = own ? ops + calls + 1 : 0, .ops = ops};
}

static void record_deferred(struct cus_engine *engine, struct cus_call *call) {
    uint32_t before, at = engine->view.n - 1;
    enum cus_event_is is =
        cus_events_deferred(call->event->event, cus_record_place(engine, call), at, &before);
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

bool cus_offer_op(struct cus_thread *thread, struct cus_engine *engine, struct cus_call *call,
                  struct cus_offered *offer, CUresult *result) {
    struct cus_op *op = &offer->op;
    struct cus_reason *why = &offer->why;
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
                      rule ? cus_offer_forbidden(cus_engine_plan(engine), op).why
                           : CUS_WHY_DIVERGED);
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
            begin(thread, engine, op);
            break;
        case CUS_OFFER_EAGER:
            offer->offered = true;
            if (!cus_plan_allows(cus_engine_plan(engine), op))
                *why = cus_offer_forbidden(cus_engine_plan(engine), op);
            else if (!kind->deferrable)
                why->why = CUS_WHY_NODE;
            else
                *why = reason(CUS_EAGER_OBSERVING, why_eager(engine, op));
            return false;
        }
    }
}
