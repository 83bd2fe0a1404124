/*
 * The launch tree's nodes and their children, in an arena.
 * The plan calls it under the lock of the engine that owns the tree. Allocates only when the tree
 * grows, that is while a path is new. Never calls the driver.
 */
#include "shim/plan/tree.h"

#include <string.h>

#include "shim/base/hash.h"
#include "shim/base/mem.h"

/* A new chunk has as many nodes as the tree has already, within these limits, so a large tree needs
 * few allocations. */
enum { CHUNK_NODES = 128, CHUNK_NODES_MAX = 1024, SLOTS = 64 };

/* Paths in a loop differ from paths beside it. */
static const uint64_t LOOP_PATH = 0x9e3779b97f4a7c15;

/* A node without a parent is not in use. */
struct cus_tree_chunk {
    struct cus_tree_chunk *next;
    struct cus_node *nodes; /* behind this struct, aligned to cache lines */
    uint32_t used, n;
};

_Static_assert(sizeof(struct cus_node) == CUS_NODE_BYTES &&
                   offsetof(struct cus_node, child) == CUS_NODE_BYTES / 2,
               "two lines");

static uint32_t hash_of(const struct cus_node *parent, const struct cus_kind *kind,
                        uintptr_t step) {
    uint64_t hash = cus_hash_pointer(parent);
    hash = cus_hash_second(hash ^ hash >> 32 ^ (uint64_t)(uintptr_t)kind);
    hash = cus_hash(hash ^ hash >> 29 ^ step);
    return (uint32_t)(hash >> 32);
}

static struct cus_node **slot_of(const struct cus_tree *tree, const struct cus_node_key *key) {
    return &tree->others[hash_of(key->parent, key->kind, key->step) & (tree->n_slots - 1)];
}

void cus_tree_init(struct cus_tree *tree) {
    memset(tree, 0, sizeof *tree);
}

void cus_tree_clear(struct cus_tree *tree) {
    cus_mem_shrink(tree->others);
    while (tree->chunks) {
        struct cus_tree_chunk *next = tree->chunks->next;
        cus_mem_shrink(tree->chunks);
        tree->chunks = next;
    }
    cus_tree_init(tree);
}

static bool is(const struct cus_node *node, const struct cus_kind *kind, enum cus_step_class step) {
    return node->key.kind == kind && node->key.step == step;
}

struct cus_node *cus_tree_child_else(const struct cus_tree *tree, struct cus_node *at,
                                     const struct cus_kind *kind, enum cus_step_class step) {
    struct cus_node *found = at->child;
    if (found && !is(found, kind, step)) {
        const struct cus_node_key key = {at, kind, step};
        found = tree->others ? *slot_of(tree, &key) : NULL;
        while (found && (found->key.parent != at || !is(found, kind, step)))
            found = found->next;
    }
    if (!found)
        return NULL;
    at->expect = found;
    return found->join ? found->join : found;
}

static struct cus_tree_chunk *new_chunk(uint32_t n) {
    struct cus_tree_chunk *chunk =
        cus_mem_grow_first(sizeof *chunk + CUS_LINE - 1 + n * sizeof chunk->nodes[0]);
    if (!chunk)
        return NULL;
    uintptr_t nodes = (uintptr_t)(chunk + 1) + CUS_LINE - 1;
    chunk->nodes = (struct cus_node *)(nodes - nodes % CUS_LINE);
    chunk->n = n;
    return chunk;
}

/* Returns a free node, all zero; take_spare takes it out of the arena. */
static struct cus_node *next_spare(struct cus_tree *tree) {
    struct cus_tree_chunk *chunk = tree->chunks;
    if (tree->spare)
        return tree->spare;
    if (!chunk || chunk->used == chunk->n) {
        uint32_t n = tree->n_nodes < CHUNK_NODES_MAX ? tree->n_nodes : CHUNK_NODES_MAX;
        chunk = n > CHUNK_NODES ? new_chunk(n) : NULL;
        if (!chunk)
            chunk = new_chunk(CHUNK_NODES);
        if (!chunk)
            return NULL;
        chunk->next = tree->chunks;
        tree->chunks = chunk;
    }
    return &chunk->nodes[chunk->used];
}

/* Grows the hash table to at least one slot per node in it. Without memory for a larger table, the
 * lists get longer. */
static bool make_slots(struct cus_tree *tree) {
    if (tree->n_others < tree->n_slots)
        return true;
    uint32_t n = tree->n_slots ? 2 * tree->n_slots : SLOTS;
    struct cus_node **before = tree->others, **slots = cus_mem_grow(n * sizeof *slots);
    if (!slots)
        return before != NULL;
    uint32_t n_before = tree->n_slots;
    tree->others = slots;
    tree->n_slots = n;
    for (uint32_t i = 0; i < n_before; i++)
        for (struct cus_node *node = before[i], *next; node; node = next) {
            struct cus_node **slot = slot_of(tree, &node->key);
            next = node->next;
            node->next = *slot;
            *slot = node;
        }
    cus_mem_shrink(before);
    return true;
}

