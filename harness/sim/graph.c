/*
 * Graphs as structures: nodes, edges, queries, copies.
 *
 * Any thread, under cusim.lock. CUDA requires that one thread at a time uses a graph; the lock
 * makes a breach of this rule harmless.
 */
#include "harness/sim/graph.h"

#include <stdlib.h>
#include <string.h>

static struct cusim_graph *graph_get(CUgraph handle) {
    return cusim_handle_is(handle, CUSIM_GRAPH) ? (struct cusim_graph *)handle : NULL;
}

static struct cusim_node *node_get(CUgraphNode handle) {
    return cusim_handle_is(handle, CUSIM_NODE) ? (struct cusim_node *)handle : NULL;
}

struct cusim_graph *cusim_graph_new(void) {
    struct cusim_graph *graph = calloc(1, sizeof *graph);
    graph->id = cusim_new_id();
    cusim_handle_add(graph, CUSIM_GRAPH);
    return graph;
}

static void node_free(struct cusim_node *node) {
    cusim_handle_remove(node);
    cusim_work_unref(node->work);
    if (node->child)
        cusim_graph_free(node->child);
    free(node->deps);
    free(node);
}

void cusim_graph_free(struct cusim_graph *graph) {
    for (struct cusim_node *node = graph->first, *next; node; node = next) {
        next = node->next;
        node_free(node);
    }
    cusim_handle_remove(graph);
    free(graph);
}

struct cusim_node *cusim_node_new(struct cusim_graph *graph, CUgraphNodeType type,
                                  struct cusim_work *work) {
    struct cusim_node *node = calloc(1, sizeof *node);
    node->graph = graph;
    node->type = type;
    node->id = cusim_new_id();
    node->work = work;
    node->prev = graph->last;
    if (graph->last)
        graph->last->next = node;
    else
        graph->first = node;
    graph->last = node;
    graph->n_nodes++;
    cusim_handle_add(node, CUSIM_NODE);
    return node;
}

void cusim_node_depend(struct cusim_node *node, struct cusim_node *from,
                       const CUgraphEdgeData *data) {
    if (node->n_deps == node->cap_deps) {
        node->cap_deps = node->cap_deps * 2 + 1;
        node->deps = realloc(node->deps, node->cap_deps * sizeof *node->deps);
    }
    struct cusim_edge *edge = &node->deps[node->n_deps++];
    memset(edge, 0, sizeof *edge);
    edge->from = from;
    if (data)
        edge->data = *data;
}

CUgraphNodeType cusim_node_type_of(const struct cusim_work *work) {
    switch (work->type) {
    case CUSIM_WORK_KERNEL:
        return CU_GRAPH_NODE_TYPE_KERNEL;
    case CUSIM_WORK_MEMSET:
        return CU_GRAPH_NODE_TYPE_MEMSET;
    case CUSIM_WORK_MEMCPY:
        return CU_GRAPH_NODE_TYPE_MEMCPY;
    case CUSIM_WORK_HOST:
        return CU_GRAPH_NODE_TYPE_HOST;
    case CUSIM_WORK_RECORD:
        return CU_GRAPH_NODE_TYPE_EVENT_RECORD;
    case CUSIM_WORK_WAIT:
        return CU_GRAPH_NODE_TYPE_WAIT_EVENT;
    case CUSIM_WORK_ALLOC:
        return CU_GRAPH_NODE_TYPE_MEM_ALLOC;
    case CUSIM_WORK_FREE:
        return CU_GRAPH_NODE_TYPE_MEM_FREE;
    case CUSIM_WORK_WAIT_VALUE:
    case CUSIM_WORK_WRITE_VALUE:
        return CU_GRAPH_NODE_TYPE_BATCH_MEM_OP;
    default:
        return CU_GRAPH_NODE_TYPE_EMPTY;
    }
}

static unsigned edge_place(const struct cusim_node *node, const struct cusim_node *from) {
    for (unsigned i = 0; i < node->n_deps; i++)
        if (node->deps[i].from == from)
            return i;
    return UINT32_MAX;
}

