/*
 * What noise does to a program, and when: a list without an end that comes from a seed. Pure; the
 * caller has the clock. harness/bench/noise does it to a process, tests/unit/stream/noise.h on a
 * virtual clock.
 */
#ifndef HARNESS_BENCH_NOISE_PLAN_H
#define HARNESS_BENCH_NOISE_PLAN_H

#include <stdbool.h>
#include <stdint.h>

enum noise_kind {
    NOISE_STOP, /* the program makes no progress */
    NOISE_SLOW, /* it has half its pace */
    NOISE_MOVE, /* it goes to another CPU; takes no time */
    NOISE_KINDS
};

struct noise_options {
    uint64_t seed;
    double stops;                      /* in a second */
    uint64_t from_ns, to_ns;           /* how long a stop is */
    bool slow;                         /* half its pace, about half of the time, */
    uint64_t slow_from_ns, slow_to_ns; /* for so long, and so long not; begins slow */
    double moves;                      /* in a second */
};

struct noise_event {
    enum noise_kind kind;
    uint64_t at_ns, for_ns; /* since the beginning; two stops never overlap */
    uint64_t pick;          /* of a move: any number, for the choice of the CPU */
};

struct noise_plan {
    struct noise_options options;
    uint64_t random[NOISE_KINDS]; /* each kind has its own, so none changes the others */
    struct noise_event next[NOISE_KINDS];
};

void noise_plan_begin(struct noise_plan *plan, const struct noise_options *options);
/* The next event, in order of their beginnings. at_ns is UINT64_MAX where none comes any more. */
struct noise_event noise_plan_next(struct noise_plan *plan);

#endif
