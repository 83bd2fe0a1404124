/*
 * Writes the trace of a profile: ops and calls in the order in which the program made them. An
 * execution stands at its call (the RUNTIME row of its correlation), or else at its GPU time.
 * verb_import.c calls it. It never reads SQL itself.
 */
#include "tools/trace/import_gpu.h"
#include "tools/trace/import_kinds.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim/trace/file.h"
#include "tools/trace/beside.h"
#include "tools/trace/budget.h"
#include "tools/trace/call_class.h"
#include "tools/trace/intern.h"
#include "tools/trace/progress.h"

/* Ops and calls in one list, to be sorted. */
struct event {
    int64_t time, correlation, start;
    size_t number; /* of the op, or of the call */
    bool is_call;
    const struct import_call *call; /* by which the op was asked for; the call itself */
};

/* What a name of a call means. */
struct api {
    struct call_class class;
    bool seen;
};

struct thread {
    uint32_t last;    /* the stream that it worked on last; CST_NONE */
    uint32_t records; /* of events, since it last waited */
};

/* As streams are told apart. */
struct stream_key {
    uint32_t device, context, stream;
};

struct writer {
    const struct import_options *options;
    struct import_data *data;
    struct import_counts *counts;
    struct event *events;
    size_t n_events;
    struct cst_out out;
    struct cst_sink sink;
    struct intern strings, kinds, apis;
    struct api *api; /* by number in `apis` */
    size_t api_room;
    struct thread *threads; /* id - 1 */
    uint32_t n_threads, threads_room, n_streams;
    struct intern_ids by_tid, by_stream, by_number; /* ids of threads, of streams */
    struct intern_ids described;                    /* 1 + places in data->streams */
    bool no_memory;
};

static uint64_t when(const struct writer *w, int64_t time) {
    return (uint64_t)(time + w->data->base);
}

static uint32_t span(int64_t start, int64_t end) {
    return end <= start ? 0 : end - start > UINT32_MAX ? UINT32_MAX : (uint32_t)(end - start);
}

/* ---- definitions, written where they are met first ---- */

static uint32_t string(struct writer *w, const char *text) {
    bool made;
    if (!*text)
        return 0;
    uint32_t id = intern_add(&w->strings, text, strlen(text), &made);
    w->no_memory |= !id;
    if (made)
        cst_sink_string(&w->sink, id, text);
    return id;
}

/* Where the id of a key is kept, first 0; without memory somewhere else. */
static uint32_t *id_of(struct writer *w, struct intern_ids *all, const void *key, size_t bytes) {
    static uint32_t none;
    uint32_t *id = intern_id(all, key, bytes);
    none = 0;
    w->no_memory |= !id;
    return id ? id : &none;
}

static uint32_t thread_of(struct writer *w, int64_t tid) {
    uint32_t *id = id_of(w, &w->by_tid, &tid, sizeof tid);
    if (*id)
        return *id;
    if (w->n_threads == w->threads_room) {
        uint32_t room = w->threads_room ? 2 * w->threads_room : 16;
        struct thread *threads = realloc(w->threads, room * sizeof *threads);
        if (!threads) {
            w->no_memory = true;
            return 1;
        }
        w->threads = threads;
        w->threads_room = room;
    }
    w->threads[w->n_threads++] = (struct thread){CST_NONE, 0};
    struct cst_thread *record = cst_sink_add(&w->sink, CST_THREAD, sizeof *record);
    record->head.thread = w->n_threads;
    record->tid = (uint32_t)tid;
    return *id = w->n_threads;
}

/* The first of what is known of streams that has this key. */
static uint32_t *described(struct writer *w, uint32_t device, uint32_t context, uint32_t stream) {
    const struct stream_key key = {device, context, stream};
    return id_of(w, &w->described, &key, sizeof key);
}

static void note_descriptions(struct writer *w) {
    for (size_t i = 0; i < w->data->n_streams && i < CST_NONE; i++) {
        const struct import_stream *is = &w->data->streams[i];
        uint32_t *first = described(w, is->device, is->context, is->stream);
        if (!*first)
            *first = (uint32_t)i + 1;
    }
}

/* What is known of a stream besides. */
static struct import_stream describe(struct writer *w, uint32_t device, uint32_t context,
                                     uint32_t stream) {
    uint32_t exact = *described(w, device, context, stream);
    uint32_t any = *described(w, CST_NONE, context, stream);
    uint32_t first = exact && (!any || exact < any) ? exact : any;
    if (first) {
        struct import_stream is = w->data->streams[first - 1];
        is.device = device;
        return is;
    }
    /* 7 is the number that CUPTI gives the legacy stream of a first context. */
    bool legacy = !w->data->stream_kinds && stream == 7;
    return (struct import_stream){
        device, context, stream, legacy ? CST_STREAM_LEGACY : CST_STREAM_CREATED, 0, 0};
}

