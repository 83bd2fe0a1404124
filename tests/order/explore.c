/*
 * Depth-first exploration: each execution repeats the choices of the last one but for the last that
 * had more. A state that was seen before is not explored again. Threads are coroutines on stacks of
 * their own; each has its copy of the thread-local variables.
 */
#define _GNU_SOURCE
#include <link.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/order/model.h"
#include "tests/order/order.h"
#undef clock_gettime
#undef pthread_create
#undef sched_yield
#undef syscall
#include <linux/futex.h>

enum { OVER = 1, PRUNED, FAULT };

unsigned explore_choose(unsigned n) {
    struct order *o = order_now;
    if (n <= 1 || o->alone)
        return 0;
    if (o->depth == DEPTH) {
        o->capped = true;
        explore_prune();
    }
    struct choice *choice = &o->choice[o->depth++];
    if (o->depth > o->replay)
        *choice = (struct choice){(uint16_t)n, 0};
    if (choice->n != n) {
        fprintf(stderr, "order: an execution did not repeat: the code under test keeps something "
                        "that is not set back\n");
        abort();
    }
    return choice->taken;
}

void explore_prune(void) {
    _longjmp(order_now->home, PRUNED);
}

void explore_fault(const char *text) {
    snprintf(order_now->fault, sizeof order_now->fault, "%s", text);
    _longjmp(order_now->home, FAULT);
}

void order_fault(const char *text, const char *file, int line) {
    char all[400];
    snprintf(all, sizeof all, "%s:%d: %s", file, line, text);
    explore_fault(all);
}

/* ---- threads ---- */

static void end_of_thread(void);

static void begin(void) {
    struct thread *t = &order_now->thread[order_now->current];
    if (t->run)
        t->run();
    else
        t->start(t->argument);
    end_of_thread();
}

static void go_to(unsigned to) {
    struct order *o = order_now;
    struct thread *from = &o->thread[o->current], *next = &o->thread[to];
    if (to == o->current)
        return;
    memcpy(from->tls, o->tls, o->tls_bytes);
    memcpy(o->tls, next->tls, o->tls_bytes);
    o->current = to;
    if (_setjmp(from->jump))
        return;
    if (next->begun)
        _longjmp(next->jump, 1);
    next->begun = true;
    setcontext(&next->context);
}

static unsigned add_thread(void (*run)(void), void *(*start)(void *), void *argument,
                           const struct view *view) {
    struct order *o = order_now;
    unsigned number = ++o->n_threads;
    if (number >= THREADS)
        abort();
    struct thread *t = &o->thread[number];
    uint8_t *stack = t->stack, *tls = t->tls;
    *t = (struct thread){.status = READY,
                         .stack = stack,
                         .tls = tls,
                         .run = run,
                         .start = start,
                         .argument = argument,
                         .helper = !run};
    t->view = *view;
    t->history = model_mix(number, 5);
    memcpy(t->tls, o->tls_image, o->tls_bytes);
    getcontext(&t->context);
    t->context.uc_stack.ss_sp = stack;
    t->context.uc_stack.ss_size = STACK;
    t->context.uc_link = NULL;
    makecontext(&t->context, begin, 0);
    return number;
}

int order_thread(void *(*run)(void *), void *argument) {
    struct thread *maker = &order_now->thread[order_now->current];
    unsigned number = add_thread(NULL, run, argument, &maker->view);
    order_now->thread[number].history = model_mix(maker->history, number);
    return 0;
}

static bool is_promised(const volatile void *word) {
    for (unsigned i = 0; i < 4 && order_now->test->promised[i]; i++)
        if (order_now->test->promised[i] == word)
            return true;
    return false;
}

/* Which locations that the paused thread has read since its last pause have a later message? */
static uint64_t changed(const struct thread *t) {
    const struct order *o = order_now;
    uint64_t all = 0;
    for (unsigned x = 0; x < o->n_locations; x++)
        if (t->read >> x & 1 && o->location[x].order[o->location[x].n - 1] != t->last[x])
            all |= (uint64_t)1 << x;
    return all;
}

static bool can_go_on(const struct thread *t) {
    return t->status == READY || (t->status == PAUSED && changed(t)) ||
           (t->status == ASLEEP && t->timed && order_now->test->impatient);
}

