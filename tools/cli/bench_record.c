/*
 * Makes the trace of `cusplice bench --scenario` and `cusplice bench -- PROGRAM`: it starts this
 * command again as `cusplice record --replayable`. verb_bench.c calls it, on one thread. It never
 * leaves its temporary folder behind, unless SIGKILL ends the process.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/cli/bench.h"
#include "tools/cli/library.h"
#include "tools/cli/run.h"
#include "tools/cli/temporary.h"

enum { NAMES = 256, LIST = 16384, ARGUMENTS = 10 };

static struct { char folder[256], trace[300], partial[320]; } own;

void cli_bench_forget(void) {
    if (!*own.folder)
        return;
    unlink(own.trace);
    unlink(own.partial);
    rmdir(own.folder);
    *own.folder = 0;
}

static void on_signal(int number) {
    cli_bench_forget();
    signal(number, SIG_DFL);
    raise(number);
}

static bool make_folder(void) {
    static const int ends[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};
    if (!cli_temporary(own.folder, sizeof own.folder, "cusplice-bench.XXXXXX") ||
        !mkdtemp(own.folder)) {
        cli_say("%s: no folder for a trace could be made there: %s", own.folder, strerror(errno));
        *own.folder = 0;
        return false;
    }
    snprintf(own.trace, sizeof own.trace, "%s/recorded.cst", own.folder);
    snprintf(own.partial, sizeof own.partial, "%s.partial", own.trace);
    for (unsigned i = 0; i < sizeof ends / sizeof *ends; i++)
        signal(ends[i], on_signal);
    return true;
}

/* ---- scenarios ---- */

/* All that the program says on stdout, cut to `bytes`. */
static bool ask(char *const *argv, char *text, size_t bytes) {
    int ends[2], status = -1;
    size_t used = 0;
    ssize_t n = 1;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return false;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        execv(argv[0], argv);
        _exit(CLI_EXIT_CANNOT_RUN);
    }
    close(ends[1]);
    while (child > 0 && used + 1 < bytes && (n > 0 || errno == EINTR)) {
        n = read(ends[0], text + used, bytes - used - 1);
        if (n == 0)
            break;
        used += n > 0 ? (size_t)n : 0;
    }
    text[used] = 0;
    close(ends[0]);
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return child > 0 && status == 0;
}

/* 0, or an exit status: there is none of that name. */
static int check_scenario(char *program, const char *name) {
    static char list[LIST];
    char option[] = "--list", *argv[] = {program, option, NULL};
    const char *names[NAMES + 1] = {NULL};
    unsigned n = 0;
    if (!ask(argv, list, sizeof list)) {
        cli_say("%s --list: it could not be run", program);
        return 1;
    }
    for (char *rest = list, *line; (line = strsep(&rest, "\n")) && n < NAMES;)
        if (*line)
            names[n++] = line;
    for (unsigned i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0)
            return 0;
    const char *near = cus_near(name, names);
    cli_say("--scenario %s: there is none of that name%s%s (%s --help has them all)", name,
            near ? "; the nearest is " : "", near ? near : "", program);
    return 2;
}

/* ---- recording ---- */

static _Noreturn void become(char *const *argv, bool silent, pid_t parent) {
    int quiet = silent ? open("/dev/null", O_WRONLY | O_CLOEXEC) : -1;
    prctl(PR_SET_PDEATHSIG, SIGTERM); /* which it hands on */
    if (getppid() != parent)
        _exit(1);
    dup2(quiet >= 0 ? quiet : STDERR_FILENO, STDOUT_FILENO); /* the table's alone */
    execv("/proc/self/exe", argv);
    _exit(CLI_EXIT_CANNOT_RUN);
}

static int record(char **program, const char *steps, bool silent) {
    char words[][16] = {"cusplice", "record", "--replayable", "-o", "--steps", "--"};
    unsigned n = 0, k = 0, length = 0;
    int status = -1;
    while (program[length])
        length++;
    char **argv = calloc(length + ARGUMENTS, sizeof *argv);
    if (!argv) {
        cli_say("not enough memory");
        return 1;
    }
    for (k = 0; k < 4; k++)
        argv[n++] = words[k];
    argv[n++] = own.trace;
    char *range = steps ? strdup(steps) : NULL;
    if (range) {
        argv[n++] = words[4];
        argv[n++] = range;
    }
    argv[n++] = words[5];
    for (k = 0; k < length; k++)
        argv[n++] = program[k];
    pid_t parent = getpid();
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        become(argv, silent, parent);
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    free(range);
    free(argv);
    if (child < 0) {
        cli_say("no process to record in: %s", strerror(errno));
        return 1;
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == CLI_EXIT_REFUSED)
        return 2; /* which was explained */
    if (WIFSIGNALED(status) || WEXITSTATUS(status)) {
        cli_say("%s: ended %s %d while it was recorded: nothing is measured", program[0],
                WIFSIGNALED(status) ? "by signal" : "with status",
                WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
        return 1;
    }
    return 0;
}

int cli_bench_record(const char *scenario, char **program, const char *steps, char *out,
                     size_t bytes) {
    static char path[4096], name[256];
    char *scenarios[] = {path, name, NULL};
    if (scenario) {
        snprintf(name, sizeof name, "%s", scenario);
        if (!cli_scenario_find(path, sizeof path))
            return 1;
        int status = check_scenario(path, name);
        if (status)
            return status;
        program = scenarios;
    }
    if (!make_folder())
        return 1;
    int status = record(program, steps, scenario != NULL);
    if (!status && access(own.trace, R_OK) != 0) {
        cli_say("%s: left no trace: it asked nothing of the GPU%s", program[0],
                steps ? " in those steps" : "");
        status = 1;
    }
    if (status)
        cli_bench_forget();
    snprintf(out, bytes, "%s", own.trace);
    return status;
}
