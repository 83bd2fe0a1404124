/*
 * The table of the program's events.
 *
 * A record is an op: it is deferred with the launches around it, and becomes a node of their graph.
 * Until it is issued, the driver knows only the event's record before; so whoever asks about the
 * event has it issued first (event_calls.c). The table tells who must: for each event, the engine
 * of its last deferred record, and that record's number. An engine counts its deferred records and
 * how many of them are issued, so nothing is written here when they are.
 *
 * Runs on program threads inside hooks. events_lock is innermost; the driver is not called.
 */
#include "shim/stream/events.h"

#include "shim/base/mem.h"

enum {
    EVENTS_MAX = 1 << 16
}; /* events that are known at a time; for records of others is flushed */

struct event {
    CUevent handle;
    CUcontext context;
    uint64_t generation;
    struct cus_engine *engine; /* of the last record that was deferred; NULL: none was */
    uint64_t number;           /* of that record, among those of the engine */
    bool unseen;               /* nobody has looked at it since it was recorded last */
    UT_hash_handle hh;
};

static struct cus_lock events_lock = CUS_LOCK_OF(CUS_RANK_INNERMOST);
/* All of events_lock. */
static struct event *events;
static uint64_t generations; /* given so far */

/* events_lock held. */
static struct event *find(CUevent handle) {
    struct event *event;
    HASH_FIND_PTR(events, &handle, event);
    return event;
}

/* events_lock held; NULL is allowed. */
static void drop(struct event *event) {
    if (!event)
        return;
    HASH_DEL(events, event);
    cus_mem_free(event);
}

void cus_events_made(CUevent handle, CUcontext context) {
    struct event *event = cus_mem_alloc(sizeof *event);
    if (!event)
        return;
    *event = (struct event){.handle = handle, .context = context};
    bool added = true;
    cus_lock_take(&events_lock);
    drop(find(handle));
    event->generation = ++generations;
    if (HASH_COUNT(events) < EVENTS_MAX) {
#undef uthash_nonfatal_oom
#define uthash_nonfatal_oom(element) (added = false)
        HASH_ADD_PTR(events, handle, event);
    } else {
        added = false;
    }
    cus_lock_give(&events_lock);
    if (!added)
        cus_mem_free(event);
}

void cus_events_gone(CUevent handle) {
    cus_lock_take(&events_lock);
    drop(find(handle));
    cus_lock_give(&events_lock);
}

bool cus_events_find(CUevent handle, CUcontext *context, uint64_t *generation) {
    cus_lock_take(&events_lock);
    struct event *event = find(handle);
    if (event) {
        event->unseen = true;
        *context = event->context;
        *generation = event->generation;
    }
    cus_lock_give(&events_lock);
    return event != NULL;
}

void cus_events_deferred(struct cus_engine *engine, CUevent handle) {
    cus_lock_take(&events_lock);
    struct event *event = find(handle);
    if (event) {
        event->engine = engine;
        event->number = ++engine->records.deferred;
    }
    cus_lock_give(&events_lock);
}

struct cus_engine *cus_events_pending(CUevent handle, uint64_t *number) {
    cus_lock_take(&events_lock);
    const struct event *event = find(handle);
    struct cus_engine *engine = event ? event->engine : NULL;
    *number = event ? event->number : 0;
    cus_lock_give(&events_lock);
    return engine && !cus_events_issued(engine, *number) ? engine : NULL;
}

bool cus_events_first_look(CUevent handle) {
    cus_lock_take(&events_lock);
    struct event *event = find(handle);
    bool first = event && event->unseen;
    if (event)
        event->unseen = false;
    cus_lock_give(&events_lock);
    return first;
}

void cus_events_forget(void) {
    cus_lock_take(&events_lock);
    struct event *event, *next;
    HASH_ITER(hh, events, event, next)
    drop(event);
    cus_lock_give(&events_lock);
}
