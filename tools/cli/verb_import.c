/*
 * cusplice import: a trace out of a profile that nsys took, or out of an SQLite export of a trace.
 */
#include "tools/cli/trace_args.h"
#include "tools/cli/verb.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/trace/import.h"

enum { EXIT_BAD = 2 };

static const char help[] =
    "Makes a trace (.cst) of FILE.sqlite, which nsys export --type=sqlite or cusplice export "
    "--sqlite wrote. So what\n"
    "a program would do under cusplice can be asked of its profile.\n"
    "\n"
    "  -o, --output OUT      the trace; without it FILE.cst\n"
    "      --pid N           which process, where the profile is of several\n"
    "      --graphs          what ran in the program's own graphs counts as launched one by one; "
    "without it, it is\n"
    "                        left out, and the launch of such a graph is a call\n"
    "      --force           replace OUT, but never FILE.sqlite\n" CLI_BUDGET_HELP "  -h, --help\n"
    "\n"
    "Kernels, memsets and copies become ops, with shape, stream, thread and time of their calls; "
    "their params are\n"
    "not in a profile. When they ran on the GPU is kept. What no call asked for is left out, and "
    "counted: pages of\n"
    "managed memory that moved, kernels that kernels started. Calls that wait end steps, other "
    "calls are barriers with\n"
    "the reach that they have in the library; calls in no table are barriers of the whole process, "
    "and are counted. A\n"
    "wait whose stream is not in the profile is taken to be for the one that its thread worked on "
    "last.\n"
    "\n"
    "Exit status: 0; 1 where the file cannot be read or written; 2 for a bad option.\n";

static bool take_pid(const char *text, uint64_t *pid) {
    char *end;
    *pid = strtoull(text, &end, 10);
    if (*text >= '0' && *text <= '9' && !*end && *pid)
        return true;
    cli_say("--pid %s: the number of a process is expected", text);
    return false;
}

static bool is(const char *word, const char *a, const char *b) {
    return strcmp(word, a) == 0 || strcmp(word, b) == 0;
}

static bool take_options(int argc, char **argv, struct import_options *options) {
    static const char *const names[] = {"--output",     "--pid",         "--graphs", "--force",
                                        "--max-memory", "--max-seconds", "--help",   NULL};
    for (int i = 1; i < argc; i++) {
        int taken = cli_budget_option(argv, &i);
        if (taken < 0)
            return false;
        if (taken)
            continue;
        if (is(argv[i], "-o", "--output") || strcmp(argv[i], "--pid") == 0) {
            const char *option = argv[i];
            if (++i == argc) {
                cli_say("%s: a value is missing", option);
                return false;
            }
            if (strcmp(option, "--pid") != 0)
                options->to = argv[i];
            else if (!take_pid(argv[i], &options->pid))
                return false;
        } else if (strncmp(argv[i], "--output=", 9) == 0) {
            options->to = argv[i] + 9;
        } else if (strncmp(argv[i], "--pid=", 6) == 0) {
            if (!take_pid(argv[i] + 6, &options->pid))
                return false;
        } else if (strcmp(argv[i], "--graphs") == 0) {
            options->graphs = true;
        } else if (strcmp(argv[i], "--force") == 0) {
            options->force = true;
        } else if (*argv[i] == '-') {
            cli_say("unknown option %s; the nearest is %s", argv[i], cus_nearest(argv[i], names));
            return false;
        } else if (options->from) {
            cli_say("%s: one file at a time", argv[i]);
            return false;
        } else {
            options->from = argv[i];
        }
    }
    if (!options->from)
        cli_say("import: a file is missing (see cusplice import --help)");
    return options->from;
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
    (void)self;
    if (!take_options(argc, argv, &options))
        return EXIT_BAD;
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
    "import",
    "import [-o OUT] [--pid N] [--graphs] [--force] FILE.sqlite",
    "make a trace of a profile that nsys exported",
    help,
    run,
};