CUresult cusim_graph_add(CUgraphNode *out, CUgraph handle, const CUgraphNode *dependencies,
                         const CUgraphEdgeData *data, size_t n, CUgraphNodeType type,
                         struct cusim_work *work, struct cusim_node **result) {
    struct cusim_graph *graph = graph_get(handle);
    bool good = out && graph && (n == 0 || dependencies);
    for (size_t i = 0; good && i < n; i++) {
        struct cusim_node *from = node_get(dependencies[i]);
        good = from && from->graph == graph;
        for (size_t j = 0; good && j < i; j++)
            good = dependencies[j] != dependencies[i];
    }
    if (!good) {
        cusim_work_unref(work);
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct cusim_node *node = cusim_node_new(graph, type, work);
    for (size_t i = 0; i < n; i++)
        cusim_node_depend(node, (struct cusim_node *)dependencies[i], data ? &data[i] : NULL);
    *out = (CUgraphNode)node;
    if (result)
        *result = node;
    return CUDA_SUCCESS;
}

struct cusim_graph *cusim_graph_clone(const struct cusim_graph *graph) {
    struct cusim_graph *copy = cusim_graph_new();
    struct cusim_node **made = malloc((graph->n_nodes + 1) * sizeof *made);
    unsigned place = 0;
    for (struct cusim_node *n = graph->first; n; n = n->next) {
        n->place = place;
        made[place] = cusim_node_new(copy, n->type, n->work ? cusim_work_ref(n->work) : NULL);
        made[place]->cloned_from = n->id;
        if (n->child) {
            made[place]->child = cusim_graph_clone(n->child);
            made[place]->child->owner = made[place];
        }
        place++;
    }
    place = 0;
    for (struct cusim_node *n = graph->first; n; n = n->next, place++)
        for (unsigned i = 0; i < n->n_deps; i++)
            cusim_node_depend(made[place], made[n->deps[i].from->place], &n->deps[i].data);
    free(made);
    return copy;
}

CUSIM_LOCKED(cuGraphCreate, (CUgraph * out, unsigned flags), (out, flags)) {
    if (!out || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    *out = (CUgraph)cusim_graph_new();
    return CUDA_SUCCESS;
}

CUSIM_LOCKED(cuGraphDestroy, (CUgraph handle), (handle)) {
    struct cusim_graph *graph = graph_get(handle);
    if (!graph || graph->owner || graph->capture)
        return CUDA_ERROR_INVALID_VALUE;
    cusim_graph_free(graph);
    return CUDA_SUCCESS;
}

CUSIM_LOCKED(cuGraphClone, (CUgraph * out, CUgraph handle), (out, handle)) {
    struct cusim_graph *graph = graph_get(handle);
    if (!out || !graph)
        return CUDA_ERROR_INVALID_VALUE;
    *out = (CUgraph)cusim_graph_clone(graph);
    return CUDA_SUCCESS;
}

CUSIM_LOCKED(cuGraphNodeFindInClone, (CUgraphNode * out, CUgraphNode original, CUgraph clone),
             (out, original, clone)) {
    struct cusim_graph *graph = graph_get(clone);
    struct cusim_node *node = node_get(original);
    if (!out || !graph || !node)
        return CUDA_ERROR_INVALID_VALUE;
    for (struct cusim_node *n = graph->first; n; n = n->next)
        if (n->cloned_from == node->id) {
            *out = (CUgraphNode)n;
            return CUDA_SUCCESS;
        }
    return CUDA_ERROR_INVALID_VALUE;
}

CUSIM_LOCKED(cuGraphDestroyNode, (CUgraphNode handle), (handle)) {
    struct cusim_node *node = node_get(handle);
    if (!node || node->graph->capture)
        return CUDA_ERROR_INVALID_VALUE;
    struct cusim_graph *graph = node->graph;
    for (struct cusim_node *n = graph->first; n; n = n->next) {
        unsigned at = edge_place(n, node);
        if (at != UINT32_MAX)
            n->deps[at] = n->deps[--n->n_deps];
    }
    if (node->prev)
        node->prev->next = node->next;
    else
        graph->first = node->next;
    if (node->next)
        node->next->prev = node->prev;
    else
        graph->last = node->prev;
    graph->n_nodes--;
    node_free(node);
    return CUDA_SUCCESS;
}

/* ---- queries ---- */

/* An answer for a caller with room for *n items, or with a NULL array that asks for their
 * number. */
struct list {
    size_t room, count;
};

static bool list_take(struct list *list, const void *array) {
    return list->count++ < list->room && array;
}

static void list_end(struct list *list, const void *array, size_t *n) {
    if (array && list->count > list->room)
        list->count = list->room;
    *n = list->count;
}

/* The nodes in the order of an answer: as they were added, or in any other (CUSIM_NODE_ORDER),
 * because the documentation promises none. The caller frees the array. */
static struct cusim_node **told(const struct cusim_graph *graph) {
    struct cusim_node **nodes = malloc((graph->n_nodes + 1) * sizeof *nodes);
    size_t n = 0;
    for (struct cusim_node *node = graph->first; node; node = node->next)
        nodes[n++] = node;
    uint64_t state = cusim.options.seed + graph->id;
    for (size_t left = cusim.options.mixed_nodes ? n : 0; left > 1; left--) {
        size_t at = cusim_random(&state) % left;
        struct cusim_node *last = nodes[left - 1];
        nodes[left - 1] = nodes[at];
        nodes[at] = last;
    }
    return nodes;
}

CUSIM_LOCKED(cuGraphGetNodes, (CUgraph handle, CUgraphNode *nodes, size_t *n), (handle, nodes, n)) {
    struct cusim_graph *graph = graph_get(handle);
    if (!graph || !n)
        return CUDA_ERROR_INVALID_VALUE;
    struct list list = {.room = nodes ? *n : 0};
    size_t given = list.room;
    struct cusim_node **all = told(graph);
    for (size_t i = 0; i < graph->n_nodes; i++)
        if (list_take(&list, nodes))
            nodes[list.count - 1] = (CUgraphNode)all[i];
    free(all);
    for (size_t i = list.count; nodes && i < given; i++)
        nodes[i] = NULL;
    list_end(&list, nodes, n);
    return CUDA_SUCCESS;
}

CUSIM_LOCKED(cuGraphGetRootNodes, (CUgraph handle, CUgraphNode *nodes, size_t *n),
             (handle, nodes, n)) {
    struct cusim_graph *graph = graph_get(handle);
    if (!graph || !n)
        return CUDA_ERROR_INVALID_VALUE;
    struct list list = {.room = nodes ? *n : 0};
    struct cusim_node **all = told(graph);
    for (size_t i = 0; i < graph->n_nodes; i++)
        if (all[i]->n_deps == 0 && list_take(&list, nodes))
            nodes[list.count - 1] = (CUgraphNode)all[i];
    free(all);
    list_end(&list, nodes, n);
    return CUDA_SUCCESS;
}

static bool has_data(const CUgraphEdgeData *data) {
    static const CUgraphEdgeData none;
    return memcmp(data, &none, sizeof none) != 0;
}

static CUresult edges(CUgraph handle, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *data,
                      size_t *n) {
    struct cusim_graph *graph = graph_get(handle);
    if (!graph || !n || !from != !to || (data && !from))
        return CUDA_ERROR_INVALID_VALUE;
    struct list list = {.room = from ? *n : 0};
    struct cusim_node **all = told(graph);
    CUresult result = CUDA_SUCCESS;
    for (size_t k = 0; k < graph->n_nodes; k++)
        for (unsigned i = 0; i < all[k]->n_deps; i++) {
            const struct cusim_edge *edge = &all[k]->deps[i];
            if (from && !data && has_data(&edge->data))
                result = CUDA_ERROR_LOSSY_QUERY;
            if (result != CUDA_SUCCESS || !list_take(&list, from))
                continue;
            from[list.count - 1] = (CUgraphNode)edge->from;
            to[list.count - 1] = (CUgraphNode)all[k];
            if (data)
                data[list.count - 1] = edge->data;
        }
    free(all);
    if (result != CUDA_SUCCESS)
        return result;
    list_end(&list, from, n);
    return CUDA_SUCCESS;
}

CUSIM_LOCKED(cuGraphGetEdges, (CUgraph graph, CUgraphNode *from, CUgraphNode *to, size_t *n),
             (graph, from, to, n)) {
    return edges(graph, from, to, NULL, n);
}

CUSIM_LOCKED(cuGraphGetEdges_v2,
             (CUgraph graph, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *data, size_t *n),
             (graph, from, to, data, n)) {
    return edges(graph, from, to, data, n);
}

static CUresult dependencies_of(CUgraphNode handle, CUgraphNode *out, CUgraphEdgeData *data,
                                size_t *n) {
    struct cusim_node *node = node_get(handle);
    if (!node || !n)
        return CUDA_ERROR_INVALID_VALUE;
    struct list list = {.room = out ? *n : 0};
    for (unsigned i = 0; i < node->n_deps; i++) {
        if (out && !data && has_data(&node->deps[i].data))
            return CUDA_ERROR_LOSSY_QUERY;
        if (!list_take(&list, out))
            continue;
        out[list.count - 1] = (CUgraphNode)node->deps[i].from;
        if (data)
            data[list.count - 1] = node->deps[i].data;
    }
    list_end(&list, out, n);
    return CUDA_SUCCESS;
}

CUSIM_LOCKED(cuGraphNodeGetDependencies, (CUgraphNode node, CUgraphNode *out, size_t *n),
             (node, out, n)) {
    return dependencies_of(node, out, NULL, n);
}

CUSIM_LOCKED(cuGraphNodeGetDependencies_v2,
             (CUgraphNode node, CUgraphNode *out, CUgraphEdgeData *data, size_t *n),
             (node, out, data, n)) {
    return dependencies_of(node, out, data, n);
}

static CUresult dependents_of(CUgraphNode handle, CUgraphNode *out, CUgraphEdgeData *data,
                              size_t *n) {
    struct cusim_node *node = node_get(handle);
    if (!node || !n)
        return CUDA_ERROR_INVALID_VALUE;
    struct list list = {.room = out ? *n : 0};
    for (struct cusim_node *to = node->graph->first; to; to = to->next) {
        unsigned at = edge_place(to, node);
        if (at == UINT32_MAX)
            continue;
        if (out && !data && has_data(&to->deps[at].data))
            return CUDA_ERROR_LOSSY_QUERY;
        if (!list_take(&list, out))
            continue;
        out[list.count - 1] = (CUgraphNode)to;
        if (data)
            data[list.count - 1] = to->deps[at].data;
    }
    list_end(&list, out, n);
    return CUDA_SUCCESS;
}

CUSIM_LOCKED(cuGraphNodeGetDependentNodes, (CUgraphNode node, CUgraphNode *out, size_t *n),
             (node, out, n)) {
    return dependents_of(node, out, NULL, n);
}

CUSIM_LOCKED(cuGraphNodeGetDependentNodes_v2,
             (CUgraphNode node, CUgraphNode *out, CUgraphEdgeData *data, size_t *n),
             (node, out, data, n)) {
    return dependents_of(node, out, data, n);
}

static CUresult change_edges(CUgraph handle, const CUgraphNode *from, const CUgraphNode *to,
                             const CUgraphEdgeData *data, size_t n, bool add) {
    struct cusim_graph *graph = graph_get(handle);
    if (!graph || (n > 0 && (!from || !to)))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < n; i++) {
        struct cusim_node *a = node_get(from[i]), *b = node_get(to[i]);
        if (!a || !b || a == b || a->graph != graph || b->graph != graph ||
            (edge_place(b, a) != UINT32_MAX) == add)
            return CUDA_ERROR_INVALID_VALUE;
    }
    for (size_t i = 0; i < n; i++) {
        struct cusim_node *a = (struct cusim_node *)from[i], *b = (struct cusim_node *)to[i];
        if (add)
            cusim_node_depend(b, a, data ? &data[i] : NULL);
        else
            b->deps[edge_place(b, a)] = b->deps[b->n_deps - 1], b->n_deps--;
    }
    return CUDA_SUCCESS;
}

CUSIM_LOCKED(cuGraphAddDependencies,
             (CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t n),
             (graph, from, to, n)) {
    return change_edges(graph, from, to, NULL, n, true);
}

CUSIM_LOCKED(cuGraphAddDependencies_v2,
             (CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
              const CUgraphEdgeData *data, size_t n),
             (graph, from, to, data, n)) {
    return change_edges(graph, from, to, data, n, true);
}

CUSIM_LOCKED(cuGraphRemoveDependencies,
             (CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t n),
             (graph, from, to, n)) {
    return change_edges(graph, from, to, NULL, n, false);
}

CUSIM_LOCKED(cuGraphRemoveDependencies_v2,
             (CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
              const CUgraphEdgeData *data, size_t n),
             (graph, from, to, data, n)) {
    return change_edges(graph, from, to, data, n, false);
}

CUSIM_LOCKED(cuGraphNodeGetType, (CUgraphNode handle, CUgraphNodeType *type), (handle, type)) {
    struct cusim_node *node = node_get(handle);
    if (!node || !type)
        return CUDA_ERROR_INVALID_VALUE;
    *type = node->type;
    return CUDA_SUCCESS;
}

CUSIM_LOCKED(cuGraphChildGraphNodeGetGraph, (CUgraphNode handle, CUgraph *graph), (handle, graph)) {
    struct cusim_node *node = node_get(handle);
    if (!node || !graph || !node->child)
        return CUDA_ERROR_INVALID_VALUE;
    *graph = (CUgraph)node->child;
    return CUDA_SUCCESS;
}
