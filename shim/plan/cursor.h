/*
 * Moves the plan's cursor, that is the place of the path in the launch tree. Only plan.c and
 * cursor.c use it, under the engine's lock.
 */
#ifndef CUSPLICE_PLAN_CURSOR_H
#define CUSPLICE_PLAN_CURSOR_H

#include "shim/plan/state.h"

/* The path goes on behind the last op. If that op is at a boundary, the boundary may be forgotten
 * (learn.h). */
void cus_cursor_leave(struct cus_plan *plan);
/* Sets the path back to the root: a step ended. */
void cus_cursor_restart(struct cus_plan *plan);
/* A turn of a loop ended. True: it counts as a step. */
bool cus_cursor_turn(struct cus_plan *plan);

/* Moves the path to `at` after `ops` ops were issued. Returns true if a turn of a loop that counts
 * as a step ended there. */
static inline bool cus_cursor_advance(struct cus_plan *plan, struct cus_node *at, uint32_t ops) {
    plan->cur = at;
    if (ops)
        plan->step = (enum cus_step_class)at->key.step;
    plan->view.step_ops += ops;
    return at->loop_end && cus_cursor_turn(plan);
}

/* Counts a marker kernel by the class of the step that it begins. */
static inline void cus_cursor_marker(struct cus_plan *plan, const struct cus_kind *kind,
                                     enum cus_step_class step) {
    plan->steps[step] += kind->step != NULL;
}

#endif