/* Nobody can go on. Then time passes, and those who sleep for a while wake. */
static unsigned when_stuck(void) {
    struct order *o = order_now;
    unsigned may[THREADS], n = 0;
    bool program = false;
    for (unsigned i = 1; i <= o->n_threads; i++)
        program |= !o->thread[i].helper && o->thread[i].status != DONE;
    if (!program)
        _longjmp(o->home, OVER);
    for (unsigned i = 1; i <= o->n_threads; i++) {
        const struct thread *t = &o->thread[i];
        if (t->status == ASLEEP && t->timed && is_promised(t->word))
            explore_fault("a lost wake-up: a thread would sleep until its time is over");
        if (t->status == ASLEEP && t->timed)
            may[n++] = i;
    }
    if (!n)
        explore_fault("no thread can go on: a deadlock or a lost wake-up");
    unsigned i = may[explore_choose(n)];
    struct thread *t = &o->thread[i];
    for (unsigned x = 0; x < o->n_locations; x++) /* in the end everybody sees what was written */
        model_see(&t->view, x);
    t->status = READY;
    t->history = model_mix(t->history, 11);
    return i;
}

static bool seen_before(void) {
    struct order *o = order_now;
    uint64_t state = model_mix(model_state(), o->exploration);
    if (o->bound)
        state = model_mix(state, o->preemptions * THREADS + o->current);
    state |= !state;
    for (uint64_t at = state;; at++) {
        uint64_t *slot = &o->seen[at & o->seen_mask];
        if (*slot == state)
            return true;
        if (*slot)
            continue;
        *slot = state;
        o->states++;
        if (++o->n_seen * 4 > o->seen_mask * 3) { /* what is forgotten is explored again */
            memset(o->seen, 0, (o->seen_mask + 1) * sizeof *o->seen);
            o->n_seen = 0;
        }
        return false;
    }
}

/* Goes on with a thread that can. */
static void go_on(void) {
    struct order *o = order_now;
    unsigned may[THREADS], n = 0;
    if (o->depth >= o->replay && seen_before())
        explore_prune();
    bool mine = can_go_on(&o->thread[o->current]);
    if (mine)
        may[n++] = o->current;
    for (unsigned i = 1; i <= o->n_threads; i++)
        if (i != o->current && can_go_on(&o->thread[i]) &&
            (!mine || !o->bound || o->preemptions < o->bound))
            may[n++] = i;
    unsigned to = n ? may[explore_choose(n)] : when_stuck();
    struct thread *next = &o->thread[to];
    if (mine && to != o->current)
        o->preemptions++;
    if (next->status == PAUSED) {
        next->newer = changed(next);
        next->read = 0;
    } else if (next->status == ASLEEP) {
        next->history = model_mix(next->history, 23);
    }
    next->status = READY;
    go_to(to);
}

static void end_of_thread(void) {
    order_now->thread[order_now->current].status = DONE;
    go_on();
    abort();
}

void explore_point(void) {
    if (!order_now->alone)
        go_on();
}

/* ---- what the code under test calls ---- */

/* Until something that the thread has read is no longer what it was. */
int order_yield(void) {
    struct order *o = order_now;
    struct thread *t = &o->thread[o->current];
    if (o->alone)
        return 0;
    t->status = PAUSED;
    go_on();
    t->history = model_mix(t->history, 17);
    return 0;
}

