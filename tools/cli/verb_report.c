/*
 * cusplice report: prints a page about a trace (trace/summary.c) or one of the tables of
 * trace/report*.c, or writes the HTML page. main.c calls it. It never changes the trace.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tools/cli/trace_args.h"
#include "tools/cli/trace_folder.h"
#include "tools/cli/verb.h"
#include "tools/trace/html.h"
#include "tools/trace/report.h"
#include "tools/trace/summary.h"

static const char help[] =
    "Without a report's name: one page about TRACE, which says what it was, how much of it went "
    "into graphs, which kernels took most of the time, what kept ops out of graphs, and what to "
    "try next.\n"
    "\n"
    "Reports, each a table:\n"
    "  kernels   by kernel, memset and copy: calls, what became of them (in_graphs; eager: issued "
    "by the program's own call; flushed: deferred, then issued one by one; open: deferred when the "
    "trace ends), share in graphs, nodes patched, runs of graphs that it ended (breaks), host time "
    "of its calls in all, on average, and that which 99 % keep; where the trace has GPU times "
    "(cusplice record --gpu-times), these in all and on average (gpu_ns, gpu_avg_ns; csv and json "
    "have them always, empty or null where they are not known)\n"
    "  segments  by list of ops: graph launches (exact, patched, built), segments and variants, "
    "nodes patched, host time, build time, memory of the graphs (bytes: an estimate, each graph "
    "once), the three most frequent things that came behind\n"
    "  cache     by signature (kernels and shapes in order): steps that are alike, their ops, "
    "graph launches, share, when first seen, time on average\n"
    "  breaks    by reason: how often (count: calls of eager ops, flushes), ops issued one by one, "
    "runs of graphs that ended there\n"
    "  coverage  by step: ops, what became of them, share in graphs\n"
    "\n"
    "A FOLDER of traces (cusplice record -o FOLDER/) is one table, a row for each process: rank "
    "(-1: none), when it began after the first one, time, ops, share in graphs, graph launches, "
    "steps, costliest break.\n"
    "\n"
    "cusplice export --perfetto writes streams and threads over time.\n"
    "\n" CLI_OPTIONS "\n"
    "Of a field that does not exist the one that is near is told, or all. csv's first line lists "
    "them.\n";

enum { REPORT_OPTIONS = TRACE_TABLE | TRACE_NAMES | TRACE_HTML | TRACE_FORCE, EXIT_BAD = 2 };

static const struct report *report_of(const char *name) {
    for (const struct report *report = report_list; report->name; report++)
        if (strcmp(report->name, name) == 0)
            return report;
    return NULL;
}

static void say_none(const char *name) {
    const char *names[16] = {NULL};
    char all[128] = "";
    for (unsigned i = 0; report_list[i].name; i++) {
        size_t used = strlen(all);
        names[i] = report_list[i].name;
        snprintf(all + used, sizeof all - used, "%s%s", i ? ", " : "", names[i]);
    }
    const char *near = cus_near(name, names);
    if (near)
        cli_say("there is no report '%s'; the nearest is '%s'", name, near);
    else
        cli_say("there is no report '%s': there are %s", name, all);
}

/* -1: go on; else the exit status. */
static int judge(const struct trace_args *args) {
    const struct table_view *view = &args->view;
    const char *first = args->n_words ? args->words[0] : NULL;
    if (!first)
        cli_say("TRACE is missing; a report may stand in front of it (kernels, segments, cache, "
                "breaks, coverage)");
    else if (args->n_words > (args->html ? 1 : 2))
        cli_say("%s: more than is expected (see --help)", args->words[args->n_words - 1]);
    else if (args->n_words == 1 && report_of(first) && access(first, F_OK) != 0)
        cli_say("TRACE is missing (see cusplice report --help)");
    else if (args->html && (view->sort || view->fields || view->top || view->format ||
                            args->out.path || args->wide))
        cli_say("--html is a page of its own: only --names and --force go with it");
    else if (args->n_words == 2 && !report_of(first))
        say_none(first);
    else if (args->n_words == 2 && cli_is_folder(args->words[1]))
        cli_say("%s: more than is expected: a folder of traces has one table", args->words[0]);
    else
        return -1;
    return EXIT_BAD;
}

