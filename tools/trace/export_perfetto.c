/*
 * Writes Chrome's JSON for ui.perfetto.dev and PyTorch's viewers: a track for each thread, and one
 * for each stream (pid: the device, tid: the stream). verb_export.c calls it. One pass over the
 * events, then one over each stream; it never keeps the output in memory.
 */
#include "tools/trace/export.h"
#include "tools/trace/intern.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/base/version.h"
#include "tools/trace/progress.h"

/* Ends of the slices of one thread that are open, outermost first. */
struct open_slices {
    uint64_t *ends;
    uint32_t n, room;
};

struct writer {
    struct export_job *job;
    const struct cst_trace *trace;
    struct out *out;
    struct open_slices *threads; /* by thread */
    struct intern devices;       /* that have a name */
    uint64_t host_pid;
    uint64_t begin_ns; /* time 0 of the file */
    uint64_t flows;    /* ids in use by traces before */
    bool no_memory;
};

static uint64_t at(const struct writer *w, uint64_t ns) {
    return ns - w->begin_ns;
}

/* `{"ph":"X"`, on its own line. */
static void begin_event(struct writer *w, const char *ph) {
    out_text(w->out, ",\n{\"ph\":\"");
    out_text(w->out, ph);
    out_text(w->out, "\"");
}

static void put_track(struct writer *w, uint64_t pid, uint64_t tid) {
    out_key_number(w->out, "pid", pid);
    out_key_number(w->out, "tid", tid);
}

static void put_time(struct writer *w, const char *key, uint64_t ns) {
    out_key(w->out, key);
    out_us(w->out, ns);
}

static uint64_t tid_of(const struct writer *w, uint32_t thread) {
    return w->trace->threads[thread]->tid;
}

/* Linux has no process of such a number. Each trace of a file of several has GPUs of its own. */
enum { DEVICES_FROM = 10000000, DEVICES_OF_ONE = 1000 };

static uint64_t pid_of_device(const struct writer *w, uint32_t device) {
    if (!w->job->place)
        return device;
    return DEVICES_FROM + (uint64_t)w->job->place * DEVICES_OF_ONE + device % DEVICES_OF_ONE;
}

static uint64_t device_of(const struct writer *w, uint32_t stream) {
    return pid_of_device(w, w->trace->streams[stream]->device);
}

/* Spans count from the trace's own beginning. */
static uint64_t of_span(const struct writer *w, uint64_t ns) {
    return at(w, w->trace->begin_ns + ns);
}

/* ---- names of tracks ---- */

static void put_meta(struct writer *w, const char *what, uint64_t pid, const uint64_t *tid) {
    begin_event(w, "M");
    out_key_text(w->out, "name", what);
    out_key_number(w->out, "pid", pid);
    out_key_number(w->out, "tid", tid ? *tid : 0);
    out_key_number(w->out, "ts", 0);
    out_text(w->out, ",\"args\":{");
}

static void put_name(struct writer *w, const char *what, uint64_t pid, const uint64_t *tid,
                     const char *name, uint64_t sort) {
    char key[32];
    snprintf(key, sizeof key, "%s_name", what);
    put_meta(w, key, pid, tid);
    out_key_text(w->out, "name", name);
    out_text(w->out, "}}");
    snprintf(key, sizeof key, "%s_sort_index", what);
    put_meta(w, key, pid, tid);
    out_key_number(w->out, "sort_index", sort);
    out_text(w->out, "}}");
}

static void put_tracks(struct writer *w) {
    const struct cst_trace *trace = w->trace;
    char name[256];
    uint64_t place = 2 * (uint64_t)w->job->place;
    put_name(w, "process", w->host_pid, NULL, w->job->group ? w->job->group : "program", place);
    for (uint32_t i = 0; i < trace->n_threads; i++) {
        if (!trace->threads[i])
            continue;
        uint64_t tid = trace->threads[i]->tid;
        const char *given = cst_string(trace, trace->threads[i]->name);
        snprintf(name, sizeof name, "thread %llu%s%s", (unsigned long long)tid, *given ? " " : "",
                 given);
        put_name(w, "thread", w->host_pid, &tid, name, i);
    }
    for (uint32_t i = 0; i < trace->n_streams; i++) {
        const struct cst_stream *stream = trace->streams[i];
        if (!stream)
            continue;
        bool first = false;
        w->no_memory |= !intern_add(&w->devices, &stream->device, sizeof stream->device, &first);
        if (first) {
            snprintf(name, sizeof name, "GPU %u%s%s", stream->device, w->job->group ? " of " : "",
                     w->job->group ? w->job->group : "");
            put_name(w, "process", pid_of_device(w, stream->device), NULL, name,
                     place ? place + 1 : 5000000 + (uint64_t)stream->device);
        }
        uint64_t tid = i;
        snprintf(name, sizeof name, "stream %u %s, context %u", i, export_stream(stream->kind),
                 stream->context);
        put_name(w, "thread", pid_of_device(w, stream->device), &tid, name, i);
    }
}

