/*
 * Starts one child, passes signals on to it, and waits. verb_run.c calls it. The launcher has one
 * thread and installs no signal handler: sigwaitinfo takes blocked signals.
 */
#include "tools/cli/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static const int handed_on[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
enum { HANDED_ON = sizeof handed_on / sizeof handed_on[0] };

/* What a process sent is meant for the program. What the terminal sent (Ctrl-C) the program has got
 * by itself. */
static void wait_and_hand_on(pid_t pid, const sigset_t *watched, int *status) {
    while (waitpid(pid, status, WNOHANG) == 0) {
        siginfo_t info;
        int number = sigwaitinfo(watched, &info);
        if (number > 0 && number != SIGCHLD && info.si_code <= 0 && info.si_pid != pid)
            kill(pid, number);
    }
}

/* A program that was built with the address sanitizer, as g++ does, ends before main where its
 * run-time library is not the first, and a preloaded one stands ahead of it. That is right here:
 * the library replaces no function of that run-time library. A variable, and no entry of
 * LD_PRELOAD, since it harms no other program that the child starts. */
static bool let_sanitized_start(void) {
    static const char option[] = "verify_asan_link_order";
    const char *before = getenv("ASAN_OPTIONS");
    if (before && strstr(before, option))
        return true;
    size_t bytes = sizeof option + (before ? strlen(before) : 0) + 4;
    char *all = malloc(bytes);
    if (!all)
        return false;
    snprintf(all, bytes, "%s%s%s=0", before ? before : "", before && *before ? ":" : "", option);
    bool done = setenv("ASAN_OPTIONS", all, 1) == 0;
    free(all);
    return done;
}

bool cli_child_preload(const char *preload) {
    return setenv("LD_PRELOAD", preload, 1) == 0 && let_sanitized_start();
}

/* In the child: errno through the pipe where the program cannot be started. */
static _Noreturn void become(char **argv, const char *preload, pid_t parent, int report,
                             const sigset_t *mask) {
    /* If the launcher is killed outright, so is the program, as if they were one. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(127);
    if (cli_child_preload(preload)) {
        sigprocmask(SIG_SETMASK, mask, NULL);
        execvp(argv[0], argv);
    }
    int why = errno;
    ssize_t written = write(report, &why, sizeof why);
    (void)written;
    _exit(127);
}

int cli_child_run(char **argv, const char *preload, int *status) {
    int report[2], why = 0;
    sigset_t watched, before;
    pid_t parent = getpid();
    if (pipe2(report, O_CLOEXEC) != 0)
        return errno;
    sigemptyset(&watched);
    sigaddset(&watched, SIGCHLD);
    for (int i = 0; i < HANDED_ON; i++)
        sigaddset(&watched, handed_on[i]);
    sigprocmask(SIG_BLOCK, &watched, &before);
    pid_t pid = fork();
    if (pid == 0)
        become(argv, preload, parent, report[1], &before);
    why = errno;
    close(report[1]);
    if (pid > 0) {
        signal(SIGCHLD, SIG_DFL); /* whoever ignores it would never hear how the child ended */
        ssize_t got;
        do
            got = read(report[0], &why, sizeof why);
        while (got < 0 && errno == EINTR);
        if (got != (ssize_t)sizeof why)
            why = 0;
        wait_and_hand_on(pid, &watched, status);
    }
    close(report[0]);
    return why;
}

void cli_child_end_like(int status) {
    if (WIFSIGNALED(status)) {
        int number = WTERMSIG(status);
        struct rlimit none = {0, 0};
        setrlimit(RLIMIT_CORE, &none); /* the program's core is the one that is wanted */
        sigset_t set;
        sigemptyset(&set);
        sigaddset(&set, number);
        signal(number, SIG_DFL);
        sigprocmask(SIG_UNBLOCK, &set, NULL);
        raise(number);
        exit(128 + number); /* it was a signal that does not end us */
    }
    exit(WEXITSTATUS(status));
}
