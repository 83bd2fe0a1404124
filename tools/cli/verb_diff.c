/*
 * cusplice diff: prints the differences of two traces. main.c calls it; trace/diff.c compares. It
 * never changes a trace.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/trace_args.h"
#include "tools/cli/trace_folder.h"
#include "tools/cli/verb.h"
#include "tools/trace/report.h"

enum { EXIT_BAD = 2 };

static const char help[] =
    "What is different in B. Steps are aligned by signature (kernels and shapes in order) and\n"
    "occurrence, never by time; the ops of two aligned steps one by one. Where no step is aligned "
    "so, or a trace is an imported profile, steps that are left over are aligned by the names of "
    "their ops alone (steps_aligned_by_names). Where none is aligned so either, not_aligned says "
    "why.\n"
    "\n" CLI_OPTIONS "\n"
    "The field `in` says A or B for what is in one trace only.\n"
    "\n"
    "Of two FOLDERs (cusplice record -o FOLDER/), the processes of one rank are compared, those "
    "without a rank in the\n"
    "order of their names. Of one FOLDER, each process is compared with the first one. A row for "
    "each two: ops, share in\n"
    "graphs, graph launches, steps, how many are aligned and their time on average, ops gained and "
    "lost.\n";

/* ---- folders ---- */

/* What the file's name says (record -o FOLDER/); -1: nothing. */
static int rank_in(const char *path) {
    const char *slash = strrchr(path, '/');
    int rank = -1, end = 0;
    if (sscanf(slash ? slash + 1 : path, "rank-%6d.%n", &rank, &end) != 1 || !end)
        return -1;
    return rank;
}

/* The first trace of this rank that is not taken yet; NULL: there is none. */
static const char *take_rank(struct cli_traces *traces, int rank) {
    for (unsigned i = 0; i < traces->n; i++)
        if (traces->paths[i] && rank_in(traces->paths[i]) == rank) {
            const char *path = traces->paths[i];
            traces->paths[i] = NULL;
            return path;
        }
    return NULL;
}

/* Either may be NULL. */
static bool add_pair(const struct trace_args *args, const char *a, const char *b,
                     struct table *table) {
    struct look looks[2];
    bool open_a = a && trace_args_open(args, a, &looks[0]);
    bool open_b = b && (open_a || !a) && trace_args_open(args, b, &looks[1]);
    bool good = open_a == (a != NULL) && open_b == (b != NULL);
    if (good)
        diff_processes_add(a ? &looks[0] : NULL, b ? &looks[1] : NULL, table);
    if (open_b)
        look_close(&looks[1]);
    if (open_a)
        look_close(&looks[0]);
    return good;
}

/* Each rank of A against that of B; then what B has alone. */
static bool two_runs(const struct trace_args *args, struct cli_traces *a, struct cli_traces *b,
                     struct table *table) {
    bool good = true;
    for (unsigned i = 0; i < a->n && good; i++) {
        good = add_pair(args, a->paths[i], take_rank(b, rank_in(a->paths[i])), table);
    }
    for (unsigned i = 0; i < b->n && good; i++)
        good = !b->paths[i] || add_pair(args, NULL, b->paths[i], table);
    return good;
}

/* Each against the first one. */
static bool one_run(const struct trace_args *args, const struct cli_traces *run,
                    struct table *table) {
    bool good = true;
    for (unsigned i = 1; i < run->n && good; i++)
        good = add_pair(args, run->paths[0], run->paths[i], table);
    if (good && run->n < 2)
        cli_say("%s: there is one trace in it, and nothing to compare it with", args->words[0]);
    return good && run->n >= 2;
}

/* The files that a verb reads, then NULL; the strings stay those of the lists. */
static const char **all_of(const struct cli_traces runs[2]) {
    const char **all = calloc((size_t)runs[0].n + runs[1].n + 1, sizeof *all);
    for (unsigned i = 0; all && i < runs[0].n; i++)
        all[i] = runs[0].paths[i];
    for (unsigned i = 0; all && i < runs[1].n; i++)
        all[runs[0].n + i] = runs[1].paths[i];
    return all;
}

