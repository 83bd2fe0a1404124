/*
 * Walks the events in the order of time. A thread plays each recorded thread, since the engine
 * tells threads apart by their thread-local state. run.c calls it. The threads take turns, and two
 * never run at once; a trace of one thread needs no other.
 */
#include "tools/whatif/player.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/base/options.h"
#include "shim/plan/rules.h"
#include "shim/stream/hot.h"
#include "shim/stream/virtual.h"
#include "tools/trace/progress.h"
#include "tools/whatif/clock.h"
#include "tools/whatif/events.h"

enum { STACK = 1 << 20 };

struct actor {
    pthread_cond_t turn;
    bool started;
    uint32_t context; /* where it was last */
};

static struct {
    const struct cst_trace *trace;
    struct whatif_played *out;
    size_t at;            /* the next event */
    struct actor *actors; /* by thread */
    uint32_t first_context;
    uint64_t look_at; /* nothing is due before */

    pthread_mutex_t lock;
    struct actor *first; /* who began, on the thread that was there */
    uint32_t turn;       /* lock: the thread whose turn it is */
    bool done;           /* lock */
} here = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- time ---- */

static void set_clock(uint64_t ns) {
    if (ns > cus_virtual.ns)
        cus_virtual.ns = ns;
}

/* What became due before `ns` happens at its time: the watchdog looks twice per hold_us, and comes
 * a quarter of it late, by and large. While an op is carried out it finds the stream locked. */
static void move_clock(uint64_t ns) {
    while (here.look_at <= ns) {
        uint64_t due = cus_watchdog_due();
        due += due < UINT64_MAX ? cus_process.hold_ns / 4 : 0;
        if (due <= ns) {
            set_clock(due);
            whatif_clock_background(due);
            cus_watchdog_issue();
            if (cus_watchdog_due() > due)
                continue;
        }
        /* Nothing that is deferred from now on is due earlier. */
        uint64_t soonest = ns + cus_process.hold_ns;
        here.look_at = due < soonest ? due : soonest;
        break;
    }
    set_clock(ns);
}

/* ---- taking turns ---- */

static bool is_played(const struct cst_record *event) {
    return event->type == CST_OP || event->type == CST_CALL;
}

/* The moment at which the engine looked at the clock: when an op was about to go out, or had been
 * deferred; when a call came. */
static uint64_t when(const struct cst_record *event) {
    enum { AHEAD = 8 };
    const struct cst_op *op = (const struct cst_op *)event;
    if (event->type != CST_OP || event->flags != CST_DEFERRED)
        return event->ns;
    uint64_t end = event->ns + op->host_ns;
    for (size_t i = here.at + 1; i < here.trace->n_events && i <= here.at + AHEAD; i++) {
        const struct cst_record *next = here.trace->events[i];
        if (next->ns > end)
            break;
        if (next->thread == event->thread && !is_played(next) && next->type != CST_SEGMENT)
            return next->ns;
    }
    return end;
}

/* Plays what is this thread's until it is another one's turn; that one's number, CST_NONE at the
 * end. */
static uint32_t play_on(uint32_t thread) {
    const struct cst_trace *trace = here.trace;
    struct actor *actor = &here.actors[thread];
    for (; here.at < trace->n_events; here.at++) {
        const struct cst_record *event = trace->events[here.at];
        progress_event("whatif", here.at, trace->n_events);
        if (!is_played(event))
            continue;
        if (event->thread != thread)
            return event->thread;
        move_clock(event->ns);
        set_clock(when(event));
        whatif_clock_event(here.at);
        if (event->type == CST_OP)
            whatif_events_op(&actor->context, (const struct cst_op *)event);
        else
            whatif_events_call(&actor->context, (const struct cst_call *)event);
        whatif_clock_event_end();
    }
    return CST_NONE;
}

static void *act(void *argument);

/* Lock held. */
static void end(void) {
    here.done = true;
    pthread_cond_signal(&here.first->turn);
}

/* Lock held. */
static void pass_to(uint32_t thread) {
    if (thread == CST_NONE) {
        end();
        return;
    }
    struct actor *next = &here.actors[thread];
    here.turn = thread;
    here.out->switches++;
    if (next->started) {
        pthread_cond_signal(&next->turn);
        return;
    }
    pthread_t id;
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_cond_init(&next->turn, NULL);
    next->started = true;
    next->context = here.first_context;
    here.out->threads++;
    if (pthread_create(&id, &attr, act, next) != 0) {
        snprintf(here.out->error, sizeof here.out->error,
                 "no thread could be started for the %u threads of the recording",
                 here.out->threads);
        end();
    }
    pthread_attr_destroy(&attr);
}

static void *act(void *argument) {
    uint32_t self = (uint32_t)((struct actor *)argument - here.actors);
    pthread_mutex_lock(&here.lock);
    while (!here.done) {
        while (here.turn != self)
            pthread_cond_wait(&here.actors[self].turn, &here.lock);
        pthread_mutex_unlock(&here.lock);
        uint32_t next = play_on(self);
        pthread_mutex_lock(&here.lock);
        pass_to(next);
    }
    pthread_mutex_unlock(&here.lock);
    return NULL;
}

/* This thread plays the one that comes first, and waits for the others. */
static void play_all(void) {
    const struct cst_trace *trace = here.trace;
    size_t first = 0;
    while (first < trace->n_events && !is_played(trace->events[first]))
        first++;
    if (first == trace->n_events)
        return;
    uint32_t self = trace->events[first]->thread;
    struct actor *me = &here.actors[self];
    pthread_cond_init(&me->turn, NULL);
    me->started = true;
    me->context = here.first_context;
    here.first = me;
    here.turn = self;
    here.out->threads = 1;
    pthread_mutex_lock(&here.lock);
    while (!here.done) {
        pthread_mutex_unlock(&here.lock);
        uint32_t next = play_on(self);
        pthread_mutex_lock(&here.lock);
        pass_to(next);
        while (here.turn != self && !here.done)
            pthread_cond_wait(&me->turn, &here.lock);
    }
    pthread_mutex_unlock(&here.lock);
}

/* ---- the whole ---- */

void whatif_play(const struct cst_trace *trace, const struct whatif_timing *timing,
                 struct whatif_played *out) {
    memset(out, 0, sizeof *out);
    here.trace = trace;
    here.out = out;
    here.actors = whatif_need(calloc(trace->n_threads + 1, sizeof *here.actors));
    cus_virtual.on = true;
    cus_virtual.ns = trace->begin_ns;
    cus_virtual.unseen_ns = 0;
    whatif_builds_start(trace, timing);
    const struct cus_driver *driver = whatif_driver_start(trace);
    here.first_context = 1;
    for (uint32_t id = trace->n_streams; id-- > 0;)
        if (trace->streams[id])
            here.first_context = trace->streams[id]->context;
    cus_engine_start(driver);
    if (timing)
        whatif_clock_start(trace, timing);
    whatif_events_start(trace, out);
    play_all();
    if (!whatif_events_drained() && !*out->error)
        cus_engine_drain(); /* as the end of a program does */
    cus_engine_counters(&out->counters);
    whatif_clock_end(&out->times);
    out->asked = whatif_asked;
    out->mode = (uint32_t)cus_options()->mode;
    for (unsigned i = 0; i < cus_rules_count(cus_rules()); i++)
        out->rules_unmet += !cus_rules_matched(cus_rules(), i);
}
