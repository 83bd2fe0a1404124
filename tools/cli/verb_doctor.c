/*
 * cusplice doctor: says what of this machine, container and program is not as the library needs it.
 * main.c calls it; tools/doctor asks. It changes nothing.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/library.h"
#include "tools/cli/options.h"
#include "tools/cli/width.h"
#include "tools/doctor/doctor.h"

static const char help[] =
    "Asks what of this machine, this container and, behind --, of a program stands in the way of "
    "graphs:\n"
    "driver, GPUs, libcuda, CUPTI, processors, /dev/shm, system calls, other preloaded libraries, "
    "settings. Then a\n"
    "small kernel is launched some hundred times with the library on the first GPU, or on the "
    "simulator. A line for\n"
    "each answer, and advice (->) for each that is not right:\n"
    "  ok       as it should be\n"
    "  note     works, and may surprise\n"
    "  unknown  it could not be found out\n"
    "  wrong    graphs, or a part of the tools, do not work so\n"
    "PROGRAM is read, and not run. Put the output into a bug report: it has paths, and of the "
    "environment the\n"
    "variables of CUSPLICE, LD and CUDA alone.\n"
    "\n" CLI_OPTIONS;

static int run(const struct cli_verb *self, int argc, char **argv) {
    struct doctor_asked asked = {.root = "", .width = cli_width(), .seconds = 20};
    const struct cli_option options[] = {
        CLI_TABLE_OR_JSON(&asked.json),
        CLI_NUMBER("seconds", &asked.seconds, 1, 600, "S",
                   "how long the driver may take to start, and then the self-test (20)"),
        CLI_TEXT("root", 0, &asked.root, "FOLDER", NULL), /* for tests */
        {0}};
    const struct cli_option *const tables[] = {options, NULL};
    struct cli_words words;
    char library[PATH_MAX];
    if (argc == 2 && strcmp(argv[1], DOCTOR_PART) == 0)
        return doctor_selftest();
    int status = cli_options_read(self, argc, argv, CLI_WORDS, tables, &words);
    if (status >= 0)
        return status;
    if (words.options) {
        cli_say("'%s' is too much: a program stands behind -- (cusplice doctor -- %s)", words.at[0],
                words.at[0]);
        return DOCTOR_BAD;
    }
    asked.program = words.at[0];
    if (cli_library_look(library, sizeof library))
        asked.library = library;
    char *preload = asked.library ? cli_library_preload(library, getenv("LD_PRELOAD")) : NULL;
    asked.preload = preload;
    status = doctor_run(&asked);
    free(preload);
    if (fflush(stdout) == 0)
        return status;
    cli_say("stdout cannot be written");
    return DOCTOR_WRONG;
}

const struct cli_verb cli_verb_doctor = {
    .name = "doctor",
    .synopsis = "doctor [--format table|json] [--seconds S] [-- PROGRAM ARGS...]",
    .summary = "what of this machine or a program stands in the way",
    .help = help,
    .run = run,
    .page =
        {
            .exits = "0 where nothing is wrong, 1 where something is; 2 for a bad option",
            .examples =
                "cusplice doctor\tThis machine and this container.\n"
                "cusplice doctor -- ./your-program\tA program, too: it is read, and not run.\n"
                "cusplice doctor --format json >report.json\tFor scripts.\n",
            .files = "libcusplice.so, libcuda.so.1, libcupti.so\tWhat a program would load here.\n"
                     "/proc, /sys, /dev/nvidia*, /dev/shm\tWhat this machine says of itself.\n",
            .environment = "CUSPLICE_*, LD_*, CUDA_*\tThe output names those that are set.\n",
            .see = "run config verify",
            .takes = CLI_TAKES_BEHIND,
        },
};
