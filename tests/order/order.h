/*
 * What the code under test is compiled with instead of atomics, futexes, time and threads: included
 * by the compiler in front of each source of a test of this folder (-include). Each atomic, each
 * wake-up and each taking of a lock is a site, which a run may weaken or leave out. README.md says
 * what the model is.
 */
#ifndef CUSPLICE_TESTS_ORDER_ORDER_H
#define CUSPLICE_TESTS_ORDER_ORDER_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum order_kind { ORDER_LOAD, ORDER_STORE, ORDER_RMW, ORDER_CAS, ORDER_WAKE, ORDER_TAKE };
enum order_sum { ORDER_ADD, ORDER_SUB, ORDER_OR, ORDER_AND, ORDER_EXCHANGE };

struct order_site {
    const char *file, *function, *what; /* what: the expression that names the variable */
    int line;
    int kind, order, failure; /* failure: order of a compare-and-exchange that fails */
    int group; /* sites of the same text are one group: copies of an inline function */
};

uint64_t order_load(const struct order_site *site, const volatile void *at, size_t bytes);
void order_store(const struct order_site *site, volatile void *at, size_t bytes, uint64_t value);
/* The old value. */
uint64_t order_rmw(const struct order_site *site, volatile void *at, size_t bytes,
                   enum order_sum sum, uint64_t value);
bool order_cas(const struct order_site *site, volatile void *at, size_t bytes, void *expected,
               uint64_t desired);
bool order_left_out(const struct order_site *site,
                    const void *lock); /* a wake-up, or the taking of a lock */
bool order_was_left_out(const void *lock);
int order_yield(void);
int order_clock(struct timespec *now);
long order_syscall(long number, ...);
int order_thread(void *(*run)(void *), void *argument);

#define ORDER_SITE(kind_, what_, order_, failure_)                                                 \
    ({                                                                                             \
        static struct order_site site_ = {__FILE__, __func__, what_,    __LINE__,                  \
                                          kind_,    order_,   failure_, 0};                        \
        static struct order_site *const listed_ __attribute__((section("order_sites"), used)) =    \
            &site_;                                                                                \
        (void)listed_;                                                                             \
        &site_;                                                                                    \
    })
#define ORDER_AS(p, value) ((__typeof__(*(p)))(value))
#define ORDER_SUM(p, v, o, sum)                                                                    \
    order_rmw(ORDER_SITE(ORDER_RMW, #sum " " #p, o, 0), p, sizeof *(p), ORDER_##sum, (uint64_t)(v))

#define __atomic_load_n(p, o)                                                                      \
    ORDER_AS(p, order_load(ORDER_SITE(ORDER_LOAD, #p, o, 0), p, sizeof *(p)))
#define __atomic_store_n(p, v, o)                                                                  \
    order_store(ORDER_SITE(ORDER_STORE, #p, o, 0), p, sizeof *(p), (uint64_t)(v))
#define __atomic_exchange_n(p, v, o) ORDER_AS(p, ORDER_SUM(p, v, o, EXCHANGE))
#define __atomic_add_fetch(p, v, o) ORDER_AS(p, ORDER_SUM(p, v, o, ADD) + (uint64_t)(v))
#define __atomic_sub_fetch(p, v, o) ORDER_AS(p, ORDER_SUM(p, v, o, SUB) - (uint64_t)(v))
#define __atomic_or_fetch(p, v, o) ORDER_AS(p, ORDER_SUM(p, v, o, OR) | (uint64_t)(v))
#define __atomic_fetch_add(p, v, o) ORDER_AS(p, ORDER_SUM(p, v, o, ADD))
#define __atomic_fetch_sub(p, v, o) ORDER_AS(p, ORDER_SUM(p, v, o, SUB))
#define __atomic_fetch_or(p, v, o) ORDER_AS(p, ORDER_SUM(p, v, o, OR))
#define __atomic_fetch_and(p, v, o) ORDER_AS(p, ORDER_SUM(p, v, o, AND))
#define __atomic_compare_exchange_n(p, e, d, weak, o, f)                                           \
    order_cas(ORDER_SITE(ORDER_CAS, #p, o, f), p, sizeof *(p), e, (uint64_t)(d))

#define __builtin_ia32_pause() ((void)0)
#define CUS_TURNS(n) 1
#define sched_yield order_yield
#define clock_gettime(clock, now) ((void)(clock), order_clock(now))
#define syscall(...) order_syscall(__VA_ARGS__)
#define pthread_create(id, attr, run, argument) ((void)(id), order_thread(run, argument))
/* A coroutine has neither a mask nor a name of its own. */
#define pthread_sigmask(how, set, old) ((void)(old))
#define pthread_setname_np(id, name) ((void)(id))

#ifndef ORDER_IS_LOCK
#include "shim/base/lock.h"
#define cus_futex_wake(word, n)                                                                    \
    (order_left_out(ORDER_SITE(ORDER_WAKE, #word, 0, 0), NULL) ? (void)0                           \
                                                               : (cus_futex_wake)(word, n))
#define cus_lock_take(lock)                                                                        \
    (order_left_out(ORDER_SITE(ORDER_TAKE, #lock, 0, 0), lock) ? (void)0 : (cus_lock_take)(lock))
#define cus_lock_give(lock) (order_was_left_out(lock) ? (void)0 : (cus_lock_give)(lock))
#endif

/* ---- for tests ---- */

struct order_test {
    const char *name;
    void (*set_up)(void); /* alone, before the threads */
    void (*threads[4])(
        void); /* the program's threads; NULL ends them. Others begin by pthread_create */
    void (*check)(
        void); /* alone, after the program's threads have ended and others sleep or have ended */
    uint64_t tick_ns; /* how far the clock moves with each look of a thread */
    uint32_t
        *promised[4]; /* futexes on which a bounded wait counts as a lost wake-up if all sleep */
    bool impatient; /* a bounded wait may end at any time; otherwise only when nobody else can go on
                     */
    bool once;      /* a large case: explored with the code as it is only */
    bool deep;      /* a larger one: explored with --deep only */
    unsigned preemptions; /* the most switches away from a thread that could go on; 0: any number */
};

/* Fails the run. */
void order_fault(const char *text, const char *file, int line);
#define ORDER_CHECK(condition)                                                                     \
    ((condition) ? (void)0 : order_fault(#condition " does not hold", __FILE__, __LINE__))
/* The test restores this memory itself. In `main`, before order_main. */
void order_keep_out(void *from, size_t bytes);
/* What may be weaker without a fault, as the program prints it, and why. */
struct order_weaker {
    const char *site, *why;
};
/* `files`: those whose sites are weakened, NULL at the end. `weaker`: {NULL, NULL} at the end. */
int order_main(int argc, char **argv, const struct order_test *tests, const char *const *files,
               const struct order_weaker *weaker);

#endif
