/*
 * Several streams of one thread: events between them, the rules of the legacy stream and its
 * aliases, streams that are created and destroyed. Main thread.
 */
#include "harness/scenario/sc.h"

enum { N = 256 };

int sc_run_two_streams(struct sc *sc) {
    CUstream a, b;
    CUevent made, taken;
    sc_start(sc);
    CUdeviceptr x = sc_device(sc, "x", N), y = sc_device(sc, "y", N), z = sc_device(sc, "z", N);
    OK(sc->cu.StreamCreate(&a, CU_STREAM_NON_BLOCKING));
    OK(sc->cu.StreamCreate(&b, CU_STREAM_NON_BLOCKING));
    OK(sc->cu.EventCreate(&made, CU_EVENT_DISABLE_TIMING));
    OK(sc->cu.EventCreate(&taken, CU_EVENT_DISABLE_TIMING));
    for (unsigned step = 0; step < sc_steps(sc, 20); step++) {
        for (unsigned i = 0; i < 6; i++) {
            sc_chain(sc, a, x, 3, step + i, N);
        }
        OK(sc->cu.EventRecord(made, a));
        for (unsigned i = 0; i < 4; i++) {
            sc_chain(sc, b, y, 5, step * 7 + i, N);
        }
        OK(sc->cu.StreamWaitEvent(b, made, 0));
        sc_copy(sc, b, z, x, N);
        sc_chain(sc, b, z, 7, step, N);
        OK(sc->cu.EventRecord(taken, b));
        OK(sc->cu.StreamWaitEvent(a, taken, 0));
        for (unsigned i = 0; i < 5; i++) {
            sc_chain(sc, a, x, 11, i, N);
        }
        sc_chain(sc, b, y, 13, step, N);
        if (step % 3 == 2) {
            OK(sc->cu.StreamSynchronize(b));
        }
    }
    sc_digest(sc);
    return 0;
}

/* In unusual order: the consumer's work is requested between two parts of the producer's. */
int sc_run_streams_interleaved(struct sc *sc) {
    CUstream s[3];
    CUevent e[3];
    CUdeviceptr x[3];
    sc_start(sc);
    for (int i = 0; i < 3; i++) {
        OK(sc->cu.StreamCreate(&s[i], i == 2 ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING));
        OK(sc->cu.EventCreate(&e[i], CU_EVENT_DISABLE_TIMING));
        x[i] = sc_device(sc, "x", N);
    }
    for (unsigned step = 0; step < sc_steps(sc, 20); step++) {
        for (unsigned i = 0; i < 12; i++) {
            unsigned w = (i * 5 + 1) % 3;
            sc_chain(sc, s[w], x[w], 3 + 2 * w, step + i, N);
        }
        for (unsigned i = 0; i < 3; i++) {
            unsigned next = (i + 1) % 3;
            OK(sc->cu.EventRecord(e[i], s[i]));
            OK(sc->cu.StreamWaitEvent(s[next], e[i], 0));
            sc_copy(sc, s[next], x[next], x[i], N / 2);
            OK(sc->cu.EventRecord(e[next], s[next]));
            OK(sc->cu.StreamWaitEvent(s[i], e[next], 0));
        }
        if (step % 4 == 3) {
            OK(sc->cu.CtxSynchronize());
        }
    }
    sc_digest(sc);
    return 0;
}

static void with_legacy(struct sc *sc, CUstream other, bool ordered) {
    CUdeviceptr x = sc_device(sc, "x", N), y = sc_device(sc, "y", N);
    unsigned *seen = sc_pinned(sc, "seen", N * 4);
    for (unsigned step = 0; step < sc_steps(sc, 20); step++) {
        for (unsigned i = 0; i < 5; i++) {
            sc_chain(sc, NULL, x, 3, step + i, N);
        }
        for (unsigned i = 0; i < 5; i++) {
            sc_chain(sc, other, ordered ? x : y, 5, step * 3 + i, N);
        }
        for (unsigned i = 0; i < 3; i++) {
            sc_chain(sc, NULL, x, 7, i, N);
            sc_chain(sc, other, ordered ? x : y, 9, i, N);
        }
        if (ordered) {
            sc_copy(sc, NULL, y, x, N);
        }
        OK(sc->cu.MemcpyDtoHAsync(seen, x, N * 4, NULL));
        OK(sc->cu.StreamSynchronize(step % 2 ? NULL : other));
        OK(sc->cu.StreamSynchronize(NULL));
    }
    sc_digest(sc);
}

