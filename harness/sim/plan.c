/*
 * Turns a graph into a plan: an order of its nodes, with child graphs flattened.
 *
 * Any thread, under cusim.lock: plans are made, counted and freed here. run.c executes them.
 */
#include "harness/sim/graph.h"

#include <stdlib.h>
#include <string.h>

struct pred {
    unsigned step;
    bool programmatic;
};

struct step {
    struct cusim_work *work;
    struct pred *preds;
    unsigned n_preds, cap_preds;
};

struct builder {
    struct step *steps;
    unsigned n, capacity;
    struct cusim_entry *entries;
    unsigned n_entries, cap_entries;
};

static unsigned add_step(struct builder *b, struct cusim_work *work) {
    if (b->n == b->capacity)
        b->steps = realloc(b->steps, (b->capacity = b->capacity * 2 + 16) * sizeof *b->steps);
    memset(&b->steps[b->n], 0, sizeof *b->steps);
    b->steps[b->n].work = work;
    return b->n++;
}

static void add_pred(struct builder *b, unsigned at, unsigned pred, bool programmatic) {
    struct step *step = &b->steps[at];
    if (step->n_preds == step->cap_preds) {
        step->cap_preds = step->cap_preds * 2 + 1;
        step->preds = realloc(step->preds, step->cap_preds * sizeof *step->preds);
    }
    step->preds[step->n_preds++] = (struct pred){pred, programmatic};
}

static void remember_memset(struct cusim_entry *e, const struct cusim_work_memset *m) {
    struct cusim_mem *memory = cusim_mem_find((uintptr_t)m->dst);
    e->fits = m->width * m->element;
    e->at = (uintptr_t)m->dst;
    e->memory = memory ? memory->id : 0;
}

static void add_entry(struct builder *b, struct cusim_node *node, unsigned index) {
    if (b->n_entries == b->cap_entries)
        b->entries =
            realloc(b->entries, (b->cap_entries = b->cap_entries * 2 + 16) * sizeof *b->entries);
    struct cusim_entry *e = &b->entries[b->n_entries++];
    *e =
        (struct cusim_entry){.node = node, .node_id = node->id, .type = node->type, .index = index};
    if (node->type == CU_GRAPH_NODE_TYPE_MEMSET)
        remember_memset(e, &node->work->memset);
}

/* Orders the nodes of a graph by Kahn's method, in the order of their creation if edges allow
 * it. Returns NULL if there is a cycle. Stores each node's index in node->place. */
static struct cusim_node **sorted(const struct cusim_graph *graph) {
    size_t n = graph->n_nodes, done = 0, at = 0;
    struct cusim_node **in = malloc((n + 1) * sizeof *in), **out = malloc((n + 1) * sizeof *out);
    unsigned *left = calloc(n + 1, sizeof *left), *start = calloc(n + 2, sizeof *start);
    bool in_order = true;
    for (struct cusim_node *node = graph->first; node; node = node->next) {
        node->place = (unsigned)at;
        in[at++] = node;
    }
    for (size_t i = 0; i < n; i++)
        for (unsigned d = 0; d < in[i]->n_deps; d++)
            in_order &= in[i]->deps[d].from->place < i;
    if (in_order) { /* captured graphs always are */
        memcpy(out, in, n * sizeof *out);
        done = n;
    } else {
        size_t edges = 0;
        for (size_t i = 0; i < n; i++) {
            left[i] = in[i]->n_deps;
            edges += in[i]->n_deps;
            for (unsigned d = 0; d < in[i]->n_deps; d++)
                start[in[i]->deps[d].from->place + 1]++;
        }
        for (size_t i = 0; i < n; i++)
            start[i + 1] += start[i];
        unsigned *to = malloc((edges + 1) * sizeof *to), *fill = malloc((n + 1) * sizeof *fill);
        memcpy(fill, start, n * sizeof *fill);
        for (size_t i = 0; i < n; i++)
            for (unsigned d = 0; d < in[i]->n_deps; d++)
                to[fill[in[i]->deps[d].from->place]++] = (unsigned)i;
        size_t tail = 0;
        for (size_t i = 0; i < n; i++)
            if (left[i] == 0)
                out[tail++] = in[i];
        for (; done < tail; done++)
            for (unsigned s = start[out[done]->place]; s < start[out[done]->place + 1]; s++)
                if (--left[to[s]] == 0)
                    out[tail++] = in[to[s]];
        free(to);
        free(fill);
    }
    free(in);
    free(left);
    free(start);
    if (done < n) {
        free(out);
        return NULL;
    }
    return out;
}

/* With weak order alone; else it orders like a full one. */
static bool is_programmatic(const struct cusim_edge *edge) {
    return cusim.options.weak && edge->data.type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC &&
           edge->data.from_port == CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC &&
           edge->from->type == CU_GRAPH_NODE_TYPE_KERNEL;
}

/* Adds a graph's nodes behind step `before`; a child graph stands between two empty steps. */
static bool flatten(struct builder *b, const struct cusim_graph *graph, unsigned before) {
    struct cusim_node **nodes = sorted(graph);
    if (!nodes)
        return false;
    unsigned *end_of = malloc((graph->n_nodes + 1) * sizeof *end_of);
    bool good = true;
    for (size_t i = 0; good && i < graph->n_nodes; i++)
        nodes[i]->place = (unsigned)i;
    for (size_t i = 0; good && i < graph->n_nodes; i++) {
        struct cusim_node *node = nodes[i];
        unsigned step = add_step(b, node->work);
        if (node->n_deps == 0 && before != UINT32_MAX)
            add_pred(b, step, before, false);
        for (unsigned d = 0; d < node->n_deps; d++)
            add_pred(b, step, end_of[node->deps[d].from->place], is_programmatic(&node->deps[d]));
        add_entry(b, node, step);
        end_of[i] = step;
        if (node->child) {
            unsigned first = b->n;
            good = flatten(b, node->child, step);
            unsigned end = add_step(b, node->work);
            for (unsigned s = first; s < end; s++) /* all of them, leaves or not */
                add_pred(b, end, s, false);
            if (first == end)
                add_pred(b, end, step, false);
            end_of[i] = end;
        }
    }
    free(end_of);
    free(nodes);
    return good;
}

