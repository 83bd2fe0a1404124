/*
 * The program's events: of which of them a record may be deferred, and which have a record that is.
 * Events are found by handle; a handle that comes back is another event, with another generation.
 */
#ifndef CUSPLICE_STREAM_EVENTS_H
#define CUSPLICE_STREAM_EVENTS_H

#include "shim/stream/state.h"

/* The program made this event in this context. */
void cus_events_made(CUevent event, CUcontext context);
void cus_events_gone(CUevent event);
/* Graph nodes of the program or another process name the event: no record of it is deferred from
 * here on. */
void cus_events_named(CUevent event);

/* Where a record is made. */
struct cus_event_place {
    struct cus_engine *engine; /* of which it is an op; NULL: of none that is known */
    struct cus_engine *stream; /* of the stream: `engine`, or a branch of it */
    uint64_t position;         /* cus_branch_position of the stream; 0: not known */
    uint64_t ops;              /* ops of `engine` up to it; 0: it is no op */
};
/* The event is recorded there by the program's own call. */
void cus_events_recorded(CUevent event, struct cus_event_place place);
/* A record of the event was deferred there, as op `at` of the segment. Engine lock held. AGAIN: so
 * was the event's last record, as op `*before`, and nobody has seen that one. UNKNOWN: meanwhile
 * another thread named the event, or it is gone; so the record may not stay deferred. */
enum cus_event_is { CUS_EVENT_FIRST, CUS_EVENT_AGAIN, CUS_EVENT_UNKNOWN };
enum cus_event_is cus_events_deferred(CUevent event, struct cus_event_place place, uint32_t at,
                                      uint32_t *before);

/* The last record of an event. */
struct cus_event_record {
    struct cus_event_place place;
    uint32_t at;     /* of its segment, if it was deferred */
    uint64_t number; /* among the engine's deferred records; 0: it was not deferred */
    bool named;      /* the event may have been recorded in other ways since */
};
struct cus_event_record cus_events_last(CUevent event);
/* The same, and what a record of the event needs, which is made next. Context NULL: it may not be
 * deferred. */
struct cus_event_record cus_events_find(CUevent event, CUcontext *context, uint64_t *generation);
/* Is a record with this number issued, or lost? */
static inline bool cus_events_issued(struct cus_event_record record) {
    return !record.place.engine ||
           record.number <= __atomic_load_n(&record.place.engine->records.issued, __ATOMIC_ACQUIRE);
}
/* All records up to this number are issued. Engine lock held. */
static inline void cus_events_issue(struct cus_engine *engine, uint64_t number) {
    if (engine->records.issued < number)
        __atomic_store_n(&engine->records.issued, number, __ATOMIC_RELEASE);
}

/* Somebody looks at the event: for the first time since such a record? For the trace. */
bool cus_events_first_look(CUevent event);

/* Events that the program destroyed while a node of a graph held them, or while their last record
 * was deferred. Keeps one; false: it is not known, or there is no memory. Below: takes out those
 * that no node holds any more and whose record is issued. Returns how many. */
enum { CUS_EVENTS_OLD = 16 };
bool cus_events_keep(CUevent event, struct cus_event_record last);
unsigned cus_events_take_old(CUevent old[CUS_EVENTS_OLD]);

/* The context has gone, and its events with it; NULL: any context may have. Nothing is deferred
 * there. */
void cus_events_forget(CUcontext context);

#endif
