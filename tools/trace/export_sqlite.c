/*
 * Writes the SQLite database of `cusplice export`; schema.h lists its tables. verb_export.c calls
 * it. It never reads the database back.
 */
#include "tools/trace/export.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/base/version.h"
#include "tools/trace/database.h"
#include "tools/trace/progress.h"

/* The last CALL of a thread, which a STEP_END of the same call lengthens. */
struct last_call {
    int64_t row;
    uint32_t name;
    uint8_t what;
};

/* The number of a LAUNCH or FLUSH. */
struct out_id {
    const struct cst_record *record;
    int64_t id;
};

struct writer {
    struct export_job *job;
    const struct cst_trace *trace;
    struct database *db;
    struct last_call *last; /* by thread */
    struct out_id *outs;    /* by address */
    size_t n_outs;
    int64_t n_calls;
};

enum { RUNTIME = 0, DRIVER = 1 }; /* ENUM_NSYS_EVENT_CLASS */

static int64_t when(const struct writer *w, uint64_t ns) {
    return (int64_t)(ns - w->trace->begin_ns);
}

static int64_t global_pid(const struct writer *w) {
    return (int64_t)(w->job->pid << 24);
}

static int64_t global_tid(const struct writer *w, uint32_t thread) {
    return global_pid(w) | (w->trace->threads[thread]->tid & 0xffffff);
}

/* ---- what is known beforehand ---- */

static void put_enum(struct writer *w, enum schema_table table, int64_t id, const char *name,
                     const char *label) {
    database_row(w->db, table, "itt", id, name, label);
}

static void put_enums(struct writer *w) {
    static const char *const copies[][2] = {
        {"UNKNOWN", "Unknown"},      {"HTOD", "Host-to-Device"},  {"DTOH", "Device-to-Host"},
        {"HTOA", "Host-to-Array"},   {"ATOH", "Array-to-Host"},   {"ATOA", "Array-to-Array"},
        {"ATOD", "Array-to-Device"}, {"DTOA", "Device-to-Array"}, {"DTOD", "Device-to-Device"},
        {"HTOH", "Host-to-Host"},    {"PTOP", "Peer-to-Peer"},
    };
    for (unsigned i = 0; i < sizeof copies / sizeof *copies; i++) {
        char name[64];
        snprintf(name, sizeof name, "CUDA_MEMCPY_KIND_%s", copies[i][0]);
        put_enum(w, SCHEMA_ENUM_CUDA_MEMCPY_OPER, i, name, copies[i][1]);
    }
    enum schema_table table = SCHEMA_ENUM_NSYS_EVENT_CLASS;
    put_enum(w, table, RUNTIME, "TRACE_PROCESS_EVENT_CUDA_RUNTIME", "CUDA runtime");
    put_enum(w, table, DRIVER, "TRACE_PROCESS_EVENT_CUDA_DRIVER", "CUDA driver");
    table = SCHEMA_ENUM_CUDA_KERNEL_LAUNCH_TYPE;
    put_enum(w, table, 0, "CUDA_KERNEL_LAUNCH_TYPE_UNKNOWN", "Unknown");
    put_enum(w, table, 1, "CUDA_KERNEL_LAUNCH_TYPE_REGULAR", "Regular");
    put_enum(w, table, 2, "CUDA_KERNEL_LAUNCH_TYPE_COOPERATIVE_SINGLE_DEVICE",
             "Coop Single Device");
    table = SCHEMA_ENUM_CUPTI_STREAM_TYPE;
    put_enum(w, table, 0, "CUPTI_ACTIVITY_STREAM_CREATE_FLAG_UNKNOWN", "Unknown");
    put_enum(w, table, 1, "CUPTI_ACTIVITY_STREAM_CREATE_FLAG_DEFAULT", "Default");
    put_enum(w, table, 2, "CUPTI_ACTIVITY_STREAM_CREATE_FLAG_NON_BLOCKING", "Non-blocking");
    put_enum(w, table, 3, "CUPTI_ACTIVITY_STREAM_CREATE_FLAG_NULL", "Null");
}

static void put_fact(struct writer *w, const char *name, const char *text) {
    database_row(w->db, SCHEMA_CUSPLICE_FACTS, "tt", name, text);
}