static uint32_t add_stream(struct writer *w, struct import_stream is) {
    const struct stream_key key = {is.device, is.context, is.stream};
    uint32_t id = ++w->n_streams;
    uint32_t *first = id_of(w, &w->by_stream, &key, sizeof key);
    *first = *first ? *first : id;
    first = id_of(w, &w->by_number, &is.stream, sizeof is.stream);
    *first = *first ? *first : id;
    struct cst_stream *record = cst_sink_add(&w->sink, CST_STREAM, sizeof *record);
    record->id = id;
    record->context = is.context;
    record->device = is.device;
    record->handle = is.stream;
    record->kind = is.kind;
    record->flags = is.flags;
    record->priority = is.priority;
    if (w->data->gpu_times)
        import_gpu_stream(&w->sink, id, &is);
    return id;
}

static uint32_t stream_of(struct writer *w, const struct import_op *op) {
    const struct stream_key key = {op->device, op->context, op->stream};
    uint32_t id = *id_of(w, &w->by_stream, &key, sizeof key);
    return id ? id : add_stream(w, describe(w, op->device, op->context, op->stream));
}

/* Of a call that says a stream's number alone. */
static uint32_t stream_numbered(struct writer *w, int64_t number) {
    uint32_t asked = (uint32_t)number;
    uint32_t id =
        number >= 0 && number < CST_NONE ? *id_of(w, &w->by_number, &asked, sizeof asked) : 0;
    return id ? id : CST_NONE;
}

static uint32_t write_kind(struct writer *w, const struct import_kind *key, const char *name) {
    bool made;
    uint32_t id = intern_add(&w->kinds, key, sizeof *key, &made);
    w->no_memory |= !id;
    if (!made)
        return id;
    uint32_t text = string(w, name);
    struct cst_kind *kind = cst_sink_add(&w->sink, CST_KIND, sizeof *kind);
    kind->id = id;
    kind->op = key->op;
    kind->flags = key->flags;
    kind->name = text;
    kind->elem = key->elem;
    kind->form = key->form;
    kind->param_bytes = import_kind_params(key);
    memcpy(kind->cluster, key->cluster, sizeof kind->cluster);
    return id;
}

/* ---- calls by their names ---- */

static struct api *api_of(struct writer *w, int64_t name) {
    static struct api none;
    bool made;
    uint32_t id = intern_add(&w->apis, &name, sizeof name, &made);
    if (id >= w->api_room) {
        size_t room = w->api_room ? w->api_room * 2 : 64;
        struct api *api = realloc(w->api, room * sizeof *api);
        if (!api) {
            w->no_memory = true;
            return &none;
        }
        w->api = api;
        w->api_room = room;
    }
    if (made)
        w->api[id] = (struct api){call_class_of(import_text(w->data, name)), false};
    return &w->api[id];
}

/* What the driver or the GPU did by itself: kernels that kernels start, say. */
static bool is_uncalled(const struct writer *w, const struct import_op *op) {
    return w->data->correlated && w->data->n_calls && op->correlation == 0;
}

/* Would the library have seen this execution as an op? A synchronous copy is a call that waits. */
static bool is_op(struct writer *w, const struct import_op *op, const struct import_call *call) {
    if (!call)
        return true;
    const struct api *api = api_of(w, call->name);
    bool graph = api->class.driver && strncmp(api->class.driver, "cuGraphLaunch", 13) == 0;
    if (graph || (!api->class.known && op->type == CST_OP_LAUNCH))
        return true;
    return api->class.kind == CALL_OP;
}

/* ---- ops ---- */

/* One that `call` asked for (NULL: nobody knows which call), at `time`. */
static struct cst_op *add_op(struct writer *w, const struct import_call *call, int64_t time,
                             uint32_t kind, uint32_t params, uint32_t stream) {
    uint32_t thread = thread_of(w, call ? call->thread : (int64_t)w->data->pid);
    struct cst_op *record = cst_sink_add(&w->sink, CST_OP, sizeof *record + params);
    record->head.flags = CST_EAGER;
    record->head.thread = thread;
    record->head.ns = when(w, time);
    record->kind = kind;
    record->stream = stream;
    record->abi = call && api_of(w, call->name)->class.ptsz;
    record->result = call ? (int32_t)call->result : 0;
    if (!w->no_memory)
        w->threads[thread - 1].last = stream;
    w->counts->ops++;
    return record;
}

