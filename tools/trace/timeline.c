/* Places the ops of each stream in time. verb_export.c calls it. It never changes the model. */
#include "tools/trace/timeline.h"

#include <stdlib.h>

static const uint64_t NOMINAL = 1000; /* ns */

bool timeline_fits(const struct cst_trace *trace) {
    return trace->end_ns - trace->begin_ns < TIMELINE_MOST - UINT32_MAX;
}

static bool is_open(const struct model_op *op) {
    return !op->out && op->op->head.flags == CST_DEFERRED;
}

static uint64_t issued(const struct model *model, const struct model_op *op) {
    uint64_t ns = op->out ? op->out->ns : op->op->head.ns + op->op->host_ns;
    return ns - model->trace->begin_ns;
}

/* Ops first..last-1 of a stream, issued at once, share what there is up to `end`. */
static void spread(const struct model_stream *stream, struct timeline_span *spans, uint32_t first,
                   uint32_t last, uint64_t start, uint64_t end) {
    uint64_t n = last - first, length = end - start < n * NOMINAL ? end - start : n * NOMINAL;
    for (uint32_t i = first; i < last; i++) {
        struct timeline_span *span = &spans[stream->ops[i]];
        span->start = start + length * (i - first) / n;
        span->end = start + length * (i - first + 1) / n;
    }
}

static void place(const struct model *model, const struct model_stream *stream,
                  struct timeline_span *spans) {
    uint64_t start = 0;
    uint32_t first = 0, last = 0; /* those issued last: they wait for the end of their time */
    for (uint32_t i = 0; i < stream->n_ops;) {
        const struct model_op *op = &model->ops[stream->ops[i]];
        if (is_open(op)) {
            spans[stream->ops[i++]] = (struct timeline_span){TIMELINE_NEVER, TIMELINE_NEVER};
            continue;
        }
        uint64_t next = issued(model, op);
        next = next < start ? start : next;
        spread(stream, spans, first, last, start, next);
        start = next;
        first = i++;
        while (op->out && i < stream->n_ops && model->ops[stream->ops[i]].out == op->out)
            i++;
        last = i;
    }
    spread(stream, spans, first, last, start, UINT64_MAX);
}

/* Two clocks: by the host's it may have begun before the trace did. */
static void measured(const struct cst_trace *trace, const struct cst_gpu *gpu, uint64_t *start,
                     uint64_t *end) {
    uint64_t from = gpu->head.ns, to = from + gpu->gpu_ns;
    *start = from > trace->begin_ns ? from - trace->begin_ns : 0;
    *end = to > trace->begin_ns ? to - trace->begin_ns : 0;
}

/* Programmatic launches may begin before the one ahead has ended: they are shown behind it. */
static void place_measured(const struct model *model, const struct model_stream *stream,
                           struct timeline_span *spans) {
    uint64_t last = 0;
    for (uint32_t i = 0; i < stream->n_ops; i++) {
        const struct model_op *op = &model->ops[stream->ops[i]];
        struct timeline_span *span = &spans[stream->ops[i]];
        if (is_open(op) && !op->gpu) {
            *span = (struct timeline_span){TIMELINE_NEVER, TIMELINE_NEVER};
            continue;
        }
        uint64_t start = issued(model, op), end = start;
        if (op->gpu)
            measured(model->trace, op->gpu, &start, &end);
        span->start = start > last ? start : last;
        span->end = last = end > span->start ? end : span->start;
    }
}

const char *timeline_gpu_times(const struct model *model) {
    return model->gpu_known ? "measured by CUPTI" : "estimated: when it was issued";
}

struct timeline_span *timeline_make(const struct model *model) {
    struct timeline_span *spans = calloc((size_t)model->n_ops + 1, sizeof *spans);
    for (uint32_t i = 0; spans && i < model->trace->n_streams; i++)
        (model->gpu_known ? place_measured : place)(model, &model->streams[i], spans);
    return spans;
}
