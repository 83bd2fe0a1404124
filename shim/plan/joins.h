/*
 * Where a path that is new comes upon ops that are known: steps that differ in their beginning, or
 * somewhere in the midst, have long runs of the very same ops in common. The new branch joins the
 * known one there, so that what they share is learned once, held once, and built once.
 *
 * By a hash over the last 16 ops that were recorded, params included; one place in
 * CUS_JOIN_SAMPLE is looked at. Guarded by the lock of the engine that owns the plan.
 */
#ifndef CUSPLICE_PLAN_JOINS_H
#define CUSPLICE_PLAN_JOINS_H

#include "shim/plan/tree.h"

enum {
    CUS_JOIN_OPS = 16,   /* in a row that must be the same */
    CUS_JOIN_SAMPLE = 8, /* a power of two */
    CUS_JOIN_SLOTS = 4096,
    CUS_JOIN_NODES = 1024 /* of a tree from which on this is worth its memory */
};

struct cus_join {
    uint64_t gram;
    struct cus_node *node;
};

struct cus_joins {
    uint64_t gram;
    uint32_t ops;          /* in it, as far as they were recorded without a gap */
    struct cus_join *met;  /* CUS_JOIN_SLOTS of them, or NULL */
    struct cus_join *slot; /* of the op that came last, NULL where it is not looked at */
};

/* Is it worth its memory by now? */
static inline bool cus_joins_wanted(const struct cus_joins *joins, const struct cus_tree *tree) {
    return joins->met || tree->n_nodes >= CUS_JOIN_NODES;
}
/* Then: an op was recorded. */
void cus_joins_feed(struct cus_joins *joins, const struct cus_op *op);
/* The node at which these ops were met before, if it stands for such an op in such a step. */
struct cus_node *cus_joins_known(const struct cus_joins *joins, const struct cus_op *op,
                                 enum cus_step_class step);
/* They lead to this node. */
static inline void cus_joins_note(struct cus_joins *joins, struct cus_node *node) {
    if (joins->slot)
        *joins->slot = (struct cus_join){joins->gram, node};
}
/* What comes next does not follow what was recorded last. */
static inline void cus_joins_gap(struct cus_joins *joins) {
    joins->ops = 0;
}
/* Nodes may have gone: forgets all of them. */
void cus_joins_clear(struct cus_joins *joins);
#endif