static void write_op(struct writer *w, const struct event *event) {
    const struct import_op *op = &w->data->ops[event->number];
    const struct import_call *call = event->call;
    const char *driver = call ? api_of(w, call->name)->class.driver : NULL;
    struct import_kind key;
    const char *name =
        import_kind_of(w->data, op, driver, call ? import_text(w->data, call->name) : "", &key);
    if (op->type != CST_OP_LAUNCH)
        key.variant = string(w, name);
    uint32_t kind = write_kind(w, &key, name), stream = stream_of(w, op);
    struct cst_op *record = add_op(w, call, event->time, kind, import_kind_params(&key), stream);
    if (call && (w->data->own || !op->in_graph)) /* the launch of a graph is not the op's */
        record->host_ns = span(call->start, call->end);
    memcpy(record->dims, op->dims, sizeof record->dims);
    uint64_t count = op->type == CST_OP_MEMSET ? op->bytes / key.elem : op->bytes;
    if (op->type == CST_OP_MEMSET || op->type == CST_OP_COPY) {
        record->dims[0] = (uint32_t)count;
        record->dims[1] = (uint32_t)(count >> 32);
    } else if (op->type == CST_OP_RECORD || op->type == CST_OP_WAIT) {
        memcpy(record + 1, op->event, sizeof op->event);
    }
    uint32_t thread = record->head.thread; /* what is written next may end its block */
    if (w->data->gpu_times && op->start + w->data->base >= 0)
        import_gpu(&w->sink, op, when(w, op->start), thread,
                   op->type == CST_OP_LAUNCH ? string(w, name) : 0);
}

/* ---- calls ---- */

static struct cst_call *add_call(struct writer *w, const struct import_call *call,
                                 enum cst_what what, uint32_t stream, int scope) {
    uint32_t name = string(w, import_text(w->data, call->name));
    uint32_t thread = thread_of(w, call->thread);
    struct cst_call *record = cst_sink_add(&w->sink, CST_CALL, sizeof *record);
    record->head.thread = thread;
    record->head.ns = when(w, call->start);
    record->name = name;
    record->stream = stream;
    record->what = (uint8_t)what;
    record->scope = (uint8_t)scope;
    w->counts->calls++;
    return record;
}

/* Own files say what the library took a call for. */
static void write_made(struct writer *w, const struct import_call *call) {
    struct cst_call *record =
        add_call(w, call, call->what, stream_numbered(w, call->stream), call->scope);
    record->abi = call->abi;
    record->value = call->value;
    record->host_ns = span(call->start, call->end);
}

static bool acts(const struct api *api, const char *act) {
    return strcmp(api->class.act, act) == 0;
}

/* The end of what a call does to a stream that it names, or that the thread worked on last. */
static uint32_t stream_of_call(struct writer *w, const struct import_call *call) {
    uint32_t named = stream_numbered(w, call->stream);
    if (named != CST_NONE)
        return named;
    uint32_t thread = thread_of(w, call->thread);
    return w->no_memory ? CST_NONE : w->threads[thread - 1].last;
}

static void write_barrier(struct writer *w, const struct import_call *call, const struct api *api) {
    static const struct {
        const char *act;
        enum cst_what what;
    } more[] = {
        {"MEMORY", CST_CALL_MEMORY_GONE},   {"CODE", CST_CALL_CODE_GONE},
        {"CONTEXT", CST_CALL_CONTEXT_GONE}, {"BEGIN", CST_CALL_CAPTURE_BEGAN},
        {"END", CST_CALL_CAPTURE_ENDED},
    };
    uint32_t stream = stream_of_call(w, call);
    int scope = api->class.scope;
    if (scope == CST_SCOPE_S && stream == CST_NONE)
        scope = CST_SCOPE_T;
    if (scope != CST_SCOPE_NONE)
        add_call(w, call, CST_CALL_FLUSH, stream, scope)->host_ns = span(call->start, call->end);
    for (unsigned i = 0; i < sizeof more / sizeof *more; i++)
        if (acts(api, more[i].act))
            add_call(w, call, more[i].what, stream, CST_SCOPE_NONE);
}

/* The library would defer it. Profiles do not tell which event it is, but for those with a table of
 * events: it is taken for the same one as that at this place behind the thread's last wait. */
