/*
 * cusplice export: a trace in formats of other tools. All files are written beside their names and
 * named when they are whole.
 */
#include "tools/cli/trace_args.h"
#include "tools/cli/verb.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/trace/dump.h"
#include "tools/trace/export.h"

enum { EXIT_BAD = 2, FORMATS = 3 };

static const char help[] =
    "Writes a trace (.cst, as cusplice record and cusplice import make them) in formats that other "
    "tools read.\n"
    "At least one is named; OUT may be - (standard output) but for SQLite.\n"
    "\n"
    "      --perfetto OUT    Chrome's JSON: opens in ui.perfetto.dev; a track for each stream and "
    "each thread,\n"
    "                        arrows from the call to the execution\n"
    "      --jsonl OUT       a header object, then one object for each event, a line each: what "
    "cusplice dump prints\n"
    "      --sqlite OUT      a database with the tables and columns of nsys export where they mean "
    "the same,\n"
    "                        and more in tables named CUSPLICE_...\n"
    "      --no-flows        --perfetto without the arrows: about half the size\n"
    "      --force           replace files that are there, but never TRACE\n" CLI_BUDGET_HELP
    "  -h, --help\n"
    "\n"
    "Perfetto and SQLite have an execution for each op. Where the trace has no GPU times (cusplice "
    "record\n"
    "--gpu-times) it stands where the op was issued (by a graph launch, by a flush, or by its own "
    "call), 1 us long,\n"
    "less where the next one on the stream is issued sooner. Exports say which it is (gpu_times). "
    "Ops that were not\n"
    "issued when the trace ended have a call and no execution.\n"
    "\n"
    "Exit status: 0; 1 where a file cannot be read or written (then nothing is left of it); 2 for "
    "a bad option.\n";

struct request {
    const char *trace;
    const char *outs[FORMATS];
    bool force, no_flows;
};

struct exported {
    struct export_job job;
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

static const struct format {
    const char *option;
    bool (*write)(struct exported *, const char *, char *, size_t);
} formats[FORMATS] = {
    {"--perfetto", export_page},
    {"--jsonl", export_lines},
    {"--sqlite", export_database},
};

/* --perfetto OUT, --perfetto=OUT. 1: taken; 0: another option; -1: no value. */
static int take_format(int *i, int argc, char **argv, struct request *request) {
    for (unsigned f = 0; f < FORMATS; f++) {
        size_t bytes = strlen(formats[f].option);
        if (strncmp(argv[*i], formats[f].option, bytes) != 0)
            continue;
        const char *value = NULL;
        if (argv[*i][bytes] == '=')
            value = argv[*i] + bytes + 1;
        else if (argv[*i][bytes])
            continue;
        else if (*i + 1 < argc)
            value = argv[++*i];
        if (!value || !*value) {
            cli_say("%s: the name of a file is missing", formats[f].option);
            return -1;
        }
        if (request->outs[f]) {
            cli_say("%s: given twice", formats[f].option);
            return -1;
        }
        request->outs[f] = value;
        return 1;
    }
    return 0;
}

static bool take_options(int argc, char **argv, struct request *request) {
    static const char *const names[] = {"--perfetto",    "--jsonl", "--sqlite",
                                        "--no-flows",    "--force", "--max-memory",
                                        "--max-seconds", "--help",  NULL};
    for (int i = 1; i < argc; i++) {
        int taken = take_format(&i, argc, argv, request);
        if (!taken)
            taken = cli_budget_option(argv, &i);
        if (taken < 0)
            return false;
        if (taken)
            continue;
        if (strcmp(argv[i], "--force") == 0) {
            request->force = true;
        } else if (strcmp(argv[i], "--no-flows") == 0) {
            request->no_flows = true;
        } else if (*argv[i] == '-') {
            cli_say("unknown option %s; the nearest is %s", argv[i], cus_nearest(argv[i], names));
            return false;
        } else if (request->trace) {
            cli_say("%s: one trace at a time", argv[i]);
            return false;
        } else {
            request->trace = argv[i];
        }
    }
    unsigned n = 0;
    for (unsigned f = 0; f < FORMATS; f++)
        n += request->outs[f] != NULL;
    if (!request->trace)
        cli_say("export: a trace is missing (see cusplice export --help)");
    else if (!n)
        cli_say("export: a format is missing: --perfetto OUT, --jsonl OUT or --sqlite OUT");
    return request->trace && n;
}

static bool write_all(struct exported *exported, const struct request *request) {
    for (unsigned f = 0; f < FORMATS; f++) {
        char error[512];
        if (!request->outs[f])
            continue;
        if (!formats[f].write(exported, request->outs[f], error, sizeof error)) {
            cli_say("%s: cannot be written: %s", request->outs[f], error);
            return false;
        }
        cli_say("%s: %llu bytes", request->outs[f], (unsigned long long)exported->job.bytes);
    }
    return true;
}

static bool convert(const struct look *look, const struct request *request) {
    const struct cst_trace *trace = look->trace;
    const char *const from[] = {trace->path, NULL};
    struct exported exported = {
        .job = {.trace = trace,
                .from = from,
                .model = look->model,
                .force = request->force,
                .flows = !request->no_flows,
                .pid = export_pid(trace)},
        .look = look,
    };
    if (!timeline_fits(trace)) {
        cli_say("%s: its times are more than 104 days apart, which no export can tell: it is "
                "corrupt",
                trace->path);
        return false;
    }
    struct kind_name *names = kind_names_make(trace);
    struct timeline_span *spans = timeline_make(look->model);
    bool written = false;
    exported.job.names = names;
    exported.job.spans = spans;
    if (names && spans)
        written = write_all(&exported, request);
    else
        cli_say("%s: not enough memory", trace->path);
    free(spans);
    kind_names_free(names, trace->n_kinds);
    return written;
}

static int run(const struct cli_verb *self, int argc, char **argv) {
    struct request request = {NULL, {NULL}, false, false};
    struct look look;
    char error[4600];
    (void)self;
    if (!take_options(argc, argv, &request))
        return EXIT_BAD;
    signal(SIGXFSZ, SIG_IGN); /* a limit on files is an error like others */
    if (!look_open(&look, request.trace, NAMES_BASE, error, sizeof error)) {
        cli_say("%s", error);
        return 1;
    }
    if (look.trace->torn)
        cli_say("%s: %llu bytes at its end are torn and left out", request.trace,
                (unsigned long long)look.trace->torn);
    bool done = convert(&look, &request);
    look_close(&look);
    return done ? 0 : 1;
}

const struct cli_verb cli_verb_export = {
    "export",
    "export [--perfetto OUT] [--jsonl OUT] [--sqlite OUT] [--no-flows] [--force] TRACE",
    "write a trace for Perfetto, as JSON lines, or as SQLite",
    help,
    run,
};
