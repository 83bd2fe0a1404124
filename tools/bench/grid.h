/*
 * The grid of `cusplice bench`: its cells, and their measurement in batches. Each batch has a
 * plain driver of its own, so that a cell is compared with what ran beside it. verb_bench.c calls
 * it, on one thread. It never prints.
 */
#ifndef CUSPLICE_TOOLS_BENCH_GRID_H
#define CUSPLICE_TOOLS_BENCH_GRID_H

#include "tools/bench/breaks.h"
#include "tools/replay/run.h"

enum {
    BENCH_SEGMENTS = 32,
    BENCH_BATCH = 6, /* players of a batch, beside the plain one */
    BENCH_SETTINGS = 64,
};

enum bench_strategy {
    BENCH_EAGER,
    BENCH_PIECEWISE,
    BENCH_FULL,
    BENCH_AS_RECORDED,
    BENCH_STRATEGIES
};
extern const char *const bench_strategies[]; /* their names, then NULL */

struct bench_cell {
    enum bench_strategy strategy;
    unsigned segment;                  /* segment_max; 0: the strategy has none of its own */
    const struct bench_breaks *breaks; /* NULL: lists do not bear on the strategy */
    struct replay_measured measured;
    double eager; /* the plain driver's median in the same batch */
};

struct bench_grid {
    struct bench_cell *cells; /* the plain driver is the first one */
    unsigned n, batches;
};

struct bench_plan {
    bool strategies[BENCH_STRATEGIES];
    unsigned segments[BENCH_SEGMENTS], n_segments;
    unsigned first; /* segment_first; 0: as it is set */
    const char *preload;
    const char *recorded; /* the configuration of the recording */
    /* Of all but the plain driver; lists have `eager` already. */
    const char *eager; /* patterns with ';' between; NULL: none */
    const char *const *names, *const *values;
    unsigned n_settings; /* BENCH_SETTINGS at most */
};

/* False: not enough memory. */
bool bench_grid_make(struct bench_grid *grid, const struct bench_plan *plan,
                     const struct bench_lists *lists);
void bench_grid_free(struct bench_grid *grid);

/* About how long it takes, from the times that are in the trace. */
double bench_grid_seconds(const struct bench_grid *grid, const struct cst_trace *trace,
                          const struct replay_setup *setup);

/* How far it is, from 0 to 1. */
typedef void bench_told_fn(double part);

/* False: something failed, which was said. Wrong sums are no failure. */
bool bench_grid_measure(struct bench_grid *grid, const struct bench_plan *plan,
                        const struct replay_setup *setup, struct replay_facts *facts,
                        replay_say_fn *say, bench_told_fn *told);

#endif