static void write_record(struct writer *w, const struct import_call *call, const struct api *api) {
    uint32_t stream = stream_of_call(w, call), thread = thread_of(w, call->thread);
    if (stream == CST_NONE || w->no_memory) {
        write_barrier(w, call, api);
        return;
    }
    const struct import_op op = {.type = CST_OP_RECORD};
    struct import_kind key;
    const char *name = import_kind_of(w->data, &op, NULL, "", &key);
    key.variant = string(w, name);
    uint32_t kind = write_kind(w, &key, name);
    uint64_t place = (uint64_t)thread << 32 | ++w->threads[thread - 1].records;
    const uint64_t event[2] = {call->event ? (uint64_t)call->event : place, 0};
    struct cst_op *record = add_op(w, call, call->start, kind, import_kind_params(&key), stream);
    record->host_ns = span(call->start, call->end);
    memcpy(record + 1, event, sizeof event);
}

static void write_wait(struct writer *w, const struct import_call *call, const struct api *api) {
    bool polls = acts(api, "POLL"), queries = acts(api, "QUERY"), ready = call->result == 0;
    uint32_t stream = stream_of_call(w, call);
    if (!polls)
        add_call(w, call, CST_CALL_FLUSH, stream, api->class.scope);
    if ((polls || queries) && !ready)
        add_call(w, call, CST_CALL_FLUSH, stream, CST_SCOPE_T);
    if (!polls && ready && stream != CST_NONE && !w->no_memory)
        w->threads[thread_of(w, call->thread) - 1].records = 0;
    if (!polls && ready && stream != CST_NONE)
        add_call(w, call, CST_CALL_STEP_END, stream, CST_SCOPE_NONE)->host_ns =
            span(call->start, call->end);
}

static void write_call(struct writer *w, const struct import_call *call) {
    struct api *api = api_of(w, call->name);
    bool first = !api->seen;
    api->seen = true;
    if (call->expanded)
        return;
    if (!api->class.known) {
        if (!w->counts->unknown++)
            snprintf(w->counts->unknown_name, sizeof w->counts->unknown_name, "%s",
                     import_text(w->data, call->name));
    }
    switch (api->class.kind) {
    case CALL_PASS:
    case CALL_RESOLVE:
    case CALL_GETTER: /* a flush is rare: only beside a copy, or where a free is deferred */
    case CALL_SHOWS:
    case CALL_EVENT:
    case CALL_OP: /* its execution is the op; without one it failed */
        break;
    case CALL_SYNC:
        write_wait(w, call, api);
        break;
    case CALL_TOUCH: /* of which function, or with which value, is not known: once for all */
    case CALL_SAME:
        if (first)
            write_barrier(w, call, api);
        break;
    default:
        if ((acts(api, "RECORD") || acts(api, "RECORD_FLAGS")) &&
            !w->data->own) /* in whose databases it is an execution */
            write_record(w, call, api);
        /* As if one stream used the pool. */
        else if (!acts(api, "ALLOC_ASYNC") && !acts(api, "FREE_ASYNC"))
            write_barrier(w, call, api);
    }
}

/* ---- the order ---- */

static int by_correlation(const void *a, const void *b) {
    const struct import_call *x = *(const struct import_call *const *)a,
                             *y = *(const struct import_call *const *)b;
    if (x->correlation != y->correlation)
        return x->correlation < y->correlation ? -1 : 1;
    return x->start < y->start ? -1 : x->start > y->start;
}

static int by_time(const void *a, const void *b) {
    const struct event *x = a, *y = b;
#define COMPARE(field)                                                                             \
    if (x->field != y->field)                                                                      \
    return x->field < y->field ? -1 : 1
    COMPARE(time);
    COMPARE(correlation);
    COMPARE(is_call);
    COMPARE(start);
    COMPARE(number);
#undef COMPARE
    return 0;
}

static struct import_call *call_of(struct import_call **calls, size_t n, int64_t correlation) {
    size_t low = 0, high = n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (calls[middle]->correlation < correlation)
            low = middle + 1;
        else
            high = middle;
    }
    return correlation >= 0 && low < n && calls[low]->correlation == correlation ? calls[low]
                                                                                 : NULL;
}

static void order_calls(struct writer *w, const struct import_call *calls, size_t n) {
    for (size_t i = 0; i < n; i++)
        w->events[w->n_events++] = (struct event){.time = calls[i].start,
                                                  .correlation = calls[i].correlation,
                                                  .start = calls[i].start,
                                                  .number = i,
                                                  .is_call = true,
                                                  .call = &calls[i]};
}

