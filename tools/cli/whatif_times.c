/*
 * Reads off a trace, or off a second one of the same program, what is known of the program's
 * times. verb_whatif.c and verb_calibrate.c call it. It never prints a result.
 */
#include <stdlib.h>
#include <string.h>

#include "tools/cli/whatif.h"
#include "tools/trace/model.h"

enum {
    ENOUGH = 32, /* measurements that are believed */
    SHARE = 10,  /* ... and of all launches at least one in so many */
    AHEAD = 4096 /* events that are looked through for what belongs to one */
};

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

/* One of all that are alike; returns how many are left, in order. */
static size_t keep_medians(struct alike *known, size_t n) {
    size_t kept = 0;
    qsort(known, n, sizeof *known, by_all);
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && by_likeness(&known[end], &known[i]) == 0;)
            end++;
        known[kept++] = known[i + (end - i) / 2];
    }
    return kept;
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
    n = known ? keep_medians(known, n) : 0;
    for (size_t i = 0; known && ns && i < trace->n_events; i++) {
        ns[i] = WHATIF_NOT_MEASURED;
        if (trace->events[i]->type != CST_OP)
            continue;
        struct alike it = alike_of(trace, op_at(trace, i), 0);
        const struct alike *found = bsearch(&it, known, n, sizeof *known, by_likeness);
        if (!found)
            continue;
        ns[i] = found->at;
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
    size_t last = i + AHEAD;
    for (i++; i < trace->n_events && trace->events[i]->ns <= end; i++)
        if (i > last)
            return false;
        else if (trace->events[i]->thread == op->head.thread && trace->events[i]->type != CST_OP)
            return false;
    return true;
}

/* A program is slow where it begins, in its own code as in its calls, and ops go out one by one
 * mostly there: what is measured of it is the later half of its ops. */
static size_t warm_from(const struct cst_trace *trace) {
    uint64_t ops = 0;
    size_t i = 0;
    while (i < trace->n_events && (ops += trace->events[i]->type == CST_OP) <= trace->ops / 2)
        i++;
    return i;
}

bool cli_whatif_host(const struct cst_trace *trace, bool program, struct whatif_recording *out) {
    struct sample by_outcome[2] = {{malloc((trace->ops + 1) * sizeof(double)), 0},
                                   {malloc((trace->ops + 1) * sizeof(double)), 0}};
    bool room = by_outcome[0].values && by_outcome[1].values;
    for (size_t i = program ? warm_from(trace) : 0; room && i < trace->n_events; i++)
        if (trace->events[i]->type == CST_OP && is_plain(trace, i)) {
            struct sample *sample = &by_outcome[trace->events[i]->flags == CST_EAGER];
            sample->values[sample->n++] = op_at(trace, i)->host_ns;
        }
    /* The few that go out by themselves among many that do not stand where a step begins or ends:
     * others would not be like them. */
    size_t all = by_outcome[0].n + by_outcome[1].n;
    for (unsigned outcome = 0; outcome < 2; outcome++)
        if (program && by_outcome[outcome].n < all / SHARE)
            by_outcome[outcome].n = 0;
    if (room) {
        out->matched = middle(&by_outcome[0], &out->matched_apart);
        out->eager = middle(&by_outcome[1], &out->eager_apart);
    }
    free(by_outcome[0].values);
    free(by_outcome[1].values);
    return room;
}

/* ---- graphs ---- */

/* A graph that was launched: what the recording says, and the costs. */
struct paid {
    double ns, cost;
};

static int by_ratio(const void *a, const void *b) {
    const struct paid *x = a, *y = b;
    double left = x->ns * y->cost, right = y->ns * x->cost;
    return left < right ? -1 : left > right;
}

/* How many times as long as the costs say launching graphs and patching them took, those in the
 * middle nine tenths in all; 0: they are too few. */
static double graph_ratio(const struct cst_trace *trace, const struct whatif_cost *cost) {
    struct model *model = model_make(trace);
    struct paid *all = model ? malloc((model->graph_launches + 1) * sizeof *all) : NULL, sum = {0};
    size_t n = 0;
    for (uint32_t s = 0; all && s < trace->n_streams; s++) {
        const struct model_stream *stream = &model->streams[s];
        for (uint32_t i = 0, end; i < stream->n_ops; i = end) {
            /* The ops of a graph follow each other in their stream. */
            const struct model_op *op = &model->ops[stream->ops[i]];
            struct whatif_nodes nodes = {0};
            for (end = i; end < stream->n_ops; end++) {
                const struct model_op *next = &model->ops[stream->ops[end]];
                if (end > i && (next->out != op->out || !op->out))
                    break;
                uint32_t type = trace->kinds[next->op->kind]->op;
                nodes.records += type == CST_OP_RECORD;
                nodes.others += type == CST_OP_MEMSET || type == CST_OP_COPY;
            }
            const struct cst_launch *launch = (const struct cst_launch *)op->out;
            if (!model_in_graph(op) || op->place != 0 || launch->head.flags == CST_BUILT)
                continue;
            nodes.all = launch->n;
            all[n++] =
                (struct paid){launch->host_ns, whatif_cost_launch(cost, nodes) +
                                                   cost->host.patched_node * launch->patched};
        }
    }
    if (n >= ENOUGH) {
        qsort(all, n, sizeof *all, by_ratio);
        for (size_t i = n / 20; i < n - n / 20; i++) {
            sum.ns += all[i].ns;
            sum.cost += all[i].cost;
        }
    }
    free(all);
    model_free(model);
    return sum.cost > 0 ? sum.ns / sum.cost : 0;
}

