/*
 * The records of graphs with branches. The GPU runs such a graph on the stream of its launch and on
 * streams that have no number in the trace, whichever branch is where, and branches side by side.
 * All records have the correlation of the launch. CUPTI numbers the nodes of a graph as they were
 * made, and the library makes them in the order of the ops: that order tells which record is whose.
 * model_gpu.c calls it once for each stream.
 */
#include <stdlib.h>
#include <string.h>

#include "tools/trace/model_gpu.h"

enum { AHEAD = 64 }; /* graphs of which the GPU may have told nothing */

struct model_graph {
    const struct cst_launch *out;
    uint32_t first, n; /* in `ops` */
};

/* ---- graphs ---- */

static bool in_branch(const struct model_op *op) {
    return model_in_graph(op) && ((const struct cst_launch *)op->out)->stream != op->op->stream;
}

/* By time; where that is one, by place in the file. */
static int by_out(const void *a, const void *b) {
    const struct cst_launch *x = ((const struct model_graph *)a)->out,
                            *y = ((const struct model_graph *)b)->out;
    if (x->head.ns != y->head.ns)
        return x->head.ns < y->head.ns ? -1 : 1;
    return x < y ? -1 : x > y;
}

static struct model_graph *graph_of(const struct model_branches *b, const struct cst_record *out) {
    const struct model_graph asked = {.out = (const struct cst_launch *)out};
    return bsearch(&asked, b->graphs, b->n_graphs, sizeof asked, by_out);
}

bool model_branches_op(const struct model_branches *b, const struct model_op *op) {
    return b->n_graphs && model_in_graph(op) && graph_of(b, op->out);
}

/* Those that have an op of another stream than they were launched into. */
static void find_graphs(struct model_branches *b) {
    const struct model *model = b->model;
    const struct cst_record *last = NULL;
    uint32_t n = 0;
    for (uint32_t i = 0; i < model->n_ops; i++)
        if (in_branch(&model->ops[i]) && model->ops[i].out != last) {
            last = model->ops[i].out;
            b->graphs[n++] = (struct model_graph){.out = (const struct cst_launch *)last};
        }
    qsort(b->graphs, n, sizeof *b->graphs, by_out);
    for (uint32_t i = 0; i < n; i++)
        if (!i || b->graphs[i].out != b->graphs[b->n_graphs - 1].out)
            b->graphs[b->n_graphs++] = b->graphs[i];
}

static void share_ops(struct model_branches *b) {
    const struct model *model = b->model;
    for (uint32_t i = 0; i < model->n_ops; i++) {
        struct model_graph *graph =
            model_in_graph(&model->ops[i]) ? graph_of(b, model->ops[i].out) : NULL;
        if (graph)
            graph->n++;
    }
    for (uint32_t i = 0; i < b->n_graphs; i++) {
        b->graphs[i].first = b->n_ops;
        b->n_ops += b->graphs[i].n;
        b->graphs[i].n = 0;
    }
    for (uint32_t i = 0; i < model->n_ops; i++) {
        struct model_graph *graph =
            model_in_graph(&model->ops[i]) ? graph_of(b, model->ops[i].out) : NULL;
        if (graph)
            b->ops[graph->first + graph->n++] = i;
    }
}

/* ---- records ---- */

static bool is_known(const struct cst_trace *trace, uint32_t number) {
    for (size_t i = 0; i < trace->n_gpu_streams; i++)
        if (trace->gpu_streams[i]->gpu_stream == number)
            return true;
    return false;
}

static int by_node(const void *a, const void *b) {
    const struct cst_gpu *x = *(const struct cst_gpu *const *)a,
                         *y = *(const struct cst_gpu *const *)b;
    if (x->correlation != y->correlation)
        return x->correlation < y->correlation ? -1 : 1;
    return x->node < y->node ? -1 : x->node > y->node;
}

