/*
 * cusplice verify: runs a program in mode verify and says whether its graphs gave the results of
 * its launches. main.c calls it. It never compares memory itself: the library does.
 */
#include "tools/cli/run.h"

#include <stdio.h>

enum { EXIT_DIFFERENT = 1, EXIT_NOTHING = 3 };

static const char help[] = "Runs PROGRAM with libcusplice.so preloaded in mode verify: memory is "
                           "saved before a graph is launched, the\n"
                           "graph is launched, memory is set back, the same launches are issued "
                           "one by one, and the two results are\n"
                           "compared by checksums. The first launch that differs is found by "
                           "halves. The program's own results are\n"
                           "those of its launches one by one. It runs many times slower.\n"
                           "\n" CLI_OPTIONS "\n"
                           "What a kernel keeps in __device__ variables changes twice. Graphs are "
                           "left unverified while another thread\n"
                           "uses CUDA, where a kernel has pointers to memory of the host or of "
                           "another device, and where memory is not\n"
                           "enough: the summary on stderr counts them.\n";

static int judge(bool seen, const struct cli_verified *verified) {
    if (verified->different) {
        cli_say("%llu of %llu graph launches differ from their launches one by one",
                verified->different, verified->launches);
        return EXIT_DIFFERENT;
    }
    if (!verified->launches) {
        if (seen)
            cli_say("nothing was verified: no graph was launched, or none that could be verified");
        return EXIT_NOTHING;
    }
    cli_say("%llu graph launches verified, all equal to their launches one by one",
            verified->launches);
    return 0;
}

/* A wrong value is said of this option, not of the variable that carries it. */
static bool take(const struct cli_option *self, const char *value) {
    char option[32];
    snprintf(option, sizeof option, "--%s", self->name);
    return cli_setting_fits(option, self->to, value) && cli_run_take(self, value);
}

static const struct cli_option options[] = {
    CLI_SETTING("mode", take, "verify_mode", "MODE",
                "whose graphs: piecewise, full, full_decode_only or full_and_piecewise"),
    CLI_SETTING("every", take, "verify_every", "N",
                "verify the first launch of each graph, then one in N by chance (default 1: all)"),
    CLI_SETTING("budget", take, "verify_mb", "MB",
                "device memory for what is saved (default 4096)"),
    CLI_OPTION("report", 0, cli_run_take_path, "verify_report", "FILE",
               "write what was found there, as JSON"),
    CLI_SETTING("plant", take, "verify_plant", "FAULT",
                "put a fault into graphs to see it found: unpatched, dropped or swapped"),
    {0},
};

static int run(const struct cli_verb *self, int argc, char **argv) {
    char **program;
    int status = cli_run_read(self, argc, argv, options, &program);
    if (status >= 0)
        return status;
    if (!cli_run_set("mode", "verify"))
        return CLI_EXIT_REFUSED;
    return cli_run_start(program, NULL, judge);
}

const struct cli_verb cli_verb_verify = {
    .name = "verify",
    .synopsis = "verify [--mode MODE] [--every N] [--report FILE] [-c FILE]... [--set "
                "KEY=VALUE]... [--eager PATTERN]... -- PROGRAM ARGS...",
    .summary = "run a program and hold each graph against its launches one by one",
    .help = help,
    .run = run,
    .page =
        {
            .exits = "that of PROGRAM if it is not 0; 1 where a graph differs, 3 where nothing was "
                     "verified; 125 to 127 as for cusplice run",
            .examples = "cusplice verify -- ./your-program\tIs each graph right?\n"
                        "cusplice verify --every 100 --report verify.json -- ./your-program\tOne "
                        "graph launch in a hundred, and the findings as JSON.\n",
            .files = "cusplice.conf\tSettings and rules, see cusplice.conf(5).\n",
            .see = "run record",
            .takes = CLI_TAKES_PROGRAM,
        },
};