/* ---- the host ---- */

/* The end of a slice of this thread that begins at `start`, so that it nests in those that are
 * open. Slices come in the order of their beginnings. */
static uint64_t nest(struct writer *w, uint32_t thread, uint64_t start, uint64_t end) {
    struct open_slices *open = &w->threads[thread];
    while (open->n && open->ends[open->n - 1] <= start)
        open->n--;
    if (open->n && end > open->ends[open->n - 1])
        end = open->ends[open->n - 1];
    if (open->n == open->room) {
        uint32_t room = open->room ? open->room * 2 : 8;
        uint64_t *ends = realloc(open->ends, room * sizeof *ends);
        if (!ends) {
            w->no_memory = true;
            return end;
        }
        open->ends = ends;
        open->room = room;
    }
    open->ends[open->n++] = end;
    return end;
}

static void begin_host_slice(struct writer *w, const struct cst_record *record, uint32_t host_ns,
                             const char *category, const char *name) {
    uint64_t start = at(w, record->ns);
    uint64_t end = nest(w, record->thread, start, start + host_ns);
    begin_event(w, "X");
    out_key_text(w->out, "cat", category);
    out_key_text(w->out, "name", name);
    put_track(w, w->host_pid, tid_of(w, record->thread));
    put_time(w, "ts", start);
    put_time(w, "dur", end - start);
    out_text(w->out, ",\"args\":{");
}

static void put_instant(struct writer *w, const struct cst_record *record, const char *name) {
    begin_event(w, "i");
    out_key_text(w->out, "cat", "cusplice");
    out_key_text(w->out, "name", name);
    put_track(w, w->host_pid, tid_of(w, record->thread));
    put_time(w, "ts", at(w, record->ns));
    out_text(w->out, ",\"s\":\"t\",\"args\":{");
}

static void put_stream(struct writer *w, uint32_t stream) {
    if (stream != CST_NONE)
        out_key_number(w->out, "stream", stream);
}

static void put_flow(struct writer *w, const char *ph, uint64_t id, uint64_t pid, uint64_t tid,
                     uint64_t ns) {
    begin_event(w, ph);
    out_text(w->out, ",\"cat\":\"ac2g\",\"name\":\"ac2g\"");
    out_key_number(w->out, "id", id);
    put_track(w, pid, tid);
    put_time(w, "ts", ns);
    out_text(w->out, *ph == 'f' ? ",\"bp\":\"e\"}" : "}");
}

static void put_call_of_op(struct writer *w, const struct model_op *op, uint64_t number) {
    const struct cst_kind *kind = w->trace->kinds[op->op->kind];
    const char *api =
        kind->op == CST_OP_LAUNCH ? export_api(kind, op->op) : w->job->names[kind->id].mangled;
    begin_host_slice(w, &op->op->head, op->op->host_ns, "cuda_driver", api);
    out_key_number(w->out, "correlation", w->flows + number + 1);
    out_key_text(w->out, "outcome", export_outcome(op));
    if (op->op->eager)
        out_key_text(w->out, "eager", cst_string(w->trace, op->op->eager));
    if (op->op->why)
        out_key_text(w->out, "why", cst_string(w->trace, op->op->why));
    if (op->op->result)
        out_key_signed(w->out, "result", op->op->result);
    out_text(w->out, "}}");
    if (w->job->flows && w->job->spans[number].start != TIMELINE_NEVER)
        put_flow(w, "s", w->flows + number + 1, w->host_pid, tid_of(w, op->op->head.thread),
                 at(w, op->op->head.ns));
}