int order_clock(struct timespec *now) {
    struct order *o = order_now;
    struct thread *t = &o->thread[o->current];
    uint64_t ns = 1000000000u + o->test->tick_ns * ++t->looks;
    *now = (struct timespec){(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
    return 0;
}

static long sleep_on(const volatile uint32_t *word, uint32_t value, bool timed) {
    struct thread *t = &order_now->thread[order_now->current];
    explore_point();
    model_fence();
    if ((uint32_t)model_wait(word) != value)
        return -1;
    t->word = word;
    t->timed = timed;
    t->status = ASLEEP;
    go_on();
    t->history = model_mix(t->history, 19);
    return 0;
}

static long wake(const volatile uint32_t *word, int most) {
    struct order *o = order_now;
    if (o->alone)
        return 0;
    explore_point();
    model_fence();
    model_woken(word);
    for (int woken = 0;; woken++) {
        unsigned may[THREADS], n = 0;
        for (unsigned i = 1; i <= o->n_threads; i++)
            if (o->thread[i].status == ASLEEP && o->thread[i].word == word)
                may[n++] = i;
        if (!n || woken == most)
            return woken;
        o->thread[may[explore_choose(n)]].status = READY;
    }
}

long order_syscall(long number, ...) {
    va_list list;
    va_start(list, number);
    long result = -1;
    if (number == SYS_gettid) {
        result = 1000 + (long)order_now->current;
    } else if (number == SYS_futex) {
        volatile uint32_t *word = va_arg(list, volatile uint32_t *);
        int what = va_arg(list, int);
        uint32_t value = va_arg(list, uint32_t);
        const struct timespec *limit = va_arg(list, const struct timespec *);
        result = what == FUTEX_WAIT_PRIVATE ? sleep_on(word, value, limit != NULL)
                                            : wake(word, (int)value);
    }
    va_end(list);
    return result;
}

bool order_left_out(const struct order_site *site, const void *lock) {
    struct order *o = order_now;
    o->executed[site->group] = true;
    if (o->alone || site->group != o->group)
        return false;
    if (lock)
        o->thread[o->current].left_out = lock;
    return true;
}

bool order_was_left_out(const void *lock) {
    struct thread *t = &order_now->thread[order_now->current];
    if (t->left_out != lock)
        return false;
    t->left_out = NULL;
    return true;
}

/* ---- one execution, and all ---- */

extern char __data_start, _end;

static void set_back(void) {
    struct order *o = order_now;
    uint8_t *from = (uint8_t *)&__data_start;
    if (!o->image) {
        o->image_bytes = (size_t)((uint8_t *)&_end - from);
        o->image = malloc(o->image_bytes);
        memcpy(o->image, from, o->image_bytes);
    }
    size_t first = o->out_bytes ? (size_t)(o->out_from - from) : o->image_bytes;
    memcpy(from, o->image, first);
    if (first < o->image_bytes)
        memcpy(from + first + o->out_bytes, o->image + first + o->out_bytes,
               o->image_bytes - first - o->out_bytes);
    memcpy(o->tls, o->tls_image, o->tls_bytes);
}

static void execute(void) {
    struct order *o = order_now;
    o->current = o->n_threads = o->depth = o->preemptions = 0;
    model_begin();
    race_begin();
    set_back();
    o->thread[0].view = (struct view){{0}, {0}};
    o->thread[0].status = DONE;
    o->thread[0].helper = false;
    o->alone = true;
    if (o->test->set_up)
        o->test->set_up();
    o->alone = false;
    o->thread[0].view.clock[0] = 1;
    for (unsigned i = 0; i < 4 && o->test->threads[i]; i++)
        add_thread(o->test->threads[i], NULL, NULL, &o->thread[0].view);
    int how = _setjmp(o->home);
    if (!how)
        go_on();
    if (how == OVER) {
        /* What all have seen. */
        o->alone = true;
        o->thread[0].view = (struct view){{0}, {0}};
        for (unsigned i = 1; i <= o->n_threads; i++)
            model_acquire(&o->thread[0].view, &o->thread[i].view);
        o->current = 0;
        how = _setjmp(o->home);
        if (!how && o->test->check)
            o->test->check();
    }
    o->alone = true;
    o->pruned += how == PRUNED;
}

/* The next execution takes the next choice. False: there is none. */
static bool turn(void) {
    struct order *o = order_now;
    unsigned n = o->depth;
    while (n && o->choice[n - 1].taken + 1 == o->choice[n - 1].n)
        n--;
    if (!n)
        return false;
    o->choice[n - 1].taken++;
    o->replay = n;
    return true;
}

bool explore_all(const struct order_test *test);
bool explore_all(const struct order_test *test) {
    struct order *o = order_now;
    o->test = test;
    o->replay = 0;
    o->bound = o->deep ? 0 : test->preemptions;
    o->executions = o->pruned = o->states = 0;
    o->capped = false;
    o->fault[0] = 0;
    o->exploration++;
    do {
        o->executions++;
        execute();
    } while (!o->fault[0] && (!o->most || o->executions < o->most) && turn());
    return !o->fault[0];
}

/* ---- the start ---- */

static int find_tls(struct dl_phdr_info *info, size_t bytes, void *unused) {
    (void)bytes;
    (void)unused;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_TLS && info->dlpi_tls_data) {
            order_now->tls = info->dlpi_tls_data;
            order_now->tls_bytes = info->dlpi_phdr[i].p_memsz;
        }
    return 1; /* the first object is the program */
}

void order_begin(void);
void order_begin(void) {
    if (order_now)
        return;
    enum { SEEN = 1 << 22 };
    order_now =
        mmap(NULL, sizeof *order_now, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    order_now->seen = mmap(NULL, SEEN * sizeof(uint64_t), PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    order_now->seen_mask = SEEN - 1;
    order_now->alone = true;
    order_now->group = order_now->to = order_now->failure_to = -1;
    dl_iterate_phdr(find_tls, NULL);
    order_now->tls_image = malloc(order_now->tls_bytes + 1);
    memcpy(order_now->tls_image, order_now->tls, order_now->tls_bytes);
    for (unsigned i = 0; i < THREADS; i++) {
        order_now->thread[i].tls = malloc(order_now->tls_bytes + 1);
        order_now->thread[i].stack =
            mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
}

void order_keep_out(void *from, size_t bytes) {
    order_begin();
    order_now->out_from = from;
    order_now->out_bytes = bytes;
}
