/*
 * The table of the program's events.
 *
 * A record is an op: it is deferred with the launches around it, and becomes a node of their graph.
 * Until it is issued, the driver knows only the event's record before; so whoever asks about the
 * event has it issued first (event_calls.c). The table tells who must: for each event, the engine
 * of its last record, and that record's number among those that the engine deferred. An engine
 * knows how many of its records are issued, so nothing is written here when they are.
 *
 * Runs on program threads inside hooks. The locks are innermost; the driver is not called. Threads
 * with different events rarely meet: events are spread over many tables.
 */
#include "shim/stream/events.h"

#include "shim/base/mem.h"
#include "shim/graph/held.h"

enum {
    TABLES = 16,
    EVENTS_MAX = 1 << 12 /* of a table; a record of any other event is flushed for */
};

struct event {
    CUevent handle;
    CUcontext context;
    uint64_t generation;
    bool named;  /* no record of it is deferred */
    bool unseen; /* nobody has looked at it since it was recorded last */
    struct cus_event_record last;
    UT_hash_handle hh;
};

static struct table {
    struct cus_lock lock;
    struct event *events;
} __attribute__((aligned(CUS_LINE))) tables[TABLES] = {
    [0 ... TABLES - 1] = {.lock = CUS_LOCK_OF(CUS_RANK_INNERMOST)},
};
static uint64_t generations; /* atomic: given so far */

/* Events that the program destroyed while nodes held them or records were deferred. */
struct old {
    CUevent handle;
    CUcontext context;
    struct cus_event_record last;
    struct old *next;
};
static struct cus_lock old_lock = CUS_LOCK_OF(CUS_RANK_INNERMOST);
static struct old *olds; /* old_lock; read without it as a hint */

static struct table *table_of(CUevent handle) {
    struct table *table = &tables[(cus_hash_pointer(handle) >> 32) % TABLES];
    cus_lock_take(&table->lock);
    return table;
}

/* The table's lock held. */
static struct event *find(const struct table *table, CUevent handle) {
    struct event *event;
    HASH_FIND_PTR(table->events, &handle, event);
    return event;
}

void cus_events_gone(CUevent handle) {
    struct table *table = table_of(handle);
    struct event *event = find(table, handle);
    if (event)
        HASH_DEL(table->events, event);
    cus_lock_give(&table->lock);
    cus_mem_free(event);
}

void cus_events_named(CUevent handle) {
    struct table *table = table_of(handle);
    struct event *event = find(table, handle);
    if (event)
        event->named = true;
    cus_lock_give(&table->lock);
}

static struct cus_event_record last_of(const struct event *event) {
    struct cus_event_record last = event ? event->last : (struct cus_event_record){.number = 0};
    last.named = !event || event->named;
    return last;
}

struct cus_event_record cus_events_find(CUevent handle, CUcontext *context, uint64_t *generation) {
    struct table *table = table_of(handle);
    struct event *event = find(table, handle);
    struct cus_event_record last = last_of(event);
    *context = NULL;
    if (!last.named) {
        *context = event->context;
        *generation = event->generation;
    }
    cus_lock_give(&table->lock);
    return last;
}

void cus_events_recorded(CUevent handle, struct cus_event_place place) {
    struct table *table = table_of(handle);
    struct event *event = find(table, handle);
    if (event) {
        event->last = (struct cus_event_record){.place = place};
        event->unseen = true;
    }
    cus_lock_give(&table->lock);
}

enum cus_event_is cus_events_deferred(CUevent handle, struct cus_event_place place, uint32_t at,
                                      uint32_t *before) {
    struct cus_engine *engine = place.engine;
    struct table *table = table_of(handle);
    struct event *event = find(table, handle);
    uint64_t number = ++engine->records.deferred;
    enum cus_event_is is = !event || event->named ? CUS_EVENT_UNKNOWN : CUS_EVENT_FIRST;
    if (event) {
        if (is == CUS_EVENT_FIRST && event->last.place.engine == engine &&
            event->last.number > engine->records.begun)
            is = CUS_EVENT_AGAIN;
        *before = event->last.at;
        event->last = (struct cus_event_record){.place = place, .at = at, .number = number};
        event->unseen = true;
    }
    cus_lock_give(&table->lock);
    return is;
}

