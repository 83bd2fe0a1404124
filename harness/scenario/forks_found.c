/*
 * Forks and joins by which a review broke the library: a stream that is forked again before it is
 * joined, one that has work which nothing comes behind, waits that order little, a kernel that
 * waits for work behind the join, and exit. forks.h has the parts.
 *
 * Main thread; the handler of exit_forked runs at exit.
 */
#include "harness/scenario/forks.h"

#include <stdlib.h>

enum { STEPS = 40 };

/* New streams: what is known of those before does not count. */
static void new_streams(struct forks *f) {
    CUstream *all[] = {&f->a, &f->b, &f->c};
    OK(f->sc->cu.CtxSynchronize());
    for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        /* A stream that goes with work leaves mode verify in doubt what runs. */
        OK(f->sc->cu.StreamSynchronize(*all[i]));
        OK(f->sc->cu.StreamDestroy(*all[i]));
        OK(f->sc->cu.StreamCreate(all[i], CU_STREAM_NON_BLOCKING));
    }
}

static void region(struct forks *f, CUstream s, unsigned salt) {
    sc_forks_layer(f, s, f->e[0], f->e[1], salt);
}

/* Runs each form for some steps; at the end of each step the host waits for a. */
static int run_forms(struct sc *sc, void (*const forms[])(struct forks *, unsigned), unsigned n) {
    struct forks f;
    sc_forks_start(sc, &f);
    unsigned steps = sc_steps(sc, STEPS);
    for (unsigned form = 0; form < n; form++) {
        new_streams(&f);
        for (unsigned step = 0; step < steps; step++) {
            forms[form](&f, step);
            OK(sc->cu.StreamSynchronize(f.a));
        }
    }
    sc_digest(sc);
    return 0;
}

/* ---- forked again before it is joined ---- */

/* The second fork, work, and the join. a reads what b has done since the first fork. */
static void second_fork(struct forks *f, unsigned step) {
    sc_forks_chain(f, f->a, f->x, step + 1);
    sc_forks_chain(f, f->a, f->y, step + 2);
    sc_forks_order(f, f->a, f->e[1], f->b);
    sc_forks_chain(f, f->b, f->w, step + 3);
    sc_forks_chain(f, f->a, f->y, step + 4);
    sc_forks_chain(f, f->b, f->w, step + 5);
    sc_forks_order(f, f->b, f->e[2], f->a);
    sc_forks_chain(f, f->a, f->w, step + 6);
    sc_forks_sum(f, f->a, f->w);
    sc_forks_chain(f, f->a, f->x, step + 7);
}

/* Behind ops that have no nodes. */
static void behind_memsets(struct forks *f, unsigned step) {
    if (step < 2) {
        region(f, f->b, step);
        return;
    }
    sc_forks_chain(f, f->a, f->x, step);
    sc_forks_order(f, f->a, f->e[0], f->b);
    for (unsigned i = 0; i < 6; i++) {
        OK(f->sc->cu.MemsetD2D32Async(f->w, 64, step + i, 8, 8, f->b));
    }
    second_fork(f, step);
}

/* Behind a wait of the host in the midst of the region. */
static void behind_a_wait(struct forks *f, unsigned step) {
    if (step < 2) {
        region(f, f->b, step);
        return;
    }
    sc_forks_chain(f, f->a, f->x, step);
    sc_forks_order(f, f->a, f->e[0], f->b);
    for (unsigned i = 0; i < 6; i++) {
        sc_forks_chain(f, f->b, f->w, step + i);
    }
    OK(f->sc->cu.EventRecord(f->e[5], f->a));
    OK(f->sc->cu.EventSynchronize(f->e[5]));
    second_fork(f, step);
}

