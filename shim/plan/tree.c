/*
 * The launch tree's nodes: arena, children.
 *
 * Runs under the lock of the engine that owns the tree. Allocates only when the tree grows, that is
 * while a path is new. Never calls the driver.
 */
/* A key is three words, of which pointers are the most: a few multiplications, where uthash's own
 * hash goes byte by byte. */
#define HASH_FUNCTION(key, bytes, hash) ((hash) = hash_of_key(key))

#include "shim/plan/tree.h"

#include <string.h>

#include "shim/base/mem.h"

enum { CHUNK_NODES = 128 };

/* A node that is not in use has no parent. */
struct cus_tree_chunk {
    struct cus_tree_chunk *next;
    uint32_t used;
    struct cus_node nodes[CHUNK_NODES];
};

static unsigned hash_of_key(const void *at) {
    const struct cus_node_key *key = at;
    uint64_t hash = (uint64_t)(uintptr_t)key->parent * 0x9e3779b97f4a7c15u;
    hash = (hash ^ hash >> 32 ^ (uint64_t)(uintptr_t)key->kind) * 0xd1b54a32d192ed03u;
    hash = (hash ^ hash >> 29 ^ key->step) * 0x9e3779b97f4a7c15u;
    return (unsigned)(hash >> 32);
}

void cus_tree_init(struct cus_tree *tree) {
    memset(tree, 0, sizeof *tree);
}

void cus_tree_clear(struct cus_tree *tree) {
    HASH_CLEAR(hh, tree->others);
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

struct cus_node *cus_tree_child(const struct cus_tree *tree, struct cus_node *at,
                                const struct cus_kind *kind, enum cus_step_class step) {
    struct cus_node *found = at->expect;
    if (!found || !is(found, kind, step)) {
        found = at->child;
        if (found && !is(found, kind, step)) {
            struct cus_node_key key = {at, kind, step};
            HASH_FIND(hh, tree->others, &key, sizeof key, found);
        }
    }
    if (!found)
        return NULL;
    at->expect = found;
    return found->join ? found->join : found;
}

/* A node out of the arena, all zero; it is not taken from there yet. */
static struct cus_node *next_spare(struct cus_tree *tree) {
    struct cus_tree_chunk *chunk = tree->chunks;
    if (tree->spare)
        return tree->spare;
    if (!chunk || chunk->used == CHUNK_NODES) {
        chunk = cus_mem_grow_first(sizeof *chunk);
        if (!chunk)
            return NULL;
        chunk->next = tree->chunks;
        tree->chunks = chunk;
    }
    return &chunk->nodes[chunk->used];
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
    node->key.parent = at;
    node->key.kind = kind;
    node->key.step = step;
    node->path = cus_path_add(at->path, kind, step);
    if (!at->child) {
        at->child = node;
    } else {
        bool added = true;
#undef uthash_nonfatal_oom
#define uthash_nonfatal_oom(element) (added = false)
        HASH_ADD(hh, tree->others, key, sizeof node->key, node);
        if (!added) {
            struct cus_node *next = node->child; /* where it is a spare one, it stays so */
            memset(node, 0, sizeof *node);
            node->child = next;
            return NULL;
        }
    }
    take_spare(tree, node);
    tree->n_nodes++;
    at->expect = node;
    return node;
}

/* ---- sweeping ---- */

void cus_tree_mark(struct cus_tree *tree, struct cus_node *node) {
    while (node != &tree->root && !node->marked) {
        node->marked = 1;
        if (node->join)
            cus_tree_mark(tree, node->join); /* no alias itself: no deeper than this */
        node = (struct cus_node *)(uintptr_t)node->key.parent;
    }
}

void cus_tree_each(struct cus_tree *tree, void (*each)(struct cus_node *, void *), void *context) {
    for (struct cus_tree_chunk *chunk = tree->chunks; chunk; chunk = chunk->next)
        for (uint32_t i = 0; i < chunk->used; i++)
            if (chunk->nodes[i].key.parent)
                each(&chunk->nodes[i], context);
}

/* Its parent does not lead to it any more. */
static void unlink_node(struct cus_node *node, void *context) {
    struct cus_tree *tree = context;
    struct cus_node *parent = (struct cus_node *)(uintptr_t)node->key.parent;
    if (node->marked)
        return;
    if (parent->expect == node)
        parent->expect = NULL;
    if (parent->child == node)
        parent->child = NULL;
    else
        HASH_DELETE(hh, tree->others, node);
}

/* Where the first child goes another one takes its place: it is there that a look-up begins. */
static void become_first(struct cus_node *node, void *context) {
    struct cus_tree *tree = context;
    struct cus_node *parent = (struct cus_node *)(uintptr_t)node->key.parent;
    if (!node->marked || parent->child)
        return;
    HASH_DELETE(hh, tree->others, node);
    parent->child = node;
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

void cus_tree_sweep(struct cus_tree *tree) {
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
