/*
 * Runs a command on a machine that is not its own: stops it at random, halves its pace for seconds,
 * moves it between CPUs. What is done and when comes from a seed (noise_plan.h).
 *
 * Stops are SIGSTOP and SIGCONT to the command's process, or with --realtime a loop that takes its
 * CPU. Processes that the command starts are left alone: a script should exec the program. Whenever
 * noise ends, the kernel continues the command (PR_SET_PDEATHSIG). One thread; SIGCHLD and what
 * would end noise are blocked, and taken where it waits.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/bench/clock.h"
#include "harness/bench/noise_plan.h"
#include "harness/bench/noise_process.h"

enum {
    FAILED = 125,    /* noise's own failures, as of timeout(1) and env(1) */
    HALF_NS = 100000 /* of a period in which a slow program runs for one half */
};
static const double moves_a_second = 4;

static const char usage_text[] =
    "usage: noise [options] -- COMMAND...\n"
    "  --stops N      stops in a second (40)\n"
    "  --from US      the shortest (200)\n"
    "  --to US        the longest (3000)\n"
    "  --slow         half the pace for 1 to 3 s, and so long not\n"
    "  --move         to another CPU, 4 times a second\n"
    "  --realtime     take its CPU with a SCHED_FIFO thread, in place of SIGSTOP\n"
    "  --seed N       of all that (1)\n"
    "  --report FILE  what was done, a JSON line (standard error)\n"
    "The status is the command's (128 + N: ended by signal N), or 125: noise could not begin.\n";

static struct {
    struct noise_options plan;
    bool realtime;
    const char *report;
} opt = {.plan = {.seed = 1,
                  .stops = 40,
                  .from_ns = 200000,
                  .to_ns = 3000000,
                  .slow_from_ns = 1000000000,
                  .slow_to_ns = 3000000000}};

static struct {
    pid_t child;
    bool stopped; /* by noise, now */
    bool ended;
    int status;
    uint64_t begun;
    uint64_t stops, stopped_ns, slow_ns, moves; /* that were done */
} here;

static void fail(const char *what) {
    fprintf(stderr, "noise: %s: %s\n", what, strerror(errno));
    exit(FAILED);
}

static void wrong(void) {
    fputs(usage_text, stderr);
    exit(FAILED);
}

static uint64_t number(const char *text, uint64_t high) {
    char *end;
    unsigned long long v = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || v > high) {
        fprintf(stderr, "noise: %s: a number up to %" PRIu64 " is wanted\n", text, high);
        exit(FAILED);
    }
    return v;
}

static void options_parse(int argc, char **argv) {
    static const struct option names[] = {{"stops", 1, NULL, 'n'},  {"from", 1, NULL, 'f'},
                                          {"to", 1, NULL, 't'},     {"slow", 0, NULL, 's'},
                                          {"move", 0, NULL, 'm'},   {"realtime", 0, NULL, 'r'},
                                          {"report", 1, NULL, 'o'}, {"seed", 1, NULL, 'x'},
                                          {"help", 0, NULL, 'h'},   {0}};
    for (int c; (c = getopt_long(argc, argv, "+", names, NULL)) != -1;) {
        if (c == 'n')
            opt.plan.stops = (double)number(optarg, 10000);
        else if (c == 'f')
            opt.plan.from_ns = 1000 * number(optarg, 60000000);
        else if (c == 't')
            opt.plan.to_ns = 1000 * number(optarg, 60000000);
        else if (c == 'x')
            opt.plan.seed = number(optarg, UINT32_MAX);
        else if (c == 's')
            opt.plan.slow = true;
        else if (c == 'm')
            opt.plan.moves = moves_a_second;
        else if (c == 'r')
            opt.realtime = true;
        else if (c == 'o')
            opt.report = optarg;
        else if (c == 'h')
            exit(fputs(usage_text, stdout) == EOF);
        else
            wrong();
    }
    if (optind == argc || opt.plan.from_ns > opt.plan.to_ns)
        wrong();
}

/* ---- the command ---- */

static sigset_t taken, before; /* signals that are blocked here; the mask that the command gets */

static void handle(int number_) {
    (void)number_; /* blocked, and taken by sigtimedwait */
}