static void put_count(struct writer *w, const char *name, uint64_t value) {
    database_row(w->db, SCHEMA_CUSPLICE_FACTS, "ti", name, (int64_t)value);
}

static void put_facts(struct writer *w) {
    static const char *const export[][2] = {
        {"EXPORT_PRODUCT_NAME", "cusplice"},
        {"EXPORT_PRODUCT_VERSION", CUSPLICE_VERSION},
        {"EXPORT_SCHEMA_VERSION", SCHEMA_NSYS_VERSION},
    };
    for (unsigned i = 0; i < sizeof export / sizeof *export; i++)
        database_row(w->db, SCHEMA_META_DATA_EXPORT, "tt", export[i][0], export[i][1]);
    put_fact(w, "trace", w->trace->path);
    put_count(w, "version", w->trace->version);
    put_count(w, "closed", w->trace->closed);
    put_count(w, "torn", w->trace->torn);
    put_fact(w, "clock", "CLOCK_MONOTONIC");
    put_count(w, "base_ns", w->trace->begin_ns);
    put_fact(w, "gpu_times", timeline_gpu_times(w->job->model));
    put_count(w, "ops", w->job->model->n_ops);
    put_count(w, "lost_records", w->trace->lost_records);
    put_count(w, "lost_ops", w->trace->lost_ops);
    put_fact(w, "facts", w->trace->facts);
}

static void put_threads(struct writer *w) {
    database_row(w->db, SCHEMA_PROCESSES, "iit", global_pid(w), (int64_t)w->job->pid, "program");
    for (uint32_t i = 0; i < w->trace->n_threads; i++)
        if (w->trace->threads[i])
            database_row(w->db, SCHEMA_ThreadNames, "S0i",
                         cst_string(w->trace, w->trace->threads[i]->name), global_tid(w, i));
}

static int64_t stream_flag(const struct cst_stream *stream) {
    if (stream->kind == CST_STREAM_LEGACY)
        return 3;
    if (stream->kind == CST_STREAM_CREATED)
        return stream->flags & 1 ? 2 : 1;
    return 0;
}

static void put_streams(struct writer *w) {
    for (uint32_t i = 0; i < w->trace->n_streams; i++) {
        const struct cst_stream *stream = w->trace->streams[i];
        if (!stream)
            continue;
        int64_t id = i, context = stream->context, device = stream->device,
                pid = (int64_t)w->job->pid;
        database_row(w->db, SCHEMA_TARGET_INFO_CUDA_STREAM, "iiiiiii", id, device, (int64_t)0, pid,
                     context, (int64_t)stream->priority, stream_flag(stream));
        database_row(w->db, SCHEMA_CUSPLICE_STREAM, "iiitii", id, context, device,
                     export_stream(stream->kind), (int64_t)stream->flags,
                     (int64_t)stream->priority);
        if (stream->kind == CST_STREAM_LEGACY)
            database_row(w->db, SCHEMA_TARGET_INFO_CUDA_CONTEXT_INFO, "iiiiii0i", id, device,
                         (int64_t)0, pid, device, context, (int64_t)0);
    }
}

static void put_kinds(struct writer *w) {
    for (uint32_t i = 0; i < w->trace->n_kinds; i++) {
        const struct cst_kind *kind = w->trace->kinds[i];
        if (kind)
            database_row(w->db, SCHEMA_CUSPLICE_KIND, "itSiiiiiii", (int64_t)i,
                         model_op_words[kind->op], w->job->names[i].mangled, (int64_t)kind->flags,
                         (int64_t)kind->elem, (int64_t)kind->form, (int64_t)kind->param_bytes,
                         (int64_t)kind->cluster[0], (int64_t)kind->cluster[1],
                         (int64_t)kind->cluster[2]);
    }
}

static void put_steps(struct writer *w) {
    for (uint32_t i = 0; i < w->job->model->n_steps; i++) {
        const struct model_step *step = &w->job->model->steps[i];
        char signature[20];
        snprintf(signature, sizeof signature, "%016" PRIx64, step->signature);
        database_row(w->db, SCHEMA_CUSPLICE_STEP, "iiiiiiiit", (int64_t)i + 1,
                     (int64_t)step->stream, (int64_t)step->number, when(w, step->begin_ns),
                     when(w, step->end_ns), (int64_t)step->n_ops, (int64_t)step->in_graphs,
                     (int64_t)step->graphs, signature);
    }
}

