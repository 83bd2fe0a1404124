/*
 * The life of a process: fork, exit with pending work, handlers at exit.
 *
 * Main thread; the child of fork makes no CUDA call.
 */
#include "harness/scenario/sc.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N = 128 };

static void loop(struct sc *sc, CUstream s, CUdeviceptr x, unsigned salt) {
    for (unsigned i = 0; i < 12; i++) {
        sc_chain(sc, s, x, 3, salt + i, N);
    }
}

/* fork makes children while the parent has work pending; they end with and without their exit
 * handlers. */
int sc_run_fork(struct sc *sc) {
    CUstream s;
    sc_start(sc);
    CUdeviceptr x = sc_device(sc, "x", N);
    OK(sc->cu.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
    for (unsigned step = 0; step < sc_steps(sc, 24); step++) {
        loop(sc, s, x, step);
        if (step % 8 == 7) {
            int status = -1;
            fflush(stdout);
            pid_t child = fork();
            if (child == 0) {
                if (step % 16 == 7) {
                    _exit(17);
                }
                exit(18);
            }
            if (child < 0 || waitpid(child, &status, 0) != child) {
                sc_fail("fork");
            }
            sc_say(sc, "child: %d", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
        }
        loop(sc, s, x, step);
        OK(sc->cu.StreamSynchronize(s));
    }
    sc_digest(sc);
    return 0;
}

int sc_run_exit_pending(struct sc *sc) {
    CUstream s;
    sc_start(sc);
    CUdeviceptr x = sc_device(sc, "x", N);
    OK(sc->cu.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
    for (unsigned step = 0; step < sc_steps(sc, 16); step++) {
        loop(sc, s, x, step);
        OK(sc->cu.StreamSynchronize(s));
    }
    sc_digest(sc);
    for (unsigned i = 0; i < 5; i++) {
        sc_chain(sc, s, x, 3, i, N);
    }
    return 5;
}

static struct {
    struct sc *sc;
    CUstream s;
    CUdeviceptr x;
} last;

static void at_exit(void) {
    for (unsigned step = 0; step < 6; step++) {
        loop(last.sc, last.s, last.x, step);
        if (step % 2) {
            struct sc *sc = last.sc;
            OK(sc->cu.StreamSynchronize(last.s));
        }
    }
    sc_digest(last.sc);
}

/* An exit handler that was registered after cuInit still launches, while the main program has
 * work pending. */
int sc_run_exit_handler(struct sc *sc) {
    sc_start(sc);
    last.sc = sc;
    last.x = sc_device(sc, "x", N);
    OK(sc->cu.StreamCreate(&last.s, CU_STREAM_NON_BLOCKING));
    if (atexit(at_exit)) {
        sc_fail("atexit");
    }
    for (unsigned step = 0; step < sc_steps(sc, 16); step++) {
        loop(sc, last.s, last.x, step);
        OK(sc->cu.StreamSynchronize(last.s));
    }
    for (unsigned i = 0; i < 5; i++) {
        sc_chain(sc, last.s, last.x, 7, i, N);
    }
    return 6;
}

/* Asks only for the version: no device, no context, no launch. */
int sc_run_idle(struct sc *sc) {
    int version = 0;
    OK(sc->cu.Init(0));
    OK(sc->cu.DriverGetVersion(&version));
    sc_say(sc, "driver: %s", version > 0 ? "there" : "none");
    return 0;
}

static void *exiting(void *arg) {
    (void)arg;
    exit(7);
}

/* Another thread ends the process while the main thread waits for nothing; the main thread's
 * last launches are before that. */
int sc_run_exit_thread(struct sc *sc) {
    CUstream s;
    pthread_t thread;
    sc_start(sc);
    CUdeviceptr x = sc_device(sc, "x", N);
    OK(sc->cu.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
    for (unsigned step = 0; step < sc_steps(sc, 16); step++) {
        loop(sc, s, x, step);
        OK(sc->cu.StreamSynchronize(s));
    }
    sc_digest(sc);
    for (unsigned i = 0; i < 5; i++) {
        sc_chain(sc, s, x, 3, i, N);
    }
    if (pthread_create(&thread, NULL, exiting, NULL)) {
        sc_fail("no thread");
    }
    for (;;) {
        pause();
    }
}

/* Ends without exit handlers. */
int sc_run_exit_quick(struct sc *sc) {
    CUstream s;
    sc_start(sc);
    CUdeviceptr x = sc_device(sc, "x", N);
    OK(sc->cu.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
    for (unsigned step = 0; step < sc_steps(sc, 16); step++) {
        loop(sc, s, x, step);
        OK(sc->cu.StreamSynchronize(s));
    }
    sc_digest(sc);
    loop(sc, s, x, 1);
    quick_exit(8);
}
