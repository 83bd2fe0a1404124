/*
 * Captures ops as a graph (capture.c). Private to shim/graph.
 */
#ifndef CUSPLICE_GRAPH_CAPTURE_H
#define CUSPLICE_GRAPH_CAPTURE_H

#include "shim/graph/exec.h"

struct cus_capture {
    CUgraph graph;      /* NULL: nothing is left */
    CUgraphNode *nodes; /* room for one for each op; NULL where the op has none */
    uint64_t waited_ns; /* until captures began */
};

/* False: the graph is not complete; the caller destroys what is left. */
bool cus_capture_ops(const struct cus_driver *driver, struct cus_exec_target target,
                     const struct cus_exec_op *ops, uint32_t n, cus_exec_clock *clock,
                     struct cus_capture *to);

#endif
