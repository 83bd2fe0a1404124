/*
 * The steps of a played program, and what they have in common. clock.c adds each one when it has
 * ended.
 */
#ifndef CUSPLICE_TOOLS_WHATIF_STEPS_H
#define CUSPLICE_TOOLS_WHATIF_STEPS_H

#include "tools/whatif/clock.h"

/* Nanoseconds: of the step, as played and as recorded; of the host by itself, in calls, and
 * waiting; of the GPU. */
struct whatif_step {
    uint64_t ops;
    double ns, recorded, own, calls, waits, busy;
};

void whatif_steps_add(const struct whatif_step *step);
void whatif_steps_sum(struct whatif_times *times);

#endif
