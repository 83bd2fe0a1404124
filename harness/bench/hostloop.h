/* The options of hostloop; hostloop_options.c reads them. */
#ifndef CUSPLICE_HARNESS_BENCH_HOSTLOOP_H
#define CUSPLICE_HARNESS_BENCH_HOSTLOOP_H

#include <stdbool.h>

enum { STREAMS_MAX = 64, THREADS_MAX = 64 };

enum stream_kind { STREAM_OWN, STREAM_NONBLOCKING, STREAM_LEGACY };

struct options {
    unsigned launches, steps, warmup, kernels;
    unsigned eager_every, scalar_every, grid_every, memset_every, copy_every; /* 0: none */
    unsigned loop, turns, random;
    unsigned streams, run; /* streams of one thread, and how many launches in a row go to one */
    unsigned threads;      /* 0: the main thread does it all */
    bool graph;
    unsigned segment; /* with graph: so many launches in one at most; 0: one whole graph */
    bool events;
    bool core;  /* whether each step had a core for itself */
    bool stops; /* before the steps that are timed, and behind one at each SIGUSR2 */
    enum stream_kind stream;
};

/* Ends the program where the line is wrong (2) or asks for help (0). */
void options_parse(int argc, char **argv, struct options *options);

#endif
