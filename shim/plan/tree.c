/*
 * The launch tree's nodes: arena, children.
 *
 * Runs under the lock of the engine that owns the tree. Allocates only when the tree grows, that is
 * while a path is new. Never calls the driver.
 */
#include "shim/plan/tree.h"

#include <string.h>

#include "shim/base/mem.h"

enum { CHUNK_NODES = 128 };

struct cus_tree_chunk {
    struct cus_tree_chunk *next;
    uint32_t used;
    struct cus_node nodes[CHUNK_NODES];
};

void cus_tree_init(struct cus_tree *tree) {
    memset(tree, 0, sizeof *tree);
}

void cus_tree_clear(struct cus_tree *tree) {
    HASH_CLEAR(hh, tree->others);
    while (tree->chunks) {
        struct cus_tree_chunk *next = tree->chunks->next;
        cus_mem_free(tree->chunks);
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

struct cus_node *cus_tree_grow(struct cus_tree *tree, struct cus_node *at,
                               const struct cus_kind *kind, enum cus_step_class step) {
    struct cus_tree_chunk *chunk = tree->chunks;
    if (!chunk || chunk->used == CHUNK_NODES) {
        chunk = cus_mem_alloc(sizeof *chunk);
        if (!chunk)
            return NULL;
        chunk->next = tree->chunks;
        tree->chunks = chunk;
    }
    struct cus_node *node = &chunk->nodes[chunk->used];
    node->key.parent = at;
    node->key.kind = kind;
    node->key.step = step;
    if (!at->child) {
        at->child = node;
    } else {
        bool added = true;
#undef uthash_nonfatal_oom
#define uthash_nonfatal_oom(element) (added = false)
        HASH_ADD(hh, tree->others, key, sizeof node->key, node);
        if (!added) {
            memset(node, 0, sizeof *node);
            return NULL;
        }
    }
    chunk->used++;
    tree->n_nodes++;
    at->expect = node;
    return node;
}
