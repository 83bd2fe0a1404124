/*
 * The variants of a segment, in the order of their last launch. A few are looked through; where a
 * segment has more, they are found by their shapes, and by where the step is when they begin. Used
 * by the plan only; the caller holds the engine's lock.
 */
#ifndef CUSPLICE_PLAN_VARIANTS_H
#define CUSPLICE_PLAN_VARIANTS_H

#include "shim/plan/plan.h"

enum { CUS_VARIANTS_FEW = 8 };

/* It was built, or borrowed: it comes first, as if it had been launched. */
void cus_variants_add(struct cus_segment *segment, struct cus_variant *variant);
/* It is the segment's no more. */
void cus_variants_remove(struct cus_plan *plan, struct cus_segment *segment,
                         struct cus_variant *variant);
/* It was launched; `own` and `in` say as what and where. `moved`: these are others than the last
 * time. */
void cus_variants_launched(struct cus_plan *plan, struct cus_segment *segment,
                           struct cus_variant *variant, bool moved);

/* One of these shapes; NULL: there is none. */
struct cus_variant *cus_variants_of_shape(const struct cus_segment *segment,
                                          struct cus_signature own);
/* Where there are more than a few: one that was launched behind such a beginning of a step last,
 * and whose first op had these dims; NULL: none is known. */
struct cus_variant *cus_variants_of_place(const struct cus_segment *segment,
                                          struct cus_signature in, const uint32_t *dims);

#endif
