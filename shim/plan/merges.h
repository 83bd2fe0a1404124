/*
 * Finds where a new path comes to ops that are known. Steps that differ at their beginning or in
 * the middle often have long sequences of equal ops. The new branch then merges with the known
 * path, so that the common ops are learned, stored and built once.
 * The key is a hash of the last 16 recorded ops with their params; one place in CUS_MERGE_SAMPLE is
 * checked. cursor.c uses it under the lock of the engine that owns the plan.
 */
#ifndef CUSPLICE_PLAN_MERGES_H
#define CUSPLICE_PLAN_MERGES_H

#include "shim/plan/tree.h"

enum {
    CUS_JOIN_OPS = 16,    /* ops in a row that must be equal */
    CUS_MERGE_SAMPLE = 8, /* a power of two */
    CUS_MERGE_SLOTS = 4096,
    CUS_MERGE_NODES = 1024 /* nodes of a tree that is large enough to use the table */
};

struct cus_merge {
    uint64_t gram;
    struct cus_node *node;
};

struct cus_merges {
    uint64_t gram;
    uint32_t ops;            /* ops in `gram` that were recorded without a gap */
    struct cus_merge *slots; /* CUS_MERGE_SLOTS of them, or NULL */
    struct cus_merge *slot;  /* the last op's slot; NULL: its place is not checked */
};

/* Is the tree large enough for this table? */
static inline bool cus_merges_wanted(const struct cus_merges *merges, const struct cus_tree *tree) {
    return merges->slots || tree->n_nodes >= CUS_MERGE_NODES;
}
/* If so: an op was recorded. */
void cus_merges_feed(struct cus_merges *merges, const struct cus_op *op);
/* The node at which the last ops came before, if it has the kind of `op` and this step class; else
 * NULL. */
struct cus_node *cus_merges_known(const struct cus_merges *merges, const struct cus_op *op,
                                  enum cus_step_class step);
/* The last ops lead to this node. */
static inline void cus_merges_note(struct cus_merges *merges, struct cus_node *node) {
    if (merges->slot)
        *merges->slot = (struct cus_merge){merges->gram, node};
}
/* The next op does not follow the one recorded last. */
static inline void cus_merges_gap(struct cus_merges *merges) {
    merges->ops = 0;
}
/* Forgets everything, since nodes may be freed. */
void cus_merges_clear(struct cus_merges *merges);
#endif
