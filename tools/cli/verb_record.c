/*
 * cusplice record: runs a program with the library's recorder on, and packs a replayable trace
 * afterwards. main.c calls it. It never writes the records itself.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/base/path.h"
#include "tools/cli/run.h"
#include "tools/cli/run_folder.h"
#include "tools/trace/pack.h"

static const char help[] =
    "Runs PROGRAM with libcusplice.so preloaded and writes a trace: every launch, memset and copy "
    "with its shape,\n"
    "parameters, stream, thread and times, the calls that broke runs of launches, and what went "
    "out in which graph.\n"
    "The program runs as under cusplice run, with the same settings. Look at the trace with "
    "cusplice info, dump and\n"
    "report, play with it with cusplice whatif.\n"
    "\n"
    "  -o, --output FILE   where it goes (default: PROGRAM.cst, with a number where that is "
    "taken). "
    "{pid} or %p: the\n"
    "                      process id, for programs of several processes; otherwise the first "
    "process that uses CUDA\n"
    "                      is recorded. A folder (FOLDER/): each process, as rank-R.pid-P.cst "
    "or pid-P.cst.\n"
    "                      FILE.partial while the program runs, and if it is killed\n"
    "      --steps A-B     record these steps alone: a step ends where the host waits for the GPU; "
    "counted from 0\n"
    "      --gpu-times     GPU times as well, by CUPTI; said if it is not found. Costs time at "
    "each launch\n"
    "      --replayable    all that cusplice replay needs to do the work again without the "
    "program: "
    "code, what is in\n"
    "                      device memory, what is copied there. The program runs slower, its "
    "device "
    "memory lies where\n"
    "                      the library puts it, and what a replay cannot do again is said\n"
    "  -c, --config FILE, --set KEY=VALUE, --stats FILE, --why, -h, --help: as for cusplice run\n"
    "\n"
    "Exit status: as for cusplice run; 3 where PROGRAM's is 0 and it ended before the first of "
    "the steps A-B.\n";

static const char *output; /* of -o */
static bool replayable;
static char trace_path[PATH_MAX]; /* "": several processes may write */

/* "A-B", "A-" or "A". */
static bool take_steps(const struct cli_option *self, const char *text) {
    (void)self;
    char *end;
    errno = 0;
    unsigned long from = strtoul(text, &end, 10), to = from;
    bool good = *text >= '0' && *text <= '9', open = good && strcmp(end, "-") == 0;
    if (good && !open && *end == '-') {
        const char *last = end + 1;
        good = *last >= '0' && *last <= '9';
        to = strtoul(last, &end, 10);
    }
    if (!good || (!open && *end) || errno || to >= UINT_MAX || to < from) {
        cli_say("--steps %s: A-B is expected, two numbers of steps, counted from 0", text);
        return false;
    }
    char number[24];
    snprintf(number, sizeof number, "%lu", from);
    if (!cli_run_set("record_from", number))
        return false;
    snprintf(number, sizeof number, "%lu", open ? 0 : to + 1);
    return cli_run_set("record_until", number);
}

static bool is_there(const char *path) {
    struct stat is;
    return lstat(path, &is) == 0;
}

/* A name that no trace has yet. */
static bool choose_output(const char *program) {
    char path[PATH_MAX], partial[PATH_MAX + 16];
    if (output && cli_folder_is_named(output))
        return cli_folder_take("--output", output, "record", ".cst");
    if (output) {
        char folder[PATH_MAX];
        const char *slash = strrchr(output, '/');
        snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - output + 1) : 1,
                 slash ? output : ".");
        if (!*output || access(folder, W_OK) != 0) {
            cli_say("--output %s: %s", output,
                    *output ? strerror(errno) : "a file name is expected");
            return false;
        }
        snprintf(partial, sizeof partial, "%s.partial", output);
        if (is_there(output) || is_there(partial)) {
            cli_say("--output %s: %s is there already, and traces are not overwritten", output,
                    is_there(output) ? output : partial);
            return false;
        }
        if (!strstr(output, "{pid}") && !strstr(output, "%p") && !strstr(output, "{process}") &&
            !strstr(output, "{host}"))
            snprintf(trace_path, sizeof trace_path, "%s", output);
        return cli_run_set_path("record", output);
    }
    const char *slash = strrchr(program, '/');
    const char *name = slash ? slash + 1 : program;
    for (unsigned i = 0; i < 10000; i++) {
        char number[16] = "";
        if (i)
            snprintf(number, sizeof number, ".%u", i);
        snprintf(path, sizeof path, "%.200s%s.cst", name, number);
        snprintf(partial, sizeof partial, "%s.partial", path);
        if (!is_there(path) && !is_there(partial)) {
            cli_say("the trace goes to %s", path);
            snprintf(trace_path, sizeof trace_path, "%s", path);
            return cli_run_set_path("record", path);
        }
    }
    cli_say("%s.cst and ten thousand more are there already: give another name with -o", name);
    return false;
}

/* What is in memory packs well, and the program is not to wait for that. */
static void pack_trace(void) {
    char error[PATH_MAX + 256];
    if (*trace_path && is_there(trace_path) && !pack_file(trace_path, error, sizeof error))
        cli_say("the trace stays as it is, not packed: %s", error);
}

enum { EXIT_NOTHING = 3 }; /* as for cusplice verify */

static int judge(bool seen, const struct cli_verified *found) {
    (void)seen;
    return found->missed ? EXIT_NOTHING : 0;
}

static const struct cli_option options[] = {
    CLI_TEXT("output", 'o', &output),
    CLI_OPTION("steps", 0, take_steps, NULL),
    {.name = "gpu-times", .take = cli_run_take, .to = "record_gpu"},
    CLI_FLAG("replayable", &replayable),
    {0},
};

static int run(const struct cli_verb *self, int argc, char **argv) {
    char **program;
    int status = cli_run_read(self, argc, argv, options, &program);
    if (status >= 0)
        return status;
    if ((replayable && !cli_run_set("record_replayable", "yes")) || !choose_output(program[0]))
        return CLI_EXIT_REFUSED;
    return cli_run_start(program, replayable ? pack_trace : NULL, judge);
}

const struct cli_verb cli_verb_record = {
    "record",
    "record [-o FILE] [--steps A-B] [--gpu-times] [--replayable] [-c FILE]... [--set KEY=VALUE]... "
    "-- "
    "PROGRAM "
    "ARGS...",
    "run a program and leave a trace of what it asked of the GPU",
    help,
    run,
};