static void put_call(struct writer *w, const struct cst_call *call) {
    const char *name = cst_string(w->trace, call->name);
    /* The end of one, and what one does first. */
    bool part = call->what == CST_CALL_WAITED || call->what == CST_CALL_EVENT_SEEN;
    bool is_call = *name && !part;
    begin_host_slice(w, &call->head, call->host_ns, is_call ? "cuda_driver" : "cusplice",
                     is_call ? name : export_what(call->what));
    out_key_text(w->out, "what", export_what(call->what));
    if (call->what == CST_CALL_FLUSH)
        out_key_text(w->out, "scope", export_scope(call->scope));
    put_stream(w, call->stream);
    out_text(w->out, "}}");
}

static void put_launch(struct writer *w, const struct cst_launch *launch) {
    begin_host_slice(w, &launch->head, launch->host_ns, "cusplice", "graph launch");
    out_key_number(w->out, "segment", launch->segment);
    out_key_number(w->out, "variant", launch->variant);
    out_key_text(w->out, "choice", export_choice(launch->head.flags));
    out_key_number(w->out, "ops", launch->n);
    out_key_number(w->out, "patched", launch->patched);
    if (launch->build_ns)
        out_key_number(w->out, "build_ns", launch->build_ns);
    put_stream(w, launch->stream);
    out_text(w->out, "}}");
}

static void put_flush(struct writer *w, const struct cst_flush *flush) {
    put_instant(w, &flush->head, "flush");
    out_key_text(w->out, "reason", cst_string(w->trace, flush->reason));
    out_key_text(w->out, "cause", cst_string(w->trace, flush->cause));
    out_key_number(w->out, "ops", flush->n);
    put_stream(w, flush->stream);
    out_text(w->out, "}}");
}

static void put_segment(struct writer *w, const struct cst_segment *segment) {
    put_instant(w, &segment->head, "segment");
    out_key_number(w->out, "segment", segment->id);
    out_key_number(w->out, "ops", segment->n);
    put_stream(w, segment->stream);
    out_text(w->out, "}}");
}

static void put_lost(struct writer *w, const struct cst_lost *lost) {
    put_instant(w, &lost->head, "lost records");
    out_key_number(w->out, "records", lost->records);
    out_key_number(w->out, "ops", lost->ops);
    out_text(w->out, "}}");
}

