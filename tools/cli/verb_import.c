/*
 * cusplice import: makes a trace from a profile of nsys, or from an SQLite export. main.c calls
 * it; trace/import.c does the work. It never changes the database.
 */
#include "tools/cli/trace_args.h"
#include "tools/cli/verb.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/trace/import.h"

enum { EXIT_BAD = 2 };

static const char help[] = "Makes a trace (.cst) of FILE.sqlite, which nsys export --type=sqlite "
                           "or cusplice export --sqlite wrote. So what\n"
                           "a program would do under cusplice can be asked of its profile.\n"
                           "\n" CLI_OPTIONS "\n"
                           "Kernels, memsets, copies and records of events become ops, with shape, "
                           "stream, thread and time of their calls; their params are\n"
                           "not in a profile. When they ran on the GPU is kept. What no call asked "
                           "for is left out, and counted: pages of\n"
                           "managed memory that moved, kernels that kernels started. Calls that "
                           "wait end steps, other calls are barriers with\n"
                           "the reach that they have in the library; calls in no table are "
                           "barriers of the whole process, and are counted. A\n"
                           "wait whose stream is not in the profile is taken to be for the one "
                           "that its thread worked on last.\n";

static bool take_pid(const struct cli_option *self, const char *text) {
    char *end;
    uint64_t *pid = self->to;
    *pid = strtoull(text, &end, 10);
    if (*text >= '0' && *text <= '9' && !*end && *pid)
        return true;
    cli_say("--pid %s: the number of a process is expected", text);
    return false;
}

/* -1: go on; else the exit status. */
static int take_options(const struct cli_verb *self, int argc, char **argv,
                        struct import_options *options) {
    const struct cli_option own[] = {
        CLI_OUTPUT(cli_take_text, &options->to, "; without it, FILE.sqlite becomes FILE.cst"),
        CLI_OPTION("pid", 0, take_pid, &options->pid, "N",
                   "which process, where the profile is of several"),
        CLI_FLAG(
            "graphs", &options->graphs,
            "what ran in the program's own graphs counts as launched one by one; without it, it "
            "is left out, and the launch of such a graph is a call"),
        CLI_FORCE(&options->force),
        {0}};
    const struct cli_option *const tables[] = {own, cli_budget_options, NULL};
    struct cli_words words;
    int status = cli_options_read(self, argc, argv, CLI_WORDS, tables, &words);
    if (status >= 0)
        return status;
    options->from = words.at[0];
    if (options->to && strcmp(options->to, "-") == 0) {
        cli_say("-o -: a trace goes into a file, whose end says that it is whole");
        return EXIT_BAD;
    }
    if (words.n == 1)
        return -1;
    if (words.n)
        cli_say("%s: one file at a time", words.at[1]);
    else
        cli_say("import: a file is missing (see cusplice import --help)");
    return EXIT_BAD;
}

/* FILE.sqlite gives FILE.cst. */
static char *name_of(const char *from) {
    size_t bytes = strlen(from);
    char *name = malloc(bytes + 5);
    const char *dot = strrchr(from, '.');
    if (dot && (strcmp(dot, ".sqlite") == 0 || strcmp(dot, ".db") == 0))
        bytes = (size_t)(dot - from);
    if (name)
        sprintf(name, "%.*s.cst", (int)bytes, from);
    return name;
}

typedef unsigned long long ull;

static void tell(const struct import_options *options, const struct import_counts *counts) {
    cli_say("%s: %llu ops, %llu calls", options->to, (ull)counts->ops, (ull)counts->calls);
    if (counts->in_graphs)
        cli_say("%llu ops in graphs of the program are left out (--graphs takes them in)",
                (ull)counts->in_graphs);
    if (counts->migrations)
        cli_say("%llu migrations of pages of managed memory are left out", (ull)counts->migrations);
    if (counts->uncalled)
        cli_say("%llu executions that no call asked for are left out", (ull)counts->uncalled);
    if (counts->unknown)
        cli_say("%llu calls are in no table and count as barriers, first %s", (ull)counts->unknown,
                counts->unknown_name);
}

static int run(const struct cli_verb *self, int argc, char **argv) {
    struct import_options options = {.from = NULL};
    struct import_counts counts;
    char error[1024];
    int status = take_options(self, argc, argv, &options);
    if (status >= 0)
        return status;
    signal(SIGXFSZ, SIG_IGN); /* a limit on files is an error like others */
    char *name = options.to ? NULL : name_of(options.from);
    options.to = options.to ? options.to : name;
    bool done = options.to && import_file(&options, &counts, error, sizeof error);
    if (done)
        tell(&options, &counts);
    else
        cli_say("%s", options.to ? error : "not enough memory");
    free(name);
    return done ? 0 : 1;
}

const struct cli_verb cli_verb_import = {
    .name = "import",
    .synopsis = "import [-o FILE] [--pid N] [--graphs] [--force] FILE.sqlite",
    .summary = "make a trace of a profile that nsys exported",
    .help = help,
    .run = run,
    .page =
        {
            .exits = "0; 1 where the file cannot be read or written; 2 for a bad option",
            .examples =
                "cusplice import -o P.cst T.sqlite\tA trace of a profile that nsys exported.\n",
            .files = "FILE.cst\tThe trace, where -o names no other file.\n",
            .see = "export whatif",
            .takes = CLI_TAKES_DATABASE,
        },
};
