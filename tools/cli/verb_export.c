/*
 * cusplice export: writes a trace in formats of other tools. main.c calls it; trace/export_*.c
 * write. A file gets its name when it is whole; it never replaces the trace.
 */
#include "tools/cli/trace_args.h"
#include "tools/cli/trace_folder.h"
#include "tools/cli/verb.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/trace/beside.h"
#include "tools/trace/budget.h"
#include "tools/trace/dump.h"
#include "tools/trace/export.h"
#include "tools/trace/facts.h"
#include "tools/trace/report.h"

enum { EXIT_BAD = 2 };
enum { PERFETTO, JSONL, SQLITE, FORMATS };

static const char help[] = "Writes a trace (.cst, as cusplice record and cusplice import make "
                           "them) in formats that other tools read.\n"
                           "At least one is named; FILE may be - (stdout) but for SQLite.\n"
                           "\n" CLI_OPTIONS "\n"
                           "Perfetto and SQLite have an execution for each op. Where the trace has "
                           "no GPU times (cusplice record\n"
                           "--gpu-times) it stands where the op was issued (by a graph launch, by "
                           "a flush, or by its own call), 1 us long,\n"
                           "less where the next one on the stream is issued sooner. Exports say "
                           "which it is (gpu_times). Ops that were not\n"
                           "issued when the trace ended have a call and no execution.\n";

struct request {
    const char *trace;
    const char *outs[FORMATS];
    bool force, no_flows;
};

struct exported {
    struct export_job job;
    struct kind_name *names;
    struct timeline_span *spans;
    const struct look *look;
};

static ssize_t take_lines(void *out, const char *text, size_t bytes) {
    out_bytes(out, text, bytes);
    return ((struct out *)out)->error ? 0 : (ssize_t)bytes;
}

/* The lines of `cusplice dump`. */
static int put_lines(const struct look *look, struct out *out) {
    struct selection all;
    char error[512];
    FILE *to = fopencookie(out, "w", (cookie_io_functions_t){.write = take_lines});
    bool selected = to && select_steps(look, 0, false, 0, 0, &all, error, sizeof error);
    if (selected) {
        setvbuf(to, NULL, _IOFBF, OUT_BUFFER);
        dump_lines(look, &all, 0, to);
        select_free(&all);
    }
    bool written = to && fclose(to) == 0;
    return selected && written ? 0 : out->error ? out->error : ENOMEM;
}

static bool export_lines(struct exported *exported, const char *path, char *error, size_t bytes) {
    struct out *out = malloc(sizeof *out);
    int failed = out ? out_open(out, path, exported->job.force, exported->job.from) : ENOMEM;
    if (out && !failed) {
        failed = put_lines(exported->look, out);
        if (failed && !out->error)
            out_abandon(out);
        else
            failed = out_close(out);
        exported->job.bytes = out->bytes;
    }
    free(out);
    if (failed)
        snprintf(error, bytes, "%s", beside_why(failed));
    return !failed;
}

static bool export_page(struct exported *exported, const char *path, char *error, size_t bytes) {
    return export_perfetto(&exported->job, path, error, bytes);
}

static bool export_database(struct exported *exported, const char *path, char *error,
                            size_t bytes) {
    return export_sqlite(&exported->job, path, error, bytes);
}

static bool (*const writers[FORMATS])(struct exported *, const char *, char *, size_t) = {
    [PERFETTO] = export_page, [JSONL] = export_lines, [SQLITE] = export_database};

static bool take_format(const struct cli_option *self, const char *text) {
    const char **out = self->to;
    if (*text && *out)
        cli_say("--%s: given twice", self->name);
    return !(*text && *out) && cli_take_name(self, text);
}

#define FILE_OF(NAME, TO, HELP)                                                                    \
    {                                                                                              \
        .name = NAME, .value = "the name of a file", .take = take_format, .to = TO, .arg = "FILE", \
        .help = HELP                                                                               \
    }

/* An output of two formats, of which one would be lost; NULL: there is none. */
static const char *named_twice(const struct request *request) {
    for (unsigned i = 0; i < FORMATS; i++)
        for (unsigned k = 0; k < i; k++)
            if (request->outs[i] && request->outs[k] &&
                beside_same(request->outs[i], request->outs[k]))
                return request->outs[i];
    return NULL;
}

