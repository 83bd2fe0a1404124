/*
 * The launch tree: one node per op, children told apart by kind. A path from the root is a family
 * of segment lists.
 *
 * A tree belongs to one stream engine; its lock guards everything here. Nodes come from an arena
 * and live until the whole tree is cleared. A node may be an alias: it stands at the end of a
 * branch that re-joined a known path, and its `join` is the node at which the path goes on.
 */
#ifndef CUSPLICE_PLAN_TREE_H
#define CUSPLICE_PLAN_TREE_H

#include <stddef.h>

#include "shim/plan/op.h"
#include "shim/plan/step.h"

struct cus_segment;

/* Why a segment must end at a node: a flush came behind it (forgotten when that stops), paths part
 * there (forgotten when one alone is taken), or the host pauses there, be it until the watchdog
 * issues what is deferred. */
enum cus_boundary { CUS_BOUNDARY_NONE, CUS_BOUNDARY_CUT, CUS_BOUNDARY_FORK, CUS_BOUNDARY_GAP };

struct cus_node_key {
    const struct cus_node *parent;
    const struct cus_kind *kind;
    uintptr_t step; /* enum cus_step_class, from the last marker on: a step of another class is
                       another path */
};

/* Two cache lines: in the first one is what an op that is known looks at and changes. */
struct cus_node {
    struct cus_node_key key;
    struct cus_node *expect;     /* the child taken last: what is expected next */
    struct cus_node *join;       /* alias: the node meant; NULL otherwise */
    struct cus_segment *segment; /* the segment that this node is part of; of several, the one that
                                was begun or made last */
    uint32_t visits;             /* times reached while not inside a segment */
    uint32_t stamp;   /* the step, as the plan counts them, in which it was recorded last */
    uint8_t boundary; /* enum cus_boundary: a segment must end here */
    uint8_t marked;   /* cus_tree_sweep keeps it */
    uint8_t evicted;  /* times that a segment it was in was dropped for the budget */
    uint8_t loop_end; /* the last op of a turn of a loop that never synchronises: the path goes on
                         at the root */
    uint8_t advised;  /* an earlier run says that its path comes again (plan/advice.h) */

    struct cus_node *child; /* the first child made; the others are found by hash */
    struct cus_node *next;  /* among the others with such a hash */
    uint64_t path;          /* of all kinds from the root up to here, the same in each process */
    uint32_t advice;        /* the entry of the advice by which a segment begins here; 0: none */
    uint32_t retry_at; /* no segment is formed here before so many visits: back-off after one that
                          did not pay */
    uint16_t cuts;     /* flushes that cut a segment behind this node, by its own thread or the
                          watchdog,     and calls that would have */
    uint16_t passes;   /* times that the path went on behind this boundary without a break */
    uint16_t forks;    /* times that another op came than the expected one */
    uint16_t cut_at, fork_at; /* when a cut or fork was counted last, as its segment counts what it
                                 begins */
    uint8_t returns;          /* times that this boundary was forgotten and came back soon */
    bool built;               /* it has been in a graph */
    uint8_t pad[10];
    const struct cus_node *way; /* behind a fork: the one that was taken last, if it still is */
};
enum { CUS_NODE_BYTES = 128 };

struct cus_tree {
    struct cus_node root;
    struct cus_node **others;   /* the children that are not `child` of their parent, by a hash */
    uint32_t n_others, n_slots; /* of them; of the table: a power of two */
    struct cus_tree_chunk *chunks;
    struct cus_node *spare; /* swept, to be used again; linked by `child` */
    uint32_t n_nodes;
};

/* Did the path come by often enough for a segment to have this node? */
static inline bool cus_node_warm(const struct cus_node *node, uint32_t warmup) {
    return node->visits >= (node->advised ? 1 : warmup);
}

/* May an op of this kind be put into a graph of such a step? */
static inline bool cus_dispatch_allows(const struct cus_dispatch *dispatch,
                                       enum cus_step_class step, const struct cus_kind *kind) {
    /* What nearly all are, in nearly all modes. */
    if (kind->policy == CUS_POLICY_GRAPH && step != CUS_STEP_OUTSIDE &&
        dispatch->mode != CUS_MODE_FULL_DECODE_ONLY)
        return true;
    return cus_step_allows(dispatch->mode, step, dispatch->weakest[step],
                           (enum cus_policy)kind->policy);
}

void cus_tree_init(struct cus_tree *tree);
/* Frees every node. The caller has dropped all segments before. */
void cus_tree_clear(struct cus_tree *tree);
/* The child of `at` of this kind in a step of this class, which becomes the expected one, aliases
 * resolved; or NULL. */
struct cus_node *cus_tree_child_else(const struct cus_tree *tree, struct cus_node *at,
                                     const struct cus_kind *kind, enum cus_step_class step);
static inline struct cus_node *cus_tree_child(const struct cus_tree *tree, struct cus_node *at,
                                              const struct cus_kind *kind,
                                              enum cus_step_class step) {
    struct cus_node *found = at->expect;
    if (!found || found->key.kind != kind || found->key.step != step)
        return cus_tree_child_else(tree, at, kind, step);
    return found->join ? found->join : found;
}
/* Makes the child that does not exist yet, the expected one from now on. NULL when memory ran out.
 */
struct cus_node *cus_tree_grow(struct cus_tree *tree, struct cus_node *at,
                               const struct cus_kind *kind, enum cus_step_class step);
/* Marks a node, and all that lead to it, for the sweep that follows. */
void cus_tree_mark(struct cus_tree *tree, struct cus_node *node);
/* Calls `each` for every node but the root; it must not change the tree. */
void cus_tree_each(struct cus_tree *tree, void (*each)(struct cus_node *, void *), void *context);
/* Frees every node that is not marked, and the marks. No segment has any of them. */
void cus_tree_sweep(struct cus_tree *tree);

#endif
