/* See the header. Ops are numbered in the order of the trace, as the model has them. */
#include "tools/trace/dump.h"

#include <inttypes.h>
#include <string.h>

#include "tools/trace/jsonl.h"

static const char *const stream_kinds[] = {"?", "legacy", "per_thread", "created", "unknown"};
static const char *const ops[] = {"launch", "memset", "copy"};
static const char *const choices[] = {"?", "exact", "patched", "built"};
static const char *const scopes[] = {"none",   "stream", "thread", "context", "context_and_thread",
                                     "process"};
static const char *const whats[] = {
    "?",
    "flush",
    "step_end",
    "break",
    "suspend",
    "copying",
    "stream_gone",
    "context_gone",
    "code_gone",
    "memory_gone",
    "give_back",
    "function_changed",
    "stream_changed",
    "taint",
    "capture_began",
    "capture_ended",
    "unknown_api",
    "profiling",
    "off",
    "drain",
    "waited",
};

#define WORD(list, i) ((i) < sizeof(list) / sizeof *(list) ? (list)[i] : "?")

static void hex(struct jsonl *json, const char *key, uint64_t number) {
    char text[24];
    snprintf(text, sizeof text, "0x%" PRIx64, number);
    jsonl_text(json, key, text);
}

static void header(struct jsonl *json, const struct look *look) {
    const struct cst_trace *trace = look->trace;
    jsonl_open(json, NULL, '{');
    jsonl_text(json, "type", "header");
    jsonl_number(json, "version", trace->version);
    jsonl_text(json, "trace", trace->path);
    jsonl_raw(json, "facts", look->facts);
    jsonl_bool(json, "closed", trace->closed);
    jsonl_number(json, "torn_bytes", (int64_t)trace->torn);
    jsonl_number(json, "begin_ns", (int64_t)trace->begin_ns);
    jsonl_number(json, "ops", (int64_t)trace->ops);
    jsonl_number(json, "lost_records", (int64_t)trace->lost_records);
    jsonl_number(json, "lost_ops", (int64_t)trace->lost_ops);
    jsonl_number(json, "gpu_known", look->model->gpu_known);
    jsonl_open(json, "threads", '[');
    for (uint32_t i = 0; i < trace->n_threads; i++)
        if (trace->threads[i]) {
            jsonl_open(json, NULL, '{');
            jsonl_number(json, "id", i);
            jsonl_number(json, "tid", trace->threads[i]->tid);
            jsonl_text(json, "name", cst_string(trace, trace->threads[i]->name));
            jsonl_close(json, '}');
        }
    jsonl_close(json, ']');
    jsonl_open(json, "streams", '[');
    for (uint32_t i = 0; i < trace->n_streams; i++)
        if (trace->streams[i]) {
            const struct cst_stream *stream = trace->streams[i];
            jsonl_open(json, NULL, '{');
            jsonl_number(json, "id", i);
            jsonl_number(json, "context", stream->context);
            hex(json, "handle", stream->handle);
            jsonl_text(json, "kind", WORD(stream_kinds, stream->kind));
            jsonl_number(json, "flags", stream->flags);
            jsonl_number(json, "priority", stream->priority);
            jsonl_number(json, "device", stream->device);
            jsonl_close(json, '}');
        }
    jsonl_close(json, ']');
    jsonl_close(json, '}');
    jsonl_end(json);
}

static void three(struct jsonl *json, const char *key, const uint32_t *numbers) {
    jsonl_open(json, key, '[');
    for (unsigned i = 0; i < 3; i++)
        jsonl_number(json, NULL, numbers[i]);
    jsonl_close(json, ']');
}

static void shape(struct jsonl *json, const struct cst_kind *kind, const struct cst_op *op) {
    uint64_t wide = op->dims[0] | (uint64_t)op->dims[1] << 32;
    if (kind->op == CST_OP_LAUNCH) {
        three(json, "grid", op->dims);
        three(json, "block", op->dims + 3);
        jsonl_number(json, "shared", op->dims[6]);
    } else {
        jsonl_number(json, kind->op == CST_OP_MEMSET ? "elements" : "bytes", (int64_t)wide);
    }
}

static void put_op(struct jsonl *json, const struct look *look, const struct model_op *op) {
    const struct cst_trace *trace = look->trace;
    const struct cst_kind *kind = trace->kinds[op->op->kind];
    const struct model_step *step = &look->model->steps[op->step];
    enum look_fate fate = look_fate(op);
    jsonl_number(json, "stream", op->op->stream);
    jsonl_number(json, "step", step->number);
    jsonl_number(json, "op", op - look->model->ops);
    jsonl_text(json, "kind", ops[kind->op]);
    jsonl_text(json, "name", names_of(look->names, op->op->kind));
    shape(json, kind, op->op);
    jsonl_number(json, "host_ns", op->op->host_ns);
    jsonl_number(json, "result", op->op->result);
    jsonl_text(json, "fate", look_fates[fate]);
    if (op->out)
        jsonl_number(json, "out_ns", (int64_t)(op->out->ns - trace->begin_ns));
    if (op->gpu) {
        jsonl_number(json, "gpu_begin_ns", (int64_t)(op->gpu->head.ns - trace->begin_ns));
        jsonl_number(json, "gpu_ns", (int64_t)op->gpu->gpu_ns);
    }
    if (fate == LOOK_GRAPH) {
        jsonl_number(json, "piece", ((const struct cst_launch *)op->out)->piece);
        jsonl_number(json, "place", op->place);
    } else if (fate == LOOK_FLUSHED) {
        jsonl_text(json, "cause", cst_string(trace, ((const struct cst_flush *)op->out)->cause));
        jsonl_text(json, "reason", cst_string(trace, ((const struct cst_flush *)op->out)->reason));
    } else if (fate == LOOK_EAGER) {
        jsonl_text(json, "eager", cst_string(trace, op->op->eager));
        jsonl_text(json, "why", cst_string(trace, op->op->why));
    }
}

