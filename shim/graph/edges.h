/*
 * Edges of a graph whose segment has branches (plan/branches.h): behind which ops the node of each
 * op comes. Pure functions.
 */
#ifndef CUSPLICE_GRAPH_EDGES_H
#define CUSPLICE_GRAPH_EDGES_H

#include "shim/graph/exec.h"

/* Ops with nodes, by their places; none is named twice. */
enum { CUS_EDGES_MAX = 8 };
struct cus_edges {
    uint16_t n, of[CUS_EDGES_MAX];
};

/* Has the op a node? A wait has edges instead. */
static inline bool cus_edges_has_node(const struct cus_exec_op *op) {
    return !op->absent && op->kind->type != CUS_OP_WAIT;
}
/* Fills `before` for each op with a node, and `ends` for each branch: its last nodes. False: a node
 * would come behind more than CUS_EDGES_MAX others. */
bool cus_edges_find(const struct cus_exec_op *ops, uint32_t n, struct cus_edges *before,
                    struct cus_edges ends[CUS_BRANCHES + 1]);

#endif
