/*
 * Turns a graph into an order of its nodes, and executes that order on a stream's worker.
 *
 * Plans are made, counted and freed under cusim.lock. cusim_graph_run_execute runs without it and
 * takes it for events. The nodes of a launch run one at a time. If the edges leave a choice, the
 * seed decides, so that a missing edge changes results.
 */
#include "harness/sim/graph.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct step {
    struct cusim_work *work;
    unsigned *preds;
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

static void add_pred(struct builder *b, unsigned at, unsigned pred) {
    struct step *step = &b->steps[at];
    if (step->n_preds == step->cap_preds) {
        step->cap_preds = step->cap_preds * 2 + 1;
        step->preds = realloc(step->preds, step->cap_preds * sizeof *step->preds);
    }
    step->preds[step->n_preds++] = pred;
}

static void add_entry(struct builder *b, struct cusim_node *node, unsigned index) {
    if (b->n_entries == b->cap_entries)
        b->entries =
            realloc(b->entries, (b->cap_entries = b->cap_entries * 2 + 16) * sizeof *b->entries);
    struct cusim_entry *e = &b->entries[b->n_entries++];
    *e =
        (struct cusim_entry){.node = node, .node_id = node->id, .type = node->type, .index = index};
    if (node->type == CU_GRAPH_NODE_TYPE_MEMSET)
        e->fits = node->work->memset.width * node->work->memset.element;
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
            add_pred(b, step, before);
        for (unsigned d = 0; d < node->n_deps; d++)
            add_pred(b, step, end_of[node->deps[d].from->place]);
        add_entry(b, node, step);
        end_of[i] = step;
        if (node->child) {
            unsigned first = b->n;
            good = flatten(b, node->child, step);
            unsigned end = add_step(b, node->work);
            for (unsigned s = first; s < end; s++) /* all of them, leaves or not */
                add_pred(b, end, s);
            if (first == end)
                add_pred(b, end, step);
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
            t->successors_at[b->steps[i].preds[p] + 1]++;
            follows |= b->steps[i].preds[p] + 1 == i;
        }
        t->linear &= i == 0 || follows;
    }
    for (unsigned i = 0; i < b->n; i++)
        t->successors_at[i + 1] += t->successors_at[i];
    t->successors = malloc((edges + 1) * sizeof *t->successors);
    unsigned *fill = malloc((b->n + 1) * sizeof *fill);
    memcpy(fill, t->successors_at, b->n * sizeof *fill);
    for (unsigned i = 0; i < b->n; i++)
        for (unsigned p = 0; p < b->steps[i].n_preds; p++)
            t->successors[fill[b->steps[i].preds[p]]++] = i;
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
        free(plan->topology);
    }
    free(plan->work);
    free(plan->enabled);
    free(plan);
}

struct cusim_graph *cusim_plan_to_graph(const struct cusim_plan *plan) {
    const struct cusim_topology *t = plan->topology;
    struct cusim_graph *graph = cusim_graph_new();
    struct cusim_node **nodes = malloc((t->n + 1) * sizeof *nodes);
    for (unsigned i = 0; i < t->n; i++)
        nodes[i] =
            cusim_node_new(graph, cusim_node_type_of(plan->work[i]), cusim_work_ref(plan->work[i]));
    for (unsigned i = 0; i < t->n; i++)
        for (unsigned s = t->successors_at[i]; s < t->successors_at[i + 1]; s++)
            cusim_node_depend(nodes[t->successors[s]], nodes[i], NULL);
    free(nodes);
    return graph;
}

/* ---- execution ---- */

/* Fixes event nodes at the call: a record gets its mark, a wait the latest recording. */
struct cusim_graph_run *cusim_graph_run_new(struct cusim_plan *plan) {
    struct cusim_graph_run *run = calloc(1, sizeof *run);
    run->plan = plan;
    plan->refs++;
    for (unsigned i = 0; i < plan->topology->n; i++) {
        const struct cusim_work *work = plan->work[i];
        bool record = work->type == CUSIM_WORK_RECORD;
        if ((!record && work->type != CUSIM_WORK_WAIT) || !plan->enabled[i] ||
            !cusim_handle_is(work->event.event, CUSIM_EVENT))
            continue;
        struct cusim_event *event = work->event.event;
        if (!run->marks)
            run->marks = calloc(plan->topology->n, sizeof *run->marks);
        if (record) {
            struct cusim_timeline *tl = cusim_timeline_new();
            run->marks[i] = cusim_mark_new(tl, 1);
            cusim_timeline_unref(tl);
            cusim_event_forget_capture(event);
            cusim_mark_unref(event->last);
            event->last = cusim_mark_ref(run->marks[i]);
        } else if (event->last) {
            run->marks[i] = cusim_mark_ref(event->last);
        }
    }
    return run;
}

