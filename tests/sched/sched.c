/*
 * Turns. The running thread decides at each point who goes on, wakes that one by its futex and
 * sleeps on its own. Time is a number: it moves by a tick at each point, and to the end of the next
 * bounded wait if nobody can go on. If there is none either, the threads wait for each other: the
 * process says where each stands and ends with status 96.
 */
#define _GNU_SOURCE
#include "tests/sched/sched.h"

#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    THREADS = 512,
    TICK_NS = 50,
    LOOK_NS = 1000, /* for who yields to nobody */
    SPINS = 20000,  /* points of one thread in a row: it waits for something by looking */
    STATUS = 96
};
static const uint64_t LATE_NS = 2000000000; /* for what sched_begin and sched_end enclose */

enum state { FREE, READY, BLOCKED, DONE };

struct sched_thread {
    enum state state;
    uint32_t go; /* futex */
    int64_t rank;
    const volatile void *on;
    const char *what;
    uint64_t until;
    bool timed_out, asked; /* asked: says where it stands, in a report */
    bool forgotten;
    uint64_t points;
    uint32_t spins;
    int tid;
    pthread_t id;
    bool has_id;
};

static struct sched_thread threads[THREADS];
static unsigned n_threads; /* rows in use or used before */
static __thread struct sched_thread *self __attribute__((tls_model("initial-exec")));
static struct sched_thread *asker;
static long (*real_syscall)(long, ...);

static uint64_t now = 1000000000000, next_end; /* next_end: 0, or no wait ends before */
static uint64_t points, switches, began;       /* began: 0 outside of plans */
static bool moved; /* somebody can go on, or has another rank, since the last choice */
static int64_t lowest;
static int trace_file = -1;
static uint64_t takes;                         /* points at which a lock was taken */
static uint32_t points_in_turn, takes_in_turn; /* of the last plan of depth 0 */

static struct {
    struct sched_plan plan;
    uint64_t random;
    uint64_t points_from, takes_from; /* when it began */
    uint64_t change[SCHED_DEPTH];     /* points or taken locks since, in order */
    unsigned next;
} turns;

bool sched_on(void) {
    return self != NULL;
}

uint64_t sched_now(void) {
    return now;
}

