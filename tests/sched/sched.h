/*
 * The core of libsched.so: which thread runs. One thread of the process runs at a time; only it
 * reads and writes what is here.
 */
#ifndef CUSPLICE_TESTS_SCHED_SCHED_H
#define CUSPLICE_TESTS_SCHED_SCHED_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/sched/plan.h"

struct sched_thread;

/* Is the calling thread one of those that take turns? Not before the process's start, nor in a
 * forked child. */
bool sched_on(void);
/* Another thread may go on here. */
void sched_point(void);
/* The same, where the thread has just taken a lock. */
void sched_taken(void);
/* All others that can go on do so first. */
void sched_yield_turn(void);
/* Waits for sched_wake of the same address, or until the clock says `until` (0: without end).
 * False: the time is over. `what` names the wait in a report. */
bool sched_block(const volatile void *on, const char *what, uint64_t until);
/* How many were woken. */
unsigned sched_wake(const volatile void *on, unsigned most);
uint64_t sched_now(void);

/* Faults to find, by SCHED_PLANT=WHAT:N: every N-th time. */
enum sched_fault {
    SCHED_LOST_WAKE, /* wake: a futex's waiter is not woken */
    SCHED_NOT_TAKEN  /* take: who finds a lock held is told that it has it */
};
bool sched_planted(enum sched_fault fault);

/* Of a new thread: its creator makes it, it begins, and it ends. */
struct sched_thread *sched_thread_new(void);
void sched_thread_undo(struct sched_thread *thread);
void sched_thread_is(struct sched_thread *thread, pthread_t id);
void sched_thread_begins(struct sched_thread *thread);
void sched_thread_ends(void);
void sched_thread_join(pthread_t id);   /* waits for the end */
void sched_thread_forget(pthread_t id); /* it will not be joined */
/* The clock of a thread's own time; tid 0: the caller. */
uint64_t sched_thread_ran(int tid);
/* Could it go on? */
bool sched_thread_ready(int tid);

#endif