/* -1: go on; else the exit status. */
static int take_options(const struct cli_verb *self, int argc, char **argv,
                        struct request *request) {
    const struct cli_option options[] = {
        FILE_OF(
            "perfetto", &request->outs[PERFETTO],
            "Chrome's JSON: opens in ui.perfetto.dev; a track for each stream and each thread, "
            "arrows from the call to the execution. TRACE may be a folder of traces (cusplice "
            "record -o FOLDER/): one file, all processes on one clock, each with its threads and "
            "streams"),
        FILE_OF("jsonl", &request->outs[JSONL],
                "a header object, then one object for each event, a line each: what cusplice dump "
                "prints"),
        FILE_OF(
            "sqlite", &request->outs[SQLITE],
            "a database with the tables and columns of nsys export where they mean the same, and "
            "more in tables named CUSPLICE_..."),
        CLI_FLAG("no-flows", &request->no_flows,
                 "--perfetto without the arrows: about half the size"),
        CLI_FORCE(&request->force),
        {0}};
    const struct cli_option *const tables[] = {options, cli_budget_options, NULL};
    struct cli_words words;
    const char *same;
    int status = cli_options_read(self, argc, argv, CLI_WORDS, tables, &words);
    if (status >= 0)
        return status;
    request->trace = words.at[0];
    if (words.n > 1)
        cli_say("%s: one trace at a time", words.at[1]);
    else if (!words.n)
        cli_say("export: a trace is missing (see cusplice export --help)");
    else if (!request->outs[PERFETTO] && !request->outs[JSONL] && !request->outs[SQLITE])
        cli_say("export: a format is missing: --perfetto OUT, --jsonl OUT or --sqlite OUT");
    else if ((request->outs[JSONL] || request->outs[SQLITE]) && cli_is_folder(request->trace))
        cli_say("%s: a folder goes with --perfetto alone", request->trace);
    else if ((same = named_twice(request)))
        cli_say("%s: named twice", same);
    else
        return -1;
    return EXIT_BAD;
}

static bool write_all(struct exported *exported, const struct request *request) {
    for (unsigned f = 0; f < FORMATS; f++) {
        char error[512];
        if (!request->outs[f])
            continue;
        if (!writers[f](exported, request->outs[f], error, sizeof error)) {
            cli_say("%s: cannot be written: %s", request->outs[f], error);
            return false;
        }
        cli_say("%s: %llu bytes", request->outs[f], (unsigned long long)exported->job.bytes);
    }
    return true;
}

/* What all exports need of a trace. False, after saying so: it has times that none can tell, or
 * there is no memory. release() in any case. */
static bool prepare(const struct look *look, struct exported *exported) {
    const struct cst_trace *trace = look->trace;
    exported->job.trace = trace;
    exported->job.model = look->model;
    exported->job.pid = export_pid(trace);
    exported->look = look;
    if (!timeline_fits(trace)) {
        cli_say("%s: its times are more than 104 days apart, which no export can tell: it is "
                "corrupt",
                trace->path);
        return false;
    }
    exported->names = kind_names_make(trace);
    exported->spans = timeline_make(look->model);
    exported->job.names = exported->names;
    exported->job.spans = exported->spans;
    if (exported->names && exported->spans)
        return true;
    cli_say("%s: not enough memory", trace->path);
    return false;
}

static void release(struct exported *exported) {
    free(exported->spans);
    kind_names_free(exported->names, exported->job.trace->n_kinds);
}

static bool convert(const struct look *look, const struct request *request) {
    const char *const from[] = {look->trace->path, NULL};
    struct exported exported = {
        .job = {.from = from, .force = request->force, .flows = !request->no_flows}};
    bool written = prepare(look, &exported) && write_all(&exported, request);
    release(&exported);
    return written;
}

static bool open_trace(const char *path, struct look *look) {
    char error[4600];
    if (!look_open(look, path, NAMES_BASE, error, sizeof error)) {
        cli_say("%s", error);
        return false;
    }
    if (look->trace->torn)
        cli_say("%s: %llu bytes at its end are torn and left out", path,
                (unsigned long long)look->trace->torn);
    if (facts_imported(look->facts))
        cli_say("%s: it is imported " FACTS_IMPORT, path);
    return true;
}

/* ---- a folder ---- */

/* The first event of all. False, after saying so: a trace cannot be read, or they are of times
 * that no export can tell together. */
