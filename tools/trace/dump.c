/*
 * Writes a trace as JSON lines, with ops numbered in the order of the trace. The verbs dump and
 * export call it. It never keeps the output in memory.
 */
#include "tools/trace/dump.h"

#include <inttypes.h>
#include <string.h>

#include "tools/trace/json.h"

static const char *const stream_kinds[] = {"?", "legacy", "per_thread", "created", "unknown"};
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
    "event_seen",
    "event_gone",
};

#define WORD(list, i) ((i) < sizeof(list) / sizeof *(list) ? (list)[i] : "?")

static void hex(struct cus_json *json, const char *key, uint64_t number) {
    char text[24];
    snprintf(text, sizeof text, "0x%" PRIx64, number);
    cus_json_text(json, key, text);
}

static void header(struct cus_json *json, const struct look *look) {
    const struct cst_trace *trace = look->trace;
    cus_json_open(json, NULL, '{');
    cus_json_text(json, "type", "header");
    cus_json_integer(json, "version", trace->version);
    cus_json_text(json, "trace", trace->path);
    cus_json_raw(json, "facts", look->facts);
    cus_json_bool(json, "closed", trace->closed);
    cus_json_integer(json, "torn_bytes", (int64_t)trace->torn);
    cus_json_integer(json, "begin_ns", (int64_t)trace->begin_ns);
    cus_json_integer(json, "ops", (int64_t)trace->ops);
    cus_json_integer(json, "lost_records", (int64_t)trace->lost_records);
    cus_json_integer(json, "lost_ops", (int64_t)trace->lost_ops);
    cus_json_integer(json, "gpu_known", look->model->gpu_known);
    cus_json_open(json, "threads", '[');
    for (uint32_t i = 0; i < trace->n_threads; i++)
        if (trace->threads[i]) {
            cus_json_open(json, NULL, '{');
            cus_json_integer(json, "id", i);
            cus_json_integer(json, "tid", trace->threads[i]->tid);
            cus_json_text(json, "name", cst_string(trace, trace->threads[i]->name));
            cus_json_close(json, '}');
        }
    cus_json_close(json, ']');
    cus_json_open(json, "streams", '[');
    for (uint32_t i = 0; i < trace->n_streams; i++)
        if (trace->streams[i]) {
            const struct cst_stream *stream = trace->streams[i];
            cus_json_open(json, NULL, '{');
            cus_json_integer(json, "id", i);
            cus_json_integer(json, "context", stream->context);
            hex(json, "handle", stream->handle);
            cus_json_text(json, "kind", WORD(stream_kinds, stream->kind));
            cus_json_integer(json, "flags", stream->flags);
            cus_json_integer(json, "priority", stream->priority);
            cus_json_integer(json, "device", stream->device);
            cus_json_close(json, '}');
        }
    cus_json_close(json, ']');
    cus_json_close(json, '}');
    cus_json_end(json);
}

static void three(struct cus_json *json, const char *key, const uint32_t *numbers) {
    cus_json_open(json, key, '[');
    for (unsigned i = 0; i < 3; i++)
        cus_json_integer(json, NULL, numbers[i]);
    cus_json_close(json, ']');
}

static void shape(struct cus_json *json, const struct cst_trace *trace, const struct cst_op *op) {
    const struct cst_kind *kind = trace->kinds[op->kind];
    uint64_t event, number;
    if (kind->op == CST_OP_LAUNCH) {
        three(json, "grid", op->dims);
        three(json, "block", op->dims + 3);
        cus_json_integer(json, "shared", op->dims[6]);
    } else if (kind->op == CST_OP_RECORD || kind->op == CST_OP_WAIT) {
        if (model_event(trace, op, &event, &number))
            hex(json, "event", event);
    } else {
        cus_json_integer(json, kind->op == CST_OP_MEMSET ? "elements" : "bytes",
                         (int64_t)model_elements(kind, op));
    }
}

static void put_op(struct cus_json *json, const struct look *look, const struct model_op *op) {
    const struct cst_trace *trace = look->trace;
    const struct cst_kind *kind = trace->kinds[op->op->kind];
    const struct model_step *step = &look->model->steps[op->step];
    enum look_outcome outcome = look_outcome(op);
    cus_json_integer(json, "stream", op->op->stream);
    cus_json_integer(json, "step", step->number);
    cus_json_integer(json, "op", op - look->model->ops);
    cus_json_text(json, "kind", model_op_words[kind->op]);
    cus_json_text(json, "name", names_of(look->names, op->op->kind));
    shape(json, trace, op->op);
    cus_json_integer(json, "host_ns", op->op->host_ns);
    cus_json_integer(json, "result", op->op->result);
    cus_json_text(json, "outcome", look_outcomes[outcome]);
    if (op->out)
        cus_json_integer(json, "out_ns", (int64_t)(op->out->ns - trace->begin_ns));
    if (op->gpu) {
        cus_json_integer(json, "gpu_begin_ns", (int64_t)(op->gpu->head.ns - trace->begin_ns));
        cus_json_integer(json, "gpu_ns", (int64_t)op->gpu->gpu_ns);
    }
    if (outcome == LOOK_GRAPH) {
        cus_json_integer(json, "segment", ((const struct cst_launch *)op->out)->segment);
        cus_json_integer(json, "place", op->place);
    } else if (outcome == LOOK_FLUSHED) {
        cus_json_text(json, "cause", cst_string(trace, ((const struct cst_flush *)op->out)->cause));
        cus_json_text(json, "reason",
                      cst_string(trace, ((const struct cst_flush *)op->out)->reason));
    } else if (outcome == LOOK_EAGER) {
        cus_json_text(json, "eager", cst_string(trace, op->op->eager));
        cus_json_text(json, "why", cst_string(trace, op->op->why));
    }
}

