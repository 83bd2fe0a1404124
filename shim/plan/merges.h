/*
 * Where a path that is new comes upon ops that are known: steps that differ in their beginning, or
 * somewhere in the midst, have long runs of the very same ops in common. The new branch joins the
 * known one there, so that what they share is learned once, held once, and built once.
 *
 * By a hash over the last 16 ops that were recorded, params included; one place in
 * CUS_MERGE_SAMPLE is looked at. Guarded by the lock of the engine that owns the plan.
 */
#ifndef CUSPLICE_PLAN_MERGES_H
#define CUSPLICE_PLAN_MERGES_H

#include "shim/plan/tree.h"

enum {
    CUS_JOIN_OPS = 16,    /* in a row that must be the same */
    CUS_MERGE_SAMPLE = 8, /* a power of two */
    CUS_MERGE_SLOTS = 4096,
    CUS_MERGE_NODES = 1024 /* of a tree from which on this is worth its memory */
};

struct cus_merge {
    uint64_t gram;
    struct cus_node *node;
};

struct cus_merges {
    uint64_t gram;
    uint32_t ops;            /* in it, as far as they were recorded without a gap */
    struct cus_merge *slots; /* CUS_MERGE_SLOTS of them, or NULL */
    struct cus_merge *slot;  /* of the op that came last, NULL where it is not looked at */
};

/* Is it worth its memory by now? */
static inline bool cus_merges_wanted(const struct cus_merges *merges, const struct cus_tree *tree) {
    return merges->slots || tree->n_nodes >= CUS_MERGE_NODES;
}
/* Then: an op was recorded. */
void cus_merges_feed(struct cus_merges *merges, const struct cus_op *op);
/* The node at which these ops were met before, if it stands for such an op in such a step. */
struct cus_node *cus_merges_known(const struct cus_merges *merges, const struct cus_op *op,
                                  enum cus_step_class step);
/* They lead to this node. */
static inline void cus_merges_note(struct cus_merges *merges, struct cus_node *node) {
    if (merges->slot)
        *merges->slot = (struct cus_merge){merges->gram, node};
}
/* What comes next does not follow what was recorded last. */
static inline void cus_merges_gap(struct cus_merges *merges) {
    merges->ops = 0;
}
/* Nodes may have gone: forgets all of them. */
void cus_merges_clear(struct cus_merges *merges);
#endif
