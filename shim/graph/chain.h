/*
 * The order of a graph's nodes, from its edges alone: no driver documents in which order it lists
 * nodes or edges. A pure function, called by exec.c.
 */
#ifndef CUSPLICE_GRAPH_CHAIN_H
#define CUSPLICE_GRAPH_CHAIN_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

/* Writes the `n` nodes (at least two) to `order`, so that each must run behind the one before it.
 * Further edges may exist. False if the edges name more or fewer nodes, leave two nodes without an
 * order, or form a circle; also if memory ran out. */
bool cus_chain_order(const CUgraphNode *from, const CUgraphNode *to, uint32_t n_edges, uint32_t n,
                     CUgraphNode *order);

#endif