static void take_spare(struct cus_tree *tree, struct cus_node *node) {
    if (tree->spare == node)
        tree->spare = node->child;
    else
        tree->chunks->used++;
    node->child = NULL;
}

struct cus_node *cus_tree_grow(struct cus_tree *tree, struct cus_node *at,
                               const struct cus_kind *kind, enum cus_step_class step) {
    struct cus_node *node = next_spare(tree);
    if (!node)
        return NULL;
    if (at->child && !make_slots(tree))
        return NULL;
    node->key.parent = at;
    node->key.kind = kind;
    node->key.step = step;
    node->path = cus_path_add(at->path, kind, step);
    take_spare(tree, node);
    if (!at->child) {
        at->child = node;
    } else {
        struct cus_node **slot = slot_of(tree, &node->key);
        node->next = *slot;
        *slot = node;
        tree->n_others++;
    }
    tree->n_nodes++;
    at->expect = node;
    return node;
}

struct cus_node *cus_tree_grow_root(struct cus_tree *tree, uint64_t path) {
    struct cus_node *node = next_spare(tree);
    if (!node)
        return NULL;
    node->key.parent = &tree->root;
    node->path = cus_hash(path ^ LOOP_PATH);
    take_spare(tree, node);
    tree->n_nodes++;
    return node;
}

/* ---- sweeping ---- */

static bool is_loop_root(const struct cus_node *node) {
    return !node->key.kind;
}

void cus_tree_mark(struct cus_tree *tree, struct cus_node *node) {
    while (node != &tree->root && !node->marked) {
        node->marked = 1;
        if (node->join)
            cus_tree_mark(tree, node->join); /* a join is no alias: the recursion is one deep */
        node = (struct cus_node *)(uintptr_t)node->key.parent;
    }
}

void cus_tree_each(struct cus_tree *tree, void (*each)(struct cus_node *, void *), void *context) {
    for (struct cus_tree_chunk *chunk = tree->chunks; chunk; chunk = chunk->next)
        for (uint32_t i = 0; i < chunk->used; i++)
            if (chunk->nodes[i].key.parent)
                each(&chunk->nodes[i], context);
}

static void take_out(struct cus_tree *tree, struct cus_node *node) {
    struct cus_node **slot = slot_of(tree, &node->key);
    while (*slot != node)
        slot = &(*slot)->next;
    *slot = node->next;
    node->next = NULL;
    tree->n_others--;
}

/* Removes an unmarked node from its parent's children. */
static void unlink_node(struct cus_node *node, void *context) {
    struct cus_tree *tree = context;
    struct cus_node *parent = (struct cus_node *)(uintptr_t)node->key.parent;
    if (node->marked || is_loop_root(node))
        return;
    if (parent->expect == node)
        parent->expect = NULL;
    if (parent->child == node) {
        parent->child = NULL;
        return;
    }
    take_out(tree, node);
}

/* If the first child went, another child takes its place, since a look-up begins there. */
static void become_first(struct cus_node *node, void *context) {
    struct cus_tree *tree = context;
    struct cus_node *parent = (struct cus_node *)(uintptr_t)node->key.parent;
    if (!node->marked || parent->child || is_loop_root(node))
        return;
    take_out(tree, node);
    parent->child = node;
    if (!parent->expect)
        parent->expect = node;
}

static void free_unmarked(struct cus_tree *tree, struct cus_tree_chunk *chunk, uint32_t *left) {
    for (uint32_t i = 0; i < chunk->used; i++) {
        struct cus_node *node = &chunk->nodes[i];
        if (node->key.parent && !node->marked) {
            memset(node, 0, sizeof *node);
            tree->n_nodes--;
        }
        *left += node->key.parent != NULL;
        node->marked = 0;
    }
}

/* A loop that stays needs the aliases that lead to it. */
static void mark_alias(struct cus_node *node, void *context) {
    if (node->join && node->join->marked && node->join->loop)
        cus_tree_mark(context, node);
}

void cus_tree_sweep(struct cus_tree *tree) {
    cus_tree_each(tree, mark_alias, tree);
    cus_tree_each(tree, unlink_node, tree);
    cus_tree_each(tree, become_first, tree);
    tree->spare = NULL;
    for (struct cus_tree_chunk **at = &tree->chunks, *chunk; (chunk = *at);) {
        uint32_t left = 0;
        free_unmarked(tree, chunk, &left);
        if (!left) {
            *at = chunk->next;
            cus_mem_shrink(chunk);
            continue;
        }
        for (uint32_t i = 0; i < chunk->used; i++)
            if (!chunk->nodes[i].key.parent) {
                chunk->nodes[i].child = tree->spare;
                tree->spare = &chunk->nodes[i];
            }
        at = &chunk->next;
    }
}