static void put_host(struct writer *w) {
    uint32_t ops = 0;
    for (size_t i = 0; i < w->trace->n_events && !w->out->error; i++) {
        progress_event("export", i, w->trace->n_events);
        const struct cst_record *record = w->trace->events[i];
        switch (record->type) {
        case CST_OP:
            put_call_of_op(w, &w->job->model->ops[ops], ops);
            ops++;
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

/* ---- the GPU ---- */

static void begin_gpu_slice(struct writer *w, const char *category, const char *name,
                            uint32_t stream, uint64_t start, uint64_t end) {
    begin_event(w, "X");
    out_key_text(w->out, "cat", category);
    out_key_text(w->out, "name", name);
    put_track(w, device_of(w, stream), stream);
    put_time(w, "ts", start);
    put_time(w, "dur", end - start);
    out_text(w->out, ",\"args\":{");
}

static void put_three(struct writer *w, const char *key, const uint32_t *dims) {
    out_key(w->out, key);
    out_text(w->out, "[");
    for (unsigned i = 0; i < 3; i++) {
        if (i)
            out_text(w->out, ",");
        out_number(w->out, dims[i]);
    }
    out_text(w->out, "]");
}

static void put_execution(struct writer *w, uint32_t number) {
    static const char *const categories[CST_OP_TYPES] = {"kernel", "gpu_memset", "gpu_memcpy",
                                                         "gpu_record", "gpu_wait"};
    static const char *const copies[] = {"Memcpy", "Memcpy DtoD", "Memcpy HtoD", "Memcpy DtoH"};
    const struct model_op *op = &w->job->model->ops[number];
    const struct cst_kind *kind = w->trace->kinds[op->op->kind];
    const struct timeline_span *span = &w->job->spans[number];
    const char *name = kind->op == CST_OP_MEMSET   ? "Memset"
                       : kind->op == CST_OP_COPY   ? copies[kind->form < 4 ? kind->form : 0]
                       : kind->op == CST_OP_RECORD ? "Event record"
                       : kind->op == CST_OP_WAIT   ? "Wait for event"
                                                   : w->job->names[kind->id].demangled;
    uint32_t stream = op->op->stream;
    uint64_t event, times;
    begin_gpu_slice(w, categories[kind->op], name, stream, of_span(w, span->start),
                    of_span(w, span->end));
    out_key_number(w->out, "correlation", w->flows + number + 1);
    put_stream(w, stream);
    if (kind->op == CST_OP_LAUNCH) {
        put_three(w, "grid", op->op->dims);
        put_three(w, "block", op->op->dims + 3);
        if (op->op->dims[6])
            out_key_number(w->out, "shared memory", op->op->dims[6]);
    } else if (kind->op == CST_OP_MEMSET || kind->op == CST_OP_COPY) {
        out_key_number(w->out, "bytes", export_op_bytes(kind, op->op));
    } else if (model_event(w->trace, op->op, &event, &times)) {
        out_key_number(w->out, "event", event);
    }
    out_key_number(w->out, "step", w->job->model->steps[op->step].number);
    out_text(w->out, "}}");
    if (w->job->flows)
        put_flow(w, "f", w->flows + number + 1, device_of(w, stream), stream,
                 of_span(w, span->start));
}

/* A graph is a slice over those of its ops. */
static void put_gpu_stream(struct writer *w, uint32_t stream) {
    const struct model_stream *ops = &w->job->model->streams[stream];
    const struct cst_record *graph = NULL;
    for (uint32_t i = 0; i < ops->n_ops && !w->out->error; i++) {
        const struct model_op *op = &w->job->model->ops[ops->ops[i]];
        const struct timeline_span *spans = w->job->spans;
        if (spans[ops->ops[i]].start == TIMELINE_NEVER)
            continue;
        if (model_in_graph(op) && op->out != graph) {
            const struct cst_launch *launch = (const struct cst_launch *)op->out;
            uint32_t last = i;
            while (last + 1 < ops->n_ops && w->job->model->ops[ops->ops[last + 1]].out == op->out)
                last++;
            begin_gpu_slice(w, "cusplice", "graph", stream, of_span(w, spans[ops->ops[i]].start),
                            of_span(w, spans[ops->ops[last]].end));
            out_key_number(w->out, "segment", launch->segment);
            out_key_number(w->out, "ops", last - i + 1);
            out_text(w->out, "}}");
        }
        graph = model_in_graph(op) ? op->out : NULL;
        put_execution(w, ops->ops[i]);
    }
}

/* ---- the file ---- */

/* Of the first event, which has no comma before it, or of a later one. */
static void put_label(struct writer *w, const char *before) {
    out_text(w->out, before);
    out_text(w->out, "{\"ph\":\"M\",\"name\":\"process_labels\"");
    out_key_number(w->out, "pid", w->host_pid);
    out_text(w->out, ",\"tid\":0,\"ts\":0,\"args\":{\"labels\":\"CPU\"");
    if (w->job->place) { /* what the head says of a single trace */
        out_key_text(w->out, "trace", w->trace->path);
        out_key_text(w->out, "gpu_times", timeline_gpu_times(w->job->model));
        out_key_bool(w->out, "closed", w->trace->closed);
        out_key_object(w->out, "facts", w->trace->facts);
    }
    out_text(w->out, "}}");
}

static void put_head(struct writer *w) {
    const struct cst_trace *trace = w->trace;
    out_text(w->out, "{\"schemaVersion\":1,\"displayTimeUnit\":\"ns\"");
    out_key_number(w->out, "baseTimeNanoseconds", trace->begin_ns);
    out_text(w->out, ",\n\"otherData\":{");
    out_key_text(w->out, "exporter", "cusplice " CUSPLICE_VERSION);
    out_key_text(w->out, "trace", trace->path);
    out_key_text(w->out, "clock", "CLOCK_MONOTONIC");
    out_key_text(w->out, "gpu_times", timeline_gpu_times(w->job->model));
    out_key_number(w->out, "ops", w->job->model->n_ops);
    out_key_number(w->out, "graph_launches", w->job->model->graph_launches);
    out_key_number(w->out, "not_issued", w->job->model->open);
    out_key_number(w->out, "lost_records", trace->lost_records);
    out_key_bool(w->out, "closed", trace->closed);
    out_key_object(w->out, "facts", trace->facts);
    out_text(w->out, "},\n\"traceEvents\":[");
    put_label(w, "\n");
}

/* Not a number that a device has too. */
static uint64_t host_pid(const struct export_job *job) {
    uint64_t pid = job->pid;
    for (uint32_t i = 0; !job->place && i < job->trace->n_streams; i++)
        if (job->trace->streams[i] && job->trace->streams[i]->device == pid)
            return (uint64_t)1 << 32;
    return pid;
}

static void put_trace(struct writer *w) {
    put_tracks(w);
    put_host(w);
    for (uint32_t i = 0; i < w->trace->n_streams; i++)
        put_gpu_stream(w, i);
    if (w->no_memory && !w->out->error)
        w->out->error = ENOMEM;
    for (uint32_t i = 0; i < w->trace->n_threads; i++)
        free(w->threads[i].ends);
    free(w->threads);
    intern_free(&w->devices);
}

/* False: no memory. */
static bool make_writer(struct writer *w, struct export_job *job) {
    *w = (struct writer){.job = job, .trace = job->trace, .host_pid = host_pid(job)};
    w->begin_ns = job->trace->begin_ns;
    w->threads = calloc(job->trace->n_threads + 1, sizeof *w->threads);
    return w->threads != NULL;
}

bool export_perfetto(struct export_job *job, const char *path, char *error, size_t bytes) {
    struct writer w;
    struct out *out = malloc(sizeof *out);
    if (!out || !make_writer(&w, job)) {
        snprintf(error, bytes, "not enough memory");
        free(out);
        return false;
    }
    w.out = out;
    int failed = out_open(out, path, job->force, job->from);
    if (!failed) {
        put_head(&w);
        put_trace(&w);
        out_text(out, "\n]}\n");
        failed = out_close(out);
    } else {
        free(w.threads);
    }
    job->bytes = out->bytes;
    free(out);
    if (failed)
        snprintf(error, bytes, "%s", beside_why(failed));
    return !failed;
}

/* ---- several traces ---- */

bool export_run_begin(struct export_run *run, uint64_t begin_ns, const char *path, bool force,
                      const char *const *from, char *error, size_t bytes) {
    *run = (struct export_run){.out = malloc(sizeof *run->out), .begin_ns = begin_ns};
    int failed = run->out ? out_open(run->out, path, force, from) : ENOMEM;
    if (failed) {
        free(run->out);
        run->out = NULL;
        snprintf(error, bytes, "%s", beside_why(failed));
        return false;
    }
    out_text(run->out, "{\"schemaVersion\":1,\"displayTimeUnit\":\"ns\"");
    out_key_number(run->out, "baseTimeNanoseconds", begin_ns);
    out_text(run->out, ",\n\"otherData\":{");
    out_key_text(run->out, "exporter", "cusplice " CUSPLICE_VERSION);
    out_key_text(run->out, "clock", "CLOCK_MONOTONIC");
    out_text(run->out, "},\n\"traceEvents\":[");
    return true;
}

bool export_run_add(struct export_run *run, struct export_job *job) {
    struct writer w;
    job->place = ++run->n;
    if (!make_writer(&w, job)) {
        run->out->error = run->out->error ? run->out->error : ENOMEM;
        return false;
    }
    w.out = run->out;
    w.begin_ns = run->begin_ns;
    w.flows = run->flows;
    put_label(&w, run->n == 1 ? "\n" : ",\n");
    put_trace(&w);
    run->flows += job->model->n_ops;
    return !run->out->error;
}

bool export_run_end(struct export_run *run, bool whole, uint64_t *written, char *error,
                    size_t bytes) {
    int failed = run->out->error;
    if (whole || failed) {
        out_text(run->out, "\n]}\n");
        failed = out_close(run->out);
    } else {
        out_abandon(run->out);
    }
    *written = run->out->bytes;
    free(run->out);
    run->out = NULL;
    if (failed)
        snprintf(error, bytes, "%s", beside_why(failed));
    return whole && !failed;
}
