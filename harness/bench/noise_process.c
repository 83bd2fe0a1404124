#define _GNU_SOURCE
#include "harness/bench/noise_process.h"

#include <dirent.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BEHIND_STATE = 36 /* fields of stat from the state to the CPU (proc(5)) */ };

struct state {
    char letter; /* R runs, T is stopped */
    int cpu;
};

static bool read_state(pid_t pid, pid_t tid, struct state *state) {
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%d/task/%d/stat", (int)pid, (int)tid);
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    size_t n = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[n] = 0;
    char *at = strrchr(text, ')'); /* the name before it may have anything */
    if (!at || !at[1] || !at[2])
        return false;
    state->letter = *(at += 2);
    for (int i = 0; i < BEHIND_STATE && at; i++)
        at = strchr(at + 1, ' ');
    state->cpu = at ? atoi(at + 1) : -1;
    return at != NULL;
}

static DIR *open_threads(pid_t pid) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    return opendir(path);
}

/* 0: no further one. */
static pid_t next_thread(DIR *threads) {
    for (struct dirent *entry; (entry = readdir(threads));)
        if (*entry->d_name != '.')
            return (pid_t)atoi(entry->d_name);
    return 0;
}

enum noise_sigstop noise_sigstop_of(pid_t pid) {
    char path[64], line[256], letter = 0;
    uint64_t pending = 0;
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return NOISE_TAKEN;
    while (fgets(line, sizeof line, file))
        if (sscanf(line, "State: %c", &letter) != 1)
            sscanf(line, "ShdPnd: %" SCNx64, &pending);
    fclose(file);
    if (letter == 'Z' || !(pending >> (SIGSTOP - 1) & 1))
        return NOISE_TAKEN;
    return letter == 'T' ? NOISE_TOO_LATE : NOISE_PENDING;
}

int noise_cpu_of(pid_t pid) {
    struct state first = {.cpu = -1}, other;
    DIR *threads = open_threads(pid);
    if (!threads || !read_state(pid, pid, &first))
        first.cpu = -1;
    for (pid_t tid; threads && first.letter != 'R' && (tid = next_thread(threads));)
        if (read_state(pid, tid, &other) && other.letter == 'R')
            first = other;
    if (threads)
        closedir(threads);
    return first.cpu;
}

/* The CPU of this set that `pick` says, but not `but`. Negative: there is none. */
static int choose(const cpu_set_t *set, int but, uint64_t pick) {
    int n = CPU_COUNT(set) - (but >= 0 && CPU_ISSET((unsigned)but, set));
    if (n <= 0)
        return -1;
    uint64_t left = pick % (uint64_t)n;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET((unsigned)cpu, set) && cpu != but && left-- == 0)
            return cpu;
    return -1;
}

bool noise_move(pid_t pid, uint64_t pick) {
    struct state first;
    cpu_set_t may, one;
    CPU_ZERO(&one);
    if (!read_state(pid, pid, &first) || sched_getaffinity(pid, sizeof may, &may) != 0)
        return false;
    int cpu = choose(&may, first.cpu, pick);
    DIR *threads = cpu < 0 ? NULL : open_threads(pid);
    if (!threads)
        return false;
    CPU_SET((unsigned)cpu, &one);
    bool moved = false;
    for (pid_t tid; (tid = next_thread(threads));)
        if (sched_getaffinity(tid, sizeof may, &may) == 0 && CPU_ISSET((unsigned)cpu, &may) &&
            sched_setaffinity(tid, sizeof one, &one) == 0) {
            moved = true;
            sched_setaffinity(tid, sizeof may, &may);
        }
    closedir(threads);
    return moved;
}
