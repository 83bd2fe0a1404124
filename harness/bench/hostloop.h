/* The options of hostloop; hostloop_options.c reads them. */
#ifndef CUSPLICE_HARNESS_BENCH_HOSTLOOP_H
#define CUSPLICE_HARNESS_BENCH_HOSTLOOP_H

#include <stdbool.h>

enum { STREAMS_MAX = 64, THREADS_MAX = 64 };
enum { LAYER = 8 /* launches of a layer of --fork, on both streams in turn */ };

enum stream_kind { STREAM_OWN, STREAM_NONBLOCKING, STREAM_LEGACY };

struct options {
    unsigned launches, steps, warmup, kernels;
    unsigned eager_every, scalar_every, grid_every, memset_every, copy_every; /* 0: none */
    unsigned shared_every, block_every;                                       /* 0: none */
    unsigned record_every, record_events; /* 0: none; events in turn, 0: one for each place */
    bool record_timed;
    bool upload; /* 4 bytes and 16 KB from pageable memory in each step */
    unsigned loop, turns, random;
    unsigned streams, run; /* streams of one thread; consecutive launches on one */
    unsigned fork;         /* layers of a step on two streams; 0: the streams are independent */
    unsigned threads;      /* 0: the main thread does all steps */
    bool graph;
    unsigned segment; /* with graph: most launches in one graph; 0: one whole graph */
    bool events;
    bool alloc; /* an allocation and a free around each launch */
    bool core;  /* tell whether each step had its core to itself */
    bool stops; /* stop before the timed steps, and after a step at each SIGUSR2 */
    enum stream_kind stream;
};

/* Ends the program if the command line is wrong (status 2) or asks for help (0). */
void options_parse(int argc, char **argv, struct options *options);

#endif