static bool find_begin(const struct cli_traces *traces, uint64_t *begin) {
    uint64_t end = 0;
    *begin = UINT64_MAX;
    for (unsigned i = 0; i < traces->n; i++) {
        char error[4600];
        struct cst_trace *trace = budget_open(traces->paths[i], error, sizeof error);
        if (!trace) {
            cli_say("%s", error);
            return false;
        }
        if (trace->n_events && trace->begin_ns < *begin)
            *begin = trace->begin_ns;
        if (trace->n_events && trace->end_ns > end)
            end = trace->end_ns;
        cst_free(trace);
    }
    if (*begin == UINT64_MAX)
        *begin = 0;
    if (end <= *begin || end - *begin < TIMELINE_MOST)
        return true;
    cli_say("the traces are more than 104 days apart: they are not of one run");
    return false;
}

/* Processes of two containers may have one number. Linux has none above 4194304. */
static uint64_t own_pid(uint64_t pid, uint64_t *pids, unsigned n) {
    for (unsigned i = 0; i < n; i++)
        if (pids[i] == pid)
            return 5000000 + n;
    return pid;
}

static bool add(struct export_run *run, const char *path, const struct request *request,
                uint64_t *pids) {
    struct look look;
    char program[128], group[200];
    if (!open_trace(path, &look))
        return false;
    struct exported exported = {.job = {.flows = !request->no_flows, .group = group}};
    bool done = prepare(&look, &exported);
    int rank = report_rank(&look);
    report_program(&look, program, sizeof program);
    if (rank >= 0)
        snprintf(group, sizeof group, "rank %d, %s", rank, program);
    else
        snprintf(group, sizeof group, "pid %llu, %s", (unsigned long long)exported.job.pid,
                 program);
    exported.job.pid = pids[run->n] = own_pid(exported.job.pid, pids, run->n);
    done = done && export_run_add(run, &exported.job);
    release(&exported);
    look_close(&look);
    return done;
}

static bool convert_folder(const struct request *request) {
    struct cli_traces traces;
    struct export_run run;
    static uint64_t pids[CLI_FOLDER_TRACES];
    uint64_t begin, written = 0;
    char error[512] = "";
    const char *to = request->outs[PERFETTO];
    if (!cli_traces_list(request->trace, &traces))
        return false;
    bool whole = find_begin(&traces, &begin);
    if (whole && !export_run_begin(&run, begin, to, request->force,
                                   (const char *const *)traces.paths, error, sizeof error)) {
        whole = false;
    } else if (whole) {
        for (unsigned i = 0; whole && i < traces.n; i++)
            whole = add(&run, traces.paths[i], request, pids);
        whole = export_run_end(&run, whole, &written, error, sizeof error);
    }
    cli_traces_free(&traces);
    if (*error)
        cli_say("%s: cannot be written: %s", to, error);
    else if (whole)
        cli_say("%s: %llu bytes", to, (unsigned long long)written);
    return whole;
}

static int run(const struct cli_verb *self, int argc, char **argv) {
    struct request request = {NULL, {NULL}, false, false};
    struct look look;
    int status = take_options(self, argc, argv, &request);
    if (status >= 0)
        return status;
    signal(SIGXFSZ, SIG_IGN); /* a limit on files is an error like others */
    if (cli_is_folder(request.trace))
        return convert_folder(&request) ? 0 : 1;
    if (!open_trace(request.trace, &look))
        return 1;
    bool done = convert(&look, &request);
    look_close(&look);
    return done ? 0 : 1;
}

const struct cli_verb cli_verb_export = {
    .name = "export",
    .synopsis =
        "export [--perfetto FILE] [--jsonl FILE] [--sqlite FILE] [--no-flows] [--force] TRACE\n"
        "cusplice export --perfetto FILE [--no-flows] [--force] FOLDER",
    .summary = "write a trace for Perfetto, as JSON lines, or as SQLite",
    .help = help,
    .run = run,
    .page =
        {
            .exits = "0; 1 where a file cannot be read or written (then nothing is left of it); 2 "
                     "for a bad option",
            .examples = "cusplice export --perfetto T.json T.cst\tA timeline for ui.perfetto.dev.\n"
                        "cusplice export --sqlite T.sqlite T.cst\tA database for queries.\n",
            .files = "TRACE.cst\tThe trace, which cusplice record or cusplice import made.\n",
            .see = "record import dump",
            .takes = CLI_TAKES_TRACE,
        },
};
