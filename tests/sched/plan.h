/*
 * How the threads of a process take turns, as numbers: the same plan gives the same turns. For
 * programs that run under libsched.so, which they find by dlsym.
 */
#ifndef CUSPLICE_TESTS_SCHED_PLAN_H
#define CUSPLICE_TESTS_SCHED_PLAN_H

#include <stdint.h>

/* Each thread gets a rank by the seed, and of those that can go on, the highest goes on. At `depth`
 * points out of the first `points`, chosen by the seed, the running thread falls behind all others,
 * or time passes until the next wait ends. `by_takes`: these are points at which a lock was taken,
 * so that others find it held. `dropped`: bit i leaves out the i-th of them. */
struct sched_plan {
    uint64_t seed;
    uint32_t depth;  /* 0: a thread runs until it waits */
    uint32_t points; /* or takes; 0: as many as the last plan of depth 0 had */
    uint32_t dropped;
    uint32_t by_takes;
};

enum { SCHED_DEPTH = 32 };

struct sched_ran {
    uint64_t points, takes; /* takes: of locks */
    uint64_t switches;      /* away from a thread that could go on */
    uint64_t ns;            /* of the clock that the threads see */
};

/* sched_begin: this plan from now on. sched_end: the turns of depth 0, and what has been since. Of
 * one thread, while others wait. */
typedef void sched_begin_fn(const struct sched_plan *plan);
typedef struct sched_ran sched_end_fn(void);

#endif
