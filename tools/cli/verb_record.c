/*
 * cusplice record: runs a program with the library's recorder on, and packs a replayable trace
 * afterwards. main.c calls it. It never writes the records itself.
 */
#include <errno.h>
#include <fcntl.h>
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

static const char help[] = "Runs PROGRAM with libcusplice.so preloaded and writes a trace: every "
                           "launch, memset and copy with its shape,\n"
                           "parameters, stream, thread and times, the calls that broke runs of "
                           "launches, and what went out in which graph.\n"
                           "The program runs as under cusplice run, with the same settings. Look "
                           "at the trace with cusplice info, dump and\n"
                           "report, play with it with cusplice whatif.\n"
                           "\n" CLI_OPTIONS;

static const char *output; /* of -o */
static bool replayable, force;
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

/* Can a file of that name be made? Tried, since a folder's mode does not tell all. */
static bool may_make(const char *path) {
    char partial[PATH_MAX + 16];
    snprintf(partial, sizeof partial, "%s.partial", path);
    int fd = open(partial, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return false;
    close(fd);
    return unlink(partial) == 0;
}

/* With --force: the trace of an earlier run. */
static bool remove_old(void) {
    struct stat is;
    if (lstat(output, &is) != 0 || (S_ISREG(is.st_mode) && unlink(output) == 0))
        return true;
    cli_say("--output %s: the old file cannot be removed: %s", output,
            S_ISREG(is.st_mode) ? strerror(errno) : "it is no regular file");
    return false;
}

/* A name that no trace has yet. */
static bool choose_output(const char *program) {
    char path[PATH_MAX], partial[PATH_MAX + 16];
    if (output && cli_folder_is_named(output))
        return cli_folder_take("--output", output, "record", ".cst");
    if (output && strcmp(output, "-") == 0) {
        cli_say("-o -: a trace goes into a file, whose end says that it is whole");
        return false;
    }
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
        if (force && !is_there(partial) && !remove_old())
            return false;
        if (is_there(output) || is_there(partial)) {
            cli_say("--output %s: %s is there already, and traces are not overwritten%s", output,
                    is_there(output) ? output : partial,
                    is_there(partial) ? "" : " without --force");
            return false;
        }
        if (!may_make(output)) {
            cli_say("--output %s: %s", output, strerror(errno));
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
            if (!may_make(path)) {
                cli_say("the trace cannot go to %s: %s (-o FILE names another place)", path,
                        strerror(errno));
                return false;
            }
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
    CLI_OUTPUT(
        cli_take_text, &output,
        ", by default PROGRAM.cst, with a number where that is taken. "
        "{pid} or %p: the process id, for programs of several processes; otherwise the first "
        "process that uses CUDA is recorded. A folder (FOLDER/): each process, as "
        "rank-R.pid-P.cst or pid-P.cst. FILE.partial while the program runs, and if it is "
        "killed"),
    CLI_FORCE(&force),
    CLI_MODE(cli_run_take, "mode", ""),
    CLI_OPTION("steps", 0, take_steps, NULL, "A-B",
               "record these steps alone: a step ends where the host waits for the GPU; counted "
               "from 0"),
    {.name = "gpu-times",
     .take = cli_run_take,
     .to = "record_gpu",
     .help = "GPU times as well, by CUPTI; said if it is not found. Costs time at each launch"},
    CLI_FLAG("replayable", &replayable,
             "all that cusplice replay needs to do the work again without the program: code, what "
             "is in device memory, what is copied there. The program runs slower, its device "
             "memory lies where the library puts it, and what a replay cannot do again is said"),
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
    .name = "record",
    .synopsis =
        "record [-o FILE] [--force] [--steps A-B] [--gpu-times] [--replayable] [-c FILE]... [--set "
        "KEY=VALUE]... [--eager PATTERN]... [--mode MODE] -- PROGRAM ARGS...",
    .summary = "run a program and leave a trace of what it asked of the GPU",
    .help = help,
    .run = run,
    .page =
        {
            .exits = "as for cusplice run; 3 where PROGRAM's is 0 and it ended before the first of "
                     "the steps A-B",
            .examples =
                "cusplice record -o T.cst -- ./your-program\tWrites a trace of the whole program.\n"
                "cusplice record --replayable --steps 10-19 -o R.cst -- ./your-program\tWrites ten "
                "steps with all that cusplice replay needs.\n",
            .files = "PROGRAM.cst\tThe trace, where -o names no other file.\n"
                     "PROGRAM.cst.partial\tThe trace while the program runs, and what is left of "
                     "it if the program is killed.\n",
            .see = "info report whatif replay export",
            .takes = CLI_TAKES_PROGRAM,
        },
};
