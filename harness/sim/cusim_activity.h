/*
 * Tells a test which kernels, memsets and copies the simulated driver ran, and when, from streams
 * and graphs.
 *
 * A test passes its function to cuSimActivity (found by dlsym); NULL removes it. The simulator
 * calls the function on the stream's thread, after the work and in its order, without any lock of
 * the simulator.
 */
#ifndef CUSIM_ACTIVITY_H
#define CUSIM_ACTIVITY_H

#include <stddef.h>
#include <stdint.h>

enum cusim_activity_kind { CUSIM_ACTIVITY_KERNEL, CUSIM_ACTIVITY_MEMSET, CUSIM_ACTIVITY_MEMCPY };

struct cusim_activity {
    enum cusim_activity_kind kind;
    uint64_t start_ns, end_ns; /* CLOCK_MONOTONIC */
    unsigned device;
    uint64_t context, stream; /* as cuCtxGetId and cuStreamGetId return them */
    uint64_t correlation;     /* number of the call; one for all work of a graph launch */
    uint64_t node;            /* number of the graph's node, from 1 on; 0: no graph */
    const char *name;         /* of a kernel */
    unsigned grid[3], block[3];
    size_t bytes; /* of a memset or copy */
};

typedef void cusim_activity_fn(const struct cusim_activity *activity);

#endif
