/*
 * What went to the GPU by one call, as the trace has it and as CUPTI has it. All records of a
 * graph's launch have its correlation, on the stream of the launch and on streams that have no
 * number in the trace: the GPU runs branches side by side, whichever branch is where. CUPTI numbers
 * the nodes of a graph as they were made, and the library makes them in the order of the ops.
 * model_gpu.c calls it. It never decides which run is of which call.
 */
#include <stdlib.h>
#include <string.h>

#include "tools/trace/model_gpu.h"

/* ---- calls ---- */

/* CUPTI has no record of these. */
static bool leaves_record(const struct model *model, uint32_t at) {
    const struct cst_op *op = model->ops[at].op;
    const struct cst_kind *kind = model->trace->kinds[op->kind];
    if (op->result != 0 || kind->op == CST_OP_RECORD || kind->op == CST_OP_WAIT)
        return false;
    return kind->op == CST_OP_LAUNCH || model_elements(kind, op) > 0;
}

static int by_number(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* The ops of the launch that leave a record, in order. How many there are. */
static uint32_t take_graph(uint32_t *to, const struct model *model,
                           const struct model_launch *launch) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < launch->n; i++)
        if (leaves_record(model, launch->ops[i]))
            to[n++] = launch->ops[i];
    qsort(to, n, sizeof *to, by_number);
    return n;
}

/* Each graph stands where the first op of its stream does. */
static bool find_calls(struct gpu_calls *all, const struct model *model) {
    uint32_t *launch_at = calloc(model->n_ops + (size_t)1, sizeof *launch_at);
    all->calls = malloc((model->n_ops + (size_t)1) * sizeof *all->calls);
    all->ops = malloc((model->n_ops + (size_t)1) * sizeof *all->ops);
    bool made = launch_at && all->calls && all->ops;
    for (uint32_t i = 0; made && i < (uint32_t)model->graph_launches; i++)
        if (model->launches[i].n)
            launch_at[model->launches[i].ops[0]] = i + 1;
    for (uint32_t i = 0, at = 0; made && i < model->n_ops; i++) {
        const struct model_op *op = &model->ops[i];
        struct gpu_call *call = &all->calls[all->n_calls];
        if (launch_at[i]) {
            const struct model_launch *launch = &model->launches[launch_at[i] - 1];
            *call = (struct gpu_call){.n = take_graph(all->ops + at, model, launch),
                                      .stream = launch->record->stream,
                                      .graph = true,
                                      .ns = launch->record->head.ns};
        } else if (!model_in_graph(op) && leaves_record(model, i)) {
            all->ops[at] = i;
            *call = (struct gpu_call){.n = 1, .stream = op->op->stream, .ns = op->op->head.ns};
        } else {
            continue;
        }
        call->ops = all->ops + at;
        at += call->n;
        all->n_calls++;
    }
    free(launch_at);
    return made;
}

/* ---- runs ---- */

static int by_time(const void *a, const void *b) {
    const struct cst_gpu *x = *(const struct cst_gpu *const *)a,
                         *y = *(const struct cst_gpu *const *)b;
    if (x->head.ns != y->head.ns)
        return x->head.ns < y->head.ns ? -1 : 1;
    return x < y ? -1 : x > y;
}

/* Those of one graph together, in the order of its nodes. */
static int by_node(const void *a, const void *b) {
    const struct cst_gpu *x = *(const struct cst_gpu *const *)a,
                         *y = *(const struct cst_gpu *const *)b;
    if (x->correlation != y->correlation)
        return x->correlation < y->correlation ? -1 : 1;
    if (x->node != y->node)
        return x->node < y->node ? -1 : 1;
    return by_time(a, b);
}

static int by_begin(const void *a, const void *b) {
    const struct gpu_run *x = a, *y = b;
    if (x->ns != y->ns)
        return x->ns < y->ns ? -1 : 1;
    return by_time(&x->gpu[0], &y->gpu[0]);
}

static int by_stream(const void *a, const void *b) {
    const struct cst_gpu_stream *x = *(const struct cst_gpu_stream *const *)a,
                                *y = *(const struct cst_gpu_stream *const *)b;
    return x->gpu_stream < y->gpu_stream ? -1 : x->gpu_stream > y->gpu_stream;
}

static bool is_known(const struct gpu_calls *all, uint32_t number) {
    const struct cst_gpu_stream asked = {.gpu_stream = number}, *at = &asked;
    return bsearch(&at, all->numbers, all->n_numbers, sizeof at, by_stream);
}

/* The records from `gpu` on are of one graph. Where nodes have no numbers of their own, those of
 * one stream ran in order, and those of several tell nothing. */
