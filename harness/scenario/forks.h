/*
 * What the scenarios of forks.c, forks_left.c and forks_found.c share: streams, events and memory
 * of a fork, and its parts. Main thread.
 */
#ifndef HARNESS_SCENARIO_FORKS_H
#define HARNESS_SCENARIO_FORKS_H

#include "harness/scenario/sc.h"

enum { FORK_N = 128, FORK_EVENTS = 6 };

/* x and y are a's, z, w and v are of the forked streams. a reads z behind the join. w is b's alone,
 * so only the order of b keeps it right. sum has a word for each of a, b and c, which takes in what
 * they see: a wrong value stays wrong. */
struct forks {
    struct sc *sc;
    CUstream a, b, c;
    CUevent e[FORK_EVENTS];
    CUdeviceptr x, y, z, w, v, sum;
};

/* Starts the scenario; three non-blocking streams. */
void sc_forks_start(struct sc *sc, struct forks *f);
/* A kernel that does not commute with one of another `salt`. */
void sc_forks_chain(struct forks *f, CUstream s, CUdeviceptr p, unsigned salt);
/* Adds what p holds to the sum of s. */
void sc_forks_sum(struct forks *f, CUstream s, CUdeviceptr p);
/* `then` waits for what `first` did. */
void sc_forks_order(struct forks *f, CUstream first, CUevent e, CUstream then);
/* The same by an event that is made for it and goes at once. */
void sc_forks_wait_stream(struct forks *f, CUstream then, CUstream first);
/* Between fork and join: b copies from x and works on z and w, a works on y. */
void sc_forks_both(struct forks *f, CUstream b, unsigned salt);
/* Behind the join: a reads z, and changes x and y. */
void sc_forks_behind(struct forks *f, unsigned salt);
/* All of it: work of a, the fork, both, the join, and what comes behind. */
void sc_forks_layer(struct forks *f, CUstream b, CUevent fork, CUevent join, unsigned salt);

#endif
