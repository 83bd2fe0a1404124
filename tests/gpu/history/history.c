/*
 * One pass over the trace. Each stream, event and thread has the op that ended last among all that
 * its next op goes behind. So an op is compared with one other, and what it goes behind by several
 * steps (a record, a wait, another record) is there too.
 */
#include "tests/gpu/history/history.h"

#include <cuda.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

const char *const history_words[HISTORY_EDGES] = {"stream", "event", "legacy stream",
                                                  "host's wait"};

/* What has to have ended. */
struct past {
    uint64_t end_ns; /* 0: nothing */
    uint32_t op, device;
    enum history_edge edge;
};

struct event {
    uint64_t handle;
    struct past past;
    UT_hash_handle hh;
};

struct pass {
    const struct model *model;
    struct history *history;
    uint64_t slack_ns;
    struct past *streams, *threads; /* by id */
    struct event *events;
    bool no_memory;
};

static void join(struct past *past, const struct past *other, enum history_edge edge) {
    if (other->end_ns <= past->end_ns)
        return;
    *past = *other;
    past->edge = edge;
}

static const struct cst_stream *stream_of(const struct pass *pass, uint32_t id) {
    return id < pass->model->trace->n_streams ? pass->model->trace->streams[id] : NULL;
}

static bool is_legacy(const struct cst_stream *stream) {
    return stream && stream->kind == CST_STREAM_LEGACY;
}

/* Do the legacy stream and this one wait for each other? */
static bool is_blocking(const struct cst_stream *stream) {
    return stream &&
           (stream->kind == CST_STREAM_PER_THREAD || stream->kind == CST_STREAM_CREATED) &&
           !(stream->flags & CU_STREAM_NON_BLOCKING);
}

/* What goes before the next op of the stream beyond what is its own: both ways of the legacy
 * stream. */
static void join_legacy(struct pass *pass, uint32_t id) {
    const struct cst_stream *stream = stream_of(pass, id);
    if (!is_legacy(stream) && !is_blocking(stream))
        return;
    for (uint32_t i = 0; i < pass->model->trace->n_streams; i++) {
        const struct cst_stream *other = pass->model->trace->streams[i];
        if (i != id && other && other->context == stream->context &&
            (is_legacy(stream) ? is_blocking(other) : is_legacy(other)))
            join(&pass->streams[id], &pass->streams[i], HISTORY_LEGACY);
    }
}

static struct event *event_of(struct pass *pass, uint64_t handle) {
    struct event *event;
    HASH_FIND(hh, pass->events, &handle, sizeof handle, event);
    if (event)
        return event;
    event = calloc(1, sizeof *event);
    if (!event) {
        pass->no_memory = true;
        return NULL;
    }
    event->handle = handle;
    HASH_ADD(hh, pass->events, handle, sizeof handle, event);
    return event;
}

static void record(struct pass *pass, uint32_t stream, uint64_t handle) {
    struct event *event = event_of(pass, handle);
    join_legacy(pass, stream);
    if (event)
        event->past = pass->streams[stream];
}

static void wait(struct pass *pass, uint32_t stream, uint64_t handle) {
    struct event *event = event_of(pass, handle);
    if (event)
        join(&pass->streams[stream], &event->past, HISTORY_EVENT);
}

/* May it begin before the op in front of it has ended? */
static bool is_programmatic(const struct cst_kind *kind) {
    const struct cst_argument *arguments = (const struct cst_argument *)(kind + 1);
    const struct cst_attribute *attributes =
        (const struct cst_attribute *)(arguments + kind->n_arguments);
    for (uint32_t i = 0; i < kind->n_attributes; i++) {
        bool off = attributes[i].bytes && !(uint32_t)attributes[i].value[0];
        if (attributes[i].id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT ||
            (attributes[i].id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION && !off))
            return true;
    }
    return false;
}

static void compare(struct pass *pass, uint32_t at, const struct past *past) {
    struct history *history = pass->history;
    const struct cst_gpu *gpu = pass->model->ops[at].gpu;
    if (!past->end_ns || past->device != gpu->device)
        return;
    history->checked[past->edge]++;
    if (gpu->head.ns + pass->slack_ns >= past->end_ns)
        return;
    if (history->n_faults < sizeof history->faults / sizeof history->faults[0])
        history->faults[history->n_faults] =
            (struct history_fault){past->op, at, past->edge, past->end_ns - gpu->head.ns};
    history->n_faults++;
}

static void take_op(struct pass *pass, uint32_t at) {
    const struct model_op *op = &pass->model->ops[at];
    const struct cst_kind *kind = pass->model->trace->kinds[op->op->kind];
    uint32_t stream = op->op->stream;
    struct past *past = &pass->streams[stream];
    uint64_t handle, number;
    if (op->op->result != 0)
        return;
    if (model_event(pass->model->trace, op->op, &handle, &number)) {
        if (kind->op == CST_OP_RECORD)
            record(pass, stream, handle);
        else
            wait(pass, stream, handle);
        return;
    }
    join(past, &pass->threads[op->op->head.thread], HISTORY_HOST);
    join_legacy(pass, stream);
    if (!op->gpu) {
        pass->history->unknown += kind->op <= CST_OP_COPY;
        return;
    }
    if (!is_programmatic(kind))
        compare(pass, at, past);
    struct past now = {op->gpu->head.ns + op->gpu->gpu_ns, at, op->gpu->device, HISTORY_STREAM};
    join(past, &now, HISTORY_STREAM);
}

/* Calls that wait, and events whose records and waits are no ops. */
static void take_call(struct pass *pass, const struct cst_call *call) {
    const char *name = cst_string(pass->model->trace, call->name);
    struct past *thread = &pass->threads[call->head.thread];
    bool of_stream = stream_of(pass, call->stream) != NULL;
    if (strcmp(name, "cuEventRecord") == 0 || strcmp(name, "cuEventRecordWithFlags") == 0) {
        if (of_stream && call->value)
            record(pass, call->stream, call->value);
    } else if (strcmp(name, "cuStreamWaitEvent") == 0) {
        if (of_stream && call->value)
            wait(pass, call->stream, call->value);
    } else if (call->what == CST_CALL_WAITED ||
               (call->what == CST_CALL_STEP_END && strcmp(name, "cuStreamSynchronize") == 0)) {
        if (of_stream)
            join(thread, &pass->streams[call->stream], HISTORY_HOST);
    }
}

bool history_check(const struct model *model, uint64_t slack_ns, struct history *history) {
    const struct cst_trace *trace = model->trace;
    struct pass pass = {.model = model, .history = history, .slack_ns = slack_ns};
    struct event *event, *next;
    uint32_t at = 0;
    memset(history, 0, sizeof *history);
    pass.streams = calloc(trace->n_streams + 1, sizeof *pass.streams);
    pass.threads = calloc(trace->n_threads + 1, sizeof *pass.threads);
    pass.no_memory = !pass.streams || !pass.threads;
    for (size_t i = 0; i < trace->n_events && !pass.no_memory; i++)
        if (trace->events[i]->type == CST_OP)
            take_op(&pass, at++);
        else if (trace->events[i]->type == CST_CALL)
            take_call(&pass, (const struct cst_call *)trace->events[i]);
    HASH_ITER(hh, pass.events, event, next) {
        HASH_DEL(pass.events, event);
        free(event);
    }
    free(pass.streams);
    free(pass.threads);
    return !pass.no_memory;
}