static struct gpu_run graph_run(const struct gpu_calls *all, const struct cst_gpu **gpu,
                                uint32_t n) {
    struct gpu_run run = {.gpu = gpu,
                          .n = n,
                          .stream = gpu[0]->gpu_stream,
                          .context = gpu[0]->context,
                          .graph = true,
                          .ns = gpu[0]->head.ns};
    bool several = false, known = is_known(all, run.stream);
    for (uint32_t i = 1; i < n; i++) {
        several = several || gpu[i]->gpu_stream != gpu[0]->gpu_stream;
        run.mixed = run.mixed || gpu[i]->node == gpu[i - 1]->node;
        if (gpu[i]->head.ns < run.ns)
            run.ns = gpu[i]->head.ns;
        if (!known && (known = is_known(all, gpu[i]->gpu_stream)))
            run.stream = gpu[i]->gpu_stream;
    }
    run.mixed = run.mixed && several;
    return run;
}

/* An imported trace has an op for each record. Its ops are in no graph, even where a graph ran
 * them. */
static bool has_graphs(const struct cst_trace *trace) {
    return !trace->facts || !strstr(trace->facts, "\"imported\":true");
}

static bool find_runs(struct gpu_calls *all, const struct cst_trace *trace) {
    size_t single = 0, end = trace->n_gpu;
    bool graphs = has_graphs(trace);
    all->n_numbers = trace->n_gpu_streams;
    all->numbers = malloc((all->n_numbers + 1) * sizeof *all->numbers);
    all->runs = malloc((trace->n_gpu + 1) * sizeof *all->runs);
    all->gpu = malloc((trace->n_gpu + 1) * sizeof *all->gpu);
    if (!all->numbers || !all->runs || !all->gpu)
        return false;
    memcpy(all->numbers, trace->gpu_streams, all->n_numbers * sizeof *all->numbers);
    qsort(all->numbers, all->n_numbers, sizeof *all->numbers, by_stream);
    for (size_t i = 0; i < trace->n_gpu; i++)
        if (!graphs || !trace->gpu[i]->node)
            all->gpu[single++] = trace->gpu[i];
        else
            all->gpu[--end] = trace->gpu[i];
    for (size_t i = 0; i < single; i++)
        all->runs[all->n_runs++] = (struct gpu_run){.gpu = &all->gpu[i],
                                                    .n = 1,
                                                    .stream = all->gpu[i]->gpu_stream,
                                                    .context = all->gpu[i]->context,
                                                    .ns = all->gpu[i]->head.ns};
    qsort(all->gpu + end, trace->n_gpu - end, sizeof *all->gpu, by_node);
    for (size_t from = single, to; from < trace->n_gpu; from = to) {
        for (to = from + 1;
             to < trace->n_gpu && all->gpu[to]->correlation == all->gpu[from]->correlation;)
            to++;
        all->runs[all->n_runs++] = graph_run(all, &all->gpu[from], (uint32_t)(to - from));
    }
    qsort(all->runs, all->n_runs, sizeof *all->runs, by_begin);
    return true;
}

bool gpu_calls_find(struct gpu_calls *all, const struct model *model) {
    return find_calls(all, model) && find_runs(all, model->trace);
}

void gpu_calls_free(struct gpu_calls *all) {
    free(all->calls);
    free(all->runs);
    free(all->ops);
    free(all->numbers);
    free(all->gpu);
}

/* ---- a call and a run ---- */

/* Does the record have the bytes of this op? Those of a graph's node are the ones with which the
 * graph was built: CUPTI does not tell them anew when the node is patched. */
static bool same_bytes(const struct cst_kind *kind, const struct cst_op *op,
                       const struct cst_gpu *gpu) {
    uint64_t bytes = model_elements(kind, op) * (kind->op == CST_OP_MEMSET ? kind->elem : 1);
    return gpu->node || !gpu->bytes || gpu->bytes == bytes;
}

static bool ran(const struct cst_trace *trace, const struct cst_op *op, const struct cst_gpu *gpu) {
    const struct cst_kind *kind = trace->kinds[op->kind];
    if (kind->op == CST_OP_LAUNCH)
        return gpu->head.flags == CST_GPU_KERNEL &&
               memcmp(op->dims, gpu->grid, sizeof gpu->grid) == 0 &&
               (kind->name == gpu->name ||
                strcmp(cst_string(trace, kind->name), cst_string(trace, gpu->name)) == 0);
    /* The driver makes a copy of some memsets of one element. */
    return (gpu->head.flags == CST_GPU_MEMCPY ||
            (kind->op == CST_OP_MEMSET && gpu->head.flags == CST_GPU_MEMSET)) &&
           same_bytes(kind, op, gpu);
}

bool gpu_calls_same(const struct model *model, const struct gpu_call *call,
                    const struct gpu_run *run) {
    if (call->graph != run->graph || call->n != run->n || run->mixed)
        return false;
    for (uint32_t i = 0; i < call->n; i++)
        if (!ran(model->trace, model->ops[call->ops[i]].op, run->gpu[i]))
            return false;
    return true;
}

void gpu_calls_tell(struct model *model, const struct gpu_call *call, const struct gpu_run *run) {
    for (uint32_t i = 0; i < call->n; i++)
        model->ops[call->ops[i]].gpu = run->gpu[i];
    model->gpu_known += call->n;
}
