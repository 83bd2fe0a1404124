/* Segments that begin alike. For the plan's own files. */
#ifndef CUSPLICE_PLAN_PREFIX_H
#define CUSPLICE_PLAN_PREFIX_H

#include "shim/plan/plan.h"

/* `node`, which no segment has, may be among the first nodes of one that another path goes on with:
 * of the path that is expected. */
struct cus_segment *cus_prefix_led(struct cus_node *node, const struct cus_node *head);
/* Another op came than the expected one: is there a segment, or can there be one now, that has it
 * behind what is deferred? */
bool cus_prefix_find(struct cus_plan *plan, const struct cus_op *op);
/* Of the segments that begin at this node the one that came next when the path was here last. */
void cus_prefix_foresee(const struct cus_plan *plan, struct cus_node *node);
/* A few ops are a segment of their own, for how the path goes on was learned later, as where many
 * begin with them. They shall begin those, and it goes. */
bool cus_prefix_goes_on(struct cus_plan *plan, const struct cus_node *node);

/* plan.c: a segment that has `node`, with the `lead` nodes in front of it. NULL: not now. */
struct cus_segment *cus_plan_form(struct cus_plan *plan, struct cus_node *node, uint32_t lead,
                                  struct cus_ramp ramp);

#endif
