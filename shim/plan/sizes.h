/* Sizes of segments, computed with the ramp (plan/ramp.h) that each plan keeps. Other files of the
 * plan call this; sizes.c implements it. */
#ifndef CUSPLICE_PLAN_SIZES_H
#define CUSPLICE_PLAN_SIZES_H

#include "shim/plan/state.h"

/* The segment has begun: the next one of the step may be larger. */
void cus_sizes_up(struct cus_plan *plan, const struct cus_segment *segment);
/* A step ended: decides after the first few steps whether all segments become stale. */
void cus_sizes_settle(struct cus_plan *plan);

#endif