/* ---- events ---- */

static int64_t put_runtime(struct writer *w, const struct cst_record *record, uint32_t host_ns,
                           int64_t correlation, const char *name, int32_t result) {
    int64_t start = when(w, record->ns);
    return database_row(w->db, SCHEMA_CUPTI_ACTIVITY_KIND_RUNTIME, "iiiiiSi0", start,
                        start + host_ns, (int64_t)DRIVER, global_tid(w, record->thread),
                        correlation, name, (int64_t)result);
}

/* Columns that kernels, memsets and copies have alike: when and where. */
struct place {
    int64_t start, end, device, context, stream, id, pid, graph, node;
};

static void put_kernel(struct writer *w, const struct cst_op *op, const struct place *at) {
    const struct cst_kind *kind = w->trace->kinds[op->kind];
    const struct kind_name *names = &w->job->names[op->kind];
    const uint32_t *dims = op->dims;
    const int64_t launch_type = kind->flags & CST_KIND_COOPERATIVE ? 2 : 1, none = 0;
    database_row(w->db, SCHEMA_CUPTI_ACTIVITY_KIND_KERNEL, "iiii0iiiSSSi0iiiiiiiiiiii0n0niii",
                 at->start, at->end, at->device, at->context, at->stream, at->id, at->pid,
                 names->demangled, names->base, names->mangled, launch_type, none, (int64_t)dims[0],
                 (int64_t)dims[1], (int64_t)dims[2], (int64_t)dims[3], (int64_t)dims[4],
                 (int64_t)dims[5], none, (int64_t)dims[6], none, none, at->id, at->node, at->graph,
                 (int64_t)kind->cluster[0], (int64_t)kind->cluster[1], (int64_t)kind->cluster[2]);
}

static void put_memset(struct writer *w, const struct cst_op *op, const struct place *at) {
    const struct cst_kind *kind = w->trace->kinds[op->kind];
    uint32_t value = 0;
    if (!(kind->flags & CST_KIND_OPAQUE) && kind->param_bytes >= 24)
        memcpy(&value, cst_op_params(op) + 16, sizeof value);
    database_row(w->db, SCHEMA_CUPTI_ACTIVITY_KIND_MEMSET, "iiii0iiiiin0", at->start, at->end,
                 at->device, at->context, at->stream, at->id, at->pid, (int64_t)value,
                 (int64_t)export_op_bytes(kind, op), at->node);
}

static void put_copy(struct writer *w, const struct cst_op *op, const struct place *at) {
    static const int64_t copy_kinds[] = {0, 8, 1, 2}; /* ENUM_CUDA_MEMCPY_OPER, by form */
    const struct cst_kind *kind = w->trace->kinds[op->kind];
    database_row(w->db, SCHEMA_CUPTI_ACTIVITY_KIND_MEMCPY, "iiii0iiiii00n", at->start, at->end,
                 at->device, at->context, at->stream, at->id, at->pid,
                 (int64_t)export_op_bytes(kind, op), copy_kinds[kind->form < 4 ? kind->form : 0],
                 at->node);
}

static void put_event(struct writer *w, enum schema_table table, const struct cst_op *op,
                      const struct place *at) {
    uint64_t event = 0, number = 0; /* where the trace does not have them */
    model_event(w->trace, op, &event, &number);
    database_row(w->db, table, "iiiiiiinii", at->start, at->end, at->device, at->context,
                 at->stream, at->id, at->pid, at->node, (int64_t)event, (int64_t)number);
}

static void put_record(struct writer *w, const struct cst_op *op, const struct place *at) {
    put_event(w, SCHEMA_CUSPLICE_RECORD, op, at);
}

static void put_wait(struct writer *w, const struct cst_op *op, const struct place *at) {
    put_event(w, SCHEMA_CUSPLICE_WAIT, op, at);
}

