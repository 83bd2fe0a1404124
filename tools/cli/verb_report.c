/*
 * cusplice report: prints one of the tables of trace/report*.c, or writes the HTML page. main.c
 * calls it. It never changes the trace.
 */
#include <string.h>

#include "tools/cli/trace_args.h"
#include "tools/cli/trace_folder.h"
#include "tools/cli/verb.h"
#include "tools/trace/html.h"
#include "tools/trace/report.h"

static const char help[] =
    "Reports, each a table:\n"
    "  kernels   by kernel, memset and copy: calls, what became of them (in_graphs; eager: issued "
    "by\n"
    "            the program's own call; flushed: deferred, then issued one by one; open: "
    "deferred\n"
    "            when the trace ends), share in graphs, nodes patched, runs of graphs that it "
    "ended\n"
    "            (breaks), host time of its calls in all, on average, and that which 99 % keep; "
    "where\n"
    "            the trace has GPU times (cusplice record --gpu-times), these in all and on "
    "average\n"
    "            (gpu_ns, gpu_avg_ns; csv and json have them always, empty or null where not "
    "known)\n"
    "  segments  by list of ops: graph launches (exact, patched, built), segments and variants, "
    "nodes\n"
    "            patched, host time, build time, memory of the graphs (bytes: an estimate, each "
    "graph once), the\n"
    "            three most frequent things that came behind\n"
    "  cache     by signature (kernels and shapes in order): steps that are alike, their ops, "
    "graph\n"
    "            launches, share, when first seen, time on average\n"
    "  breaks    by reason: how often (count: calls of eager ops, flushes), ops issued one by "
    "one,\n"
    "            runs of graphs that ended there\n"
    "  coverage  by step: ops, what became of them, share in graphs\n"
    "\n"
    "A FOLDER of traces (cusplice record -o FOLDER/) is one table, a row for each process: rank "
    "(-1: none), when\n"
    "it began after the first one, time, ops, share in graphs, graph launches, steps, costliest "
    "break.\n"
    "\n"
    "Or one page for a browser, which needs no network: the tables and the ops of a step, to "
    "search.\n"
    "cusplice export --perfetto writes streams and threads over time.\n"
    "\n"
    "      --html FILE       writes the page; it holds 5,000,000 ops at most\n"
    "      --force           over a FILE that is there, but never TRACE\n"
    "      --sort FIELD      largest first, texts from A on; -FIELD (as --sort=-FIELD) the other\n"
    "                        way round\n"
    "      --fields A,B      these columns, in this order\n"
    "      --top N           N rows at most\n"
    "      --format FORMAT   table, csv, json or md; table and md show units, csv and json do "
    "not:\n"
    "                        fields that end in _ns are nanoseconds, share is in percent\n"
    "      --names FORM      base, demangled or mangled; kernels of one name are one row. base\n"
    "                        without it\n" CLI_BUDGET_HELP "  -h, --help\n"
    "\n"
    "A field that does not exist is told with the nearest one; csv's first line lists them all.\n"
    "\n"
    "Exit status: 0; 1 where the trace cannot be read; 2 for a bad option.\n";

static const struct report *find(const char *name) {
    const char *names[16] = {NULL};
    for (unsigned i = 0; report_list[i].name; i++) {
        names[i] = report_list[i].name;
        if (strcmp(names[i], name) == 0)
            return &report_list[i];
    }
    cli_say("there is no report '%s'; the nearest is '%s'", name, cus_nearest(name, names));
    return NULL;
}

static bool wants_html(char **argv) {
    for (; *argv && strcmp(*argv, "--") != 0; argv++)
        if (strcmp(*argv, "--html") == 0 || strncmp(*argv, "--html=", 7) == 0)
            return true;
    return false;
}

static int html(const struct cli_verb *self, int argc, char **argv) {
    static const char *const needed[] = {"TRACE", NULL};
    struct trace_args args;
    struct look look;
    char error[9000];
    int status =
        trace_args_read(self, &args, argc, argv, TRACE_HTML | TRACE_FORCE | TRACE_NAMES, needed);
    if (status >= 0)
        return status;
    if (!trace_args_open(&args, args.words[0], &look))
        return 1;
    status = trace_html(&look, args.html, args.force, error, sizeof error);
    look_close(&look);
    if (status)
        cli_say("%s", error);
    return status;
}

/* One trace after another, so that one is in memory at a time. */
static int processes(const struct cli_verb *self, int argc, char **argv) {
    static const char *const needed[] = {"FOLDER", NULL};
    struct trace_args args;
    struct cli_traces traces;
    struct table table = {0};
    struct look look;
    int status = trace_args_read(self, &args, argc, argv,
                                 TRACE_FORMAT | TRACE_SORT | TRACE_FIELDS | TRACE_TOP, needed);
    if (status >= 0)
        return status;
    if (!cli_traces_list(args.words[0], &traces))
        return 1;
    report_processes_begin(&table);
    unsigned read = 0;
    while (read < traces.n && trace_args_open(&args, traces.paths[read], &look)) {
        report_processes_add(&look, &table);
        look_close(&look);
        read++;
    }
    report_processes_end(&table);
    status = read == traces.n ? trace_args_print(&args, &table) : 1;
    table_free(&table);
    cli_traces_free(&traces);
    return status;
}

static int run(const struct cli_verb *self, int argc, char **argv) {
    static const char *const needed[] = {
        "a report (kernels, segments, cache, breaks, coverage; or --html FILE)", "TRACE", NULL};
    struct trace_args args;
    struct look look;
    struct table table = {0};
    if (wants_html(argv))
        return html(self, argc, argv);
    if (cli_names_folder(argc, argv))
        return processes(self, argc, argv);
    int status =
        trace_args_read(self, &args, argc, argv,
                        TRACE_FORMAT | TRACE_SORT | TRACE_FIELDS | TRACE_NAMES | TRACE_TOP, needed);
    if (status >= 0)
        return status;
    const struct report *report = find(args.words[0]);
    if (!report)
        return 2;
    if (!trace_args_open(&args, args.words[1], &look))
        return 1;
    report->fill(&look, &table);
    status = trace_args_print(&args, &table);
    table_free(&table);
    look_close(&look);
    return status;
}

const struct cli_verb cli_verb_report = {
    "report",
    "report kernels|segments|cache|breaks|coverage [--sort FIELD] [--fields A,B] [--top N] "
    "[--format F] TRACE\n"
    "       cusplice report [--sort FIELD] [--fields A,B] [--top N] [--format F] FOLDER\n"
    "       cusplice report --html FILE [--force] [--names FORM] TRACE",
    "tables of a trace: kernels, segments, cache, breaks, coverage",
    help,
    run,
};
