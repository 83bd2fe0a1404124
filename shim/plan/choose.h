/*
 * Chooses among the variants of a segment: predicts one when the segment begins, and picks one to
 * launch when the segment is complete. plan.c, cursor.c and prefix.c use it under the engine's
 * lock.
 */
#ifndef CUSPLICE_PLAN_CHOOSE_H
#define CUSPLICE_PLAN_CHOOSE_H

#include <string.h>

#include "shim/plan/state.h"

/* ---- which deferred ops differ from the predicted variant's image ---- */

static inline bool cus_choose_is_dirty(const struct cus_plan_view *view, uint32_t i) {
    return view->dirty[i / 64] >> i % 64 & 1;
}

static inline void cus_choose_set_dirty(struct cus_plan_view *view, uint32_t i, bool dirty) {
    uint64_t bit = (uint64_t)1 << i % 64;
    view->dirty[i / 64] = dirty ? view->dirty[i / 64] | bit : view->dirty[i / 64] & ~bit;
}

/* Op `i` has another shape than its node. */
static inline void cus_choose_set_reshapes(struct cus_plan_view *view, uint32_t i) {
    view->reshapes[i / 64] |= (uint64_t)1 << i % 64;
}

static inline void cus_choose_set_clean(struct cus_plan_view *view) {
    size_t bytes = (view->segment->n + 63) / 64 * sizeof view->dirty[0];
    memset(view->dirty, 0, bytes);
    memset(view->reshapes, 0, bytes);
}

/* If the memory epoch has moved, marks the content of the variant's memset and copy nodes as
 * unknown. */
void cus_choose_trust(struct cus_plan *plan, struct cus_variant *variant);
/* The variant that most likely holds what the program will request; NULL where the segment has
 * none. What counts, in this order: the same ops before the segment, the same first op, and that
 * the variant followed the one launched last. In doubt it is the variant launched last. */
struct cus_variant *cus_choose_predict(const struct cus_plan *plan,
                                       const struct cus_segment *segment, const struct cus_op *op);
/* The step's signature behind the first `n` deferred ops. Below: the signature of the complete
 * segment's ops alone. */
struct cus_signature cus_choose_signature_behind(const struct cus_plan *plan, uint32_t n);
struct cus_signature cus_choose_own(struct cus_plan *plan);
/* How many of the dirty ops have a node in this variant's graph? */
uint32_t cus_choose_dirty_nodes(const struct cus_plan *plan, const struct cus_variant *variant);
/* Predicts `variant` in place of another one, and sets `dirty` to the ops that differ from it. */
void cus_choose_compare(struct cus_plan *plan, struct cus_variant *variant);
/* Notes for which ops the graph that was just built has no node. False: no memory. */
bool cus_choose_note_absent(const struct cus_plan *plan, struct cus_variant *variant);
/* Counts one more occurrence of this signature. */
void cus_choose_note(struct cus_plan *plan, struct cus_signature sig);

#endif
