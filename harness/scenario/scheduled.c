/*
 * Threads with special scheduling: real-time threads that poll on one processor, and threads that
 * move between processors as with a cpuset.
 *
 * A worker thread launches and polls; the main thread waits for it. If the process may not use
 * real-time priorities, the worker polls as an ordinary thread and says so on stderr.
 */
#define _GNU_SOURCE
#include "harness/scenario/sc.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 128, LOOP = 9 };

struct poller {
    struct sc *sc;
    int policy;
    CUstream s;
    CUdeviceptr x, flag_device;
    volatile unsigned *flag;
};

static void loop(struct sc *sc, CUstream s, CUdeviceptr x, unsigned salt) {
    for (unsigned i = 0; i < LOOP; i++) {
        sc_chain(sc, s, x, 3 + 2 * (i % 4), salt + i, N);
    }
}

/* Makes everything for which the driver starts a thread, before the worker becomes real-time. */
static void prepare(struct poller *p, struct sc *sc, int policy) {
    sc_start(sc);
    *p = (struct poller){.sc = sc, .policy = policy};
    p->x = sc_device(sc, "x", N);
    p->flag = sc_pinned(sc, "flag", 64);
    OK(sc->cu.MemHostGetDevicePointer(&p->flag_device, (void *)(uintptr_t)p->flag, 0));
    OK(sc->cu.StreamCreate(&p->s, CU_STREAM_NON_BLOCKING));
    loop(sc, p->s, p->x, 0);
    sc_set_flag(sc, p->s, p->flag_device, 0);
    OK(sc->cu.StreamSynchronize(p->s));
}

static void become(int policy, int priority) {
    struct sched_param param = {.sched_priority = priority};
    if (sched_setscheduler(0, policy, &param)) {
        fprintf(stderr, "scenario: no real-time thread: %s\n", strerror(errno));
    }
}

static void stay_here(void) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    sched_setaffinity(0, sizeof one, &one);
}

/* Waits for every second step, so that the library learns it as a step. */
static void *poll(void *arg) {
    struct poller *p = arg;
    struct sc *sc = p->sc;
    OK(sc->cu.CtxSetCurrent(sc->ctx));
    stay_here();
    become(p->policy, 50);
    for (unsigned step = 1; step <= sc_steps(sc, 40); step++) {
        loop(sc, p->s, p->x, step);
        sc_set_flag(sc, p->s, p->flag_device, step);
        while (*p->flag != step) {
        }
        if (step % 2) {
            OK(sc->cu.StreamSynchronize(p->s));
        }
    }
    become(SCHED_OTHER, 0);
    return NULL;
}

static int poll_as(struct sc *sc, int policy) {
    struct poller p;
    pthread_t thread;
    prepare(&p, sc, policy);
    if (pthread_create(&thread, NULL, poll, &p)) {
        sc_fail("no thread");
    }
    pthread_join(thread, NULL);
    sc_digest(sc);
    return 0;
}

int sc_run_poll_fifo(struct sc *sc) {
    return poll_as(sc, SCHED_FIFO);
}

int sc_run_poll_rr(struct sc *sc) {
    return poll_as(sc, SCHED_RR);
}

/* All threads of the process, also those of libraries. */
static void move_to(const cpu_set_t *processors) {
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *task; tasks && (task = readdir(tasks));) {
        if (atoi(task->d_name) > 0) {
            sched_setaffinity(atoi(task->d_name), sizeof *processors, processors);
        }
    }
    if (tasks) {
        closedir(tasks);
    }
}

static int next_of(const cpu_set_t *processors, int last) {
    do {
        last = (last + 1) % CPU_SETSIZE;
    } while (!CPU_ISSET(last, processors));
    return last;
}

int sc_run_poll_moved(struct sc *sc) {
    struct poller p;
    cpu_set_t all, one;
    int at = -1;
    prepare(&p, sc, SCHED_OTHER);
    CPU_ZERO(&all);
    if (sched_getaffinity(0, sizeof all, &all)) {
        sc_fail("affinity");
    }
    for (unsigned step = 1; step <= sc_steps(sc, 60); step++) {
        if (step % 5 == 0) {
            CPU_ZERO(&one);
            CPU_SET(at = next_of(&all, at), &one);
            move_to(step % 15 ? &one : &all);
        }
        loop(sc, p.s, p.x, step);
        sc_set_flag(sc, p.s, p.flag_device, step);
        while (*p.flag != step) {
            sched_yield();
        }
        if (step % 2) {
            OK(sc->cu.StreamSynchronize(p.s));
        }
    }
    sc_digest(sc);
    return 0;
}
