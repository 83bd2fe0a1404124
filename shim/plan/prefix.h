/* Segments that begin with the same nodes; see segment.h. Only the plan's own files use it. */
#ifndef CUSPLICE_PLAN_PREFIX_H
#define CUSPLICE_PLAN_PREFIX_H

#include "shim/plan/state.h"

/* `node` has no segment. If its expected path leads within CUS_PREFIX_MAX nodes to a segment that
 * begins with `head`, `node` gets that segment. NULL: there is none. */
struct cus_segment *cus_prefix_led(struct cus_node *node, const struct cus_node *head);
/* An op diverged. Is there a segment, or can one be formed now, that has this op behind the
 * deferred ones? Sets plan->other. */
bool cus_prefix_find(struct cus_plan *plan, const struct cus_op *op);
/* The deferred ops become the beginning of plan->other. */
void cus_prefix_turn(struct cus_plan *plan);
/* Several segments may begin at this node: selects the one that came next when the path was here
 * last. */
void cus_prefix_foresee(const struct cus_plan *plan, struct cus_node *node);
/* A short segment may end at the path's place only because the way on was unknown when it was
 * formed. True if `node` can continue it: the short segment was dropped, so that longer ones can
 * begin with its ops. */
bool cus_prefix_goes_on(struct cus_plan *plan, const struct cus_node *node);

/* Forms a segment with `node`, behind `lead` nodes of the deferred segment (sizes.c). NULL: not
 * now. */
struct cus_segment *cus_plan_form(struct cus_plan *plan, struct cus_node *node, uint32_t lead,
                                  struct cus_ramp ramp);

#endif