struct cus_event_record cus_events_last(CUevent handle) {
    struct table *table = table_of(handle);
    const struct event *event = find(table, handle);
    struct cus_event_record last = last_of(event);
    cus_lock_give(&table->lock);
    return last;
}

bool cus_events_first_look(CUevent handle) {
    struct table *table = table_of(handle);
    struct event *event = find(table, handle);
    bool first = event && event->unseen;
    if (event)
        event->unseen = false;
    cus_lock_give(&table->lock);
    return first;
}

bool cus_events_keep(CUevent handle, struct cus_event_record last) {
    CUcontext context = NULL;
    struct table *table = table_of(handle);
    const struct event *event = find(table, handle);
    if (event)
        context = event->context;
    cus_lock_give(&table->lock);
    struct old *old = event ? cus_mem_alloc(sizeof *old) : NULL;
    if (!old)
        return false;
    *old = (struct old){.handle = handle, .context = context, .last = last};
    cus_lock_take(&old_lock);
    old->next = olds;
    __atomic_store_n(&olds, old, __ATOMIC_RELAXED);
    cus_lock_give(&old_lock);
    return true;
}

static bool is_unheld(const struct old *old, const void *unused) {
    (void)unused;
    return cus_events_issued(old->last) && !cus_held(old->handle);
}

/* Its context goes, or (NULL) may go: the driver destroys it, if it was not destroyed before. */
static bool is_lost(const struct old *old, const void *context) {
    return !context || old->context == context;
}

/* The driver gave its handle to another event. */
static bool is_reused(const struct old *old, const void *handle) {
    return old->handle == handle;
}

/* Takes such events out of `olds`, CUS_EVENTS_OLD at most. */
static unsigned take_old(bool (*is)(const struct old *, const void *), const void *of,
                         CUevent handles[CUS_EVENTS_OLD]) {
    struct old *taken = NULL;
    unsigned n = 0;
    cus_lock_take(&old_lock);
    for (struct old **at = &olds; *at && n < CUS_EVENTS_OLD;) {
        struct old *old = *at;
        if (!is(old, of)) {
            at = &old->next;
            continue;
        }
        __atomic_store_n(at, old->next, __ATOMIC_RELAXED);
        old->next = taken;
        taken = old;
        handles[n++] = old->handle;
    }
    cus_lock_give(&old_lock);
    while (taken) {
        struct old *old = taken;
        taken = old->next;
        cus_mem_free(old);
    }
    return n;
}

unsigned cus_events_take_old(CUevent handles[CUS_EVENTS_OLD]) {
    return __atomic_load_n(&olds, __ATOMIC_RELAXED) ? take_old(is_unheld, NULL, handles) : 0;
}

void cus_events_made(CUevent handle, CUcontext context) {
    CUevent lost[CUS_EVENTS_OLD];
    cus_events_gone(handle);
    if (__atomic_load_n(&olds, __ATOMIC_RELAXED))
        take_old(is_reused, handle, lost);
    struct event *event = cus_mem_alloc(sizeof *event);
    if (!event)
        return;
    *event = (struct event){
        .handle = handle,
        .context = context,
        .generation = __atomic_add_fetch(&generations, 1, __ATOMIC_RELAXED),
    };
    struct table *table = table_of(handle);
    bool added = HASH_COUNT(table->events) < EVENTS_MAX && !find(table, handle);
    if (added) {
#undef uthash_nonfatal_oom
#define uthash_nonfatal_oom(element) (added = false)
        HASH_ADD_PTR(table->events, handle, event);
    }
    cus_lock_give(&table->lock);
    if (!added)
        cus_mem_free(event);
}

void cus_events_forget(CUcontext context) {
    CUevent lost[CUS_EVENTS_OLD];
    while (take_old(is_lost, context, lost) == CUS_EVENTS_OLD)
        continue;
    for (struct table *table = tables; table < tables + TABLES; table++) {
        struct event *event, *next;
        cus_lock_take(&table->lock);
        HASH_ITER(hh, table->events, event, next) {
            if (context && event->context != context)
                continue;
            HASH_DEL(table->events, event);
            cus_mem_free(event);
        }
        cus_lock_give(&table->lock);
    }
}
