/*
 * A kernel that stays on the GPU until the host stops it (a service loop, a communication proxy).
 * Beside it another stream has more work than a driver has room for graphs.
 *
 * Main thread. In resident_process a child with its own context holds the kernel. If the host does
 * not stop a kernel in time, the kernel ends by itself and the scenario says so.
 */
#include "harness/scenario/sc.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N = 128, LENGTH = 16, VISITS = 5 };

/* Half a minute on a GPU; a right run takes less than a second. */
static const unsigned long long ROUNDS = 30000000;

struct resident {
    CUstream stream;
    volatile unsigned *word; /* mapped */
    CUdeviceptr word_device, seen;
    unsigned times;
};

static void spin(struct sc *sc, struct resident *r, unsigned value) {
    unsigned long long rounds = ROUNDS;
    OK(sc_launch(sc, sc->fn[SC_spin_until], 1, 1, 0, r->stream,
                 (void *[]){&r->word_device, &value, &rounds, &r->seen}));
}

/* Launches the kernel once before: the first launch of a kernel may wait for the GPU. */
static void open_resident(struct sc *sc, struct resident *r) {
    r->word = sc_pinned(sc, "word", 64);
    r->seen = sc_device(sc, "seen", 1);
    r->times = 0;
    OK(sc->cu.MemHostGetDevicePointer(&r->word_device, (void *)(uintptr_t)r->word, 0));
    OK(sc->cu.StreamCreate(&r->stream, CU_STREAM_NON_BLOCKING));
    spin(sc, r, 0);
    OK(sc->cu.StreamSynchronize(r->stream));
}

static void begin_resident(struct sc *sc, struct resident *r) {
    spin(sc, r, ++r->times);
}

/* Tells whether the word ended the kernel. */
static bool end_resident(struct sc *sc, struct resident *r) {
    unsigned seen = 0;
    *r->word = r->times;
    OK(sc->cu.StreamSynchronize(r->stream));
    OK(sc->cu.MemcpyDtoH(&seen, r->seen, sizeof(seen)));
    return seen == 1;
}

static void say(struct sc *sc, const char *when, bool by_word) {
    sc_say(sc, "%s: ended by %s", when, by_word ? "the host's word" : "its TIME LIMIT");
}

struct work {
    CUstream stream;
    CUdeviceptr x, count;
};

static unsigned mixed(unsigned q, unsigned i) {
    unsigned v = q * 0x9e3779b9u ^ i * 0x85ebca6bu;
    v = (v ^ v >> 15) * 0x2c1b3c6du;
    return v ^ v >> 12;
}

/* Each sequence has its own order of kernels, and comes VISITS times. */
static void sequences(struct sc *sc, const struct work *w, unsigned from, unsigned to) {
    for (unsigned q = from; q < to; q++) {
        for (unsigned visit = 0; visit < VISITS; visit++) {
            for (unsigned i = 0; i < LENGTH; i++) {
                unsigned kind = mixed(q, i) % 8;
                if (kind < 3) {
                    sc_chain(sc, w->stream, w->x, 2 * i + 3, q + i, N);
                } else if (kind < 5) {
                    sc_touch(sc, w->stream, w->count);
                } else {
                    sc_add(sc, w->stream, w->count, (int)i, 1);
                }
            }
            OK(sc->cu.StreamSynchronize(w->stream));
        }
    }
}

static void open_work(struct sc *sc, struct work *w) {
    w->x = sc_device(sc, "x", N);
    w->count = sc_device(sc, "count", 1);
    OK(sc->cu.StreamCreate(&w->stream, CU_STREAM_NON_BLOCKING));
    sc_chain(sc, w->stream, w->x, 3, 1, N);
    sc_touch(sc, w->stream, w->count);
    sc_add(sc, w->stream, w->count, 1, 1);
    OK(sc->cu.StreamSynchronize(w->stream));
}

/* The kernel runs before anything repeats; later it runs when much is learned. */
int sc_run_resident(struct sc *sc) {
    struct resident r;
    struct work w;
    unsigned half = sc_steps(sc, 40);
    sc_start(sc);
    open_resident(sc, &r);
    open_work(sc, &w);
    begin_resident(sc, &r);
    sequences(sc, &w, 0, half);
    say(sc, "before", end_resident(sc, &r));
    sequences(sc, &w, 0, half);
    begin_resident(sc, &r);
    sequences(sc, &w, 0, 2 * half);
    say(sc, "behind", end_resident(sc, &r));
    sc_digest(sc);
    return 0;
}

/* Memory runs out while the kernel runs. */
int sc_run_resident_oom(struct sc *sc) {
    struct resident r;
    struct work w;
    CUdeviceptr huge;
    size_t free_bytes, total;
    unsigned half = sc_steps(sc, 20);
    sc_start(sc);
    open_resident(sc, &r);
    open_work(sc, &w);
    sequences(sc, &w, 0, half);
    begin_resident(sc, &r);
    OK(sc->cu.MemGetInfo(&free_bytes, &total));
    for (unsigned i = 0; i < 3; i++) {
        sequences(sc, &w, 0, half / 4);
        sc_say(sc, "too much: %d", (int)sc_code(sc, sc->cu.MemAlloc(&huge, total * 2)));
    }
    sequences(sc, &w, 0, half);
    say(sc, "beside", end_resident(sc, &r));
    sc_digest(sc);
    return 0;
}

/* The child: the kernel runs from the byte that it writes to the byte that it reads. */
static void hold_resident(struct sc *sc, int in, int out) {
    struct resident r;
    char byte = 0;
    sc_start(sc);
    open_resident(sc, &r);
    begin_resident(sc, &r);
    if (write(out, &byte, 1) != 1 || read(in, &byte, 1) != 1) {
        _exit(3);
    }
    /* Without exit handlers: output and files written at exit are the parent's. */
    _exit(end_resident(sc, &r) ? 0 : 1);
}

int sc_run_resident_process(struct sc *sc) {
    struct work w;
    int to[2], from[2], status = -1;
    char byte = 0;
    if (pipe(to) || pipe(from)) {
        sc_fail("no pipe");
    }
    pid_t child = fork();
    if (child == 0) {
        close(to[1]);
        close(from[0]);
        unsetenv("CUSIM_LOG"); /* on the simulator only the parent writes the log */
        hold_resident(sc, to[0], from[1]);
    }
    close(from[1]);
    if (child < 0 || read(from[0], &byte, 1) != 1) {
        sc_fail("no child");
    }
    sc_start(sc);
    open_work(sc, &w);
    sequences(sc, &w, 0, sc_steps(sc, 40));
    if (write(to[1], &byte, 1) != 1 || waitpid(child, &status, 0) != child) {
        sc_fail("the child is gone");
    }
    say(sc, "elsewhere", WIFEXITED(status) && WEXITSTATUS(status) == 0);
    sc_digest(sc);
    return 0;
}
