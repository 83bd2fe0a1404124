/* JSON Lines: a header object, then an object for each event, in the order of time. */
#include "tools/trace/export.h"

#include <stdio.h>
#include <stdlib.h>

#include "shim/base/version.h"

struct writer {
    struct export_job *job;
    const struct cst_trace *trace;
    struct out *out;
};

static void put_threads(struct writer *w) {
    out_key(w->out, "threads");
    out_text(w->out, "[");
    bool follows = false;
    for (uint32_t i = 0; i < w->trace->n_threads; i++) {
        const struct cst_thread *thread = w->trace->threads[i];
        if (!thread)
            continue;
        out_text(w->out, follows ? ",{" : "{");
        out_key_number(w->out, "id", i);
        out_key_number(w->out, "tid", thread->tid);
        out_key_text(w->out, "name", cst_string(w->trace, thread->name));
        out_text(w->out, "}");
        follows = true;
    }
    out_text(w->out, "]");
}

static void put_streams(struct writer *w) {
    out_key(w->out, "streams");
    out_text(w->out, "[");
    bool follows = false;
    for (uint32_t i = 0; i < w->trace->n_streams; i++) {
        const struct cst_stream *stream = w->trace->streams[i];
        if (!stream)
            continue;
        out_text(w->out, follows ? ",{" : "{");
        out_key_number(w->out, "id", i);
        out_key_number(w->out, "context", stream->context);
        out_key_number(w->out, "device", stream->device);
        out_key_text(w->out, "kind", export_stream(stream->kind));
        out_key_number(w->out, "flags", stream->flags);
        out_key_signed(w->out, "priority", stream->priority);
        out_text(w->out, "}");
        follows = true;
    }
    out_text(w->out, "]");
}

static void put_header(struct writer *w) {
    const struct cst_trace *trace = w->trace;
    out_text(w->out, "{\"type\":\"header\"");
    out_key_text(w->out, "exporter", "cusplice " CUSPLICE_VERSION);
    out_key_text(w->out, "trace", trace->path);
    out_key_number(w->out, "version", trace->version);
    out_key_bool(w->out, "closed", trace->closed);
    out_key_number(w->out, "torn", trace->torn);
    out_key_number(w->out, "base_ns", trace->begin_ns);
    out_key_number(w->out, "ops", trace->ops);
    out_key_number(w->out, "lost_records", trace->lost_records);
    out_key_number(w->out, "lost_ops", trace->lost_ops);
    put_threads(w);
    put_streams(w);
    out_key_object(w->out, "facts", trace->facts);
    out_text(w->out, "}\n");
}

static void begin(struct writer *w, const struct cst_record *record, const char *type,
                  uint32_t stream) {
    out_text(w->out, "{");
    out_key_text(w->out, "type", type);
    out_key_number(w->out, "ns", record->ns - w->trace->begin_ns);
    out_key_number(w->out, "thread", record->thread);
    if (stream != CST_NONE)
        out_key_number(w->out, "stream", stream);
}

static void put_dims(struct writer *w, const char *key, const uint32_t *dims) {
    out_key(w->out, key);
    for (unsigned i = 0; i < 3; i++) {
        out_text(w->out, i ? "," : "[");
        out_number(w->out, dims[i]);
    }
    out_text(w->out, "]");
}

static void put_op(struct writer *w, const struct model_op *op) {
    const struct cst_op *record = op->op;
    const struct cst_kind *kind = w->trace->kinds[record->kind];
    begin(w, &record->head, "op", record->stream);
    out_key_text(w->out, "op", export_op(kind->op));
    out_key_text(w->out, "name", w->job->names[record->kind].base);
    out_key_number(w->out, "kind", record->kind);
    if (kind->op == CST_OP_LAUNCH) {
        out_key_text(w->out, "mangled", w->job->names[record->kind].mangled);
        put_dims(w, "grid", record->dims);
        put_dims(w, "block", record->dims + 3);
        out_key_number(w->out, "shared", record->dims[6]);
    } else {
        out_key_number(w->out, "bytes", export_op_bytes(kind, record));
    }
    out_key_number(w->out, "host_ns", record->host_ns);
    if (record->result)
        out_key_signed(w->out, "result", record->result);
    out_key_number(w->out, "step", w->job->model->steps[op->step].number);
    out_key_text(w->out, "fate", export_fate(op));
    if (op->out) {
        out_key_number(w->out, "out_ns", op->out->ns - w->trace->begin_ns);
        out_key_number(w->out, "place", op->place);
    }
    if (model_in_graph(op))
        out_key_number(w->out, "piece", ((const struct cst_launch *)op->out)->piece);
    if (record->eager)
        out_key_text(w->out, "eager", cst_string(w->trace, record->eager));
    if (record->why)
        out_key_text(w->out, "why", cst_string(w->trace, record->why));
}