/* Also called after a skipped launch, because other work may wait for its events. */
void cusim_graph_run_free(struct cusim_graph_run *run) {
    for (unsigned i = 0; run->marks && i < run->plan->topology->n; i++) {
        if (run->marks[i] && run->plan->work[i]->type == CUSIM_WORK_RECORD)
            cusim_timeline_advance(run->marks[i]->tl, 1);
        cusim_mark_unref(run->marks[i]);
    }
    free(run->marks);
    cusim_plan_unref(run->plan);
    free(run);
}

static CUresult run_step(struct cusim_graph_run *run, unsigned i, struct cusim_stream *stream) {
    const struct cusim_work *work = run->plan->work[i];
    struct cusim_mark *mark = run->marks ? run->marks[i] : NULL;
    if (!run->plan->enabled[i] || work->type == CUSIM_WORK_EMPTY)
        return CUDA_SUCCESS;
    if (i > 0)
        cusim_delay(stream);
    if (mark) {
        cusim_lock();
        if (work->type == CUSIM_WORK_RECORD) {
            mark->time_ns = cusim_now_ns();
            cusim_timeline_advance(mark->tl, 1);
        } else {
            cusim_timeline_wait(mark->tl, mark->target);
        }
        cusim_unlock();
    }
    cusim_activity_node(i + 1);
    CUresult result = cusim_work_run(work, stream, CUDA_SUCCESS);
    if (cusim_log_on())
        cusim_work_log(work, stream->raw);
    if (result != CUDA_SUCCESS) {
        cusim_lock();
        if (stream->ctx->error == CUDA_SUCCESS)
            stream->ctx->error = result;
        cusim_unlock();
    }
    return result;
}

/* CUSIM_GRAPH_ERROR=drop:N or swap:N: each N-th launch of a graph with two or more nodes omits the
 * node that would run last, or, if its nodes are in a row, begins with its second. For tests of
 * tests. */
static enum { PLANT_NOTHING, PLANT_DROP, PLANT_SWAP } planted;
static unsigned long plant_every;

static void plant_load(void) {
    const char *text = getenv("CUSIM_GRAPH_ERROR");
    if (text && (strncmp(text, "drop:", 5) == 0 || strncmp(text, "swap:", 5) == 0)) {
        plant_every = strtoul(text + 5, NULL, 10);
        planted = plant_every == 0 ? PLANT_NOTHING : *text == 'd' ? PLANT_DROP : PLANT_SWAP;
    }
}

static bool plant_now(unsigned nodes) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    static atomic_ulong launches;
    pthread_once(&once, plant_load);
    return planted != PLANT_NOTHING && nodes > 1 && (launches++ + 1) % plant_every == 0;
}

static void run_in_a_row(struct cusim_graph_run *run, unsigned n, struct cusim_stream *stream) {
    bool wrong = plant_now(n);
    for (unsigned i = 0; i < n; i++) {
        unsigned step = wrong && planted == PLANT_SWAP && i < 2 ? 1 - i : i;
        if (wrong && planted == PLANT_DROP && i == n - 1)
            return;
        if (run_step(run, step, stream) != CUDA_SUCCESS)
            return;
    }
}

void cusim_graph_run_execute(struct cusim_graph_run *run, struct cusim_stream *stream) {
    const struct cusim_topology *t = run->plan->topology;
    if (t->linear) {
        run_in_a_row(run, t->n, stream);
        return;
    }
    unsigned *left = malloc((t->n + 1) * sizeof *left), *ready = malloc((t->n + 1) * sizeof *ready);
    const bool drop = plant_now(t->n) && planted == PLANT_DROP;
    unsigned n_ready = 0, done = 0;
    memcpy(left, t->indegree, t->n * sizeof *left);
    for (unsigned i = 0; i < t->n; i++)
        if (left[i] == 0)
            ready[n_ready++] = i;
    while (n_ready > 0) {
        unsigned pick = (unsigned)(cusim_random(&stream->random) % n_ready), i = ready[pick];
        ready[pick] = ready[--n_ready];
        if (drop && ++done == t->n)
            break;
        if (run_step(run, i, stream) != CUDA_SUCCESS)
            break;
        for (unsigned s = t->successors_at[i]; s < t->successors_at[i + 1]; s++)
            if (--left[t->successors[s]] == 0)
                ready[n_ready++] = t->successors[s];
    }
    free(left);
    free(ready);
}
