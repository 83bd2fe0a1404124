/*
 * What things cost on one machine: a file that `cusplice calibrate` writes, or h200.cost. Also the
 * simple model, which only adds costs up; clock.h lets host and GPU run side by side. The verbs
 * whatif and calibrate call it. It never measures.
 */
#ifndef CUSPLICE_TOOLS_WHATIF_COST_H
#define CUSPLICE_TOOLS_WHATIF_COST_H

#include <stdio.h>

#include "tools/whatif/player.h"

/* All in nanoseconds: X(section, name, older, text). A file without an `older` key is wrong;
 * h200.cost says what to take for the others where a file does not have them. */
#define WHATIF_COSTS(X)                                                                            \
    X(host, eager_launch, 1, "A launch by itself.")                                                \
    X(host, eager_memset, 0, "A memset by itself.")                                                \
    X(host, eager_copy, 0, "A copy by itself, of device memory.")                                  \
    X(host, eager_record, 0, "A record of an event by itself.")                                    \
    X(host, pageable_copy, 0,                                                                      \
      "A copy from the device to pageable memory, to its end, with nothing ahead of it.")          \
    X(host, matched_launch, 1, "A launch that is deferred.")                                       \
    X(host, graph_launch, 1, "cuGraphLaunch.")                                                     \
    X(host, graph_node, 0, "... and for each node of the graph.")                                  \
    X(host, graph_other, 0, "... and more for each of them that is a memset or copy.")             \
    X(host, graph_record, 0, "... and more for each of them that records an event without times.") \
    X(host, let_through, 0, "What the library adds to a launch that it does not defer.")           \
    X(host, patched_node, 1, "cuGraphExec...SetParams.")                                           \
    X(host, built_node, 1, "Capture and instantiate, per node.")                                   \
    X(host, idle_sync, 0, "A wait for a stream that has nothing to do.")                           \
    X(host, wake_up, 0, "From the end of the work to the end of the wait for it.")                 \
    X(gpu, start, 0, "From the end of the call to the beginning of its work, on an idle GPU.")     \
    X(gpu, graph_kernel, 1, "A small kernel behind others in a graph.")                            \
    X(gpu, graph_seam, 1, "From one graph to the next, more than from kernel to kernel in one.")   \
    X(gpu, eager_kernel, 1, "A small kernel by itself behind another one.")                        \
    X(gpu, small_kernel, 1,                                                                        \
      "How much of graph_kernel and eager_kernel is the kernel; the rest is the gap ahead of it.") \
    X(gpu, measured_more, 0,                                                                       \
      "How much longer a kernel is said to run (record --gpu-times) than it takes.")               \
    X(gpu, memset_more, 0, "How much longer the gap is at a memset or copy.")                      \
    X(gpu, record, 0, "A record of an event without times, by itself or in a graph.")              \
    X(recorder, op, 0, "What recording adds to the time between two calls of the program.")        \
    X(recorder, eager_launch, 0,                                                                   \
      "How long a launch by itself takes in a recording of the loop that the rest is measured "    \
      "with; 0: not known.")                                                                       \
    X(recorder, eager_launch_gpu, 0, "The same with GPU times; 0: not known.")                     \
    X(recorder, matched_launch, 0, "How long a deferred launch takes there; 0: not known.")        \
    X(recorder, matched_launch_gpu, 0, "The same with GPU times; 0: not known.")

struct whatif_cost {
    const char *name; /* the file */
    struct {
#define WHATIF_COST_host(name) double name;
#define WHATIF_COST_gpu(name)
#define WHATIF_COST_recorder(name)
#define X(section, name, older, text) WHATIF_COST_##section(name)
        WHATIF_COSTS(X)
#undef WHATIF_COST_host
#undef WHATIF_COST_gpu
    } host;
    struct {
#define WHATIF_COST_host(name)
#define WHATIF_COST_gpu(name) double name;
        WHATIF_COSTS(X)
#undef WHATIF_COST_gpu
#undef WHATIF_COST_recorder
    } gpu;
    struct {
#define WHATIF_COST_gpu(name)
#define WHATIF_COST_recorder(name) double name;
        WHATIF_COSTS(X)
#undef X
#undef WHATIF_COST_host
#undef WHATIF_COST_gpu
#undef WHATIF_COST_recorder
    } recorder;
};

/* Ops whose GPU times the trace has, and how long those ran in all. */
struct whatif_measured {
    uint64_t ops, ns;
};

/* From a file; NULL: h200.cost, which is built in. False: one line in `error`. */
bool whatif_cost_read(const char *path, struct whatif_cost *cost, char *error, size_t bytes);
/* All keys, with what they mean and `noise`: as far as measurements were apart, by key, of the same
 * struct; below 0: it was not measured. False: it could not be written. */
bool whatif_cost_write(FILE *file, const struct whatif_cost *cost, const struct whatif_cost *noise);

/* Of a launch of a graph of such nodes. */
double whatif_cost_launch(const struct whatif_cost *cost, struct whatif_nodes nodes);
double whatif_cost_host(const struct whatif_cost *cost, const struct whatif_played *played);
/* Each kernel is taken for a small one; those that were measured run as long as they did. */
double whatif_cost_gpu(const struct whatif_cost *cost, const struct whatif_played *played,
                       const struct whatif_measured *measured);

#endif
