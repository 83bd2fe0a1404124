/*
 * What a program would take, from what is asked of the driver and what each of that costs. A model:
 * sums and nothing else.
 */
#ifndef CUSPLICE_TOOLS_WHATIF_COST_H
#define CUSPLICE_TOOLS_WHATIF_COST_H

#include "tools/whatif/player.h"

struct whatif_cost {
    const char *name;                                                            /* the file */
    double eager_launch, matched_launch, graph_launch, patched_node, built_node; /* host, ns */
    double graph_kernel, graph_seam, eager_kernel, small_kernel;                 /* GPU, ns */
};

/* Ops whose GPU times the trace has, and how long those ran in all. */
struct whatif_measured {
    uint64_t ops, ns;
};

/* From a file; NULL: h200.cost, which is built in. False: one line in `error`. */
bool whatif_cost_read(const char *path, struct whatif_cost *cost, char *error, size_t bytes);

double whatif_cost_host(const struct whatif_cost *cost, const struct whatif_played *played);
/* Each kernel is taken for a small one; those that were measured run as long as they did. */
double whatif_cost_gpu(const struct whatif_cost *cost, const struct whatif_played *played,
                       const struct whatif_measured *measured);

#endif
