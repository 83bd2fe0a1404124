/*
 * cusplice diff: prints the differences of two traces. main.c calls it; trace/diff.c compares. It
 * never changes a trace.
 */
#include "tools/cli/trace_args.h"
#include "tools/cli/verb.h"
#include "tools/trace/report.h"

static const char help[] =
    "What is different in B. Steps are aligned by signature (kernels and shapes in order) and\n"
    "occurrence, never by time; the ops of two aligned steps one by one. Where no step is aligned "
    "so, "
    "or a trace is an imported profile, steps that are left over are aligned by the names of their "
    "ops alone (steps_aligned_by_names). Where none is aligned so either, not_aligned says why.\n"
    "\n" CLI_OPTIONS "\n"
    "The field `in` says A or B for what is in one trace only.\n"
    "\n"
    "Exit status: 0, also where they differ; 1 where a trace cannot be read; 2 for a bad option.\n";

static int run(const struct cli_verb *self, int argc, char **argv) {
    static const char *const needed[] = {"trace A", "trace B", NULL};
    struct trace_args args;
    struct look a, b;
    struct table table = {0};
    int status;
    status = trace_args_read(self, &args, argc, argv,
                             TRACE_TABLE | TRACE_NAMES | TRACE_BY | TRACE_FORCE, needed);
    if (status >= 0)
        return status;
    status = 1;
    if (!trace_args_open(&args, args.words[0], &a))
        return 1;
    if (trace_args_open(&args, args.words[1], &b)) {
        (args.by == TRACE_BY_STEPS ? diff_steps : diff_kernels)(&a, &b, &table);
        status = trace_args_print(&args, &table,
                                  (const char *const[]){args.words[0], args.words[1], NULL});
        table_free(&table);
        look_close(&b);
    }
    look_close(&a);
    return status;
}

const struct cli_verb cli_verb_diff = {
    "diff",
    "diff [--by kernels|steps] [--sort FIELD] [--fields A,B] [--format F] [-o FILE] A B",
    "two traces against each other",
    help,
    run,
};
