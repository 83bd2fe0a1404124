/*
 * Loops inside steps: makes a loop of the launch tree where ops repeat, so that the turns of the
 * loop share nodes and segments. cursor.c and plan.c call it under the engine's lock; never in
 * steady replay.
 */
#ifndef CUSPLICE_PLAN_LOOPS_H
#define CUSPLICE_PLAN_LOOPS_H

#include "shim/plan/state.h"

/* Is the loop finder fed now? Only while the path is new, or was a short time ago. */
static inline bool cus_loops_look(const struct cus_plan *plan) {
    return plan->view.step_ops < plan->look_until;
}
/* An op came that had no node yet: look for loops from here on. */
void cus_loops_new(struct cus_plan *plan);
/* The op was recorded and the path stands behind it. `called`: a call that would cut a segment came
 * in front of it. If it ends the second turn of a loop, the path goes on in the loop. */
void cus_loops_feed(struct cus_plan *plan, const struct cus_node *node, bool called);
/* The same for the first `n` ops of a segment. Returns the period if one was found, for
 * cus_loops_found, which may drop the segment. */
uint32_t cus_loops_feed_segment(struct cus_plan *plan, const struct cus_segment *segment,
                                uint32_t n);
/* The path stands behind the op that was fed last. 0: nothing was found. */
void cus_loops_found(struct cus_plan *plan, uint32_t period);
/* The step ends. True: the loops that were found in it are to be forgotten, since the step is short
 * enough to be learned as a whole. */
bool cus_loops_step_end(struct cus_plan *plan, uint64_t ops);

/* Has the host not waited for so long that the turns of the loop count as steps? */
bool cus_loops_are_steps(const struct cus_plan *plan);

#endif