/* B's paths are taken out of their list while the rows are made. */
static int print_folders(struct trace_args *args, struct cli_traces runs[2]) {
    struct cli_traces left = {calloc((size_t)runs[1].n + 1, sizeof *left.paths), runs[1].n};
    const char **all = all_of(runs);
    struct table table = {0};
    int status = 1;
    diff_processes_begin(&table);
    for (unsigned i = 0; left.paths && i < left.n; i++)
        left.paths[i] = runs[1].paths[i];
    if (!all || !left.paths)
        cli_say("not enough memory");
    else if (runs[1].n ? two_runs(args, &runs[0], &left, &table) : one_run(args, &runs[0], &table))
        status = trace_args_print(args, &table, all);
    table_free(&table);
    free(left.paths);
    free(all);
    return status;
}

static int folders(struct trace_args *args) {
    struct cli_traces runs[2] = {{NULL, 0}, {NULL, 0}};
    int status = 1;
    if (args->by == TRACE_BY_STEPS) {
        cli_say("--by steps goes with two traces: a folder has a row for each process");
        return EXIT_BAD;
    }
    for (int i = 0; i < args->n_words; i++)
        if (!cli_is_folder(args->words[i])) {
            cli_say("%s: a folder is compared with a folder", args->words[i]);
            return EXIT_BAD;
        }
    if (cli_traces_list(args->words[0], &runs[0]) &&
        (args->n_words < 2 || cli_traces_list(args->words[1], &runs[1])))
        status = print_folders(args, runs);
    cli_traces_free(&runs[0]);
    cli_traces_free(&runs[1]);
    return status;
}

/* ---- two traces ---- */

static int traces(struct trace_args *args) {
    const char *const from[] = {args->words[0], args->words[1], NULL};
    struct look a, b;
    struct table table = {0};
    int status = 1;
    if (!trace_args_open(args, args->words[0], &a))
        return 1;
    if (trace_args_open(args, args->words[1], &b)) {
        (args->by == TRACE_BY_STEPS ? diff_steps : diff_kernels)(&a, &b, &table);
        status = trace_args_print(args, &table, from);
        table_free(&table);
        look_close(&b);
    }
    look_close(&a);
    return status;
}

static int run(const struct cli_verb *self, int argc, char **argv) {
    struct trace_args args;
    bool folder = false;
    int status = trace_args_read(self, &args, argc, argv,
                                 TRACE_TABLE | TRACE_NAMES | TRACE_BY | TRACE_FORCE, NULL);
    if (status >= 0)
        return status;
    for (int i = 0; i < args.n_words; i++)
        folder |= cli_is_folder(args.words[i]);
    if (args.n_words > 2)
        cli_say("%s: more than is expected (see --help)", args.words[2]);
    else if (folder)
        return folders(&args);
    else if (args.n_words < 2)
        cli_say("trace %s is missing (see cusplice diff --help)", args.n_words ? "B" : "A");
    else
        return traces(&args);
    return EXIT_BAD;
}

const struct cli_verb cli_verb_diff = {
    .name = "diff",
    .synopsis =
        "diff [--by kernels|steps] [--sort FIELD] [--fields A,B] [--format F] [-o FILE] A B\n"
        "cusplice diff [--sort FIELD] [--fields A,B] [--top N] [--format F] [-o FILE] "
        "FOLDER [FOLDER]",
    .summary = "two traces, or the processes of two runs, against each other",
    .help = help,
    .run = run,
    .page =
        {
            .exits =
                "0, also where they differ; 1 where a trace cannot be read; 2 for a bad option",
            .examples = "cusplice diff A.cst B.cst\tWhat is different in B, by kernel.\n"
                        "cusplice diff --by steps A.cst B.cst\tThe same by step.\n",
            .files = "TRACE.cst\tThe trace, which cusplice record or cusplice import made.\n",
            .see = "record report",
            .takes = CLI_TAKES_TRACE,
        },
};