/* Both streams use one buffer; only the legacy stream's rule orders them. */
int sc_run_legacy_blocking(struct sc *sc) {
    CUstream s;
    sc_start(sc);
    OK(sc->cu.StreamCreate(&s, CU_STREAM_DEFAULT));
    with_legacy(sc, s, true);
    return 0;
}

int sc_run_legacy_nonblocking(struct sc *sc) {
    CUstream s;
    sc_start(sc);
    OK(sc->cu.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
    with_legacy(sc, s, false);
    return 0;
}

/* Every call that names the legacy stream is a barrier for blocking streams: events, host
 * functions, memsets without Async. */
static void CUDA_CB count(void *data) {
    __atomic_fetch_add((unsigned *)data, 1, __ATOMIC_SEQ_CST);
}

int sc_run_legacy_barriers(struct sc *sc) {
    CUstream a, b;
    CUevent e;
    sc_start(sc);
    CUdeviceptr x = sc_device(sc, "x", N), y = sc_device(sc, "y", N);
    unsigned *calls = sc_pinned(sc, "calls", 64);
    OK(sc->cu.StreamCreate(&a, CU_STREAM_DEFAULT));
    OK(sc->cu.StreamCreate(&b, CU_STREAM_DEFAULT));
    OK(sc->cu.EventCreate(&e, CU_EVENT_DISABLE_TIMING));
    for (unsigned step = 0; step < sc_steps(sc, 24); step++) {
        for (unsigned i = 0; i < 5; i++) {
            sc_chain(sc, a, x, 3, step + i, N);
        }
        switch (step % 4) {
        case 0: /* the record on NULL is after a and before b */
            OK(sc->cu.EventRecord(e, NULL));
            OK(sc->cu.StreamWaitEvent(b, e, 0));
            break;
        case 1:
            OK(sc->cu.LaunchHostFunc(NULL, count, calls));
            break;
        case 2:
            OK(sc->cu.MemsetD8(y, (unsigned char)step, N));
            break;
        default:
            OK(sc->cu.MemcpyDtoD(y + N, x, N));
            break;
        }
        for (unsigned i = 0; i < 5; i++) {
            sc_chain(sc, b, x, 5, step + i, N);
        }
        OK(sc->cu.MemsetD32Async(y + 8, step, 4, NULL));
        for (unsigned i = 0; i < 5; i++) {
            sc_chain(sc, a, x, 7, step + i, N);
        }
        if (step % 5 == 4) {
            OK(sc->cu.StreamSynchronize(NULL));
        }
    }
    sc_digest(sc);
    return 0;
}

/* NULL and CU_STREAM_LEGACY are one stream, in the legacy and in the per-thread entry points. */
int sc_run_legacy_aliases(struct sc *sc) {
    sc_start(sc);
    CUdeviceptr x = sc_device(sc, "x", N);
    int n = N;
    for (unsigned step = 0; step < sc_steps(sc, 20); step++) {
        for (unsigned i = 0; i < 12; i++) {
            unsigned a = 3 + 2 * (i % 3), b = step + i;
            void *params[] = {&x, &a, &b, &n};
            switch (i % 3) {
            case 0:
                OK(sc_launch(sc, sc->fn[SC_chain], N / 64, 64, 0, NULL, params));
                break;
            case 1:
                OK(sc_launch(sc, sc->fn[SC_chain], N / 64, 64, 0, CU_STREAM_LEGACY, params));
                break;
            default:
                OK(sc->cu.LaunchKernel_ptsz(sc->fn[SC_chain], N / 64, 1, 1, 64, 1, 1, 0,
                                            CU_STREAM_LEGACY, params, NULL));
                break;
            }
        }
        OK(sc->cu.StreamSynchronize(step % 2 ? NULL : CU_STREAM_LEGACY));
    }
    sc_digest(sc);
    return 0;
}

/* A stream is destroyed with pending work, which still completes; the next stream may get its
 * handle. */
int sc_run_stream_recreate(struct sc *sc) {
    sc_start(sc);
    CUdeviceptr x[2] = {sc_device(sc, "x0", N), sc_device(sc, "x1", N)};
    for (unsigned step = 0; step < sc_steps(sc, 40); step++) {
        CUstream s;
        OK(sc->cu.StreamCreate(&s, step % 3 == 0 ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING));
        CUdeviceptr p = x[step % 2];
        for (unsigned i = 0; i < 9; i++) {
            sc_chain(sc, s, p, 3, step + i, N);
        }
        if (step % 4 == 1) {
            OK(sc->cu.StreamSynchronize(s));
        }
        OK(sc->cu.StreamDestroy(s));
        if (step % 2 == 1) {
            OK(sc->cu.CtxSynchronize());
        }
    }
    sc_digest(sc);
    return 0;
}

int sc_run_many_streams(struct sc *sc) {
    enum { STREAMS = 24 };
    CUstream s[STREAMS];
    CUdeviceptr x[STREAMS];
    sc_start(sc);
    for (int i = 0; i < STREAMS; i++) {
        OK(sc->cu.StreamCreateWithPriority(&s[i], CU_STREAM_NON_BLOCKING, -(i % 3)));
        x[i] = sc_device(sc, "x", 64);
    }
    for (unsigned step = 0; step < sc_steps(sc, 16); step++) {
        /* First round robin, then several launches on one stream in a row. */
        for (unsigned i = 0; i < STREAMS * 2; i++) {
            sc_chain(sc, s[i % STREAMS], x[i % STREAMS], 3, step + i, 64);
        }
        for (unsigned i = 0; i < STREAMS; i++) {
            for (unsigned r = 0; r < 8; r++) {
                sc_chain(sc, s[i], x[i], 5, step + r, 64);
            }
        }
        OK(sc->cu.CtxSynchronize());
    }
    sc_digest(sc);
    return 0;
}

/* A kernel waits for another stream's kernel that is launched later, and the host waits for
 * both. */
int sc_run_spin_pair(struct sc *sc) {
    CUstream a, b;
    CUdeviceptr flag_device;
    sc_start(sc);
    CUdeviceptr x = sc_device(sc, "x", N), out = sc_device(sc, "out", 1);
    unsigned *flag = sc_pinned(sc, "flag", 64);
    OK(sc->cu.MemHostGetDevicePointer(&flag_device, flag, 0));
    OK(sc->cu.StreamCreate(&a, CU_STREAM_NON_BLOCKING));
    OK(sc->cu.StreamCreate(&b, CU_STREAM_NON_BLOCKING));
    for (unsigned step = 0; step < sc_steps(sc, 16); step++) {
        unsigned value = step + 1;
        unsigned long long rounds = 20000000;
        for (unsigned i = 0; i < 6; i++) {
            sc_chain(sc, b, x, 3, step + i, N);
        }
        OK(sc_launch(sc, sc->fn[SC_spin_until], 1, 1, 0, b,
                     (void *[]){&flag_device, &value, &rounds, &out}));
        if (step % 2) {
            sc_chain(sc, b, x, 5, step, N);
        }
        sc_set_flag(sc, a, flag_device, value);
        OK(sc->cu.StreamSynchronize(b));
        OK(sc->cu.StreamSynchronize(a));
    }
    sc_digest(sc);
    return 0;
}

/* A kernel waits for another stream's kernel that was launched before. Both may share a hardware
 * queue, in which only the order of the launches keeps the first from standing behind the second.
 */
int sc_run_spin_behind(struct sc *sc) {
    CUstream a, b;
    CUdeviceptr flag_device;
    sc_start(sc);
    CUdeviceptr x = sc_device(sc, "x", N), y = sc_device(sc, "y", N), out = sc_device(sc, "out", 1);
    unsigned *flag = sc_pinned(sc, "flag", 64);
    OK(sc->cu.MemHostGetDevicePointer(&flag_device, flag, 0));
    OK(sc->cu.StreamCreate(&a, CU_STREAM_NON_BLOCKING));
    OK(sc->cu.StreamCreate(&b, CU_STREAM_NON_BLOCKING));
    for (unsigned step = 0; step < sc_steps(sc, 16); step++) {
        unsigned value = step + 1;
        unsigned long long rounds = 20000000;
        for (unsigned i = 0; i < 6; i++) {
            sc_chain(sc, a, y, 3, step + i, N);
        }
        sc_set_flag(sc, a, flag_device, value);
        OK(sc_launch(sc, sc->fn[SC_spin_until], 1, 1, 0, b,
                     (void *[]){&flag_device, &value, &rounds, &out}));
        for (unsigned i = 0; i < 4; i++) { /* nothing that repeats */
            sc_chain(sc, b, x, 5, i, 1 + (int)sc_random(sc, N));
        }
        for (unsigned i = 0; i < 6; i++) {
            sc_chain(sc, a, y, 7, step + i, N);
        }
        OK(sc->cu.StreamSynchronize(b));
        OK(sc->cu.StreamSynchronize(a));
    }
    sc_digest(sc);
    return 0;
}

/* The streams themselves write values and wait for values. */
int sc_run_stream_values(struct sc *sc) {
    CUstream a, b;
    CUdeviceptr flag;
    sc_start(sc);
    CUdeviceptr x = sc_device(sc, "x", N);
    unsigned *word = sc_pinned(sc, "word", 64);
    OK(sc->cu.MemHostGetDevicePointer(&flag, word, 0));
    OK(sc->cu.StreamCreate(&a, CU_STREAM_NON_BLOCKING));
    OK(sc->cu.StreamCreate(&b, CU_STREAM_NON_BLOCKING));
    for (unsigned step = 0; step < sc_steps(sc, 20); step++) {
        for (unsigned i = 0; i < 6; i++) {
            sc_chain(sc, a, x, 3, step + i, N);
        }
        OK(sc->cu.StreamWriteValue32(a, flag, step + 1, CU_STREAM_WRITE_VALUE_DEFAULT));
        OK(sc->cu.StreamWaitValue32(b, flag, step + 1, CU_STREAM_WAIT_VALUE_GEQ));
        for (unsigned i = 0; i < 6; i++) {
            sc_chain(sc, b, x, 5, step + i, N);
        }
        OK(sc->cu.StreamSynchronize(b));
    }
    sc_digest(sc);
    return 0;
}

/* A stream only waits for numbers that the host writes, beside a stream that launches. */
int sc_run_value_host(struct sc *sc) {
    CUstream a, b;
    CUdeviceptr flag;
    sc_start(sc);
    CUdeviceptr x = sc_device(sc, "x", N);
    unsigned *word = sc_pinned(sc, "word", 64);
    OK(sc->cu.MemHostGetDevicePointer(&flag, word, 0));
    OK(sc->cu.StreamCreate(&a, CU_STREAM_NON_BLOCKING));
    OK(sc->cu.StreamCreate(&b, CU_STREAM_NON_BLOCKING));
    for (unsigned step = 0; step < sc_steps(sc, 20); step++) {
        OK(sc->cu.StreamWaitValue32(b, flag, step + 1, CU_STREAM_WAIT_VALUE_GEQ));
        for (unsigned i = 0; i < 8; i++) {
            sc_chain(sc, a, x, 3, step + i, N);
        }
        OK(sc->cu.StreamSynchronize(a));
        __atomic_store_n(word, step + 1, __ATOMIC_RELEASE);
        OK(sc->cu.StreamSynchronize(b));
    }
    sc_digest(sc);
    return 0;
}
