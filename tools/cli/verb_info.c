/*
 * cusplice info: says what a trace is and what is in it. main.c calls it. It never changes the
 * trace.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/info.h"
#include "tools/cli/trace_args.h"
#include "tools/cli/verb.h"
#include "tools/trace/clean.h"
#include "tools/trace/facts.h"
#include "tools/trace/json.h"

static const char help[] = "What recorded the trace, how long it is, its streams, threads and "
                           "kinds of ops, what became of\n"
                           "the ops, and whether anything is missing.\n"
                           "\n" CLI_OPTIONS;

static const char *const stream_kinds[] = {"?", "legacy", "per thread", "created", "unknown"};

struct counts {
    uint32_t threads, streams, kinds[CST_OP_TYPES], opaque, opaque_kernels, cooperative;
    uint64_t calls, flushes, segments;
};

static struct counts count(const struct cst_trace *trace) {
    struct counts counts = {0};
    for (uint32_t i = 0; i < trace->n_threads; i++)
        counts.threads += trace->threads[i] != NULL;
    for (uint32_t i = 0; i < trace->n_streams; i++)
        counts.streams += trace->streams[i] != NULL;
    for (uint32_t i = 0; i < trace->n_kinds; i++)
        if (trace->kinds[i]) {
            counts.kinds[trace->kinds[i]->op]++;
            counts.opaque += !!(trace->kinds[i]->flags & CST_KIND_OPAQUE);
            counts.opaque_kernels +=
                trace->kinds[i]->op == CST_OP_LAUNCH && trace->kinds[i]->flags & CST_KIND_OPAQUE;
            counts.cooperative += !!(trace->kinds[i]->flags & CST_KIND_COOPERATIVE);
        }
    for (size_t i = 0; i < trace->n_events; i++) {
        counts.calls += trace->events[i]->type == CST_CALL;
        counts.flushes += trace->events[i]->type == CST_FLUSH;
        counts.segments += trace->events[i]->type == CST_SEGMENT;
    }
    return counts;
}

static const char *kind_word(uint32_t kind) {
    return kind < sizeof stream_kinds / sizeof *stream_kinds ? stream_kinds[kind] : "?";
}

static void stream_json(struct cus_json *json, const struct look *look, uint32_t i) {
    const struct cst_stream *stream = look->trace->streams[i];
    char handle[24];
    snprintf(handle, sizeof handle, "0x%" PRIx64, stream->handle);
    cus_json_open(json, NULL, '{');
    cus_json_integer(json, "id", i);
    cus_json_text(json, "kind", kind_word(stream->kind));
    cus_json_text(json, "handle", handle);
    cus_json_integer(json, "context", stream->context);
    cus_json_integer(json, "device", stream->device);
    cus_json_integer(json, "priority", stream->priority);
    cus_json_integer(json, "ops", look->model->streams[i].n_ops);
    cus_json_integer(json, "steps", look->model->streams[i].n_steps);
    cus_json_close(json, '}');
}

static void print_json(const struct look *look, const struct counts *counts) {
    const struct cst_trace *trace = look->trace;
    const struct model *model = look->model;
    struct cus_json json = json_to(stdout, CUS_JSON_SPACED);
    cus_json_open(&json, NULL, '{');
    cus_json_text(&json, "trace", trace->path);
    cus_json_integer(&json, "version", trace->version);
    cus_json_raw(&json, "facts", look->facts);
    cus_json_bool(&json, "facts_readable", !look->facts_bad);
    cus_json_bool(&json, "closed", trace->closed);
    cus_json_integer(&json, "torn_bytes", (int64_t)trace->torn);
    cus_json_integer(&json, "lost_records", (int64_t)trace->lost_records);
    cus_json_integer(&json, "lost_ops", (int64_t)trace->lost_ops);
    cus_json_integer(&json, "duration_ns", (int64_t)(trace->end_ns - trace->begin_ns));
    cus_json_integer(&json, "ops", model->n_ops);
    cus_json_integer(&json, "in_graphs", (int64_t)model->in_graphs);
    cus_json_integer(&json, "eager", (int64_t)model->eager);
    cus_json_integer(&json, "flushed", (int64_t)model->flushed);
    cus_json_integer(&json, "open", (int64_t)model->open);
    json_real(&json, "share", look_share(model->in_graphs, model->n_ops));
    cus_json_integer(&json, "graph_launches", (int64_t)model->graph_launches);
    cus_json_integer(&json, "segments", (int64_t)counts->segments);
    cus_json_integer(&json, "calls", (int64_t)counts->calls);
    cus_json_integer(&json, "flushes", (int64_t)counts->flushes);
    cus_json_integer(&json, "steps", model->n_steps);
    cus_json_integer(&json, "gpu_records", (int64_t)trace->n_gpu);
    cus_json_integer(&json, "gpu_known", (int64_t)model->gpu_known);
    cus_json_integer(&json, "replay_calls", (int64_t)trace->replay.n_works);
    cus_json_integer(&json, "replay_obstacles", (int64_t)trace->replay.n_obstacles);
    cus_json_open(&json, "kinds", '{');
    for (unsigned op = 0; op < CST_OP_TYPES; op++)
        cus_json_integer(&json, model_op_words[op], counts->kinds[op]);
    cus_json_integer(&json, "opaque", counts->opaque);
    cus_json_integer(&json, "cooperative", counts->cooperative);
    cus_json_close(&json, '}');
    cus_json_open(&json, "threads", '[');
    for (uint32_t i = 0; i < trace->n_threads; i++)
        if (trace->threads[i]) {
            cus_json_open(&json, NULL, '{');
            cus_json_integer(&json, "id", i);
            cus_json_integer(&json, "tid", trace->threads[i]->tid);
            cus_json_text(&json, "name", cst_string(trace, trace->threads[i]->name));
            cus_json_close(&json, '}');
        }
    cus_json_close(&json, ']');
    cus_json_open(&json, "streams", '[');
    for (uint32_t i = 0; i < trace->n_streams; i++)
        if (trace->streams[i])
            stream_json(&json, look, i);
    cus_json_close(&json, ']');
    cus_json_close(&json, '}');
    cus_json_end(&json);
}

/* ---- for people ---- */

