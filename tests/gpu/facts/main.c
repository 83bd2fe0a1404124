/*
 * The parent: forks a child for each trial, watches it, opens its gates once it stays in one call,
 * kills it at its limit, and prints its line. The parent never calls the driver.
 */
#include "tests/gpu/facts/facts.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* A call that has not returned after PATIENCE_MS counts as waiting for a gate. */
enum { PATIENCE_MS = 300, LIMIT_MS = 5000, START_MS = 10000, GRACE_MS = 2000, SECONDS = 55 };

static const char usage[] =
    "usage: facts [--only NAMES] [--seconds N] [--list]\n"
    "  Asks the driver for the facts that tests/gpu/facts/README.md lists, and prints for each\n"
    "      fact NAME: VALUE (detail)\n"
    "  --only NAMES  these facts alone, separated by commas; a name that ends in * stands for all\n"
    "                that begin so\n"
    "  --seconds N   after so many seconds no trial begins (55)\n"
    "  --list        the names\n"
    "Exit status: 0 each fact has its line, 2 an option is wrong or there is no driver.\n";

struct fact_shared *fact_shared;

static const struct fact_trial *const lists[] = {fact_record, fact_record_cost, fact_fork,
                                                 fact_pool,   fact_free,        fact_shape,
                                                 fact_host,   fact_rows,        fact_witness};

static bool chosen(const char *only, const char *name) {
    for (const char *at = only; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        size_t length = strcspn(at, ",");
        if (length && at[length - 1] == '*'
                ? strncmp(at, name, length - 1) == 0
                : strlen(name) == length && strncmp(at, name, length) == 0)
            return true;
    }
    return !only;
}

static void gates_open(void) {
    bool closed = false;
    for (unsigned i = 0; i < fact_shared->gates; i++) {
        closed |= !fact_shared->words[i * FACT_WORD_STEP];
        fact_shared->words[i * FACT_WORD_STEP] = 1;
    }
    if (closed)
        fact_shared->openings = fact_shared->openings + 1;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/* Waits for the child's end; the status of wait, and whether it had to be killed. */
static int watch(pid_t child, int limit_ms, bool *killed) {
    double begin = fact_now_us(), moved = begin, opened = 0;
    unsigned beat = 0;
    bool ready = false;
    int status = 0;
    *killed = false;
    while (waitpid(child, &status, WNOHANG) == 0) {
        double now = fact_now_us();
        if (!ready && fact_shared->ready) {
            ready = true;
            begin = now;
        }
        if (beat != fact_shared->beat) {
            beat = fact_shared->beat;
            moved = now;
        }
        bool late = now - begin > 1000.0 * (ready ? limit_ms : START_MS);
        if (late || (ready && now - moved > 1000.0 * PATIENCE_MS)) {
            gates_open();
            moved = now;
        }
        if (late && !opened)
            opened = now;
        if (opened && now - opened > 1000.0 * GRACE_MS && !*killed) {
            kill(child, SIGKILL);
            *killed = true;
        }
        usleep(1000);
    }
    return status;
}

static void print(const char *name, int status, bool killed) {
    char end[160] = "";
    if (killed)
        snprintf(end, sizeof end, "; hung in %s", fact_shared->step);
    else if (WIFSIGNALED(status))
        snprintf(end, sizeof end, "; signal %d in %s", WTERMSIG(status), fact_shared->step);
    else if (WEXITSTATUS(status))
        snprintf(end, sizeof end, "; ended in %s", fact_shared->step);
    const char *value = fact_shared->value, *detail = fact_shared->detail;
    if (!value[0])
        value = "not known";
    if (!detail[0])
        detail = end[0] ? "" : "no more was seen";
    printf("fact %s: %s (%s%s)\n", name, value, detail, detail[0] ? end : end + 2);
    fflush(stdout);
}

/* False: there is nothing to ask. */
static bool trial_run(const struct fact_trial *trial) {
    bool killed;
    memset((void *)fact_shared, 0, sizeof *fact_shared);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        dup2(2, 1); /* what the driver prints is not part of the list */
        fact_child(trial);
    }
    if (child < 0) {
        printf("fact %s: not known (fork failed)\n", trial->name);
        return true;
    }
    int status = watch(child, trial->limit_ms ? trial->limit_ms : LIMIT_MS, &killed);
    if (WIFEXITED(status) && WEXITSTATUS(status) == FACT_NO_DRIVER)
        return false;
    print(trial->name, status, killed);
    return true;
}

int main(int argc, char **argv) {
    const char *only = NULL;
    long seconds = SECONDS;
    bool list = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--only") == 0 && i + 1 < argc) {
            only = argv[++i];
        } else if (strcmp(argv[i], "--seconds") == 0 && i + 1 < argc && atol(argv[i + 1]) > 0) {
            seconds = atol(argv[++i]);
        } else if (strcmp(argv[i], "--list") == 0) {
            list = true;
        } else {
            bool help = strcmp(argv[i], "--help") == 0;
            fputs(usage, help ? stdout : stderr);
            return help ? 0 : 2;
        }
    }
    fact_shared =
        mmap(NULL, sizeof *fact_shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (fact_shared == MAP_FAILED) {
        perror("facts: mmap");
        return 2;
    }
    double begin = fact_now_us();
    int found = 0;
    for (size_t l = 0; l < sizeof lists / sizeof *lists; l++) {
        for (const struct fact_trial *trial = lists[l]; trial->name; trial++) {
            if (!chosen(only, trial->name))
                continue;
            found++;
            if (list)
                puts(trial->name);
            else if (fact_now_us() - begin > 1e6 * (double)seconds)
                printf("fact %s: not known (the time of the program was over)\n", trial->name);
            else if (!trial_run(trial))
                return 2;
        }
    }
    if (!found)
        fprintf(stderr, "facts: --only %s: no fact has that name; --list has the names\n", only);
    else if (!list)
        fprintf(stderr, "facts: %d trials, %.1f s\n", found, (fact_now_us() - begin) / 1e6);
    return found ? 0 : 2;
}
