/*
 * Ops that equal those of the step before, in each form that tools/hotpath counts. Each form runs
 * until its graphs are settled, then as many steps again. Main thread.
 */
#include "harness/scenario/sc.h"

enum { WORDS = 8, LAUNCHES = 256, HALVES = 2 };

/* One step of a form. `turn` differs from step to step. */
struct matched {
    struct sc *sc;
    CUstream stream;
    CUdeviceptr words;
    unsigned long long turn;
};

static void join_with(const struct matched *m, unsigned shared, CUdeviceptr out,
                      unsigned long long a, unsigned long long b, unsigned long long c) {
    OK(m->sc->cu.LaunchKernel(m->sc->fn[SC_join_words], 1, 1, 1, 1, 1, 1, shared, m->stream,
                              (void *[]){&out, &a, &b, &c}, NULL));
}

static void join(const struct matched *m, CUdeviceptr out, unsigned long long a,
                 unsigned long long b, unsigned long long c) {
    join_with(m, 0, out, a, b, c);
}

static void unchanged(const struct matched *m) {
    for (unsigned i = 0; i < LAUNCHES; i++)
        join(m, m->words, i, 3, 5);
}

static void one_changed(const struct matched *m) {
    for (unsigned i = 0; i < LAUNCHES; i++)
        join(m, m->words, i, 3, m->turn);
}

static void all_changed(const struct matched *m) {
    for (unsigned i = 0; i < LAUNCHES; i++)
        join(m, m->words + 8 * ((m->turn + i) % WORDS), i + m->turn, 2 * m->turn + 1, m->turn);
}

/* One of four sizes of shared memory, in another order each time. */
static void another_shape(const struct matched *m) {
    for (unsigned i = 0; i < LAUNCHES; i++) {
        unsigned long long mixed = (i * LAUNCHES + m->turn) * 0x9e3779b97f4a7c15u;
        join_with(m, 16 * (unsigned)(mixed >> 62), m->words, i, 3, 5);
    }
}

static void memsets(const struct matched *m) {
    for (unsigned i = 0; i < LAUNCHES; i++)
        OK(m->sc->cu.MemsetD32Async(m->words + i % 8 * 4, i, 2, m->stream));
}

static void attribute(const struct matched *m) {
    unsigned long long b = 3, c = 5;
    CUdeviceptr out = m->words;
    CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
                                   .value.clusterDim = {1, 1, 1}};
    CUlaunchConfig config = {.gridDimX = 1,
                             .gridDimY = 1,
                             .gridDimZ = 1,
                             .blockDimX = 1,
                             .blockDimY = 1,
                             .blockDimZ = 1,
                             .hStream = m->stream,
                             .attrs = &attribute,
                             .numAttrs = 1};
    for (unsigned long long a = 0; a < LAUNCHES; a++)
        OK(m->sc->cu.LaunchKernelEx(&config, m->sc->fn[SC_join_words], (void *[]){&out, &a, &b, &c},
                                    NULL));
}

/* Each call makes tools/hotpath take the counters. */
__attribute__((noinline)) static void matched_half(void) {
    __asm__ volatile("");
}

int sc_run_matched(struct sc *sc) {
    static void (*const forms[])(const struct matched *) = {unchanged,     one_changed, all_changed,
                                                            another_shape, memsets,     attribute};
    struct matched m = {.sc = sc};
    sc_start(sc);
    m.words = sc_device(sc, "words", 2 * WORDS);
    OK(sc->cu.StreamCreate(&m.stream, CU_STREAM_NON_BLOCKING));
    for (unsigned form = 0; form < sizeof forms / sizeof *forms; form++) {
        for (unsigned half = 0; half < HALVES; half++) {
            matched_half();
            for (unsigned step = 0; step < sc_steps(sc, 24); step++) {
                m.turn++;
                forms[form](&m);
                OK(sc->cu.StreamSynchronize(m.stream));
            }
        }
    }
    matched_half();
    sc_digest(sc);
    return 0;
}
