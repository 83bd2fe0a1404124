/*
 * Borrowing: if there is no memory for another graph, a segment gets the graph of a segment with
 * the same kinds. Every node of that graph can be patched. Patching a node costs a tenth of a
 * launch; building one costs as much as two. If steps beyond the memory budget differ only in what
 * came before, addresses or sizes, they can still be in graphs.
 * The plan calls it under the lock of the engine that owns the plan: a graph is lent within one
 * stream.
 */
#ifndef CUSPLICE_PLAN_LENDERS_H
#define CUSPLICE_PLAN_LENDERS_H

#include "shim/plan/plan.h"

/* The segment has a graph now. Below: it has no graph any more. Both do nothing before the first
 * search for a lender. */
void cus_lenders_add(struct cus_plan *plan, struct cus_segment *segment);
void cus_lenders_remove(struct cus_plan *plan, struct cus_segment *segment);
/* Is there another segment of the same kinds that has a graph? */
bool cus_lenders_have(struct cus_plan *plan, struct cus_segment *segment);
/* Frees the table; no segment is left. */
void cus_lenders_clear(struct cus_plan *plan);
#endif
