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

static const char help[] =
    "What is different in B. Steps are aligned by signature (kernels and shapes in order) and\n"
    "occurrence, never by time; the ops of two aligned steps one by one. Where no step is aligned "
    "so, "
    "or a\n"
    "trace is an imported profile, steps that are left over are aligned by the names of their ops "
    "alone\n"
    "(steps_aligned_by_names). Where none is aligned so either, not_aligned says why.\n"
    "\n"
    "      --by kernels      by kernel: calls, how many are aligned, how many are in one trace "
    "only,\n"
    "                        in graphs, aligned ops that went into a graph in B and not in A\n"
    "                        (gained) or the other way round (lost), host time (delta: B less A, "
    "of\n"
    "                        aligned ops), runs ended. Without --by, this\n"
    "      --by steps        by signature: steps, ops, in graphs, graph launches, time on average\n"
    "      --sort, --fields, --top, --format, --names   as for cusplice report\n" CLI_BUDGET_HELP
    "  -h, --help\n"
    "\n"
    "The field `in` says A or B for what is in one trace only.\n"
    "\n"
    "Of two FOLDERs (cusplice record -o FOLDER/), the processes of one rank are compared, those "
    "without a rank in the\n"
    "order of their names. Of one FOLDER, each process is compared with the first one. A row for "
    "each two: ops, share in\n"
    "graphs, graph launches, steps, how many are aligned and their time on average, ops gained and "
    "lost.\n"
    "\n"
    "Exit status: 0, also where they differ; 1 where a trace cannot be read; 2 for a bad option.\n";

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
static char *take_rank(struct cli_traces *traces, int rank) {
    for (unsigned i = 0; i < traces->n; i++)
        if (traces->paths[i] && rank_in(traces->paths[i]) == rank) {
            char *path = traces->paths[i];
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
        char *beside = take_rank(b, rank_in(a->paths[i]));
        good = add_pair(args, a->paths[i], beside, table);
        free(beside);
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

static int folders(const struct cli_verb *self, int argc, char **argv) {
    static const char *const needed[] = {"FOLDER", NULL};
    struct trace_args args;
    struct cli_traces runs[2] = {{NULL, 0}, {NULL, 0}};
    struct table table = {0};
    int status = trace_args_read(
        self, &args, argc, argv,
        TRACE_FORMAT | TRACE_SORT | TRACE_FIELDS | TRACE_TOP | TRACE_ONE_MORE, needed);
    if (status >= 0)
        return status;
    for (int i = 0; i < args.n_words; i++)
        if (!cli_is_folder(args.words[i])) {
            cli_say("%s: a folder is compared with a folder", args.words[i]);
            return 2;
        }
    status = 1;
    if (cli_traces_list(args.words[0], &runs[0]) &&
        (args.n_words < 2 || cli_traces_list(args.words[1], &runs[1]))) {
        diff_processes_begin(&table);
        if (args.n_words < 2 ? one_run(&args, &runs[0], &table)
                             : two_runs(&args, &runs[0], &runs[1], &table))
            status = trace_args_print(&args, &table);
        table_free(&table);
    }
    cli_traces_free(&runs[0]);
    cli_traces_free(&runs[1]);
    return status;
}

/* ---- two traces ---- */

static int run(const struct cli_verb *self, int argc, char **argv) {
    static const char *const needed[] = {"trace A", "trace B", NULL};
    struct trace_args args;
    struct look a, b;
    struct table table = {0};
    int status;
    if (cli_names_folder(argc, argv))
        return folders(self, argc, argv);
    status = trace_args_read(
        self, &args, argc, argv,
        TRACE_FORMAT | TRACE_SORT | TRACE_FIELDS | TRACE_NAMES | TRACE_TOP | TRACE_BY, needed);
    if (status >= 0)
        return status;
    status = 1;
    if (!trace_args_open(&args, args.words[0], &a))
        return 1;
    if (trace_args_open(&args, args.words[1], &b)) {
        (args.by == TRACE_BY_STEPS ? diff_steps : diff_kernels)(&a, &b, &table);
        status = trace_args_print(&args, &table);
        table_free(&table);
        look_close(&b);
    }
    look_close(&a);
    return status;
}

const struct cli_verb cli_verb_diff = {
    "diff",
    "diff [--by kernels|steps] [--sort FIELD] [--fields A,B] [--format F] A B\n"
    "       cusplice diff [--sort FIELD] [--fields A,B] [--top N] [--format F] FOLDER [FOLDER]",
    "two traces against each other",
    help,
    run,
};