static void put_execution(struct writer *w, const struct model_op *op, uint32_t number) {
    static void (*const puts[CST_OP_TYPES])(struct writer *, const struct cst_op *,
                                            const struct place *) = {
        put_kernel, put_memset, put_copy, put_record, put_wait};
    const struct cst_stream *stream = w->trace->streams[op->op->stream];
    struct place at = {
        .start = (int64_t)w->job->spans[number].start,
        .end = (int64_t)w->job->spans[number].end,
        .device = stream->device,
        .context = stream->context,
        .stream = op->op->stream,
        .id = (int64_t)number + 1,
        .pid = global_pid(w),
        .graph = DATABASE_NULL,
        .node = DATABASE_NULL,
    };
    if (model_in_graph(op)) {
        at.graph = ((const struct cst_launch *)op->out)->segment;
        at.node = (int64_t)((uint64_t)at.graph << 32 | (op->place + 1));
    }
    puts[w->trace->kinds[op->op->kind]->op](w, op->op, &at);
}

static int by_record(const void *a, const void *b) {
    uintptr_t x = (uintptr_t)((const struct out_id *)a)->record,
              y = (uintptr_t)((const struct out_id *)b)->record;
    return x < y ? -1 : x > y;
}

/* LAUNCH and FLUSH records are numbered together, in the order of time. */
static bool number_outs(struct writer *w) {
    for (size_t i = 0; i < w->trace->n_events; i++)
        w->n_outs +=
            w->trace->events[i]->type == CST_LAUNCH || w->trace->events[i]->type == CST_FLUSH;
    w->outs = malloc((w->n_outs + 1) * sizeof *w->outs);
    if (!w->outs)
        return false;
    size_t n = 0;
    for (size_t i = 0; i < w->trace->n_events; i++) {
        const struct cst_record *record = w->trace->events[i];
        if (record->type == CST_LAUNCH || record->type == CST_FLUSH) {
            w->outs[n] = (struct out_id){record, (int64_t)n + 1};
            n++;
        }
    }
    qsort(w->outs, n, sizeof *w->outs, by_record);
    return true;
}

static int64_t id_of_out(const struct writer *w, const struct cst_record *record) {
    struct out_id key = {record, 0};
    const struct out_id *found = bsearch(&key, w->outs, w->n_outs, sizeof key, by_record);
    return found ? found->id : DATABASE_NULL;
}

static void put_op(struct writer *w, uint32_t number) {
    const struct model_op *op = &w->job->model->ops[number];
    const struct cst_op *record = op->op;
    const struct cst_kind *kind = w->trace->kinds[record->kind];
    int64_t id = (int64_t)number + 1, launch = DATABASE_NULL, flush = DATABASE_NULL,
            place = DATABASE_NULL, elements = DATABASE_NULL;
    put_runtime(w, &record->head, record->host_ns, id,
                kind->op == CST_OP_LAUNCH ? export_api(kind, record)
                                          : w->job->names[record->kind].mangled,
                record->result);
    if (w->job->spans[number].start != TIMELINE_NEVER)
        put_execution(w, op, number);
    if (op->out)
        place = op->place;
    if (model_in_graph(op))
        launch = id_of_out(w, op->out);
    else if (op->out)
        flush = id_of_out(w, op->out);
    if (kind->op == CST_OP_MEMSET || kind->op == CST_OP_COPY)
        elements = (int64_t)model_elements(kind, record);
    database_row(w->db, SCHEMA_CUSPLICE_OP, "iiiitnnnssn", id, (int64_t)record->kind,
                 (int64_t)record->stream, (int64_t)op->step + 1, export_outcome(op), launch, flush,
                 place, cst_string(w->trace, record->eager), cst_string(w->trace, record->why),
                 elements);
}

/* A call that flushes and then ends a step is two records, and one row of RUNTIME. */
static void put_call(struct writer *w, const struct cst_call *call) {
    const char *name = cst_string(w->trace, call->name);
    int64_t start = when(w, call->head.ns), end = start + call->host_ns,
            stream = call->stream == CST_NONE ? DATABASE_NULL : (int64_t)call->stream;
    struct last_call *last = &w->last[call->head.thread];
    database_row(w->db, SCHEMA_CUSPLICE_CALL, "iiisnttii", start, end,
                 global_tid(w, call->head.thread), name, stream, export_what(call->what),
                 export_scope(call->scope), (int64_t)call->abi, (int64_t)call->value);
    /* The end of a call that has a row; a look at an event, by one that may have. */
    if (!*name || call->what == CST_CALL_WAITED || call->what == CST_CALL_EVENT_SEEN)
        return;
    if (call->what == CST_CALL_STEP_END && last->what == CST_CALL_FLUSH &&
        last->name == call->name) {
        char sql[128];
        snprintf(sql, sizeof sql,
                 "UPDATE CUPTI_ACTIVITY_KIND_RUNTIME SET end = max(end, %" PRId64
                 ") WHERE rowid = %" PRId64,
                 end, last->row);
        database_run(w->db, sql);
        last->what = CST_CALL_STEP_END;
        return;
    }
    last->name = call->name;
    last->what = call->what;
    last->row =
        put_runtime(w, &call->head, call->host_ns, w->job->model->n_ops + ++w->n_calls, name, 0);
}