static void put_call(struct cus_json *json, const struct look *look, const struct cst_call *call) {
    cus_json_text(json, "name", cst_string(look->trace, call->name));
    if (call->stream != CST_NONE)
        cus_json_integer(json, "stream", call->stream);
    cus_json_text(json, "what", WORD(whats, call->what));
    if (call->what == CST_CALL_FLUSH)
        cus_json_text(json, "scope", WORD(scopes, call->scope));
    cus_json_integer(json, "host_ns", call->host_ns);
    hex(json, "value", call->value);
}

static void put_launch(struct cus_json *json, const struct cst_launch *launch) {
    cus_json_integer(json, "stream", launch->stream);
    cus_json_integer(json, "n", launch->n);
    cus_json_integer(json, "segment", launch->segment);
    cus_json_integer(json, "variant", launch->variant);
    cus_json_text(json, "choice", WORD(choices, launch->head.flags));
    cus_json_integer(json, "patched", launch->patched);
    cus_json_integer(json, "host_ns", launch->host_ns);
    cus_json_integer(json, "build_ns", launch->build_ns);
    cus_json_integer(json, "bytes", launch->bytes);
}

/* Of the record that is not an op; the type's word stands before. */
static void put_rest(struct cus_json *json, const struct look *look,
                     const struct cst_record *record) {
    const struct cst_trace *trace = look->trace;
    if (record->type == CST_CALL) {
        put_call(json, look, (const struct cst_call *)record);
    } else if (record->type == CST_FLUSH) {
        const struct cst_flush *flush = (const struct cst_flush *)record;
        cus_json_integer(json, "stream", flush->stream);
        cus_json_integer(json, "n", flush->n);
        cus_json_text(json, "cause", cst_string(trace, flush->cause));
        cus_json_text(json, "reason", cst_string(trace, flush->reason));
    } else if (record->type == CST_LAUNCH) {
        put_launch(json, (const struct cst_launch *)record);
    } else if (record->type == CST_SEGMENT) {
        cus_json_integer(json, "stream", ((const struct cst_segment *)record)->stream);
        cus_json_integer(json, "segment", ((const struct cst_segment *)record)->id);
        cus_json_integer(json, "n", ((const struct cst_segment *)record)->n);
    } else if (record->type == CST_BRANCH) {
        cus_json_integer(json, "stream", ((const struct cst_branch *)record)->stream);
        cus_json_integer(json, "n", ((const struct cst_branch *)record)->n);
    } else {
        cus_json_integer(json, "records", (int64_t)((const struct cst_lost *)record)->records);
        cus_json_integer(json, "ops", (int64_t)((const struct cst_lost *)record)->ops);
    }
}

static const char *type_word(uint8_t type) {
    return type == CST_OP        ? "op"
           : type == CST_CALL    ? "call"
           : type == CST_FLUSH   ? "flush"
           : type == CST_LAUNCH  ? "graph"
           : type == CST_SEGMENT ? "segment"
           : type == CST_BRANCH  ? "branch"
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
    case CST_SEGMENT:
        return ((const struct cst_segment *)record)->stream;
    case CST_BRANCH:
        return ((const struct cst_branch *)record)->stream;
    default:
        return CST_NONE;
    }
}

void dump_lines(const struct look *look, const struct selection *selection, uint32_t stream,
                FILE *to) {
    struct cus_json json = json_to(to, CUS_JSON_SPACED);
    const struct cst_trace *trace = look->trace;
    uint32_t next = 0;
    header(&json, look);
    for (size_t i = 0; i < trace->n_events; i++) {
        const struct cst_record *record = trace->events[i];
        const struct model_op *op = record->type == CST_OP ? &look->model->ops[next++] : NULL;
        if (stream && stream_of(record) != stream)
            continue;
        if (op ? !selection->steps || !selection->steps[op->step]
               : !select_in_time(selection, record->ns))
            continue;
        cus_json_open(&json, NULL, '{');
        cus_json_text(&json, "type", type_word(record->type));
        cus_json_integer(&json, "ns", (int64_t)(record->ns - trace->begin_ns));
        cus_json_integer(&json, "thread", record->thread);
        if (op)
            put_op(&json, look, op);
        else
            put_rest(&json, look, record);
        cus_json_close(&json, '}');
        cus_json_end(&json);
    }
}