static void put_call(struct writer *w, const struct cst_call *call) {
    begin(w, &call->head, "call", call->stream);
    if (call->name)
        out_key_text(w->out, "name", cst_string(w->trace, call->name));
    out_key_text(w->out, "what", export_what(call->what));
    if (call->what == CST_CALL_FLUSH)
        out_key_text(w->out, "scope", export_scope(call->scope));
    out_key_number(w->out, "host_ns", call->host_ns);
    if (call->value)
        out_key_number(w->out, "value", call->value);
}

static void put_flush(struct writer *w, const struct cst_flush *flush) {
    begin(w, &flush->head, "flush", flush->stream);
    out_key_number(w->out, "ops", flush->n);
    out_key_text(w->out, "cause", cst_string(w->trace, flush->cause));
    out_key_text(w->out, "reason", cst_string(w->trace, flush->reason));
}

static void put_launch(struct writer *w, const struct cst_launch *launch) {
    begin(w, &launch->head, "launch", launch->stream);
    out_key_text(w->out, "choice", export_choice(launch->head.flags));
    out_key_number(w->out, "piece", launch->piece);
    out_key_number(w->out, "variant", launch->variant);
    out_key_number(w->out, "ops", launch->n);
    out_key_number(w->out, "patched", launch->patched);
    out_key_number(w->out, "host_ns", launch->host_ns);
    if (launch->build_ns)
        out_key_number(w->out, "build_ns", launch->build_ns);
    if (launch->bytes)
        out_key_number(w->out, "bytes", launch->bytes);
}

static void put_piece(struct writer *w, const struct cst_piece *piece) {
    begin(w, &piece->head, "piece", piece->stream);
    out_key_number(w->out, "piece", piece->id);
    out_key_number(w->out, "ops", piece->n);
}

static void put_lost(struct writer *w, const struct cst_lost *lost) {
    begin(w, &lost->head, "lost", CST_NONE);
    out_key_number(w->out, "records", lost->records);
    out_key_number(w->out, "ops", lost->ops);
}

static void put_events(struct writer *w) {
    uint32_t ops = 0;
    for (size_t i = 0; i < w->trace->n_events && !w->out->error; i++) {
        const struct cst_record *record = w->trace->events[i];
        switch (record->type) {
        case CST_OP:
            put_op(w, &w->job->model->ops[ops++]);
            break;
        case CST_CALL:
            put_call(w, (const struct cst_call *)record);
            break;
        case CST_FLUSH:
            put_flush(w, (const struct cst_flush *)record);
            break;
        case CST_LAUNCH:
            put_launch(w, (const struct cst_launch *)record);
            break;
        case CST_PIECE:
            put_piece(w, (const struct cst_piece *)record);
            break;
        case CST_LOST:
            put_lost(w, (const struct cst_lost *)record);
            break;
        default:
            continue;
        }
        out_text(w->out, "}\n");
    }
}

bool export_jsonl(struct export_job *job, const char *path, char *error, size_t bytes) {
    struct writer w = {job, job->trace, malloc(sizeof *w.out)};
    if (!w.out) {
        snprintf(error, bytes, "not enough memory");
        return false;
    }
    int failed = out_open(w.out, path, job->force);
    if (!failed) {
        put_header(&w);
        put_events(&w);
        failed = out_close(w.out);
    }
    job->bytes = w.out->bytes;
    free(w.out);
    if (failed)
        snprintf(error, bytes, "%s", beside_why(failed));
    return !failed;
}
