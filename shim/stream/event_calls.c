/*
 * The program's calls about events: what is issued before them. events.c knows which events have a
 * deferred record. Runs on program threads inside hooks, with no lock held.
 */
#include "shim/api/api.h"
#include "shim/base/hazard.h"
#include "shim/graph/held.h"
#include "shim/plan/branches.h"
#include "shim/stream/branches.h"
#include "shim/stream/events.h"
#include "shim/stream/flush.h"
#include "shim/stream/graphs.h"
#include "shim/stream/registry.h"
#include "shim/stream/streams.h"
#include "shim/stream/trace.h"

static CUcontext current_context(void) {
    CUcontext context = NULL;
    return cus_process.driver->cuCtxGetCurrent(&context) == CUDA_SUCCESS ? context : NULL;
}

static bool is_own(const struct cus_engine *engine) {
    return __atomic_load_n(&engine->owner, __ATOMIC_RELAXED) == &cus_thread_self;
}

/* Issues what is deferred up to this record: the submitted segment alone, if the record is in
 * it. */
static void issue(struct cus_event_record record, unsigned row) {
    struct cus_engine *engine = record.place.engine;
    bool own = is_own(engine);
    cus_lock_take(&engine->lock);
    if (record.number <= engine->records.submitted)
        cus_settle_locked(engine);
    if (!cus_events_issued(record))
        cus_flush_locked(engine, row, own ? CUS_BREAK_API : CUS_BREAK_FOREIGN_THREAD,
                         own ? CUS_CUT_OWNER : CUS_CUT_OTHER);
    cus_engine_unlock(engine);
}

/* The record ended nothing, but a wait of another stream will cut a segment just behind it. Only
 * for learning, so it does not wait for the lock. */
static void tell_fork(struct cus_event_record record) {
    struct cus_engine *engine = record.place.engine;
    if (!engine || !is_own(engine) || !cus_lock_try(&engine->lock))
        return;
    if (!engine->view.segment && !engine->closed && cus_engine_ops(engine) == record.place.ops)
        cus_plan_break(cus_engine_plan(engine));
    cus_engine_unlock(engine);
}

void cus_engine_event_made(CUevent event) {
    CUcontext current = current_context();
    if (current)
        cus_events_made(event, current);
    cus_graphs_destroy_events();
}

static bool waits(unsigned row) {
    return row == CUS_ROW_cuStreamWaitEvent || row == CUS_ROW_cuStreamWaitEvent_ptsz;
}

static void see(CUevent event, unsigned row) {
    struct cus_event_record last = cus_events_last(event);
    if (!cus_events_issued(last) && CUS_HAZARD(B16))
        issue(last, row);
    else if (waits(row))
        tell_fork(last);
}

/* In a trace, so that a record is issued at this look in whatever way the trace is played. */
static void see_traced(CUevent event, unsigned row) {
    CUS_TRACE(.what = CST_CALL_EVENT_SEEN, .name = cus_trace_cause(row),
              .value = (uint64_t)(uintptr_t)event);
    see(event, row);
}

static void look(CUevent event, unsigned row, bool tell) {
    if (__builtin_expect(cus_recording(), 0) && tell && cus_events_first_look(event))
        see_traced(event, row);
    else
        see(event, row);
}

void cus_engine_event_seen(CUevent event, unsigned row) {
    look(event, row, !waits(row)); /* of a wait, cus_engine_flush_event tells */
}

void cus_engine_event_named(CUevent event, unsigned row) {
    cus_events_named(event);
    look(event, row, true);
}

void cus_engine_flush_event(const struct cus_stream_ref *stream, CUevent event, unsigned row) {
    enum cus_scope scope = (enum cus_scope)cus_api_rows[row].scope;
    CUS_TRACE(.what = CST_CALL_FLUSH, .scope = scope, .stream = stream,
              .name = cus_trace_cause(row), .value = (uint64_t)(uintptr_t)event);
    cus_engine_flush(scope, stream, row);
}

/* Does a deferred wait wait for the deferred record at this place? Engine lock held. */
static bool has_wait(const struct cus_engine *engine, uint32_t record) {
    for (uint32_t i = record + 1; i < engine->view.n; i++) {
        const struct cus_kind *kind = engine->view.segment->places[i].kind;
        if (kind->type == CUS_OP_WAIT && cus_branches_record(kind, i) == record)
            return true;
    }
    return false;
}

/* Nobody can see an event that goes: its destroy waits for its deferred record. Of an event that
 * was made to fork or join a branch, the graph needs no node. */
static bool goes_unseen(CUevent event, struct cus_event_record last) {
    struct cus_engine *engine = last.place.engine;
    if (cus_events_issued(last) || !is_own(engine) || !cus_events_keep(event, last))
        return false;
    cus_lock_take(&engine->lock);
    bool deferred = engine->view.segment && last.number > engine->records.begun;
    if (deferred && has_wait(engine, last.at))
        cus_plan_supersede(cus_engine_plan(engine), last.at);
    cus_engine_unlock(engine);
    return true;
}

bool cus_engine_event_goes(CUevent event, unsigned row) {
    CUS_TRACE(.what = CST_CALL_EVENT_GONE, .name = cus_trace_cause(row),
              .value = (uint64_t)(uintptr_t)event);
    struct cus_event_record last = cus_events_last(event);
    bool may = cus_process.driver->cuEventDestroy_v2 != NULL;
    bool later = may && goes_unseen(event, last);
    if (!later) {
        cus_engine_event_seen(event, row);
        later = CUS_HAZARD(B17) && may && cus_held(event) && cus_events_keep(event, last);
    }
    cus_events_gone(event);
    cus_graphs_destroy_events();
    return later;
}