static bool order(struct writer *w) {
    struct import_data *data = w->data;
    struct import_call **calls = malloc((data->n_calls + 1) * sizeof *calls);
    w->events = malloc((data->n_ops + data->n_calls + data->n_made + 1) * sizeof *w->events);
    if (!calls || !w->events) {
        free(calls);
        return false;
    }
    for (size_t i = 0; i < data->n_calls; i++)
        calls[i] = &data->calls[i];
    qsort(calls, data->n_calls, sizeof *calls, by_correlation);
    for (size_t i = 0; i < data->n_ops; i++) {
        const struct import_op *op = &data->ops[i];
        struct import_call *call = call_of(calls, data->n_calls, op->correlation);
        if (op->in_graph && !data->own && !w->options->graphs) {
            w->counts->in_graphs++;
            continue;
        }
        if (!data->own && is_uncalled(w, op)) {
            w->counts->uncalled++;
            continue;
        }
        if (!data->own && !is_op(w, op, call)) {
            w->counts->in_calls++;
            continue;
        }
        if (call && op->in_graph)
            call->expanded = true;
        w->events[w->n_events++] = (struct event){.time = call ? call->start : op->start,
                                                  .correlation = op->correlation,
                                                  .start = op->start,
                                                  .number = i,
                                                  .call = call};
    }
    free(calls);
    if (data->own && data->n_made)
        order_calls(w, data->made, data->n_made);
    else
        order_calls(w, data->calls, data->n_calls);
    qsort(w->events, w->n_events, sizeof *w->events, by_time);
    if (w->n_events && w->events[0].time + data->base < 0)
        data->base = -w->events[0].time;
    return true;
}

/* ---- the file ---- */

static void write_all(struct writer *w) {
    bool made = w->data->own && w->data->n_made;
    note_descriptions(w);
    for (size_t i = 0; i < w->data->n_streams && w->data->own; i++)
        add_stream(w, w->data->streams[i]);
    for (size_t i = 0; i < w->n_events && !w->no_memory && !w->out.error; i++) {
        progress_event("import", i, w->n_events);
        if (!w->events[i].is_call)
            write_op(w, &w->events[i]);
        else if (made)
            write_made(w, w->events[i].call);
        else
            write_call(w, w->events[i].call);
    }
    cst_sink_flush(&w->sink);
    char json[IMPORT_FACTS];
    size_t n = import_facts(w->options, w->data, w->counts, json);
    cst_out_block(&w->out, CST_BLOCK_FACTS, 0, json, n, n);
}

static bool write_file(struct writer *w, char *error, size_t bytes) {
    const char *const from[] = {w->options->from, NULL};
    struct beside beside;
    int failed = beside_plan(&beside, w->options->to, w->options->force, from);
    if (!failed && !(failed = cst_out_open(&w->out, beside.partial))) {
        budget_partial(w->out.partial);
        write_all(w);
        failed = w->no_memory ? ENOMEM : w->out.error;
        if (!failed && (failed = cst_out_close(&w->out)))
            unlink(w->out.partial);
        if (!failed)
            failed = beside_name(&beside);
    }
    cst_out_abandon(&w->out); /* nothing where it was closed */
    budget_whole(w->out.partial);
    if (failed)
        snprintf(error, bytes, "%s: cannot be written: %s", w->options->to, beside_why(failed));
    return !failed;
}

bool import_file(const struct import_options *options, struct import_counts *counts, char *error,
                 size_t bytes) {
    struct import_data data = {.base = 0};
    struct writer *w = calloc(1, sizeof *w);
    bool done = w && import_read(options, &data, error, bytes);
    if (!w)
        snprintf(error, bytes, "%s: not enough memory", options->from);
    memset(counts, 0, sizeof *counts);
    if (done) {
        w->options = options;
        w->data = &data;
        w->counts = counts;
        counts->migrations = data.migrations;
        w->out.fd = -1;
        w->sink = (struct cst_sink){.out = &w->out, .buffer = malloc(CST_SINK)};
        done = w->sink.buffer && order(w) && !w->no_memory;
        if (!done)
            snprintf(error, bytes, "%s: not enough memory to read it", options->from);
        done = done && write_file(w, error, bytes);
        free(w->sink.buffer);
        free(w->events);
        free(w->threads);
        intern_ids_free(&w->by_tid);
        intern_ids_free(&w->by_stream);
        intern_ids_free(&w->by_number);
        intern_ids_free(&w->described);
        free(w->api);
        intern_free(&w->strings);
        intern_free(&w->kinds);
        intern_free(&w->apis);
    }
    free(w);
    import_free(&data);
    return done;
}
