/*
 * The variants of a segment, in the order of their last launch. Up to CUS_VARIANTS_FEW are searched
 * one by one; more are found by hash, of their shapes, or of the place in the step where they
 * begin. The plan's files use it under the engine's lock.
 */
#ifndef CUSPLICE_PLAN_VARIANTS_H
#define CUSPLICE_PLAN_VARIANTS_H

#include "shim/plan/state.h"

enum { CUS_VARIANTS_FEW = 8 };

/* The variant was built: puts it first, as if it had been launched. */
void cus_variants_add(struct cus_segment *segment, struct cus_variant *variant);
/* Takes the variant out of the segment. */
void cus_variants_remove(struct cus_plan *plan, struct cus_segment *segment,
                         struct cus_variant *variant);
/* The variant was launched and becomes the first one. `moved`: its `own` or `in` has changed since
 * its last launch. */
void cus_variants_launched(struct cus_plan *plan, struct cus_segment *segment,
                           struct cus_variant *variant, bool moved);

/* A variant with these shapes; NULL: there is none. */
struct cus_variant *cus_variants_of_shape(const struct cus_segment *segment,
                                          struct cus_signature own);
/* A variant that was last given these values, by cus_variants_give; NULL: none is known. */
struct cus_variant *cus_variants_of_values(const struct cus_segment *segment, uint64_t values_key);
/* The variant is given these values. */
void cus_variants_give(struct cus_segment *segment, struct cus_variant *variant,
                       uint64_t values_key);
/* If there are more than a few: the variant that was launched last behind this beginning of a step,
 * and whose first op had these dims. NULL: none is known. */
struct cus_variant *cus_variants_of_place(const struct cus_segment *segment,
                                          struct cus_signature in, const uint32_t *dims);

#endif
