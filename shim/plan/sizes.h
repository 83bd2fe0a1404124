/* The sizes of segments, by a ramp (plan/ramp.h) that a plan keeps: what plan.c and cursor.c ask of
 * sizes.c. */
#ifndef CUSPLICE_PLAN_SIZES_H
#define CUSPLICE_PLAN_SIZES_H

#include "shim/plan/plan.h"

void cus_sizes_begin(struct cus_plan *plan);
/* This segment has begun: what comes next may be larger. */
void cus_sizes_up(struct cus_plan *plan, const struct cus_segment *segment);
/* This segment goes: its pace does not count any more. */
void cus_sizes_gone(struct cus_plan *plan, const struct cus_segment *segment);
/* A step ended: are segments what the pace allows? */
void cus_sizes_settle(struct cus_plan *plan);

#endif
