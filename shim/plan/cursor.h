/*
 * The plan's cursor, for those who move it.
 */
#ifndef CUSPLICE_PLAN_CURSOR_H
#define CUSPLICE_PLAN_CURSOR_H

#include "shim/plan/plan.h"

/* The path goes on behind the last op. Where that is a boundary it may lose its reason so
 * (learn.h).
 */
void cus_cursor_leave(struct cus_plan *plan);
/* The path starts at the root again. */
void cus_cursor_restart(struct cus_plan *plan);

/* `ops` ops were issued up to `at`. Returns true where a turn of a loop ended there. */
static inline bool cus_cursor_advance(struct cus_plan *plan, struct cus_node *at, uint32_t ops) {
    plan->cur = at;
    if (ops)
        plan->step = (enum cus_step_class)at->key.step;
    plan->step_ops += ops;
    plan->unsynced += ops;
    if (plan->loop_ops && plan->step_ops >= plan->loop_ops) {
        at->loop_end = plan->step_ops == plan->loop_ops;
        plan->loop_ops = 0;
    }
    if (!at->loop_end)
        return false;
    struct cus_ramp ramp = plan->ramp;
    cus_cursor_restart(plan);
    plan->ramp = ramp; /* the GPU is busy: no need to start small again */
    return true;
}

/* An op came in a step of this class: counted if it is a marker. */
static inline void cus_cursor_marker(struct cus_plan *plan, const struct cus_kind *kind,
                                     enum cus_step_class step) {
    plan->steps[step] += kind->step != NULL;
}

#endif
