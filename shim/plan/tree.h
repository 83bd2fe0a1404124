/*
 * The launch tree of one stream: a node per op; the children of a node differ in kind or step
 * class.
 * The plan's files use it; the lock of the stream's engine guards all of it. Nodes come from an
 * arena and live until a sweep or until the tree is cleared.
 * An alias is a node at the end of a branch that merged with a known path. Its `join` is the node
 * at which the path goes on. A loop has a root of its own (loops.c), and aliases that lead into it.
 */
#ifndef CUSPLICE_PLAN_TREE_H
#define CUSPLICE_PLAN_TREE_H

#include <stddef.h>

#include "shim/plan/op.h"
#include "shim/plan/step.h"

struct cus_segment;

/* Why a segment must end at a node. CUT: breaks came behind it; forgotten when they stop. FORK:
 * paths part there; forgotten when only one is taken. GAP: the host pauses there, perhaps until the
 * watchdog issues what is deferred. */
enum cus_boundary { CUS_BOUNDARY_NONE, CUS_BOUNDARY_CUT, CUS_BOUNDARY_FORK, CUS_BOUNDARY_GAP };

struct cus_node_key {
    const struct cus_node *parent;
    const struct cus_kind *kind;
    /* The class (enum cus_step_class) given by the last marker: a step of another class is another
     * path. */
    uintptr_t step;
};

/* Two cache lines; an op that is already known reads and changes only the first. */
struct cus_node {
    struct cus_node_key key;
    struct cus_node *expect; /* the child taken last, which is expected next */
    struct cus_node *join;   /* of an alias: the node meant; else NULL */
    /* The segment that has this node; of several, the one begun or formed last. */
    struct cus_segment *segment;
    uint32_t visits;  /* times reached while in no segment */
    uint32_t stamp;   /* the turn in which it was recorded last */
    uint8_t boundary; /* enum cus_boundary: a segment must end here */
    uint8_t marked;   /* cus_tree_sweep keeps it */
    uint8_t evicted;  /* evictions of segments that had it */
    uint8_t loop_end; /* last op of a turn of a loop: an alias leads to the turn's first op */
    uint8_t loop;     /* an op of a loop */
    uint8_t advised;  /* an earlier run says that the path comes again (plan/advice.h) */

    struct cus_node *child; /* the first child; others are found by hash */
    struct cus_node *next;  /* in the list of nodes with the same hash */
    uint64_t path;          /* hash of all kinds from the root to here; the same in each process */
    uint32_t advice;        /* advice entry for a segment that begins here, plus 1; 0: none */
    uint32_t retry_at;      /* visits from which a segment may be formed here again: back-off */
    /* Flushes behind this node that cut a segment, by its own thread or the watchdog, and calls
     * that would have cut one. */
    uint16_t cuts;
    uint16_t passes; /* passes of this boundary without a break; at a fork: with one child */
    uint16_t forks;  /* times that another op than the expected one came */
    uint16_t cut_at, fork_at; /* the segment's begins at the last cut and fork */
    uint8_t returns;          /* times that this boundary was forgotten and came back soon */
    bool built;               /* it has been in a graph */
    uint8_t pad[9];
    const struct cus_node *way; /* at a fork: the child taken last, which may be gone */
};
enum { CUS_NODE_BYTES = 128 };

struct cus_tree {
    struct cus_node root;
    struct cus_node **others;   /* children that are not their parent's `child`, by hash */
    uint32_t n_others, n_slots; /* number of these; size of the table, a power of two */
    struct cus_tree_chunk *chunks;
    struct cus_node *spare; /* swept nodes, for reuse; linked by `child` */
    uint32_t n_nodes;
};

/* Did the path come often enough for a segment to have this node? */
static inline bool cus_node_warm(const struct cus_node *node, uint32_t warmup) {
    return node->visits >= (node->advised ? 1 : warmup);
}

/* May an op of this kind be in a graph of such a step? */
static inline bool cus_dispatch_allows(const struct cus_dispatch *dispatch,
                                       enum cus_step_class step, const struct cus_kind *kind) {
    /* True for nearly all ops in nearly all modes. */
    if (kind->policy == CUS_POLICY_GRAPH && step != CUS_STEP_OUTSIDE &&
        dispatch->mode != CUS_MODE_FULL_DECODE_ONLY)
        return true;
    return cus_step_allows(dispatch->mode, step, dispatch->weakest[step],
                           (enum cus_policy)kind->policy);
}

void cus_tree_init(struct cus_tree *tree);
/* Frees every node. The caller has dropped all segments. */
void cus_tree_clear(struct cus_tree *tree);
/* Finds the child of `at` with this kind and step class, follows an alias to its `join`, and makes
 * that child the expected one. NULL: there is none. */
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
/* Adds the child, which must not exist, and makes it the expected one. NULL when memory ran out. */
struct cus_node *cus_tree_grow(struct cus_tree *tree, struct cus_node *at,
                               const struct cus_kind *kind, enum cus_step_class step);
/* Adds the root of a loop: its only child is the first node of a turn, and no other node leads to
 * it. `path`: the path in front of the loop. NULL when memory ran out. */
struct cus_node *cus_tree_grow_root(struct cus_tree *tree, uint64_t path);
/* Marks a node and all nodes that lead to it, for the next sweep. */
void cus_tree_mark(struct cus_tree *tree, struct cus_node *node);
/* Calls `each` for every node except the root. `each` must not add or free nodes. */
void cus_tree_each(struct cus_tree *tree, void (*each)(struct cus_node *, void *), void *context);
/* Frees every node that is not marked, and clears the marks. No segment may have a freed node. */
void cus_tree_sweep(struct cus_tree *tree);

#endif
