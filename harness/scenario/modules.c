/*
 * Modules, libraries and contexts that are unloaded and loaded again while launches of their
 * kernels are cached or pending. Main thread.
 */
#include "harness/scenario/sc.h"

enum { N = 128 };

static void chain_by(struct sc *sc, CUfunction fn, CUstream s, CUdeviceptr x, unsigned a,
                     unsigned b) {
    int n = N;
    OK(sc_launch(sc, fn, N / 64, 64, 0, s, (void *[]){&x, &a, &b, &n}));
}

static void add_by(struct sc *sc, CUfunction fn, CUstream s, CUdeviceptr x, int value) {
    int n = N;
    OK(sc_launch(sc, fn, N / 64, 64, 0, s, (void *[]){&x, &value, &n}));
}

/* A module is unloaded right after its launches. It is loaded again, and handles are requested
 * in another order. */
int sc_run_module_reload(struct sc *sc) {
    CUstream s;
    sc_start(sc);
    CUdeviceptr x = sc_device(sc, "x", N);
    OK(sc->cu.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
    for (unsigned round = 0; round < 5; round++) {
        CUmodule module;
        CUfunction chain, add;
        OK(sc->cu.ModuleLoadData(&module, sc_image()));
        if (round % 2) {
            OK(sc->cu.ModuleGetFunction(&add, module, "add_scalar"));
            OK(sc->cu.ModuleGetFunction(&chain, module, "chain"));
        } else {
            OK(sc->cu.ModuleGetFunction(&chain, module, "chain"));
            OK(sc->cu.ModuleGetFunction(&add, module, "add_scalar"));
        }
        for (unsigned step = 0; step < sc_steps(sc, 12); step++) {
            for (unsigned i = 0; i < 8; i++) {
                chain_by(sc, chain, s, x, 3, step + i);
                add_by(sc, add, s, x, (int)(round + i));
                sc_chain(sc, s, x, 5, i, N);
            }
            if (step + 1 < sc_steps(sc, 12)) {
                OK(sc->cu.StreamSynchronize(s));
            }
        }
        OK(sc->cu.ModuleUnload(module));
    }
    sc_digest(sc);
    return 0;
}

int sc_run_library_reload(struct sc *sc) {
    CUstream s;
    sc_start(sc);
    CUdeviceptr x = sc_device(sc, "x", N);
    OK(sc->cu.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
    for (unsigned round = 0; round < 5; round++) {
        CUlibrary library;
        CUkernel chain, add;
        OK(sc->cu.LibraryLoadData(&library, sc_image(), NULL, NULL, 0, NULL, NULL, 0));
        OK(sc->cu.LibraryGetKernel(round % 2 ? &add : &chain, library,
                                   round % 2 ? "add_scalar" : "chain"));
        OK(sc->cu.LibraryGetKernel(round % 2 ? &chain : &add, library,
                                   round % 2 ? "chain" : "add_scalar"));
        for (unsigned step = 0; step < sc_steps(sc, 12); step++) {
            for (unsigned i = 0; i < 8; i++) {
                chain_by(sc, (CUfunction)chain, s, x, 3, step + i);
                add_by(sc, (CUfunction)add, s, x, (int)(round + i));
            }
            OK(sc->cu.StreamSynchronize(s));
        }
        OK(sc->cu.LibraryUnload(library));
    }
    sc_digest(sc);
    return 0;
}

struct place {
    CUcontext ctx;
    CUmodule module;
    CUfunction fn[SC_KERNELS];
    CUstream s;
    CUdeviceptr x;
};

static void place_make(struct sc *sc, struct place *p) {
    CUcontext popped;
    OK(sc->cu.CtxCreate(&p->ctx, 0, sc->device));
    sc_load(sc, &p->module, p->fn);
    OK(sc->cu.StreamCreate(&p->s, CU_STREAM_NON_BLOCKING));
    OK(sc->cu.MemAlloc(&p->x, N * 4));
    OK(sc->cu.MemsetD8(p->x, 0, N * 4));
    OK(sc->cu.CtxSynchronize());
    OK(sc->cu.CtxPopCurrent(&popped));
}

static void place_say(struct sc *sc, struct place *p) {
    unsigned char bytes[N * 4];
    CUcontext popped;
    OK(sc->cu.CtxPushCurrent(p->ctx));
    OK(sc->cu.CtxSynchronize());
    OK(sc->cu.MemcpyDtoH(bytes, p->x, sizeof(bytes)));
    OK(sc->cu.CtxPopCurrent(&popped));
    sc_say(sc, "context: %016llx", (unsigned long long)sc_hash(0, bytes, sizeof(bytes)));
}

/* One thread pushes and pops two contexts while the other context has work pending. At last one
 * context is destroyed and made again. */
int sc_run_two_contexts(struct sc *sc) {
    struct place place[2];
    CUcontext popped;
    sc_start(sc);
    CUdeviceptr y = sc_device(sc, "y", N);
    place_make(sc, &place[0]);
    place_make(sc, &place[1]);
    for (unsigned step = 0; step < sc_steps(sc, 24); step++) {
        for (unsigned turn = 0; turn < 4; turn++) {
            struct place *p = &place[turn % 2];
            OK(sc->cu.CtxPushCurrent(p->ctx));
            for (unsigned i = 0; i < 6; i++) {
                /* Each context's own stream, and the NULL stream, which differs between
                 * contexts. */
                chain_by(sc, p->fn[SC_chain], turn < 2 ? p->s : NULL, p->x, 3 + 2 * turn, step + i);
            }
            OK(sc->cu.StreamSynchronize(turn < 2 ? p->s : NULL));
            /* In some steps the pop comes one launch earlier. */
            for (unsigned i = 0; i < (step % 6 == 5 ? 5 : 6); i++) {
                chain_by(sc, p->fn[SC_chain], p->s, p->x, 3 + 2 * turn, step + i);
            }
            OK(sc->cu.CtxPopCurrent(&popped));
            if (popped != p->ctx) {
                sc_fail("another context than the one that was pushed");
            }
            if (turn >= 2) {
                sc_chain(sc, NULL, y, 5, step + turn, N);
            } else { /* only this wait orders p->s before the next turn's NULL stream */
                OK(sc->cu.CtxPushCurrent(p->ctx));
                OK(sc->cu.StreamSynchronize(p->s));
                OK(sc->cu.CtxPopCurrent(&popped));
            }
        }
        for (unsigned c = 0; c < 2; c++) {
            OK(sc->cu.CtxPushCurrent(place[c].ctx));
            OK(sc->cu.CtxSynchronize());
            OK(sc->cu.CtxPopCurrent(&popped));
        }
        if (step == sc_steps(sc, 24) * 2 / 3) {
            place_say(sc, &place[1]);
            OK(sc->cu.CtxDestroy(place[1].ctx));
            place_make(sc, &place[1]);
        }
    }
    place_say(sc, &place[0]);
    place_say(sc, &place[1]);
    sc_digest(sc);
    return 0;
}

/* One kernel handle of a library is used in two contexts; the stream decides where it runs. */
int sc_run_two_contexts_kernel(struct sc *sc) {
    struct place place[2];
    CUlibrary library;
    CUkernel chain;
    CUcontext popped;
    sc_start(sc);
    place_make(sc, &place[0]);
    place_make(sc, &place[1]);
    OK(sc->cu.LibraryLoadData(&library, sc_image(), NULL, NULL, 0, NULL, NULL, 0));
    OK(sc->cu.LibraryGetKernel(&chain, library, "chain"));
    for (unsigned step = 0; step < sc_steps(sc, 24); step++) {
        for (unsigned turn = 0; turn < 4; turn++) {
            struct place *p = &place[turn % 2];
            OK(sc->cu.CtxPushCurrent(p->ctx));
            for (unsigned i = 0; i < 5; i++) {
                /* Sometimes the other context is current in the middle of a step. */
                bool astray = i == 2 && step % 8 == 7;
                if (astray) {
                    OK(sc->cu.CtxPushCurrent(place[(turn + 1) % 2].ctx));
                }
                chain_by(sc, (CUfunction)chain, p->s, p->x, 3 + 2 * turn, step + i);
                if (astray) {
                    OK(sc->cu.CtxPopCurrent(&popped));
                }
            }
            OK(sc->cu.CtxPopCurrent(&popped));
        }
        OK(sc->cu.CtxPushCurrent(place[step % 2].ctx));
        OK(sc->cu.StreamSynchronize(place[step % 2].s));
        OK(sc->cu.CtxPopCurrent(&popped));
    }
    place_say(sc, &place[0]);
    place_say(sc, &place[1]);
    sc_digest(sc);
    return 0;
}

static void primary_round(struct sc *sc, unsigned round, bool sync) {
    CUmodule module;
    CUfunction fn[SC_KERNELS];
    CUstream s;
    CUdeviceptr x;
    unsigned char bytes[N * 4];
    sc_load(sc, &module, fn);
    OK(sc->cu.MemAlloc(&x, N * 4));
    OK(sc->cu.MemsetD8(x, 0, N * 4));
    OK(sc->cu.CtxSynchronize());
    OK(sc->cu.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
    for (unsigned step = 0; step < sc_steps(sc, 12); step++) {
        for (unsigned i = 0; i < 12; i++) {
            chain_by(sc, fn[SC_chain], s, x, 3, step + i + round);
        }
        OK(sc->cu.StreamSynchronize(s));
    }
    OK(sc->cu.MemcpyDtoH(bytes, x, sizeof(bytes)));
    sc_say(sc, "round %u: %016llx", round, (unsigned long long)sc_hash(0, bytes, sizeof(bytes)));
    if (!sync) { /* dies with the context */
        for (unsigned i = 0; i < 6; i++) {
            chain_by(sc, fn[SC_chain], s, x, 3, i);
        }
    }
}

/* The primary context is reset while it has all kinds of objects. */
int sc_run_primary_reset(struct sc *sc) {
    sc_start(sc);
    for (unsigned round = 0; round < 4; round++) {
        primary_round(sc, round, round % 2 == 0);
        OK(sc->cu.PrimaryReset(sc->device));
        OK(sc->cu.CtxSetCurrent(NULL));
        OK(sc->cu.PrimaryRetain(&sc->ctx, sc->device));
        OK(sc->cu.CtxSetCurrent(sc->ctx));
    }
    primary_round(sc, 9, true);
    return 0;
}

/* The last holder releases the primary context and retains it again. */
int sc_run_primary_release(struct sc *sc) {
    sc_start(sc);
    for (unsigned round = 0; round < 4; round++) {
        primary_round(sc, round, true);
        OK(sc->cu.CtxSetCurrent(NULL));
        OK(sc->cu.PrimaryRelease(sc->device));
        OK(sc->cu.PrimaryRetain(&sc->ctx, sc->device));
        OK(sc->cu.CtxSetCurrent(sc->ctx));
    }
    primary_round(sc, 9, true);
    return 0;
}

/* A library beside the program retains and releases the primary context around each of its
 * operations, within a step. Nothing ends with this. */
int sc_run_primary_pair(struct sc *sc) {
    CUcontext held, popped;
    CUstream s;
    sc_start(sc);
    CUdeviceptr x = sc_device(sc, "x", N);
    OK(sc->cu.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
    for (unsigned step = 0; step < sc_steps(sc, 60); step++) {
        for (unsigned i = 0; i < 40; i++) {
            sc_chain(sc, s, x, 3, step + i, N);
            if (i % 16 == 7) {
                OK(sc->cu.PrimaryRetain(&held, sc->device));
                OK(sc->cu.CtxPushCurrent(held));
                OK(sc->cu.CtxPopCurrent(&popped));
                OK(sc->cu.PrimaryRelease(sc->device));
            }
        }
        OK(sc->cu.StreamSynchronize(s));
    }
    sc_digest(sc);
    return 0;
}

/* One thread uses two devices with the same kernels and handles. It waits for a device while the
 * other is current. */
int sc_run_two_devices(struct sc *sc) {
    CUlibrary library;
    CUkernel chain, add;
    CUcontext ctx[2];
    CUstream s[2];
    CUdeviceptr x[2];
    CUdevice device;
    sc_start(sc);
    if (sc->cu.DeviceGet(&device, 1) != CUDA_SUCCESS) {
        sc_say(sc, "one device");
        return 0;
    }
    OK(sc->cu.LibraryLoadData(&library, sc_image(), NULL, NULL, 0, NULL, NULL, 0));
    OK(sc->cu.LibraryGetKernel(&chain, library, "chain"));
    OK(sc->cu.LibraryGetKernel(&add, library, "add_scalar"));
    for (int d = 0; d < 2; d++) {
        OK(sc->cu.DeviceGet(&device, d));
        OK(sc->cu.PrimaryRetain(&ctx[d], device));
        OK(sc->cu.CtxSetCurrent(ctx[d]));
        OK(sc->cu.StreamCreate(&s[d], CU_STREAM_NON_BLOCKING));
        OK(sc->cu.MemAlloc(&x[d], N * 4));
        OK(sc->cu.MemsetD8(x[d], 0, N * 4));
        OK(sc->cu.CtxSynchronize());
    }
    for (unsigned step = 0; step < sc_steps(sc, 30); step++) {
        for (unsigned turn = 0; turn < 4; turn++) {
            unsigned d = turn % 2;
            OK(sc->cu.CtxSetCurrent(ctx[d]));
            for (unsigned i = 0; i < 6; i++) {
                chain_by(sc, (CUfunction)chain, s[d], x[d], 3 + 2 * turn, step + i);
                add_by(sc, (CUfunction)add, s[d], x[d], (int)(step * d + i));
            }
        }
        /* The stream has its context; the other context is current. */
        OK(sc->cu.CtxSetCurrent(ctx[step % 2]));
        OK(sc->cu.StreamSynchronize(s[(step + 1) % 2]));
        OK(sc->cu.StreamSynchronize(s[step % 2]));
    }
    for (int d = 0; d < 2; d++) {
        unsigned char bytes[N * 4];
        OK(sc->cu.CtxSetCurrent(ctx[d]));
        OK(sc->cu.CtxSynchronize());
        OK(sc->cu.MemcpyDtoH(bytes, x[d], sizeof(bytes)));
        sc_say(sc, "device %d: %016llx", d, (unsigned long long)sc_hash(0, bytes, sizeof(bytes)));
    }
    return 0;
}
