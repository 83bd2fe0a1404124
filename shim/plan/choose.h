/*
 * Choosing among the variants of a segment: which is predicted when it begins, which is launched
 * when it is complete. Used by plan.c and cursor.c only; the caller holds the engine's lock.
 */
#ifndef CUSPLICE_PLAN_CHOOSE_H
#define CUSPLICE_PLAN_CHOOSE_H

#include <string.h>

#include "shim/plan/plan.h"

/* ---- which deferred ops differ from the predicted variant's image ---- */

static inline bool cus_choose_is_dirty(const struct cus_plan *plan, uint32_t i) {
    return plan->dirty[i / 64] >> i % 64 & 1;
}

static inline void cus_choose_set_dirty(struct cus_plan *plan, uint32_t i, bool dirty) {
    uint64_t bit = (uint64_t)1 << i % 64;
    plan->dirty[i / 64] = dirty ? plan->dirty[i / 64] | bit : plan->dirty[i / 64] & ~bit;
}

/* The node of op `i` has another shape. */
static inline void cus_choose_set_reshapes(struct cus_plan *plan, uint32_t i) {
    plan->reshapes[i / 64] |= (uint64_t)1 << i % 64;
}

static inline void cus_choose_set_clean(struct cus_plan *plan) {
    size_t bytes = (plan->segment->n + 63) / 64 * sizeof plan->dirty[0];
    memset(plan->dirty, 0, bytes);
    memset(plan->reshapes, 0, bytes);
}

/* What memset and copy nodes of the variant hold is not relied upon once memory may have gone. */
void cus_choose_trust(struct cus_plan *plan, struct cus_variant *variant);
/* The variant that was launched behind the same beginning of the step, begins with this very op and
 * came next before, in this order of weight; in doubt the one launched last; NULL where there is
 * none. */
struct cus_variant *cus_choose_predict(const struct cus_plan *plan,
                                       const struct cus_segment *segment, const struct cus_op *op);
/* The step's signature behind the first `n` deferred ops; that of a whole segment of them by
 * themselves. */
struct cus_signature cus_choose_signature_behind(const struct cus_plan *plan, uint32_t n);
struct cus_signature cus_choose_own(struct cus_plan *plan);
/* Makes `dirty` say what differs from `variant`, after another one was predicted. */
void cus_choose_compare(struct cus_plan *plan, struct cus_variant *variant);
/* This signature was met once more. */
void cus_choose_note(struct cus_plan *plan, struct cus_signature sig);

#endif