static void put_launch(struct writer *w, const struct cst_launch *launch) {
    int64_t start = when(w, launch->head.ns);
    database_row(w->db, SCHEMA_CUSPLICE_LAUNCH, "niiiiiitiiii", id_of_out(w, &launch->head), start,
                 start + launch->host_ns, global_tid(w, launch->head.thread),
                 (int64_t)launch->stream, (int64_t)launch->segment, (int64_t)launch->variant,
                 export_choice(launch->head.flags), (int64_t)launch->n, (int64_t)launch->patched,
                 (int64_t)launch->build_ns, (int64_t)launch->bytes);
}

static void put_flush(struct writer *w, const struct cst_flush *flush) {
    database_row(w->db, SCHEMA_CUSPLICE_FLUSH, "niiiiss", id_of_out(w, &flush->head),
                 when(w, flush->head.ns), global_tid(w, flush->head.thread), (int64_t)flush->stream,
                 (int64_t)flush->n, cst_string(w->trace, flush->cause),
                 cst_string(w->trace, flush->reason));
}

static void put_segment(struct writer *w, const struct cst_segment *segment) {
    database_row(w->db, SCHEMA_CUSPLICE_SEGMENT, "iiiii", (int64_t)segment->id,
                 when(w, segment->head.ns), global_tid(w, segment->head.thread),
                 (int64_t)segment->stream, (int64_t)segment->n);
}

static void put_lost(struct writer *w, const struct cst_lost *lost) {
    database_row(w->db, SCHEMA_CUSPLICE_LOST, "iiii", when(w, lost->head.ns),
                 global_tid(w, lost->head.thread), (int64_t)lost->records, (int64_t)lost->ops);
}

static void put_events(struct writer *w) {
    uint32_t ops = 0;
    for (size_t i = 0; i < w->trace->n_events && !database_failed(w->db); i++) {
        progress_event("export", i, w->trace->n_events);
        const struct cst_record *record = w->trace->events[i];
        switch (record->type) {
        case CST_OP:
            w->last[record->thread].what = 0;
            put_op(w, ops++);
            break;
        case CST_CALL:
            put_call(w, (const struct cst_call *)record);
            break;
        case CST_LAUNCH:
            put_launch(w, (const struct cst_launch *)record);
            break;
        case CST_FLUSH:
            put_flush(w, (const struct cst_flush *)record);
            break;
        case CST_SEGMENT:
            put_segment(w, (const struct cst_segment *)record);
            break;
        case CST_LOST:
            put_lost(w, (const struct cst_lost *)record);
            break;
        default:
            break;
        }
    }
}

static void put_all(struct writer *w) {
    put_enums(w);
    put_facts(w);
    put_threads(w);
    put_streams(w);
    put_kinds(w);
    put_steps(w);
    put_events(w);
}

bool export_sqlite(struct export_job *job, const char *path, char *error, size_t bytes) {
    struct writer w = {.job = job, .trace = job->trace};
    if (strcmp(path, "-") == 0) {
        snprintf(error, bytes, "a database needs a file");
        return false;
    }
    bool done = false;
    w.last = calloc(job->trace->n_threads + 1, sizeof *w.last);
    if (!w.last || !number_outs(&w)) {
        snprintf(error, bytes, "not enough memory");
    } else if ((w.db = database_open(path, job->force, job->from, error, bytes))) {
        put_all(&w);
        done = database_close(w.db, &job->bytes, error, bytes);
    }
    free(w.last);
    free(w.outs);
    return done;
}