static void put_call(struct jsonl *json, const struct look *look, const struct cst_call *call) {
    jsonl_text(json, "name", cst_string(look->trace, call->name));
    if (call->stream != CST_NONE)
        jsonl_number(json, "stream", call->stream);
    jsonl_text(json, "what", WORD(whats, call->what));
    if (call->what == CST_CALL_FLUSH)
        jsonl_text(json, "scope", WORD(scopes, call->scope));
    jsonl_number(json, "host_ns", call->host_ns);
    hex(json, "value", call->value);
}

static void put_launch(struct jsonl *json, const struct cst_launch *launch) {
    jsonl_number(json, "stream", launch->stream);
    jsonl_number(json, "n", launch->n);
    jsonl_number(json, "piece", launch->piece);
    jsonl_number(json, "variant", launch->variant);
    jsonl_text(json, "choice", WORD(choices, launch->head.flags));
    jsonl_number(json, "patched", launch->patched);
    jsonl_number(json, "host_ns", launch->host_ns);
    jsonl_number(json, "build_ns", launch->build_ns);
    jsonl_number(json, "bytes", launch->bytes);
}

/* Of the record that is not an op; the type's word stands before. */
static void put_rest(struct jsonl *json, const struct look *look, const struct cst_record *record) {
    const struct cst_trace *trace = look->trace;
    if (record->type == CST_CALL) {
        put_call(json, look, (const struct cst_call *)record);
    } else if (record->type == CST_FLUSH) {
        const struct cst_flush *flush = (const struct cst_flush *)record;
        jsonl_number(json, "stream", flush->stream);
        jsonl_number(json, "n", flush->n);
        jsonl_text(json, "cause", cst_string(trace, flush->cause));
        jsonl_text(json, "reason", cst_string(trace, flush->reason));
    } else if (record->type == CST_LAUNCH) {
        put_launch(json, (const struct cst_launch *)record);
    } else if (record->type == CST_PIECE) {
        jsonl_number(json, "stream", ((const struct cst_piece *)record)->stream);
        jsonl_number(json, "piece", ((const struct cst_piece *)record)->id);
        jsonl_number(json, "n", ((const struct cst_piece *)record)->n);
    } else {
        jsonl_number(json, "records", (int64_t)((const struct cst_lost *)record)->records);
        jsonl_number(json, "ops", (int64_t)((const struct cst_lost *)record)->ops);
    }
}

static const char *type_word(uint8_t type) {
    return type == CST_OP       ? "op"
           : type == CST_CALL   ? "call"
           : type == CST_FLUSH  ? "flush"
           : type == CST_LAUNCH ? "graph"
           : type == CST_PIECE  ? "piece"
                                : "lost";
}

static uint32_t stream_of(const struct cst_record *record) {
    switch (record->type) {
    case CST_OP:
        return ((const struct cst_op *)record)->stream;
    case CST_CALL:
        return ((const struct cst_call *)record)->stream;
    case CST_FLUSH:
        return ((const struct cst_flush *)record)->stream;
    case CST_LAUNCH:
        return ((const struct cst_launch *)record)->stream;
    case CST_PIECE:
        return ((const struct cst_piece *)record)->stream;
    default:
        return CST_NONE;
    }
}

void dump_lines(const struct look *look, const struct selection *selection, uint32_t stream,
                FILE *to) {
    struct jsonl json = {.to = to};
    const struct cst_trace *trace = look->trace;
    uint32_t next = 0;
    header(&json, look);
    for (size_t i = 0; i < trace->n_events && selection->steps; i++) {
        const struct cst_record *record = trace->events[i];
        const struct model_op *op = record->type == CST_OP ? &look->model->ops[next++] : NULL;
        if (stream && stream_of(record) != stream)
            continue;
        if (op ? !selection->steps[op->step]
               : record->ns < selection->begin || record->ns >= selection->end)
            continue;
        jsonl_open(&json, NULL, '{');
        jsonl_text(&json, "type", type_word(record->type));
        jsonl_number(&json, "ns", (int64_t)(record->ns - trace->begin_ns));
        jsonl_number(&json, "thread", record->thread);
        if (op)
            put_op(&json, look, op);
        else
            put_rest(&json, look, record);
        jsonl_close(&json, '}');
        jsonl_end(&json);
    }
}