/* Behind the end of a step. Meanwhile c is forked and joined. */
static void behind_a_step(struct forks *f, unsigned step) {
    struct sc *sc = f->sc;
    if (step < 4) {
        region(f, f->b, step);
        region(f, f->c, step);
        return;
    }
    sc_forks_chain(f, f->a, f->x, step);
    sc_forks_order(f, f->a, f->e[0], f->b);
    sc_forks_chain(f, f->b, f->w, step);
    OK(sc->cu.StreamSynchronize(f->a));
    second_fork(f, step);
    sc_forks_order(f, f->a, f->e[3], f->c);
    sc_forks_chain(f, f->c, f->v, step + 4);
    sc_forks_chain(f, f->c, f->v, step + 5);
    sc_forks_chain(f, f->a, f->y, step + 6);
    sc_forks_order(f, f->c, f->e[4], f->a);
    sc_forks_chain(f, f->a, f->v, step + 7);
    sc_forks_chain(f, f->b, f->z, step + 9);
    sc_forks_chain(f, f->b, f->z, step + 11);
    sc_forks_order(f, f->b, f->e[5], f->a);
    sc_forks_chain(f, f->a, f->z, step + 2);
    sc_forks_sum(f, f->a, f->z);
}

/* b forks c and joins it; a joins c once more, and again behind the end of the step. */
static void nested_again(struct forks *f, unsigned step) {
    struct sc *sc = f->sc;
    if (step < 2) {
        region(f, f->b, step);
        region(f, f->c, step);
        return;
    }
    sc_forks_chain(f, f->a, f->x, step);
    sc_forks_order(f, f->a, f->e[0], f->b);
    sc_forks_chain(f, f->b, f->z, step);
    sc_forks_order(f, f->b, f->e[1], f->c);
    sc_forks_chain(f, f->c, f->v, step);
    sc_forks_chain(f, f->c, f->v, step + 1);
    sc_forks_chain(f, f->b, f->z, step + 2);
    sc_forks_order(f, f->c, f->e[2], f->b);
    sc_forks_chain(f, f->b, f->v, step + 2);
    sc_forks_order(f, f->b, f->e[3], f->a);
    sc_forks_chain(f, f->a, f->v, step + 1);
    sc_forks_order(f, f->c, f->e[4], f->a);
    sc_forks_chain(f, f->a, f->x, step + 2);
    OK(sc->cu.StreamSynchronize(f->a));
    sc_copy(sc, f->c, f->w, f->v, FORK_N);
    sc_forks_order(f, f->c, f->e[5], f->a);
    sc_forks_chain(f, f->a, f->w, step);
    sc_forks_sum(f, f->a, f->w);
}

int sc_run_fork_again(struct sc *sc) {
    static void (*const forms[])(struct forks *, unsigned) = {behind_memsets, behind_a_wait,
                                                              behind_a_step, nested_again};
    return run_forms(sc, forms, sizeof(forms) / sizeof(forms[0]));
}

/* ---- work of b, on w, that nothing comes behind ---- */

enum { MUCH = 40 };

/* By copies that could be between contexts. */
static void copies_of_peers(struct forks *f, unsigned step) {
    struct sc *sc = f->sc;
    region(f, f->b, step);
    for (unsigned i = 0; i < MUCH; i++) {
        OK(sc->cu.MemcpyPeerAsync(f->w, sc->ctx, f->v, sc->ctx, FORK_N * 2, f->b));
    }
    region(f, f->b, step + 3);
}

/* By a call that no table of cusplice knows, where there is one (see unknown.c). */
static void unknown_fills(struct forks *f, unsigned step) {
    sc_fill_fn unknown = sc_unknown_fill();
    region(f, f->b, step);
    for (unsigned i = 0; unknown && i < MUCH; i++) {
        OK(unknown(f->w, step + i, FORK_N, f->b));
    }
    region(f, f->b, step + 3);
}

