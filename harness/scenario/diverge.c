/*
 * Steps that are alike but not equal: at a varying place there is another kernel, one more or one
 * less. Main thread.
 */
#include "harness/scenario/sc.h"

enum { N = 128, LENGTH = 32 };

static void one(struct sc *sc, CUstream s, CUdeviceptr x, CUdeviceptr y, unsigned i,
                unsigned salt) {
    switch (i % 5) {
    case 0:
        sc_chain(sc, s, x, 3, salt + i, N);
        break;
    case 1:
        sc_copy(sc, s, y, x, N);
        break;
    case 2:
        sc_add(sc, s, (i & 1) ? x : y, (int)(salt * i), N);
        break;
    case 3:
        sc_chain(sc, s, y, 5, i, N);
        break;
    default:
        OK(sc->cu.MemcpyDtoDAsync(x, y, 64, s));
        break;
    }
}

static void strange(struct sc *sc, CUstream s, CUdeviceptr x, unsigned which, unsigned value) {
    switch (which % 4) {
    case 0:
        sc_iota(sc, s, x, (int)value, 16);
        break;
    case 1:
        OK(sc->cu.MemsetD16Async(x + 32, (unsigned short)value, 21, s));
        break;
    case 2:
        sc_touch(sc, s, x);
        break;
    default:
        sc_fill(sc, s, x + 64, value, 8);
        break;
    }
}

