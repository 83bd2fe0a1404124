/*
 * Segments of the very same kinds: where there is no room for another graph, one of them lends its
 * graph to the next, every node of which can be patched to be the other's. Patching a node costs a
 * tenth of a launch, making one twice a launch; so that steps beyond the budget, which differ by
 * what stands before, by addresses or by sizes, are in graphs all the same.
 *
 * Guarded by the lock of the engine that owns the plan: a graph is lent within one stream.
 */
#ifndef CUSPLICE_PLAN_LENDERS_H
#define CUSPLICE_PLAN_LENDERS_H

#include "shim/plan/plan.h"

/* The segment has a graph now; it has none any more. Nothing before the first question about
 * lenders.
 */
void cus_lenders_add(struct cus_plan *plan, struct cus_segment *segment);
void cus_lenders_remove(struct cus_plan *plan, struct cus_segment *segment);
/* Is there another segment of the same kinds that has a graph? */
bool cus_lenders_have(struct cus_plan *plan, struct cus_segment *segment);
/* No segment is left. */
void cus_lenders_clear(struct cus_plan *plan);
#endif