static int html(const struct trace_args *args, const struct look *look) {
    char error[9000];
    int status = trace_html(look, args->html, args->out.force, error, sizeof error);
    if (status)
        cli_say("%s", error);
    return status;
}

/* One trace after another, so that one is in memory at a time. */
static int processes(struct trace_args *args) {
    struct cli_traces traces;
    struct table table = {0};
    struct look look;
    if (!cli_traces_list(args->words[0], &traces))
        return 1;
    report_processes_begin(&table);
    unsigned read = 0;
    while (read < traces.n && trace_args_open(args, traces.paths[read], &look)) {
        report_processes_add(&look, &table);
        look_close(&look);
        read++;
    }
    report_processes_end(&table);
    int status = 1;
    if (read == traces.n)
        status = trace_args_print(args, &table, (const char *const *)traces.paths);
    table_free(&table);
    cli_traces_free(&traces);
    return status;
}

/* The page; in other formats than the table, the tables on it. */
static int summary(struct trace_args *args, const struct look *look) {
    const char *const from[] = {look->trace->path, NULL};
    struct table kernels = {0}, breaks = {0};
    char error[512];
    int status = 1;
    summary_fill(look, &kernels, &breaks);
    kernels.also = &breaks;
    if (!args->view.top)
        args->view.top = SUMMARY_ROWS;
    if (args->view.format != TABLE_TEXTUAL || kernels.failed || breaks.failed) {
        kernels.failed |= breaks.failed;
        status = trace_args_print(args, &kernels, from);
    } else if (!table_check(&kernels, &args->view, error, sizeof error)) {
        cli_say("%s", error);
        status = EXIT_BAD;
    } else if (trace_args_begin(args, from)) {
        summary_print(look, &kernels, &breaks, &args->view, stdout);
        status = trace_args_end(args);
    }
    table_free(&kernels);
    table_free(&breaks);
    return status;
}

static int table(struct trace_args *args, const struct look *look) {
    struct table table = {0};
    report_of(args->words[0])->fill(look, &table);
    int status = trace_args_print(args, &table, (const char *const[]){look->trace->path, NULL});
    table_free(&table);
    return status;
}

static int run(const struct cli_verb *self, int argc, char **argv) {
    struct trace_args args;
    struct look look;
    int status = trace_args_read(self, &args, argc, argv, REPORT_OPTIONS, NULL);
    status = status < 0 ? judge(&args) : status;
    if (status >= 0)
        return status;
    const char *path = args.words[args.n_words - 1];
    if (!args.html && cli_is_folder(path))
        return processes(&args);
    if (!trace_args_open(&args, path, &look))
        return 1;
    if (args.html)
        status = html(&args, &look);
    else
        status = (args.n_words == 2 ? table : summary)(&args, &look);
    look_close(&look);
    return status;
}

const struct cli_verb cli_verb_report = {
    .name = "report",
    .synopsis =
        "report [kernels|segments|cache|breaks|coverage] [--sort FIELD] [--fields A,B] [--top N] "
        "[--wide] [--format table|csv|json|md] [-o FILE] TRACE\n"
        "cusplice report [--sort FIELD] [--fields A,B] [--top N] [--format F] [-o FILE] FOLDER\n"
        "cusplice report --html FILE [--force] [--names FORM] TRACE",
    .summary = "what is in a trace: a page, a table, or a page for a browser",
    .help = help,
    .run = run,
    .page =
        {
            .exits = "0; 1 where the trace cannot be read; 2 for a bad option",
            .examples = "cusplice report T.cst\tOne page: what it was, what kept ops out of "
                        "graphs, what to try next.\n"
                        "cusplice report kernels --sort breaks --top 20 T.cst\tThe kernels that "
                        "end the most runs.\n"
                        "cusplice report --html T.html T.cst\tA page for a browser.\n",
            .files = "TRACE.cst\tThe trace, which cusplice record or cusplice import made.\n",
            .see = "record info diff whatif",
            .words = "kernels segments cache breaks coverage",
            .takes = CLI_TAKES_TRACE,
        },
};