/* The first record with a correlation of at least this one. */
static size_t from_correlation(const struct model_branches *b, uint32_t correlation) {
    size_t low = 0, high = b->n_gpu;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (b->gpu[middle]->correlation < correlation)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool model_branches_record(const struct model_branches *b, const struct cst_gpu *gpu) {
    size_t at = gpu->node ? from_correlation(b, gpu->correlation) : b->n_gpu;
    return at < b->n_gpu && b->gpu[at]->correlation == gpu->correlation;
}

static size_t group_end(const struct model_branches *b, size_t from) {
    size_t end = from + 1;
    while (end < b->n_gpu && b->gpu[end]->correlation == b->gpu[from]->correlation)
        end++;
    return end;
}

/* Does a node of the group run on a stream that the trace does not know? */
static bool has_stranger(const struct model_branches *b, size_t from, size_t end) {
    uint32_t known = CST_NONE;
    for (size_t i = from; i < end; i++) {
        if (b->gpu[i]->gpu_stream == known)
            continue;
        if (!is_known(b->model->trace, b->gpu[i]->gpu_stream))
            return true;
        known = b->gpu[i]->gpu_stream;
    }
    return false;
}

static void find_records(struct model_branches *b) {
    const struct cst_trace *trace = b->model->trace;
    for (size_t i = 0; i < trace->n_gpu; i++)
        if (trace->gpu[i]->node)
            b->gpu[b->n_gpu++] = trace->gpu[i];
    qsort(b->gpu, b->n_gpu, sizeof *b->gpu, by_node);
    size_t kept = 0;
    for (size_t from = 0, end; from < b->n_gpu; from = end) {
        end = group_end(b, from);
        bool stranger = has_stranger(b, from, end);
        for (size_t i = from; stranger && i < end; i++)
            b->gpu[kept++] = b->gpu[i];
    }
    b->n_gpu = kept;
}

bool model_branches_find(struct model_branches *b, struct model *model) {
    b->model = model;
    b->graphs = malloc((model->graph_launches + 1) * sizeof *b->graphs);
    b->ops = malloc((model->n_ops + (size_t)1) * sizeof *b->ops);
    b->gpu = malloc((model->trace->n_gpu + 1) * sizeof *b->gpu);
    if (!b->graphs || !b->ops || !b->gpu)
        return false;
    find_graphs(b);
    if (!b->n_graphs)
        return true;
    share_ops(b);
    find_records(b);
    return true;
}

void model_branches_free(struct model_branches *b) {
    free(b->graphs);
    free(b->ops);
    free(b->gpu);
}

/* ---- both in step ---- */

static bool leaves_record(const struct model *model, uint32_t op) {
    uint32_t type = model->trace->kinds[model->ops[op].op->kind]->op;
    return type != CST_OP_RECORD && type != CST_OP_WAIT;
}

/* Goes through the ops of the graph that leave a record, and the group's records, side by side.
 * Are these the records of the graph? `tell`: each op gets its own. */
static bool walk(const struct model_branches *b, const struct model_graph *graph, size_t from,
                 size_t end, bool tell) {
    struct model *model = b->model;
    for (uint32_t i = graph->first; i < graph->first + graph->n; i++) {
        struct model_op *op = &model->ops[b->ops[i]];
        if (!leaves_record(model, b->ops[i]))
            continue;
        if (from == end || !model_gpu_ran(model->trace, op->op, b->gpu[from]))
            return false;
        if (tell) {
            op->gpu = b->gpu[from];
            model->gpu_known++;
        }
        from++;
    }
    return from == end;
}

/* Each node has a number of its own, or the numbers say nothing. */
static bool has_numbers(const struct model_branches *b, size_t from, size_t end) {
    for (size_t i = from + 1; i < end; i++)
        if (b->gpu[i]->node == b->gpu[i - 1]->node)
            return false;
    return true;
}

static bool is_of(const struct model_branches *b, size_t from, size_t end, uint32_t number,
                  uint32_t context, uint64_t ns) {
    bool of = false;
    for (size_t i = from; i < end && !of; i++)
        of = b->gpu[i]->gpu_stream == number;
    return of && b->gpu[from]->head.ns >= ns && (!context || b->gpu[from]->context == context);
}

void model_branches_match(struct model_branches *b, uint32_t stream, uint32_t number,
                          uint32_t context, uint64_t ns) {
    uint32_t next = 0;
    for (size_t from = 0, end; from < b->n_gpu; from = end) {
        end = group_end(b, from);
        if (!is_of(b, from, end, number, context, ns) || !has_numbers(b, from, end))
            continue;
        for (uint32_t i = next, tried = 0; i < b->n_graphs && tried < AHEAD; i++) {
            const struct model_graph *graph = &b->graphs[i];
            if (graph->out->stream != stream || graph->out->head.ns < ns)
                continue;
            tried++;
            if (!walk(b, graph, from, end, false))
                continue;
            walk(b, graph, from, end, true);
            next = i + 1;
            break;
        }
    }
}