static void diverging(struct sc *sc, bool replace, unsigned quiet) {
    CUstream s;
    sc_start(sc);
    CUdeviceptr x = sc_device(sc, "x", N), y = sc_device(sc, "y", N);
    OK(sc->cu.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
    for (unsigned step = 0; step < sc_steps(sc, 48); step++) {
        unsigned at = (step * 7) % LENGTH;
        bool now = step >= quiet && step % 2 == 0;
        for (unsigned i = 0; i < LENGTH; i++) {
            if (now && i == at) {
                strange(sc, s, x, step / 2, step);
            }
            if (!now || i != at || !replace) {
                one(sc, s, x, y, i, step);
            }
        }
        OK(sc->cu.StreamSynchronize(s));
    }
    sc_digest(sc);
}

/* From the 8th step on, every other step has another kernel in place of the expected one. */
int sc_run_diverge_replace(struct sc *sc) {
    diverging(sc, true, 8);
    return 0;
}

/* The same, with an additional kernel. */
int sc_run_diverge_insert(struct sc *sc) {
    diverging(sc, false, 8);
    return 0;
}

/* Steps of different length with a common beginning, and with a common end. */
int sc_run_diverge_length(struct sc *sc) {
    CUstream s;
    sc_start(sc);
    CUdeviceptr x = sc_device(sc, "x", N), y = sc_device(sc, "y", N);
    OK(sc->cu.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
    for (unsigned step = 0; step < sc_steps(sc, 48); step++) {
        unsigned first = step % 3 == 2 ? LENGTH / 2 : 0, last = LENGTH - 5 * (step % 4);
        for (unsigned i = first; i < last; i++) {
            one(sc, s, x, y, i, step);
        }
        OK(sc->cu.StreamSynchronize(s));
    }
    sc_digest(sc);
    return 0;
}

/* The host chooses one of two branches by a value that it read. Both have the same kernels and
 * shapes. */
int sc_run_diverge_branch(struct sc *sc) {
    CUstream s;
    sc_start(sc);
    CUdeviceptr x = sc_device(sc, "x", N), y = sc_device(sc, "y", N);
    unsigned *seen = sc_pinned(sc, "seen", 64);
    OK(sc->cu.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
    sc_iota(sc, s, x, (int)(sc->seed & 0xffff), N);
    for (unsigned step = 0; step < sc_steps(sc, 48); step++) {
        for (unsigned i = 0; i < 12; i++) {
            one(sc, s, x, y, i, step);
        }
        OK(sc->cu.MemcpyDtoHAsync(seen, x, 4, s));
        OK(sc->cu.StreamSynchronize(s));
        for (unsigned i = 0; i < 12; i++) {
            if (*seen & 4) {
                sc_chain(sc, s, x, 7, i, N);
            } else {
                sc_chain(sc, s, y, 9, i, N);
                sc_add(sc, s, y, 1, N);
            }
        }
    }
    sc_digest(sc);
    return 0;
}

/* Nothing ever repeats: a seeded random order of kernels, shapes and values. */
int sc_run_never_repeat(struct sc *sc) {
    CUstream s;
    sc_start(sc);
    CUdeviceptr x = sc_device(sc, "x", N * 8), y = sc_device(sc, "y", N * 8);
    CUdeviceptr sum = sc_device(sc, "sum", 2);
    OK(sc->cu.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
    for (unsigned step = 0; step < sc_steps(sc, 40); step++) {
        for (unsigned i = 0; i < 50; i++) {
            int n = (int)(1 + sc_random(sc, 8)) * N;
            unsigned value = sc_random(sc, 1000);
            switch (sc_random(sc, 8)) {
            case 0:
                sc_chain(sc, s, x, 3, value, n);
                break;
            case 1:
                sc_chain(sc, s, y, 5, value, n);
                break;
            case 2:
                sc_copy(sc, s, y, x, n);
                break;
            case 3:
                sc_copy(sc, s, x, y, n);
                break;
            case 4:
                sc_add(sc, s, x, (int)value, n);
                break;
            case 5:
                sc_reduce(sc, s, sum, y, n);
                break;
            case 6:
                sc_touch(sc, s, x + value * 4);
                break;
            default:
                sc_iota(sc, s, y, (int)value, n / 2);
                break;
            }
        }
        if (step % 2) {
            OK(sc->cu.StreamSynchronize(s));
        }
    }
    sc_digest(sc);
    return 0;
}

/* A loop of 37 launches that is never synchronised before its end. */
int sc_run_never_sync(struct sc *sc) {
    CUstream s;
    sc_start(sc);
    CUdeviceptr x = sc_device(sc, "x", N), y = sc_device(sc, "y", N);
    OK(sc->cu.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
    for (unsigned turn = 0; turn < sc_steps(sc, 300); turn++) {
        for (unsigned i = 0; i < 37; i++) {
            one(sc, s, x, y, i, turn);
        }
    }
    OK(sc->cu.StreamSynchronize(s));
    sc_digest(sc);
    return 0;
}

/* Every 10th kernel is another one, which the test names on the eager list. */
int sc_run_eager_tenth(struct sc *sc) {
    CUstream s;
    sc_start(sc);
    CUdeviceptr x = sc_device(sc, "x", N), y = sc_device(sc, "y", N), z = sc_device(sc, "z", N);
    OK(sc->cu.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
    for (unsigned step = 0; step < sc_steps(sc, 20); step++) {
        for (unsigned i = 0; i < 40; i++) {
            if (i % 10 == 9) {
                sc_saxpy_n(sc, s, y, z, 0.5f, N, 1 + (int)(step % 3));
            } else {
                sc_chain(sc, s, x, 3, step + i, N);
            }
        }
        OK(sc->cu.StreamSynchronize(s));
    }
    sc_digest(sc);
    return 0;
}

/* At some places either of two functions comes, with other numbers and sizes of parameters. The
 * following launches are always the same. */
int sc_run_swap_functions(struct sc *sc) {
    CUstream s;
    sc_start(sc);
    CUdeviceptr x = sc_device(sc, "x", N), y = sc_device(sc, "y", N), sum = sc_device(sc, "sum", 2);
    OK(sc->cu.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
    for (unsigned step = 0; step < sc_steps(sc, 60); step++) {
        unsigned how = step < 20 ? 0 : step < 40 ? step % 2 : sc_random(sc, 3);
        for (unsigned i = 0; i < 24; i++) {
            if (i == 5 || i == 12 || i == 20) {
                switch ((how + (i == 12)) % 3) {
                case 0:
                    sc_chain(sc, s, x, 3, step, N);
                    break;
                case 1:
                    sc_add(sc, s, x, (int)step, N);
                    break;
                default:
                    sc_reduce(sc, s, sum, x, N);
                    break;
                }
            } else {
                one(sc, s, x, y, i, step);
            }
        }
        OK(sc->cu.StreamSynchronize(s));
    }
    sc_digest(sc);
    return 0;
}

/* The same endless sequence of launches, with synchronisations at places that move. */
int sc_run_moving_sync(struct sc *sc) {
    CUstream s;
    unsigned next = 0, at = 0;
    sc_start(sc);
    CUdeviceptr x = sc_device(sc, "x", N), y = sc_device(sc, "y", N);
    OK(sc->cu.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
    for (unsigned turn = 0; turn < sc_steps(sc, 60); turn++) {
        for (unsigned i = 0; i < 23; i++) {
            one(sc, s, x, y, i, turn);
            if (at++ == next) {
                OK(sc->cu.StreamSynchronize(s));
                next += 17 + sc_random(sc, 40);
            }
        }
    }
    sc_digest(sc);
    return 0;
}
