/*
 * The order of a graph's nodes, from its edges alone: no driver says in which order it lists nodes
 * or edges. A pure function.
 */
#ifndef CUSPLICE_GRAPH_CHAIN_H
#define CUSPLICE_GRAPH_CHAIN_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

/* `order` gets the `n` nodes (two at least) as each of them must run behind the one before it;
 * other edges may be there as well. False where the edges do not say that: they name more nodes or
 * fewer, leave two of them in no order, or go in a circle; or where there is no memory. */
bool cus_chain_order(const CUgraphNode *from, const CUgraphNode *to, uint32_t n_edges, uint32_t n,
                     CUgraphNode *order);

#endif