static int compare_entries(const void *a, const void *b) {
    uintptr_t x = (uintptr_t)((const struct cusim_entry *)a)->node;
    uintptr_t y = (uintptr_t)((const struct cusim_entry *)b)->node;
    return x < y ? -1 : x > y;
}

static struct cusim_topology *topology_of(const struct builder *b) {
    struct cusim_topology *t = calloc(1, sizeof *t);
    t->refs = 1;
    t->n = b->n;
    t->linear = true;
    t->indegree = calloc(b->n + 1, sizeof *t->indegree);
    t->successors_at = calloc(b->n + 2, sizeof *t->successors_at);
    size_t edges = 0;
    for (unsigned i = 0; i < b->n; i++) {
        t->indegree[i] = b->steps[i].n_preds;
        edges += b->steps[i].n_preds;
        bool follows = false;
        for (unsigned p = 0; p < b->steps[i].n_preds; p++) {
            const struct pred *pred = &b->steps[i].preds[p];
            t->successors_at[pred->step + 1]++;
            follows |= pred->step + 1 == i && !pred->programmatic;
        }
        t->linear &= i == 0 || follows;
    }
    for (unsigned i = 0; i < b->n; i++)
        t->successors_at[i + 1] += t->successors_at[i];
    t->successors = malloc((edges + 1) * sizeof *t->successors);
    t->programmatic = malloc((edges + 1) * sizeof *t->programmatic);
    unsigned *fill = malloc((b->n + 1) * sizeof *fill);
    memcpy(fill, t->successors_at, b->n * sizeof *fill);
    for (unsigned i = 0; i < b->n; i++)
        for (unsigned p = 0; p < b->steps[i].n_preds; p++) {
            unsigned at = fill[b->steps[i].preds[p].step]++;
            t->successors[at] = i;
            t->programmatic[at] = b->steps[i].preds[p].programmatic;
        }
    free(fill);
    return t;
}

struct cusim_plan *cusim_plan_new(const struct cusim_graph *graph, struct cusim_entry **entries,
                                  unsigned *n_entries, CUresult *result) {
    struct builder b = {0};
    struct cusim_plan *plan = NULL;
    if (flatten(&b, graph, UINT32_MAX)) {
        plan = calloc(1, sizeof *plan);
        plan->refs = 1;
        plan->topology = topology_of(&b);
        plan->work = malloc((b.n + 1) * sizeof *plan->work);
        plan->enabled = malloc((b.n + 1) * sizeof *plan->enabled);
        for (unsigned i = 0; i < b.n; i++) {
            plan->work[i] = cusim_work_ref(b.steps[i].work);
            plan->enabled[i] = true;
        }
    }
    *result = plan ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < b.n; i++)
        free(b.steps[i].preds);
    free(b.steps);
    if (plan && entries) {
        if (b.n_entries > 0)
            qsort(b.entries, b.n_entries, sizeof *b.entries, compare_entries);
        *entries = b.entries;
        *n_entries = b.n_entries;
    } else {
        free(b.entries);
    }
    return plan;
}

struct cusim_plan *cusim_plan_own(struct cusim_plan *plan) {
    if (plan->refs == 1)
        return plan;
    unsigned n = plan->topology->n;
    struct cusim_plan *copy = calloc(1, sizeof *copy);
    copy->refs = 1;
    copy->topology = plan->topology;
    copy->topology->refs++;
    copy->work = malloc((n + 1) * sizeof *copy->work);
    copy->enabled = malloc((n + 1) * sizeof *copy->enabled);
    memcpy(copy->enabled, plan->enabled, n * sizeof *copy->enabled);
    for (unsigned i = 0; i < n; i++)
        copy->work[i] = cusim_work_ref(plan->work[i]);
    plan->refs--;
    return copy;
}

void cusim_plan_unref(struct cusim_plan *plan) {
    if (--plan->refs > 0)
        return;
    for (unsigned i = 0; i < plan->topology->n; i++)
        cusim_work_unref(plan->work[i]);
    if (--plan->topology->refs == 0) {
        free(plan->topology->indegree);
        free(plan->topology->successors_at);
        free(plan->topology->successors);
        free(plan->topology->programmatic);
        free(plan->topology);
    }
    free(plan->work);
    free(plan->enabled);
    free(plan);
}

const CUgraphEdgeData cusim_edge_programmatic = {.from_port =
                                                     CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC,
                                                 .type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC};

struct cusim_graph *cusim_plan_to_graph(const struct cusim_plan *plan) {
    const struct cusim_topology *t = plan->topology;
    struct cusim_graph *graph = cusim_graph_new();
    struct cusim_node **nodes = malloc((t->n + 1) * sizeof *nodes);
    for (unsigned i = 0; i < t->n; i++)
        nodes[i] =
            cusim_node_new(graph, cusim_node_type_of(plan->work[i]), cusim_work_ref(plan->work[i]));
    for (unsigned i = 0; i < t->n; i++)
        for (unsigned s = t->successors_at[i]; s < t->successors_at[i + 1]; s++)
            cusim_node_depend(nodes[t->successors[s]], nodes[i],
                              t->programmatic[s] ? &cusim_edge_programmatic : NULL);
    free(nodes);
    return graph;
}