/* splitmix64 */
static uint64_t draw(void) {
    uint64_t z = turns.random += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

/* ---- whose turn ---- */

static void report_self(void);

/* The thread that gave its last turn away. Who goes on waits for its end, which frees memory: so
 * that addresses are the same in each run. */
static int leaving;

static void await_leaving(void) {
    while (leaving && real_syscall(SYS_tgkill, getpid(), leaving, 0) == 0)
        real_syscall(SYS_sched_yield);
    leaving = 0;
}

static void await_turn(struct sched_thread *me) {
    for (;;) {
        while (__atomic_load_n(&me->go, __ATOMIC_ACQUIRE) == 0)
            real_syscall(SYS_futex, &me->go, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
        __atomic_store_n(&me->go, 0, __ATOMIC_RELAXED);
        await_leaving();
        if (!me->asked)
            return;
        report_self();
    }
}

static void give_turn(struct sched_thread *to) {
    __atomic_store_n(&to->go, 1, __ATOMIC_RELEASE);
    real_syscall(SYS_futex, &to->go, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void ready(struct sched_thread *thread, bool timed_out) {
    thread->state = READY;
    thread->timed_out = timed_out;
    thread->on = NULL;
    moved = true;
}

/* Ends the waits whose time is over. */
static void expire(void) {
    next_end = 0;
    for (unsigned i = 0; i < n_threads; i++) {
        struct sched_thread *t = &threads[i];
        if (t->state != BLOCKED || !t->until)
            continue;
        if (t->until <= now)
            ready(t, true);
        else if (!next_end || t->until < next_end)
            next_end = t->until;
    }
}

/* The highest of those that can go on, or NULL. */
static struct sched_thread *highest(void) {
    struct sched_thread *best = NULL;
    for (unsigned i = 0; i < n_threads; i++)
        if (threads[i].state == READY && (!best || threads[i].rank > best->rank))
            best = &threads[i];
    return best;
}

static void report(const char *why);

static struct sched_thread *choose(void) {
    struct sched_thread *best;
    while (!(best = highest())) {
        if (!next_end)
            report("all threads wait for each other");
        now = next_end > now ? next_end : now;
        expire();
    }
    moved = false;
    return best;
}

/* What SCHED_TRACE=FILE has: a line for each switch. */
static void trace(const struct sched_thread *next) {
    char line[160];
    int bytes = snprintf(line, sizeof line, "%llu %llu: %d %s, %d goes on\n",
                         (unsigned long long)(points - turns.points_from), (unsigned long long)now,
                         (int)(self - threads), self->state == BLOCKED ? self->what : "could go on",
                         (int)(next - threads));
    if (write(trace_file, line, (size_t)bytes) < 0)
        trace_file = -1;
}

static void go_on(struct sched_thread *next) {
    struct sched_thread *me = self;
    if (next == me)
        return;
    if (trace_file >= 0)
        trace(next);
    me->spins = 0;
    give_turn(next);
    await_turn(me);
}

/* ---- points ---- */

static void fall_behind(struct sched_thread *me) {
    me->rank = --lowest;
    me->spins = 0;
    moved = true;
}

/* One of the plan's changes: the running thread falls behind; or it is held up until the next wait
 * of another ends, and that one runs. */
static void change(struct sched_thread *me, unsigned i) {
    bool leap = draw() % 3 == 0;
    if (turns.plan.dropped >> i & 1)
        return;
    if (leap && next_end) {
        now = next_end > now ? next_end : now;
        expire();
    }
    fall_behind(me);
}

void sched_point(void) {
    struct sched_thread *me = self;
    if (!me)
        return;
    int error = errno;
    now += TICK_NS;
    if (began && now - began > LATE_NS)
        report("2 s of the threads' clock are over");
    points++;
    me->points++;
    if (next_end && next_end <= now)
        expire();
    if (turns.plan.depth) {
        uint64_t at = turns.plan.by_takes ? takes - turns.takes_from : points - turns.points_from;
        while (turns.next < turns.plan.depth && turns.change[turns.next] <= at)
            change(me, turns.next++);
        if (++me->spins > SPINS)
            fall_behind(me);
        if (moved) {
            struct sched_thread *next = choose();
            switches += next != me;
            go_on(next);
        }
    } else if (++me->spins > SPINS) {
        fall_behind(me);
        go_on(choose());
    }
    errno = error;
}

void sched_taken(void) {
    takes++;
    sched_point();
}

void sched_yield_turn(void) {
    sched_point();
    if (!self)
        return;
    fall_behind(self);
    struct sched_thread *next = choose();
    if (next == self)
        now += LOOK_NS;
    go_on(next);
}

bool sched_block(const volatile void *on, const char *what, uint64_t until) {
    struct sched_thread *me = self;
    if (!me) { /* alone in a forked child: whoever waits looks again */
        real_syscall(SYS_sched_yield);
        return true;
    }
    if (until && until <= now)
        return false;
    me->state = BLOCKED;
    me->on = on;
    me->what = what;
    me->until = until;
    me->spins = 0;
    if (until && (!next_end || until < next_end))
        next_end = until;
    go_on(choose());
    return !me->timed_out;
}

unsigned sched_wake(const volatile void *on, unsigned most) {
    unsigned woken = 0;
    for (unsigned i = 0; i < n_threads && woken < most; i++)
        if (threads[i].state == BLOCKED && threads[i].on == on) {
            ready(&threads[i], false);
            woken++;
        }
    return woken;
}

/* ---- planted faults ---- */

static struct {
    enum sched_fault fault;
    uint64_t every, n; /* every: 0 where none is planted */
} planted;

static void plant(const char *text) {
    static const char *const names[] = {"wake:", "take:"};
    for (unsigned i = 0; text && i < sizeof names / sizeof names[0]; i++)
        if (strncmp(text, names[i], strlen(names[i])) == 0) {
            planted.fault = (enum sched_fault)i;
            planted.every = strtoull(text + strlen(names[i]), NULL, 10);
        }
}

bool sched_planted(enum sched_fault fault) {
    return planted.every && planted.fault == fault && ++planted.n % planted.every == 0;
}

/* ---- threads ---- */

static int64_t new_rank(void) {
    return turns.plan.depth ? (int64_t)(draw() >> 24) : 0;
}

struct sched_thread *sched_thread_new(void) {
    unsigned i = 0;
    while (i < n_threads && threads[i].state != FREE)
        i++;
    if (i == THREADS)
        return NULL;
    n_threads += i == n_threads;
    threads[i] = (struct sched_thread){.state = READY, .rank = new_rank()};
    moved = true;
    return &threads[i];
}

void sched_thread_undo(struct sched_thread *thread) {
    thread->state = FREE;
}

void sched_thread_is(struct sched_thread *thread, pthread_t id) {
    thread->id = id;
    thread->has_id = true;
}

void sched_thread_begins(struct sched_thread *thread) {
    self = thread;
    thread->tid = (int)real_syscall(SYS_gettid);
    await_turn(thread);
}

static void free_if_done(struct sched_thread *thread) {
    if (thread->state == DONE && thread->forgotten)
        thread->state = FREE;
}

void sched_thread_ends(void) {
    struct sched_thread *me = self;
    me->state = DONE;
    sched_wake(me, THREADS);
    free_if_done(me);
    struct sched_thread *next = choose();
    leaving = me->tid;
    self = NULL;
    give_turn(next);
}

static struct sched_thread *thread_of(pthread_t id) {
    for (unsigned i = 0; i < n_threads; i++)
        if (threads[i].state != FREE && threads[i].has_id && pthread_equal(threads[i].id, id))
            return &threads[i];
    return NULL;
}

void sched_thread_join(pthread_t id) {
    struct sched_thread *thread = thread_of(id);
    if (!thread)
        return;
    while (thread->state != DONE)
        sched_block(thread, "joins a thread", 0);
    thread->forgotten = true;
    free_if_done(thread);
}

void sched_thread_forget(pthread_t id) {
    struct sched_thread *thread = thread_of(id);
    if (!thread)
        return;
    thread->forgotten = true;
    free_if_done(thread);
}

static struct sched_thread *thread_with(int tid) {
    for (unsigned i = 0; i < n_threads; i++)
        if (threads[i].state != FREE && threads[i].tid == tid)
            return &threads[i];
    return NULL;
}

uint64_t sched_thread_ran(int tid) {
    struct sched_thread *thread = tid ? thread_with(tid) : self;
    return thread ? thread->points * TICK_NS : 0;
}

bool sched_thread_ready(int tid) {
    struct sched_thread *thread = thread_with(tid);
    return thread && thread->state == READY;
}

/* ---- a report ---- */

static void report_self(void) {
    struct sched_thread *me = self;
    enum { OWN = 2, FRAMES = 14 };
    void *frames[FRAMES];
    char line[300];
    int n = backtrace(frames, FRAMES);
    int bytes = snprintf(line, sizeof line, "sched: thread %d: %s\n", (int)(me - threads),
                         me->state == BLOCKED ? me->what : "could go on");
    for (int i = OWN; i < n; i++) {
        Dl_info at = {0};
        if (write(2, line, (size_t)bytes) < 0 || !dladdr(frames[i], &at) || !at.dli_fname)
            break;
        const char *slash = strrchr(at.dli_fname, '/');
        bytes =
            snprintf(line, sizeof line, "  %.60s+%#lx %.100s\n", slash ? slash + 1 : at.dli_fname,
                     (unsigned long)((char *)frames[i] - (char *)at.dli_fbase),
                     at.dli_sname ? at.dli_sname : "");
    }
    me->asked = false;
    if (me != asker)
        give_turn(asker);
}

static void report(const char *why) {
    char head[100];
    int bytes = snprintf(head, sizeof head, "sched: %s\n", why);
    asker = self;
    if (write(2, head, (size_t)bytes) < 0)
        _exit(STATUS);
    report_self();
    for (unsigned i = 0; i < n_threads; i++)
        if ((threads[i].state == BLOCKED || threads[i].state == READY) && &threads[i] != asker) {
            threads[i].asked = true;
            give_turn(&threads[i]);
            await_turn(asker);
        }
    _exit(STATUS);
}

/* ---- plans ---- */

static int by_size(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

void sched_begin(const struct sched_plan *plan);
struct sched_ran sched_end(void);

void sched_begin(const struct sched_plan *plan) {
    turns.plan = *plan;
    if (turns.plan.depth > SCHED_DEPTH)
        turns.plan.depth = SCHED_DEPTH;
    turns.random = plan->seed;
    turns.points_from = points;
    turns.takes_from = takes;
    turns.next = 0;
    uint32_t among = plan->points          ? plan->points
                     : turns.plan.by_takes ? takes_in_turn
                                           : points_in_turn;
    among += !among;
    for (unsigned i = 0; i < turns.plan.depth; i++)
        turns.change[i] = draw() % among;
    qsort(turns.change, turns.plan.depth, sizeof turns.change[0], by_size);
    lowest = 0;
    for (unsigned i = 0; i < n_threads; i++)
        threads[i].rank = new_rank();
    moved = true;
    switches = 0;
    planted.n = 0;
    began = now;
}

struct sched_ran sched_end(void) {
    struct sched_ran ran = {points - turns.points_from, takes - turns.takes_from, switches,
                            now - began};
    if (!turns.plan.depth) {
        points_in_turn = (uint32_t)ran.points;
        takes_in_turn = (uint32_t)ran.takes;
    }
    began = 0;
    turns.plan.depth = 0;
    return ran;
}

/* ---- the process ---- */

static void in_child(void) {
    self = NULL;
}

__attribute__((constructor)) static void start(void) {
    real_syscall = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
    /* One processor for all: the next thread's wake-up needs no other. The library is told that
     * there are two (wrap.c). */
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET((size_t)sched_getcpu(), &one);
    sched_setaffinity(0, sizeof one, &one);
    plant(getenv("SCHED_PLANT"));
    const char *given = getenv("SCHED_PLAN");
    struct sched_plan plan = {0};
    if (given && sscanf(given, "%" SCNu64 " %u %u %u", &plan.seed, &plan.depth, &plan.points,
                        &plan.by_takes) == 4) {
        sched_begin(&plan);
        began = 0; /* for as long as the program takes */
    }
    const char *file = getenv("SCHED_TRACE");
    if (file)
        trace_file = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    void *frame;
    backtrace(&frame, 1); /* loads what it needs */
    self = sched_thread_new();
    self->tid = (int)real_syscall(SYS_gettid);
    sched_thread_is(self, pthread_self());
    pthread_atfork(NULL, NULL, in_child);
}