/* In each fourth step b works without a fork, and what looks like its join is captured. */
static void captured_join(struct forks *f, unsigned step) {
    struct sc *sc = f->sc;
    CUgraph graph;
    region(f, f->b, step);
    region(f, f->b, step + 1);
    OK(sc->cu.StreamSynchronize(f->a));
    if (step % 4 != 3) {
        return;
    }
    for (unsigned i = 0; i < MUCH; i++) {
        sc_forks_chain(f, f->b, f->w, step + i);
    }
    OK(sc->cu.StreamBeginCapture(f->a, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    sc_forks_chain(f, f->a, f->x, 1);
    sc_forks_order(f, f->a, f->e[2], f->b);
    sc_forks_chain(f, f->b, f->w, 2);
    sc_forks_order(f, f->b, f->e[3], f->a);
    OK(sc->cu.StreamEndCapture(f->a, &graph));
    OK(sc->cu.GraphDestroy(graph));
    region(f, f->b, step);
    region(f, f->b, step + 1);
    OK(sc->cu.StreamSynchronize(f->b));
}

int sc_run_fork_given(struct sc *sc) {
    static void (*const forms[])(struct forks *, unsigned) = {copies_of_peers, unknown_fills,
                                                              captured_join};
    return run_forms(sc, forms, sizeof(forms) / sizeof(forms[0]));
}

/* ---- waits that order little ---- */

/* b waits for a twice, and works behind each wait. */
static void twice(struct forks *f, unsigned step) {
    region(f, f->b, step);
    sc_forks_order(f, f->a, f->e[2], f->b);
    sc_forks_chain(f, f->b, f->w, step + 2);
    sc_forks_chain(f, f->b, f->w, step + 5);
    sc_forks_chain(f, f->a, f->y, step + 3);
    sc_forks_order(f, f->a, f->e[3], f->b);
    sc_copy(f->sc, f->b, f->w, f->y, FORK_N / 4);
    sc_forks_chain(f, f->b, f->w, step + 7);
    sc_forks_order(f, f->b, f->e[4], f->a);
    sc_forks_chain(f, f->a, f->w, step + 9);
    sc_forks_sum(f, f->a, f->w);
    sc_forks_chain(f, f->a, f->y, step);
}

/* A fork and a join without an op between, where a segment begins. Then b works on without a fork,
 * and is joined. */
static void empty(struct forks *f, unsigned step) {
    struct sc *sc = f->sc;
    if (step < 2) {
        region(f, f->b, step);
        return;
    }
    for (unsigned i = 0; i < 30; i++) {
        sc_forks_chain(f, f->a, f->x, step + i);
    }
    (void)sc->cu.StreamQuery(f->a);
    sc_forks_wait_stream(f, f->b, f->a);
    sc_forks_wait_stream(f, f->a, f->b);
    for (unsigned i = 0; i < 3; i++) {
        sc_forks_chain(f, f->a, f->y, step + i);
    }
    (void)sc->cu.StreamQuery(f->a);
    sc_copy(sc, f->b, f->w, f->x, FORK_N);
    sc_forks_chain(f, f->b, f->z, step);
    sc_forks_order(f, f->b, f->e[5], f->a);
    sc_forks_chain(f, f->a, f->w, step);
    sc_forks_sum(f, f->a, f->w);
    sc_forks_chain(f, f->a, f->z, 3);
}

/* b is joined, waits for c, which is not, and then for a. */
static void behind_both(struct forks *f, unsigned step) {
    region(f, f->b, step);
    sc_forks_order(f, f->a, f->e[2], f->b);
    sc_forks_order(f, f->a, f->e[3], f->c);
    for (unsigned i = 0; i < 4; i++) {
        sc_forks_chain(f, f->c, f->v, step + 1 + i);
    }
    sc_forks_chain(f, f->b, f->w, step + 2);
    sc_forks_order(f, f->b, f->e[4], f->a);
    sc_forks_order(f, f->c, f->e[5], f->b);
    sc_forks_chain(f, f->a, f->y, step);
    sc_forks_order(f, f->a, f->e[1], f->b);
    sc_copy(f->sc, f->b, f->w, f->v, FORK_N);
    sc_forks_order(f, f->b, f->e[2], f->a);
    sc_forks_order(f, f->c, f->e[0], f->a);
    sc_forks_chain(f, f->a, f->v, step);
    sc_forks_chain(f, f->a, f->w, step + 9);
    sc_forks_sum(f, f->a, f->w);
}

/* b is joined, and waits for a record of a behind that join and in front of c's. */
static void between_joins(struct forks *f, unsigned step) {
    struct sc *sc = f->sc;
    sc_forks_chain(f, f->a, f->x, step);
    sc_forks_order(f, f->a, f->e[0], f->b);
    sc_forks_order(f, f->a, f->e[1], f->c);
    sc_copy(sc, f->b, f->z, f->x, FORK_N);
    sc_copy(sc, f->c, f->v, f->x, FORK_N);
    sc_forks_chain(f, f->a, f->y, step);
    sc_forks_order(f, f->b, f->e[2], f->a);
    OK(sc->cu.EventRecord(f->e[3], f->a));
    sc_forks_order(f, f->c, f->e[4], f->a);
    sc_forks_chain(f, f->a, f->z, step);
    sc_forks_chain(f, f->a, f->v, step);
    OK(sc->cu.StreamWaitEvent(f->b, f->e[3], 0));
    sc_copy(sc, f->b, f->w, f->y, FORK_N);
    sc_forks_chain(f, f->b, f->w, step + 1);
    sc_forks_order(f, f->b, f->e[5], f->a);
    sc_forks_chain(f, f->a, f->w, step + 3);
    sc_forks_sum(f, f->a, f->w);
    sc_forks_sum(f, f->a, f->v);
    sc_forks_chain(f, f->a, f->y, 2);
}

int sc_run_fork_waits(struct sc *sc) {
    static void (*const forms[])(struct forks *, unsigned) = {twice, empty, behind_both,
                                                              between_joins};
    return run_forms(sc, forms, sizeof(forms) / sizeof(forms[0]));
}

/* ---- a kernel of a that waits for work of b behind the join ---- */

int sc_run_fork_spin(struct sc *sc) {
    struct forks f;
    CUdeviceptr flag;
    unsigned long long rounds = 3000000;
    sc_forks_start(sc, &f);
    CUdeviceptr seen = sc_device(sc, "seen", FORK_N);
    unsigned *word = sc_pinned(sc, "word", 64);
    OK(sc->cu.MemHostGetDevicePointer(&flag, word, 0));
    for (unsigned step = 0; step < sc_steps(sc, STEPS); step++) {
        unsigned value = step + 1;
        region(&f, f.b, step);
        OK(sc_launch(sc, sc->fn[SC_spin_until], 1, 1, 0, f.a,
                     (void *[]){&flag, &value, &rounds, &seen}));
        sc_forks_sum(&f, f.a, seen);
        sc_set_flag(sc, f.b, flag, value);
        OK(sc->cu.StreamSynchronize(f.a));
        OK(sc->cu.StreamSynchronize(f.b));
    }
    sc_digest(sc);
    return 0;
}

/* ---- exit ---- */

static struct {
    struct forks f;
    unsigned *out; /* b copies here in front of the join */
} last;

/* The driver may have gone already, and its memory with it. */
static void at_exit(void) {
    struct sc *sc = last.f.sc;
    if (sc->cu.StreamSynchronize(last.f.b) == CUDA_SUCCESS) {
        sc_say(sc, "at exit: %016llx", (unsigned long long)sc_hash(0, last.out, FORK_N * 4));
    } else {
        sc_say(sc, "at exit: the driver has gone");
    }
}

/* A handler that was registered before cuInit, and so runs last, waits for the forked stream. */
int sc_run_exit_forked(struct sc *sc) {
    struct forks *f = &last.f;
    if (atexit(at_exit)) {
        sc_fail("atexit");
    }
    sc_forks_start(sc, f);
    last.out = sc_pinned(sc, "out", FORK_N * 4);
    unsigned steps = sc_steps(sc, STEPS);
    for (unsigned step = 0; step < steps; step++) {
        sc_forks_chain(f, f->a, f->x, step);
        sc_forks_order(f, f->a, f->e[0], f->b);
        sc_forks_chain(f, f->a, f->y, step);
        sc_copy(sc, f->b, f->z, f->x, FORK_N);
        sc_copy(sc, f->b, f->z, f->sum, 2); /* what a saw behind each join before */
        for (unsigned i = 0; i < 20; i++) {
            sc_forks_chain(f, f->b, f->z, step + i);
        }
        OK(sc->cu.MemcpyDtoHAsync(last.out, f->z, FORK_N * 4, f->b));
        sc_forks_order(f, f->b, f->e[1], f->a);
        sc_forks_behind(f, step + 2);
        if (step + 1 != steps) {
            OK(sc->cu.StreamSynchronize(f->a));
        }
    }
    return 0;
}
