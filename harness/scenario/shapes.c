/* Steps whose launch shapes or pointers change while the order of kernels stays. Main thread. */
#include "harness/scenario/sc.h"

enum { N = 256, BATCH_MAX = 8, BUFFERS = 4, TURNS = 5 };

static void layer(struct sc *sc, CUstream s, CUdeviceptr x, CUdeviceptr y, CUdeviceptr sum,
                  unsigned batch, unsigned salt) {
    int n = (int)batch * N;
    sc_chain(sc, s, x, 3, salt, n);
    sc_copy(sc, s, y, x, n);
    sc_add(sc, s, y, (int)salt, n);
    sc_chain(sc, s, y, 5, 1, n);
    sc_copy(sc, s, x, y, n);
    sc_reduce(sc, s, sum, x, n);
}

/* Batches of 1, 2, 4, 8 in turn: four signatures that repeat. */
int sc_run_batch_sizes(struct sc *sc) {
    CUstream s;
    sc_start(sc);
    CUdeviceptr x = sc_device(sc, "x", N * BATCH_MAX), y = sc_device(sc, "y", N * BATCH_MAX);
    CUdeviceptr sum = sc_device(sc, "sum", 2);
    OK(sc->cu.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
    for (unsigned step = 0; step < sc_steps(sc, 48); step++) {
        unsigned batch = 1u << step % 4;
        for (unsigned l = 0; l < 4; l++) {
            layer(sc, s, x, y, sum, batch, step * 4 + l);
        }
        OK(sc->cu.MemsetD32Async(y, step, batch * 16, s));
        OK(sc->cu.StreamSynchronize(s));
    }
    sc_digest(sc);
    return 0;
}

/* Batches of 1, 2, 4, 8, 16 in turn; all steps of a batch are equal. */
int sc_run_batch_turns(struct sc *sc) {
    CUstream s;
    unsigned most = N << (TURNS - 1);
    sc_start(sc);
    CUdeviceptr x = sc_device(sc, "x", most), y = sc_device(sc, "y", most);
    CUdeviceptr sum = sc_device(sc, "sum", 2);
    OK(sc->cu.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
    for (unsigned step = 0; step < sc_steps(sc, 8 * TURNS); step++) {
        unsigned batch = 1u << step % TURNS;
        for (unsigned l = 0; l < 4; l++) {
            layer(sc, s, x, y, sum, batch, l);
        }
        OK(sc->cu.MemsetD32Async(y, batch, batch * 16, s));
        OK(sc->cu.StreamSynchronize(s));
    }
    sc_digest(sc);
    return 0;
}

/* Every step uses newly allocated buffers at changing addresses; the next step frees them. */
int sc_run_moving_buffers(struct sc *sc) {
    CUstream s;
    CUdeviceptr kept[BUFFERS] = {0};
    sc_start(sc);
    CUdeviceptr out = sc_device(sc, "out", N), sum = sc_device(sc, "sum", 2);
    OK(sc->cu.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
    for (unsigned step = 0; step < sc_steps(sc, 24); step++) {
        CUdeviceptr x, y;
        OK(sc->cu.MemAlloc(&x, N * 4 * (1 + step % 3)));
        OK(sc->cu.MemAlloc(&y, N * 4));
        OK(sc->cu.MemsetD32Async(x, step, N, s));
        for (unsigned i = 0; i < 4; i++) {
            layer(sc, s, x, y, sum, 1, step + i);
        }
        OK(sc->cu.MemcpyDtoDAsync(out + (step % 8) * 64, y, 64, s));
        if (kept[step % BUFFERS]) {
            OK(sc->cu.MemFree(kept[step % BUFFERS]));
        }
        kept[step % BUFFERS] = x;
        /* At once: cuMemFree waits for the stream's work on the buffer. */
        OK(sc->cu.MemFree(y));
    }
    sc_digest(sc);
    return 0;
}

/* One grid grows by a block in every step and a pointer moves along, as with a growing cache. */
int sc_run_growing_grid(struct sc *sc) {
    CUstream s;
    enum { ROWS = 64 };
    sc_start(sc);
    CUdeviceptr cache = sc_device(sc, "cache", 64 * ROWS), x = sc_device(sc, "x", 64);
    CUdeviceptr sum = sc_device(sc, "sum", 2);
    OK(sc->cu.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
    for (unsigned step = 0; step < sc_steps(sc, 40); step++) {
        unsigned rows = 1 + step % ROWS;
        for (unsigned l = 0; l < 3; l++) {
            sc_chain(sc, s, x, 3, step + l, 64);
            sc_copy(sc, s, cache + (rows - 1) * 256, x, 64);
            sc_chain(sc, s, cache, 5, l, (int)rows * 64);
            sc_reduce(sc, s, sum, cache, (int)rows * 64);
        }
        OK(sc->cu.StreamSynchronize(s));
    }
    sc_digest(sc);
    return 0;
}

/* Block and shared memory change too: known combinations, and sometimes a new one. */
int sc_run_block_smem(struct sc *sc) {
    CUstream s;
    sc_start(sc);
    CUdeviceptr x = sc_device(sc, "x", 1024), sum = sc_device(sc, "sum", 2);
    OK(sc->cu.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
    for (unsigned step = 0; step < sc_steps(sc, 36); step++) {
        unsigned block = 32u << (step < 24 ? step % 2 : step / 6 % 4);
        int n = 1024;
        sc_chain(sc, s, x, 3, step, n);
        for (unsigned i = 0; i < 4; i++) {
            unsigned a = 5, b = i;
            OK(sc_launch(sc, sc->fn[SC_reduce_dynamic], 1024 / block, block, block * 8 + i * 64, s,
                         (void *[]){&sum, &x, &n}));
            OK(sc_launch(sc, sc->fn[SC_chain], 1024 / block, block, step % 3 ? 0 : 128, s,
                         (void *[]){&x, &a, &b, &n}));
        }
        OK(sc->cu.StreamSynchronize(s));
    }
    sc_digest(sc);
    return 0;
}

/* Nothing changes from step to step: no shape, no pointer, no value. */
int sc_run_steady(struct sc *sc) {
    CUstream s;
    sc_start(sc);
    CUdeviceptr x = sc_device(sc, "x", N * BATCH_MAX), y = sc_device(sc, "y", N * BATCH_MAX);
    CUdeviceptr sum = sc_device(sc, "sum", 2);
    OK(sc->cu.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
    for (unsigned step = 0; step < sc_steps(sc, 40); step++) {
        for (unsigned l = 0; l < 6; l++) {
            layer(sc, s, x, y, sum, 2, l);
        }
        OK(sc->cu.MemsetD32Async(y, 7, 16, s));
        OK(sc->cu.MemcpyDtoDAsync(y + 64, x, 128, s));
        OK(sc->cu.StreamSynchronize(s));
    }
    sc_digest(sc);
    return 0;
}

/* Steps of a thousand launches that never change, with arguments of 8 or 4 bytes. Each pair
 * turns (x, y) a little, so every launch counts and nothing grows. */
int sc_run_launch_bound(struct sc *sc) {
    CUstream s;
    sc_start(sc);
    CUdeviceptr x = sc_device(sc, "x", 64), y = sc_device(sc, "y", 64);
    OK(sc->cu.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
    sc_fill(sc, s, x, 0x3f800000, 64); /* 1.0f */
    for (unsigned step = 0; step < sc_steps(sc, 24); step++) {
        for (unsigned i = 0; i < 1000; i++)
            sc_axpy(sc, s, i % 2 ? x : y, i % 2 ? y : x, i % 2 ? -0.5f : 0.5f, 64);
        OK(sc->cu.StreamSynchronize(s));
    }
    sc_digest(sc);
    return 0;
}

/* Everything that changes and repeats in a long run: scalars, grids, buffers, streams, branches,
 * and parts without repetition. */
int sc_run_soak(struct sc *sc) {
    enum { WORDS = 64 };
    CUstream s, t;
    CUevent event;
    sc_start(sc);
    CUdeviceptr x = sc_device(sc, "x", WORDS * 8), y = sc_device(sc, "y", WORDS * 8);
    OK(sc->cu.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
    OK(sc->cu.StreamCreate(&t, CU_STREAM_DEFAULT));
    OK(sc->cu.EventCreate(&event, CU_EVENT_DISABLE_TIMING));
    for (unsigned step = 0; step < sc_steps(sc, 400); step++) {
        for (unsigned i = 0; i < 40; i++)
            sc_chain(sc, s, x, 3 + 2 * (i % 7), i % 4 ? i : step, WORDS * (1 + (step / 8) % 8));
        if (step % 5 == 3)
            sc_axpy(sc, s, x, x, 0.0f, WORDS);
        for (unsigned i = 0; step % 512 < 64 && i < 30; i++)
            sc_add(sc, s, x, (int)sc_random(sc, 100), (int)(1 + sc_random(sc, WORDS)));
        OK(sc->cu.EventRecord(event, s));
        OK(sc->cu.StreamWaitEvent(t, event, 0));
        CUdeviceptr extra = y;
        if (step % 16 == 0)
            OK(sc->cu.MemAlloc(&extra, WORDS * 4));
        OK(sc->cu.MemsetD32Async(extra, step, WORDS, t));
        for (unsigned i = 0; i < 20; i++)
            sc_copy(sc, t, i % 2 ? extra : y + WORDS * 4, x, WORDS);
        OK(sc->cu.MemcpyDtoDAsync(y, x, WORDS * 4, t));
        OK(sc->cu.StreamSynchronize(t));
        if (extra != y)
            OK(sc->cu.MemFree(extra));
        if (step % 64 == 63) {
            OK(sc->cu.StreamDestroy(s));
            OK(sc->cu.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
        }
    }
    sc_digest(sc);
    return 0;
}

/* Steps of a thousand launches, with steps of ten between them, like a prompt among tokens. */
int sc_run_long_short(struct sc *sc) {
    CUstream s;
    sc_start(sc);
    CUdeviceptr x = sc_device(sc, "x", 64);
    OK(sc->cu.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
    for (unsigned step = 0; step < sc_steps(sc, 24); step++) {
        unsigned count = step % 4 == 3 ? 10 : 1000;
        for (unsigned i = 0; i < count; i++) {
            sc_chain(sc, s, x, 3 + 2 * (i % 7 == 0), i % 4 ? i : step, 64);
        }
        OK(sc->cu.StreamSynchronize(s));
    }
    sc_digest(sc);
    return 0;
}