/* ---- the program behind its calls ---- */

enum outcome { DEFERRED, ISSUED, GRAPH, NEITHER };

/* From the end of an op to the next one of its thread. */
struct between {
    uint32_t kind, next;
    enum outcome outcome;
    uint64_t ns;
};

static int by_pair(const void *a, const void *b) {
    const struct between *x = a, *y = b;
    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    if (x->next != y->next)
        return x->next < y->next ? -1 : 1;
    if (x->outcome != y->outcome)
        return x->outcome < y->outcome ? -1 : 1;
    return x->ns < y->ns ? -1 : x->ns > y->ns;
}

/* Fills in what the events up to the thread's next op or call say of it; false: it is a call. */
static bool look_behind(const struct cst_trace *trace, size_t i, struct between *it) {
    const struct cst_op *op = op_at(trace, i);
    uint64_t end = op->head.ns + op->host_ns;
    *it = (struct between){.kind = op->kind,
                           .outcome = op->head.flags == CST_EAGER ? ISSUED : DEFERRED};
    size_t last = i + AHEAD;
    for (i++; i < trace->n_events && i <= last; i++) {
        const struct cst_record *event = trace->events[i];
        if (event->thread != op->head.thread)
            continue;
        if (event->type == CST_CALL)
            return false;
        if (event->type == CST_OP) {
            it->next = op_at(trace, i)->kind;
            it->ns = event->ns > end ? event->ns - end : 0;
            return true;
        }
        bool usual = event->type == CST_LAUNCH && event->flags != CST_BUILT;
        it->outcome = usual && it->outcome == DEFERRED ? GRAPH : NEITHER;
    }
    return false;
}

/* Where the same two kinds follow each other the program does the same between them: each pair's
 * lower quartile, since it is slow where it begins, against that of what was merely deferred. */
static void find_behind(struct between *all, size_t n, struct whatif_recording *out) {
    enum { PAIR_ENOUGH = 8 };
    double more[NEITHER + 1] = {0}, count[NEITHER + 1] = {0}, quiet = -1;
    qsort(all, n, sizeof *all, by_pair);
    for (size_t i = 0, end; i < n; i = end) {
        const struct between *first = &all[i];
        for (end = i + 1; end < n && all[end].kind == first->kind && all[end].next == first->next &&
                          all[end].outcome == first->outcome;)
            end++;
        if (i == 0 || all[i - 1].kind != first->kind || all[i - 1].next != first->next)
            quiet = -1;
        if (end - i < PAIR_ENOUGH)
            continue;
        double ns = (double)all[i + (end - i) / 4].ns;
        if (first->outcome == DEFERRED)
            quiet = ns;
        else if (quiet >= 0) {
            more[first->outcome] += (ns - quiet) * (double)(end - i);
            count[first->outcome] += (double)(end - i);
        }
    }
    /* Where few go out by themselves, what is between them is the edge of a step. */
    bool many = count[ISSUED] >= ENOUGH && count[ISSUED] >= (double)n / SHARE;
    out->behind_eager = many ? more[ISSUED] / count[ISSUED] : 0;
    out->behind_graph = count[GRAPH] >= ENOUGH ? more[GRAPH] / count[GRAPH] : 0;
}

static bool look_between(const struct cst_trace *trace, struct whatif_recording *out) {
    struct between *all = malloc((trace->ops + 1) * sizeof *all);
    size_t n = 0;
    for (size_t i = warm_from(trace); all && i < trace->n_events; i++)
        if (trace->events[i]->type == CST_OP)
            n += look_behind(trace, i, &all[n]);
    if (all)
        find_behind(all, n, out);
    free(all);
    return all != NULL;
}

/* ---- all of it ---- */

static double ratio(double here, double there) {
    return here <= 0 || there <= 0 ? 0 : here / there;
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
    if ((known && !ns) || !cli_whatif_host(trace, true, &out->recording) ||
        !look_between(trace, &out->recording)) {
        free(ns);
        return false;
    }
    struct whatif_timing *timing = &out->timing;
    const struct whatif_recording *recording = &out->recording;
    out->gpu_ns = ns;
    timing->cost = cost;
    timing->gpu_ns = ns;
    timing->eager = ratio(recording->eager,
                          own ? cost->recorder.eager_launch_gpu : cost->recorder.eager_launch);
    timing->matched = ratio(recording->matched, own ? cost->recorder.matched_launch_gpu
                                                    : cost->recorder.matched_launch);
    timing->graph = own ? 0 : graph_ratio(trace, cost); /* CUPTI takes its time for each node */
    timing->behind_eager = recording->behind_eager;
    timing->behind_graph = recording->behind_graph;
    return true;
}
