/* What is known of a program's times, read off its trace, and off another one of the same program.
 */
#include <stdlib.h>
#include <string.h>

#include "tools/cli/whatif.h"
#include "tools/trace/model.h"

enum { ENOUGH = 32 }; /* measurements that are believed */

/* ---- the GPU ---- */

static const struct cst_op *op_at(const struct cst_trace *trace, size_t i) {
    return (const struct cst_op *)trace->events[i];
}

/* By event; of the ops that were measured. */
static uint32_t *own_times(const struct cst_trace *trace, const struct model *model,
                           struct whatif_measured *out) {
    uint32_t *ns = malloc((trace->n_events + 1) * sizeof *ns);
    for (size_t i = 0, op = 0; ns && i < trace->n_events; i++) {
        ns[i] = WHATIF_NOT_MEASURED;
        if (trace->events[i]->type != CST_OP)
            continue;
        const struct cst_gpu *gpu = model->ops[op++].gpu;
        if (!gpu)
            continue;
        ns[i] = gpu->gpu_ns < WHATIF_NOT_MEASURED ? (uint32_t)gpu->gpu_ns : WHATIF_NOT_MEASURED - 1;
        out->ops++;
        out->ns += gpu->gpu_ns;
    }
    return ns;
}

/* Ops of which one is taken for another: the same kernel or call, with the same shape. */
struct alike {
    const char *name;
    uint32_t dims[7], op;
    uint32_t at; /* the event in this trace, or the time in the other one */
};

static int by_likeness(const void *a, const void *b) {
    const struct alike *x = a, *y = b;
    int order = x->op != y->op ? (x->op < y->op ? -1 : 1) : strcmp(x->name, y->name);
    return order ? order : memcmp(x->dims, y->dims, sizeof x->dims);
}

static int by_all(const void *a, const void *b) {
    const struct alike *x = a, *y = b;
    int order = by_likeness(a, b);
    return order ? order : x->at < y->at ? -1 : x->at > y->at;
}

static struct alike alike_of(const struct cst_trace *trace, const struct cst_op *op, uint32_t at) {
    const struct cst_kind *kind = trace->kinds[op->kind];
    struct alike it = {.name = cst_string(trace, kind->name), .op = kind->op, .at = at};
    memcpy(it.dims, op->dims, sizeof it.dims);
    return it;
}

/* The median of those of the other trace that are like it. */
static uint32_t *times_of_others(const struct cst_trace *trace, const struct cst_trace *other,
                                 const struct model *model, struct whatif_measured *out) {
    struct alike *known = malloc((model->n_ops + 1) * sizeof *known);
    uint32_t *ns = malloc((trace->n_events + 1) * sizeof *ns);
    size_t n = 0;
    for (uint32_t i = 0; known && i < model->n_ops; i++)
        if (model->ops[i].gpu && model->ops[i].gpu->gpu_ns < WHATIF_NOT_MEASURED)
            known[n++] = alike_of(other, model->ops[i].op, (uint32_t)model->ops[i].gpu->gpu_ns);
    if (known)
        qsort(known, n, sizeof *known, by_all);
    for (size_t i = 0; known && ns && i < trace->n_events; i++) {
        ns[i] = WHATIF_NOT_MEASURED;
        if (trace->events[i]->type != CST_OP)
            continue;
        struct alike it = alike_of(trace, op_at(trace, i), 0);
        const struct alike *found = bsearch(&it, known, n, sizeof *known, by_likeness);
        if (!found)
            continue;
        const struct alike *end = found + 1;
        while (found > known && by_likeness(found - 1, &it) == 0)
            found--;
        while (end < known + n && by_likeness(end, &it) == 0)
            end++;
        ns[i] = found[(end - found) / 2].at;
        out->ops++;
        out->ns += ns[i];
    }
    free(known);
    if (!known) {
        free(ns);
        return NULL;
    }
    return ns;
}

/* ---- the host ---- */

struct sample {
    double *values;
    size_t n;
};

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* The mean of the middle nine tenths. Below 0: there are too few. */
static double middle(struct sample *sample, double *apart) {
    size_t cut = sample->n / 20;
    double sum = 0;
    *apart = -1;
    if (sample->n < ENOUGH)
        return -1;
    qsort(sample->values, sample->n, sizeof *sample->values, by_value);
    *apart = sample->values[3 * (sample->n - 1) / 4] - sample->values[(sample->n - 1) / 4];
    for (size_t i = cut; i < sample->n - cut; i++)
        sum += sample->values[i];
    return sum / (double)(sample->n - 2 * cut);
}

/* Those of nothing but a launch: not the first of a kernel, and no graph went out or was built
 * meanwhile. */
static bool is_plain(const struct cst_trace *trace, size_t i) {
    const struct cst_op *op = op_at(trace, i);
    if (trace->kinds[op->kind]->op != CST_OP_LAUNCH ||
        strcmp(cst_string(trace, op->why), "first") == 0)
        return false;
    uint64_t end = op->head.ns + op->host_ns;
    for (i++; i < trace->n_events && trace->events[i]->ns <= end; i++)
        if (trace->events[i]->thread == op->head.thread && trace->events[i]->type != CST_OP)
            return false;
    return true;
}

bool cli_whatif_host(const struct cst_trace *trace, struct whatif_recording *out) {
    struct sample by_fate[2] = {{malloc((trace->ops + 1) * sizeof(double)), 0},
                                {malloc((trace->ops + 1) * sizeof(double)), 0}};
    bool room = by_fate[0].values && by_fate[1].values;
    for (size_t i = 0; room && i < trace->n_events; i++)
        if (trace->events[i]->type == CST_OP && is_plain(trace, i)) {
            struct sample *sample = &by_fate[trace->events[i]->flags == CST_EAGER];
            sample->values[sample->n++] = op_at(trace, i)->host_ns;
        }
    if (room) {
        out->matched = middle(&by_fate[0], &out->matched_apart);
        out->eager = middle(&by_fate[1], &out->eager_apart);
    }
    free(by_fate[0].values);
    free(by_fate[1].values);
    return room;
}

/* ---- both ---- */

static double more(double here, double there) {
    return here < 0 || there <= 0 || here < there ? 0 : here - there;
}

bool cli_whatif_times(const struct cst_trace *trace, const struct cst_trace *gpu_times,
                      const struct whatif_cost *cost, struct whatif_known *out) {
    const struct cst_trace *from = gpu_times ? gpu_times : trace;
    uint32_t *ns = NULL;
    bool known = from->n_gpu > 0, own = trace->n_gpu > 0;
    struct model *model = known ? model_make(from) : NULL;
    if (model)
        ns = gpu_times ? times_of_others(trace, gpu_times, model, &out->measured)
                       : own_times(trace, model, &out->measured);
    model_free(model);
    if ((known && !ns) || !cli_whatif_host(trace, &out->recording)) {
        free(ns);
        return false;
    }
    out->gpu_ns = ns;
    out->timing.cost = cost;
    out->timing.gpu_ns = ns;
    out->timing.eager_more = more(out->recording.eager, own ? cost->recorder.eager_launch_gpu
                                                            : cost->recorder.eager_launch);
    out->timing.matched_more = more(out->recording.matched, own ? cost->recorder.matched_launch_gpu
                                                                : cost->recorder.matched_launch);
    return true;
}
