/*
 * Forks for each piece of work, and kills what is late. The probes call it. A child that the kernel
 * does not let go (a hung file system or driver) is left behind; it never keeps the caller.
 */
#include "tools/doctor/apart.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LOOK_US = 500, PATIENCE_MS = 1000 /* for a child that was killed */ };

void *doctor_shared(size_t bytes) {
    void *shared = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return shared == MAP_FAILED ? NULL : shared;
}

void doctor_shared_free(void *shared, size_t bytes) {
    if (shared)
        munmap(shared, bytes);
}

static uint64_t now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* False: the child did not end in time. */
static bool wait_for(pid_t pid, uint64_t ms, int *status) {
    uint64_t until = now_ms() + ms;
    for (;;) {
        pid_t got = waitpid(pid, status, WNOHANG);
        if (got == pid)
            return true;
        if (got < 0 && errno != EINTR) {
            *status = 0;
            return true;
        }
        if (now_ms() >= until)
            return false;
        usleep(LOOK_US);
    }
}

static _Noreturn void be_child(void (*work)(void *context), void *context, pid_t parent) {
    struct rlimit none = {0, 0};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    setrlimit(RLIMIT_CORE, &none); /* a crash is an answer, and no file */
    work(context);
    _exit(0);
}

enum doctor_end doctor_apart(void (*work)(void *context), void *context, unsigned seconds,
                             int *number) {
    int status = 0;
    pid_t parent = getpid();
    fflush(NULL); /* the child has no text of the parent to print */
    pid_t pid = fork();
    *number = 0;
    if (pid == 0)
        be_child(work, context, parent);
    if (pid < 0)
        return DOCTOR_NO_CHILD;
    if (!wait_for(pid, (uint64_t)seconds * 1000, &status)) {
        kill(pid, SIGKILL);
        wait_for(pid, PATIENCE_MS, &status);
        return DOCTOR_LATE;
    }
    if (WIFSIGNALED(status))
        *number = WTERMSIG(status);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? DOCTOR_DONE : DOCTOR_DIED;
}