static void block_signals(void) {
    static const int signals[] = {SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
    struct sigaction nothing = {.sa_handler = handle, .sa_flags = SA_NOCLDSTOP};
    sigaction(SIGCHLD, &nothing, NULL); /* what is ignored is not waited for either */
    sigemptyset(&taken);
    for (unsigned i = 0; i < sizeof signals / sizeof *signals; i++)
        sigaddset(&taken, signals[i]);
    sigprocmask(SIG_BLOCK, &taken, &before);
}

static void run_command(char **command, int failed) {
    prctl(PR_SET_PDEATHSIG, SIGCONT);
    sigprocmask(SIG_SETMASK, &before, NULL);
    execvp(*command, command);
    int reason = errno;
    (void)!write(failed, &reason, sizeof reason);
    _exit(FAILED);
}

/* Returns once the command runs. */
static void start(char **command) {
    int failed[2], reason;
    if (pipe2(failed, O_CLOEXEC))
        fail("pipe");
    here.child = fork();
    if (here.child == 0)
        run_command(command, failed[1]);
    if (here.child < 0)
        fail("fork");
    close(failed[1]);
    if (read(failed[0], &reason, sizeof reason) == sizeof reason) {
        errno = reason;
        fail(*command);
    }
    close(failed[0]);
}

/* ---- waiting ---- */

static void note_end(void) {
    if (waitpid(here.child, &here.status, WNOHANG) == here.child)
        here.ended = true;
}

/* The command runs on, unless it had stopped by itself before the stop of noise came. */
static bool let_go(void) {
    return !here.ended && noise_sigstop_of(here.child) != NOISE_TOO_LATE &&
           kill(here.child, SIGCONT) == 0;
}

/* A signal that somebody sent to noise is for the command, which must run to get it. The command
 * has those of the terminal itself. */
static void pass_on(const siginfo_t *from) {
    if (from->si_code <= 0)
        kill(here.child, from->si_signo);
    if (here.stopped)
        let_go();
}

/* Until then, or the command's end. */
static void wait_until(uint64_t at) {
    for (uint64_t now; !here.ended && (now = now_ns()) < at;) {
        uint64_t left = at - now;
        struct timespec t = {(time_t)(left / 1000000000), (long)(left % 1000000000)};
        siginfo_t from;
        int got = sigtimedwait(&taken, &from, &t);
        if (got == SIGCHLD)
            note_end();
        else if (got > 0)
            pass_on(&from);
    }
}

static void take_cpu_until(uint64_t at) {
    int cpu = noise_cpu_of(here.child);
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((unsigned)(cpu < 0 ? 0 : cpu), &set);
    if (cpu >= 0)
        sched_setaffinity(0, sizeof set, &set);
    while (now_ns() < at)
        ;
}

/* The command makes no progress for so long. Returns how long it was; 0: the command has ended, or
 * had stopped by itself and stays so. (Not if both stops come within the same microseconds: the
 * kernel makes one of them.) */
static uint64_t stop(uint64_t ns) {
    uint64_t begin = now_ns();
    if (here.ended)
        return 0;
    if (opt.realtime) {
        take_cpu_until(begin + ns);
    } else {
        here.stopped = kill(here.child, SIGSTOP) == 0;
        wait_until(begin + ns);
        while (!here.ended && noise_sigstop_of(here.child) == NOISE_PENDING)
            wait_until(now_ns() + HALF_NS);
        here.stopped = false;
        if (!let_go())
            return 0;
    }
    return now_ns() - begin;
}

/* Until then. Until `slow_until` the command runs for one half of each short period. */
static void let_run(uint64_t at, uint64_t slow_until) {
    uint64_t end = at < slow_until ? at : slow_until, begin = now_ns();
    while (!here.ended && now_ns() < end) {
        stop(HALF_NS);
        wait_until(now_ns() + HALF_NS);
    }
    uint64_t now = now_ns();
    if (begin < end)
        here.slow_ns += now - begin;
    wait_until(at);
}

static void disturb(void) {
    struct noise_plan plan;
    uint64_t slow_until = 0;
    noise_plan_begin(&plan, &opt.plan);
    while (!here.ended) {
        struct noise_event event = noise_plan_next(&plan);
        uint64_t at = event.at_ns == UINT64_MAX ? UINT64_MAX : here.begun + event.at_ns;
        let_run(at, slow_until);
        if (event.kind == NOISE_STOP) {
            uint64_t ns = stop(event.for_ns);
            here.stops += ns != 0;
            here.stopped_ns += ns;
        } else if (event.kind == NOISE_SLOW) {
            slow_until = at + event.for_ns;
        } else {
            here.moves += noise_move(here.child, event.pick);
        }
    }
}

/* ---- the whole ---- */

static void be_realtime(void) {
    struct sched_param priority = {.sched_priority = 1};
    if (sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &priority) == 0)
        return;
    fprintf(stderr,
            "noise: --realtime: no right to SCHED_FIFO (root, CAP_SYS_NICE or RLIMIT_RTPRIO): %s\n",
            strerror(errno));
    exit(FAILED);
}

static void tell(FILE *to, int status) {
    fprintf(to,
            "{\"seed\": %" PRIu64 ", \"stops\": %" PRIu64 ", \"stopped_ns\": %" PRIu64
            ", \"slow_s\": %.3f, \"moves\": %" PRIu64 ", \"wall_ns\": %" PRIu64
            ", \"status\": %d}\n",
            opt.plan.seed, here.stops, here.stopped_ns, (double)here.slow_ns / 1e9, here.moves,
            now_ns() - here.begun, status);
}

int main(int argc, char **argv) {
    options_parse(argc, argv);
    FILE *report = opt.report ? fopen(opt.report, "we") : stderr;
    if (!report)
        fail(opt.report);
    block_signals();
    if (opt.realtime)
        be_realtime();
    start(argv + optind);
    prctl(PR_SET_TIMERSLACK, 1); /* the command keeps its own */
    here.begun = now_ns();
    disturb();
    int status = WIFSIGNALED(here.status) ? 128 + WTERMSIG(here.status) : WEXITSTATUS(here.status);
    tell(report, status);
    return fclose(report) ? FAILED : status;
}
