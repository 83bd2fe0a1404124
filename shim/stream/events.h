/*
 * The program's events: of which of them a record may be deferred, and which have a record that is.
 * Events are found by handle; a handle that comes back is another event, with another generation.
 */
#ifndef CUSPLICE_STREAM_EVENTS_H
#define CUSPLICE_STREAM_EVENTS_H

#include "shim/stream/state.h"

/* The program made this event in this context. */
void cus_events_made(CUevent event, CUcontext context);
/* The event is destroyed, or graph nodes of the program or another process name it: no record of it
 * is deferred from here on. */
void cus_events_gone(CUevent event);
/* What a record of the event needs, which is made next. False: it may not be deferred. */
bool cus_events_find(CUevent event, CUcontext *context, uint64_t *generation);

/* A record of the event was deferred on this engine. Engine lock held. */
void cus_events_deferred(struct cus_engine *engine, CUevent event);
/* The engine whose deferred record the event waits for, and the record's number there. NULL:
 * none. */
struct cus_engine *cus_events_pending(CUevent event, uint64_t *number);
/* The record of this number is issued, or lost. */
static inline bool cus_events_issued(const struct cus_engine *engine, uint64_t number) {
    return number <= __atomic_load_n(&engine->records.issued, __ATOMIC_ACQUIRE);
}
/* All records up to this number are issued. Engine lock held. */
static inline void cus_events_issue(struct cus_engine *engine, uint64_t number) {
    if (engine->records.issued < number)
        __atomic_store_n(&engine->records.issued, number, __ATOMIC_RELEASE);
}

/* Somebody looks at the event: for the first time since such a record? For the trace. */
bool cus_events_first_look(CUevent event);

/* Any context may have gone, and its events with it. */
void cus_events_forget(void);

#endif