enum { LACKS = 400 };

static void keep_first(void *context, const char *sentence) {
    char *first = context;
    if (!*first)
        snprintf(first, LACKS, "%s", sentence);
}

static int by_number(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* How many segments have a graph that was launched. They may be older than the recording. */
static unsigned launched(const struct cst_trace *trace) {
    uint32_t *numbers = calloc(trace->n_events + 1, sizeof *numbers);
    size_t n = 0;
    unsigned different = 0;
    for (size_t i = 0; numbers && i < trace->n_events; i++)
        if (trace->events[i]->type == CST_LAUNCH)
            numbers[n++] = ((const struct cst_launch *)trace->events[i])->segment;
    if (n)
        qsort(numbers, n, sizeof *numbers, by_number);
    for (size_t i = 0; i < n; i++)
        different += !i || numbers[i] != numbers[i - 1];
    free(numbers);
    return different;
}

/* What a replay has to do, or that there is none. */
static void print_replay(const struct cst_trace *trace, unsigned width) {
    const struct cst_replay *replay = &trace->replay;
    const char *name = "can be replayed";
    char lacks[LACKS] = "";
    if (!replay->n_works)
        cli_info_line(width, name, "no (cusplice record --replayable)");
    else if (!cst_replay_whole(trace, false, keep_first, lacks))
        cli_info_line(width, name, "no: %s", lacks);
    else if (replay->n_obstacles)
        cli_info_line(width, name,
                      "no: %zu things that the program did cannot be done again (cusplice replay "
                      "names them)",
                      replay->n_obstacles);
    else
        cli_info_line(width, name, "%zu calls, with %zu blocks of code, memory and input",
                      replay->n_works, replay->n_parts);
}

static void print_problems(const struct look *look) {
    const struct cst_trace *trace = look->trace;
    if (look->facts_bad)
        printf("  its facts are not JSON, and not shown\n");
    if (!trace->closed)
        printf("  the recording did not end in good order%s\n",
               trace->torn ? "" : "; nothing of it was cut off");
    if (trace->torn)
        printf("  %" PRIu64 " bytes at its end are no whole block and left out\n", trace->torn);
    if (trace->lost_records)
        printf("  lost: %" PRIu64 " records, %" PRIu64 " of them ops\n", trace->lost_records,
               trace->lost_ops);
}

static void print_counts(const struct look *look, const struct counts *counts, unsigned width) {
    const struct cst_trace *trace = look->trace;
    const struct model *model = look->model;
    if (facts_imported(look->facts))
        cli_info_line(width, "imported", "%s", FACTS_IMPORT);
    cli_info_line(width, "ops",
                  "%u: %" PRIu64 " in graphs (%.1f %%), %" PRIu64 " eager, %" PRIu64
                  " flushed, %" PRIu64 " open",
                  model->n_ops, model->in_graphs, look_share(model->in_graphs, model->n_ops),
                  model->eager, model->flushed, model->open);
    cli_info_line(width, "graph launches", "%" PRIu64 ", of %u different lists of ops",
                  model->graph_launches, launched(trace));
    cli_info_line(width, "steps", "%u; %" PRIu64 " calls that are no ops, %" PRIu64 " flushes",
                  model->n_steps, counts->calls, counts->flushes);
    if (trace->n_gpu)
        cli_info_line(width, "GPU times", "of %" PRIu64 " ops (%.1f %%), from %zu records",
                      model->gpu_known, look_share(model->gpu_known, model->n_ops), trace->n_gpu);
    else
        cli_info_line(width, "GPU times", "none (cusplice record --gpu-times)");
    print_replay(trace, width);
    cli_info_line(
        width, "kinds",
        "%u kernels (%u opaque, %u cooperative), %u memsets, %u copies, %u records of events, "
        "%u waits for events",
        counts->kinds[CST_OP_LAUNCH], counts->opaque_kernels, counts->cooperative,
        counts->kinds[CST_OP_MEMSET], counts->kinds[CST_OP_COPY], counts->kinds[CST_OP_RECORD],
        counts->kinds[CST_OP_WAIT]);
}

static void print_stream(const struct look *look, uint32_t i, unsigned width) {
    const struct cst_stream *stream = look->trace->streams[i];
    char text[256];
    snprintf(text, sizeof text,
             "%u: %s, 0x%" PRIx64 ", context %u, device %u, priority %d: %u ops, %u steps", i,
             kind_word(stream->kind), stream->handle, stream->context, stream->device,
             stream->priority, look->model->streams[i].n_ops, look->model->streams[i].n_steps);
    fputs("    ", stdout);
    clean_fold(stdout, text, 4, 7, width);
}

static void print_text(const struct look *look, const struct counts *counts, unsigned width) {
    const struct cst_trace *trace = look->trace;
    char time[32];
    table_human(TABLE_NS, (union table_value){.number = (int64_t)(trace->end_ns - trace->begin_ns)},
                time, sizeof time);
    clean_print(stdout, "%s: trace of version %u, %s\n", trace->path, trace->version, time);
    print_problems(look);
    cli_info_facts(look, width);
    print_counts(look, counts, width);
    printf("  streams: %u\n", counts->streams);
    for (uint32_t i = 0; i < trace->n_streams; i++)
        if (trace->streams[i])
            print_stream(look, i, width);
    printf("  threads: %u\n", counts->threads);
    for (uint32_t i = 0; i < trace->n_threads; i++)
        if (trace->threads[i])
            clean_print(stdout, "    %u: %u %s\n", i, trace->threads[i]->tid,
                        cst_string(trace, trace->threads[i]->name));
}

static int run(const struct cli_verb *self, int argc, char **argv) {
    static const char *const needed[] = {"TRACE", NULL};
    struct trace_args args;
    struct look look;
    int status =
        trace_args_read(self, &args, argc, argv, TRACE_JSON | TRACE_LINES | TRACE_FORCE, needed);
    if (status >= 0)
        return status;
    if (!trace_args_open(&args, args.words[0], &look))
        return 1;
    status = 1;
    if (trace_args_begin(&args, (const char *const[]){look.trace->path, NULL})) {
        struct counts counts = count(look.trace);
        if (args.json)
            print_json(&look, &counts);
        else
            print_text(&look, &counts, args.view.width);
        status = trace_args_end(&args);
    }
    look_close(&look);
    return status;
}

const struct cli_verb cli_verb_info = {
    .name = "info",
    .synopsis = "info [--format table|json] [-o FILE] TRACE",
    .summary = "what a trace is and what is in it",
    .help = help,
    .run = run,
    .page =
        {
            .exits = "0; 1 where the trace cannot be read; 2 for a bad option",
            .examples = "cusplice info T.cst\tWhat is in the trace.\n",
            .files = "TRACE.cst\tThe trace, which cusplice record or cusplice import made.\n",
            .see = "record dump report",
            .takes = CLI_TAKES_TRACE,
        },
};