bool cus_engine_event_withheld(CUevent event) {
    struct cus_event_record last = cus_events_last(event);
    return !cus_events_issued(last) && CUS_HAZARD(B16) && !is_own(last.place.engine) &&
           !cus_program_captures(last.place.engine->context);
}

/* Is this the stream to which the thread's side stream was joined, with nothing deferred? Then the
 * thread's work goes on there. */
static bool comes_home(const struct cus_thread *thread, const struct cus_engine *engine) {
    return engine && thread->last && !thread->pending && cus_branch_is_joined(thread->last, engine);
}

/* Does the deferred record before this one come first by itself, as on the same stream? */
static bool comes_first(const struct cus_event_place *last, struct cus_engine *engine,
                        const struct cus_engine *stream) {
    if (!engine || last->engine != engine)
        return false;
    cus_lock_take(&engine->lock);
    bool is = cus_branch_is_behind(engine, stream, last);
    cus_engine_unlock(engine);
    return is;
}

bool cus_engine_record_begins(struct cus_record *record, unsigned flags, unsigned row) {
    struct cus_thread *thread = &cus_thread_self;
    if (__atomic_load_n(&cus_process.state, __ATOMIC_ACQUIRE) == CUS_OFF)
        return false;
    if (flags) { /* a node of a graph that the program captures */
        cus_engine_event_named(record->event, row);
        return false;
    }
    struct cus_engine *stream = cus_registry_recall(thread, record->stream, current_context());
    struct cus_engine *home = stream ? __atomic_load_n(&stream->home, __ATOMIC_SEQ_CST) : NULL;
    struct cus_engine *engine = home ? home : stream;
    if (engine != thread->last && !comes_home(thread, engine))
        engine = NULL;
    struct cus_event_record last =
        cus_events_find(record->event, &record->context, &record->generation);
    if (!cus_events_issued(last) && !comes_first(&last.place, engine, stream))
        cus_engine_event_seen(record->event, row);
    /* A record orders nothing on other streams: what this thread defers there stays deferred, and
     * this thread's work goes on there. */
    return engine && record->context;
}

/* The engine of a stream, made if it is new, so that the first record and wait are known. */
static struct cus_engine *engine_of(struct cus_stream_ref stream) {
    return __atomic_load_n(&cus_process.state, __ATOMIC_ACQUIRE) == CUS_DEFER
               ? cus_registry_find(&cus_thread_self, stream, current_context())
               : NULL;
}

void cus_engine_recorded(const struct cus_record *record) {
    struct cus_engine *engine = engine_of(record->stream);
    struct cus_event_place place = {.engine = engine, .stream = engine};
    if (engine)
        place.position = cus_branch_position(engine);
    cus_events_recorded(record->event, place);
}

/* ---- waits ---- */

/* The driver refused a wait that was to fork this side stream, or to join it. */
static void not_made(struct cus_engine *side, unsigned row) {
    cus_flush_branch(side, row);
    cus_branch_joined(side, NULL, 0);
}

bool cus_engine_wait(const struct cus_wait *wait, CUresult *result) {
    struct cus_thread *thread = &cus_thread_self;
    struct cus_event_record last = cus_events_last(wait->event);
    struct cus_engine *home = last.place.engine;
    if (__atomic_load_n(&cus_process.state, __ATOMIC_ACQUIRE) != CUS_DEFER || !home || last.named ||
        (thread->pending && thread->pending != home) || !is_own(home))
        return false;
    struct cus_engine *engine = cus_registry_recall(thread, wait->stream, current_context());
    if (!engine || engine == last.place.stream || (engine != home && !cus_branch_same(engine)))
        return false;
    struct cus_call call = {.stream = wait->stream,
                            .wait = wait,
                            .record_at = last.place,
                            .home = home,
                            .moves = cus_branch_moves(engine),
                            .life = __atomic_load_n(&home->life, __ATOMIC_RELAXED)};
    bool is_branch = __atomic_load_n(&engine->home, __ATOMIC_SEQ_CST) == home;
    call.may_fork = engine != home && !is_branch && cus_branch_may_fork(engine, home);
    if (engine != home && !is_branch && !call.may_fork)
        return false;
    *result = cus_engine_carry_out_wait(&call);
    if (!call.refused && *result != CUDA_SUCCESS)
        not_made(call.place.branch ? engine : last.place.stream, wait->row);
    return !call.refused;
}

/* The program's own call comes later, and is not looked at. The registry notes that this thread
 * uses the stream, so that it is no branch of a stream of another thread (B20). */
bool cus_engine_wait_passes(const struct cus_wait *wait) {
    if (!cus_rests())
        return false;
    cus_registry_find(&cus_thread_self, wait->stream, current_context());
    return true;
}

void cus_engine_waited(const struct cus_wait *wait) {
    struct cus_event_record last = cus_events_last(wait->event);
    struct cus_engine *from = last.place.stream;
    struct cus_engine *to = engine_of(wait->stream);
    /* A wait that is captured orders nothing on its stream. */
    if (!to || !from || to == from || last.named || cus_program_captures(to->context))
        return;
    cus_branch_waited(to, from);
    if (__atomic_load_n(&to->side_of, __ATOMIC_RELAXED) == from)
        __atomic_store_n(&to->waited_for, from, __ATOMIC_RELAXED);
    if (last.place.position && last.place.position == cus_branch_position(from))
        cus_branch_joined(from, to, last.place.position);
}
