/*
 * Orders nodes as a chain: takes a node once all nodes before it are taken. At each turn exactly
 * one node must be free to take; then an edge leads from each node to the next, and no other order
 * is possible.
 * exec.c calls it on the thread that builds. It calls only the allocator.
 */
#include "shim/graph/chain.h"

#include "shim/base/hash.h"
#include "shim/base/mem.h"

enum { NONE = UINT32_MAX };

struct edge {
    uint32_t to, next; /* the next edge from the same node, or NONE */
};

/* One allocation. Nodes get numbers in the order in which they are found. */
struct walk {
    CUgraphNode *nodes; /* n of them */
    struct edge *edges;
    uint32_t *first;   /* n: the first edge of each node, or NONE */
    uint32_t *behind;  /* n: nodes before each one that are not taken yet */
    uint32_t *slots;   /* hash table: number + 1, or 0 */
    uint32_t n_slots;  /* a power of two, at least twice n */
    uint32_t n, found; /* found: nodes that have a number */
};

static struct walk *make_walk(uint32_t n_edges, uint32_t n) {
    uint32_t n_slots = 4;
    while (n_slots < 2 * n)
        n_slots *= 2;
    struct walk *walk =
        cus_mem_alloc(sizeof *walk + n * (sizeof *walk->nodes + 2 * sizeof(uint32_t)) +
                      n_edges * sizeof *walk->edges + n_slots * sizeof *walk->slots);
    if (!walk)
        return NULL;
    walk->nodes = (CUgraphNode *)(walk + 1);
    walk->edges = (struct edge *)(walk->nodes + n);
    walk->first = (uint32_t *)(walk->edges + n_edges);
    walk->behind = walk->first + n;
    walk->slots = walk->behind + n;
    walk->n_slots = n_slots;
    walk->n = n;
    for (uint32_t i = 0; i < n; i++)
        walk->first[i] = NONE;
    return walk;
}

/* The node's number. NONE: there are more than n nodes. */
static uint32_t number_of(struct walk *walk, CUgraphNode node) {
    uint64_t hash = cus_hash_pointer(node);
    uint32_t mask = walk->n_slots - 1, at = (uint32_t)(hash >> 32) & mask;
    for (; walk->slots[at]; at = (at + 1) & mask)
        if (walk->nodes[walk->slots[at] - 1] == node)
            return walk->slots[at] - 1;
    if (walk->found == walk->n)
        return NONE;
    walk->nodes[walk->found++] = node;
    walk->slots[at] = walk->found;
    return walk->found - 1;
}

static bool take_edges(struct walk *walk, const CUgraphNode *from, const CUgraphNode *to,
                       uint32_t n_edges) {
    for (uint32_t i = 0; i < n_edges; i++) {
        uint32_t a = number_of(walk, from[i]), b = number_of(walk, to[i]);
        if (a == NONE || b == NONE)
            return false;
        walk->edges[i] = (struct edge){b, walk->first[a]};
        walk->first[a] = i;
        walk->behind[b]++;
    }
    return walk->found == walk->n;
}

/* The only node that has none before it, or NONE. */
static uint32_t only_root(const struct walk *walk) {
    uint32_t root = NONE;
    for (uint32_t i = 0; i < walk->n; i++) {
        if (walk->behind[i])
            continue;
        if (root != NONE)
            return NONE;
        root = i;
    }
    return root;
}

/* Takes `at`. Returns the only node that then has none before it, or NONE. */
static uint32_t only_next(struct walk *walk, uint32_t at) {
    uint32_t next = NONE;
    for (uint32_t e = walk->first[at]; e != NONE; e = walk->edges[e].next) {
        uint32_t to = walk->edges[e].to;
        if (--walk->behind[to])
            continue;
        if (next != NONE)
            return NONE;
        next = to;
    }
    return next;
}

bool cus_chain_order(const CUgraphNode *from, const CUgraphNode *to, uint32_t n_edges, uint32_t n,
                     CUgraphNode *order) {
    struct walk *walk = make_walk(n_edges, n);
    uint32_t taken = 0;
    if (walk && take_edges(walk, from, to, n_edges))
        for (uint32_t at = only_root(walk); at != NONE; at = only_next(walk, at))
            order[taken++] = walk->nodes[at];
    cus_mem_free(walk);
    return taken == n;
}
