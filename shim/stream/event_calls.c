/*
 * The program's calls about events: what is issued before them. events.c knows which events have a
 * deferred record. Runs on program threads inside hooks, with no lock held.
 */
#include "shim/base/hazard.h"
#include "shim/stream/events.h"
#include "shim/stream/flush.h"
#include "shim/stream/streams.h"
#include "shim/stream/trace.h"

static CUcontext current_context(void) {
    CUcontext context = NULL;
    return cus_process.driver->cuCtxGetCurrent(&context) == CUDA_SUCCESS ? context : NULL;
}

/* Issues the engine's deferred records up to this number: the submitted segment alone, if the
 * record is in it. */
static void issue(struct cus_engine *engine, uint64_t number, unsigned row) {
    bool own = __atomic_load_n(&engine->owner, __ATOMIC_RELAXED) == &cus_thread_self;
    cus_lock_take(&engine->lock);
    if (number <= engine->records.submitted)
        cus_settle_locked(engine);
    if (!cus_events_issued(engine, number))
        cus_flush_locked(engine, row, own ? CUS_BREAK_API : CUS_BREAK_FOREIGN_THREAD,
                         own ? CUS_CUT_OWNER : CUS_CUT_OTHER);
    cus_engine_unlock(engine);
}

void cus_engine_event_made(CUevent event) {
    CUcontext current = current_context();
    if (current)
        cus_events_made(event, current);
}

static void see(CUevent event, unsigned row) {
    uint64_t number;
    struct cus_engine *engine = cus_events_pending(event, &number);
    if (engine && CUS_HAZARD(B16))
        issue(engine, number, row);
}

/* In a trace, so that a record is issued at this look in whatever way the trace is played. */
static void see_traced(CUevent event, unsigned row) {
    CUS_TRACE(.what = CST_CALL_EVENT_SEEN, .name = cus_trace_cause(row),
              .value = (uint64_t)(uintptr_t)event);
    see(event, row);
}

void cus_engine_event_seen(CUevent event, unsigned row) {
    if (__builtin_expect(cus_recording(), 0) && cus_events_first_look(event))
        see_traced(event, row);
    else
        see(event, row);
}

void cus_engine_event_named(CUevent event, unsigned row) {
    cus_engine_event_seen(event, row);
    cus_events_gone(event);
}

bool cus_engine_record_begins(struct cus_record *record, unsigned flags, unsigned row) {
    struct cus_thread *thread = &cus_thread_self;
    if (__atomic_load_n(&cus_process.state, __ATOMIC_ACQUIRE) == CUS_OFF)
        return false;
    if (flags) { /* a node of a graph that the program captures */
        cus_engine_event_named(record->event, row);
        return false;
    }
    uint64_t number;
    struct cus_engine *before = cus_events_pending(record->event, &number);
    struct cus_engine *engine = NULL;
    if (before || thread->pending)
        engine = cus_streams_peek(thread, record->stream, current_context());
    /* The record before this one comes first. On the same stream it does by itself. */
    if (before && before != engine)
        cus_engine_event_seen(record->event, row);
    /* A record orders nothing on other streams: what this thread defers there may stay deferred, as
     * long as the record itself is not. */
    if (thread->pending && thread->pending != engine)
        return false;
    return cus_events_find(record->event, &record->context, &record->generation);
}
