/*
 * Calls that fail. Each must fail at the same call and with the same code as without the library,
 * and must not affect the calls around it. Main thread.
 */
#include "harness/scenario/sc.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>

enum { N = 128, PLACES = 24 };

static CUresult bad(struct sc *sc, CUstream s, CUdeviceptr x, unsigned which) {
    unsigned a = 3, b = 1;
    int n = N;
    void *params[] = {&x, &a, &b, &n};
    CUfunction fn = sc->fn[SC_chain];
    switch (which) {
    case 0:
        return sc->cu.LaunchKernel(fn, 0, 1, 1, 64, 1, 1, 0, s, params, NULL);
    case 1:
        return sc->cu.LaunchKernel(fn, 2, 65536, 1, 64, 1, 1, 0, s, params, NULL);
    case 2:
        return sc->cu.LaunchKernel(fn, 2, 1, 65536, 64, 1, 1, 0, s, params, NULL);
    case 3:
        return sc->cu.LaunchKernel(fn, 2, 1, 1, 1025, 1, 1, 0, s, params, NULL);
    case 4:
        return sc->cu.LaunchKernel(fn, 2, 1, 1, 0, 1, 1, 0, s, params, NULL);
    case 5:
        return sc->cu.LaunchKernel(fn, 2, 1, 1, 64, 64, 1, 0, s, params, NULL);
    case 6:
        return sc->cu.LaunchKernel(fn, 2, 1, 1, 64, 1, 1, 300000, s, params, NULL);
    case 7:
        return sc->cu.LaunchKernel(NULL, 2, 1, 1, 64, 1, 1, 0, s, params, NULL);
    case 8:
        return sc->cu.MemsetD32Async(x, 1, 0, s);
    case 9:
        return sc->cu.MemcpyDtoDAsync(x, x + 64, 0, s);
    case 10:
        return sc->cu.LaunchKernel(fn, 0x80000000u, 1, 1, 64, 1, 1, 0, s, params, NULL);
    default:
        return sc->cu.LaunchKernelEx(NULL, fn, params, NULL);
    }
}

enum { BAD = 11 };

/* One bad call in each step, at a place that moves. */
int sc_run_errors(struct sc *sc) {
    CUstream s;
    sc_start(sc);
    CUdeviceptr x = sc_device(sc, "x", N);
    OK(sc->cu.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
    for (unsigned step = 0; step < sc_steps(sc, 8 + BAD * 4); step++) {
        for (unsigned i = 0; i < PLACES; i++) {
            if (step >= 8 && i == step * 5 % PLACES) {
                CUresult code = sc_code(sc, bad(sc, s, x, step % BAD));
                if (step < 8 + BAD) {
                    sc_say(sc, "bad call %u: %d", step % BAD, (int)code);
                }
            }
            sc_chain(sc, s, x, 3 + 2 * (i % 3), step + i, N);
        }
        OK(sc->cu.StreamSynchronize(s));
    }
    sc_digest(sc);
    return 0;
}

/* Memsets and copies past the end of their memory, and of freed memory: the call fails. */
int sc_run_errors_memory(struct sc *sc) {
    CUstream s;
    CUdeviceptr gone;
    sc_start(sc);
    CUdeviceptr x = sc_device(sc, "x", N), y = sc_device(sc, "y", N);
    OK(sc->cu.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
    OK(sc->cu.MemAlloc(&gone, 64 << 20));
    for (unsigned step = 0; step < sc_steps(sc, 30); step++) {
        for (unsigned i = 0; i < 8; i++) {
            sc_chain(sc, s, x, 3, step + i, N);
            OK(sc->cu.MemsetD32Async(y, step, 10, s));
            OK(sc->cu.MemcpyDtoDAsync(y + 64, x, 64, s));
            if (step == 15 && i == 3) {
                OK(sc->cu.MemFree(gone));
            }
            if (step > 10 && i == step % 8) {
                CUresult code[3] = {
                    sc_code(sc, sc->cu.MemsetD32Async(x, 1, (size_t)1 << 40, s)),
                    sc_code(sc, sc->cu.MemcpyDtoDAsync(y, x, (size_t)1 << 40, s)),
                    sc_code(sc, step < 15 ? sc->cu.MemsetD8Async(gone + (32 << 20), 1, 64, s)
                                          : CUDA_SUCCESS),
                };
                if (step < 20) {
                    sc_say(sc, "step %u: %d %d %d", step, (int)code[0], (int)code[1], (int)code[2]);
                }
            }
        }
        OK(sc->cu.StreamSynchronize(s));
    }
    sc_digest(sc);
    return 0;
}

/* Calls without a context and with the wrong one; errno stays the program's. */
int sc_run_errors_context(struct sc *sc) {
    CUstream s;
    CUcontext now;
    sc_start(sc);
    CUdeviceptr x = sc_device(sc, "x", N);
    OK(sc->cu.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
    for (unsigned step = 0; step < sc_steps(sc, 24); step++) {
        for (unsigned i = 0; i < 16; i++) {
            unsigned a = 3, b = step + i;
            int n = N;
            if (i == step % 16) {
                OK(sc->cu.CtxSetCurrent(NULL));
                sc_code(sc, sc_launch(sc, sc->fn[SC_chain], N / 64, 64, 0, NULL,
                                      (void *[]){&x, &a, &b, &n}));
                sc_code(sc, sc->cu.MemsetD32Async(x, 1, 4, NULL));
                OK(sc->cu.CtxSetCurrent(sc->ctx));
            }
            errno = 1000 + (int)i;
            sc_chain(sc, s, x, 3, step + i, N);
            if (errno != 1000 + (int)i) {
                sc_fail("a launch changed errno");
            }
        }
        OK(sc->cu.CtxGetCurrent(&now));
        if (now != sc->ctx) {
            sc_fail("a launch changed the current context");
        }
        errno = 77;
        OK(sc->cu.StreamSynchronize(s));
        if (errno != 77 &&
            step > 2) { /* the first steps are left out: there the driver itself may change errno */
            sc_fail("a synchronise changed errno");
        }
    }
    sc_digest(sc);
    return 0;
}

/* A kernel that fails ruins the context: everything after it fails, and everything before it is
 * done. */
int sc_run_sticky_error(struct sc *sc) {
    CUstream s;
    CUfunction trap;
    CUdeviceptr flag_device;
    sc_start(sc);
    CUdeviceptr x, bad_word;
    unsigned *flag = sc_pinned(sc, "flag", 64);
    OK(sc->cu.ModuleGetFunction(&trap, sc->module, "trap"));
    OK(sc->cu.MemHostGetDevicePointer(&flag_device, flag, 0));
    OK(sc->cu.MemAlloc(&x, N * 4));
    OK(sc->cu.MemAlloc(&bad_word, 4));
    OK(sc->cu.MemsetD8(x, 0, N * 4));
    OK(sc->cu.MemsetD8(bad_word, 0, 4));
    OK(sc->cu.CtxSynchronize());
    OK(sc->cu.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
    for (unsigned step = 0; step < sc_steps(sc, 16); step++) {
        for (unsigned i = 0; i < 8; i++) {
            sc_chain(sc, s, x, 3, step + i, N);
        }
        sc_set_flag(sc, s, flag_device, step + 1);
        OK(sc_launch(sc, trap, 1, 1, 0, s, (void *[]){&bad_word}));
        OK(sc->cu.StreamSynchronize(s));
    }
    sc_fill(sc, s, bad_word, 1, 1);
    sc_set_flag(sc, s, flag_device, 1000);
    OK(sc_launch(sc, trap, 1, 1, 0, s, (void *[]){&bad_word}));
    CUresult code = sc->cu.StreamSynchronize(s);
    sc_say(sc, "synchronise: %d, flag %u", (int)code, *flag);
    unsigned a = 3, b = 1;
    int n = N;
    code = sc_launch(sc, sc->fn[SC_chain], N / 64, 64, 0, s, (void *[]){&x, &a, &b, &n});
    sc_say(sc, "launch: %d", (int)code);
    sc_say(sc, "synchronise: %d", (int)sc->cu.StreamSynchronize(s));
    sc_say(sc, "context: %d", (int)sc->cu.CtxSynchronize());
    return 0;
}

/* Half-way the program asks for a GPU core dump in case a kernel fails; none fails. */
int sc_run_core_dumps(struct sc *sc) {
    typedef CUresult (*set_fn)(CUcoredumpSettings, void *, size_t *);
    CUstream s;
    bool yes = true;
    size_t size = sizeof yes;
    void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    set_fn set = lib ? (set_fn)dlsym(lib, "cuCoredumpSetAttributeGlobal") : NULL;
    sc_start(sc);
    CUdeviceptr x = sc_device(sc, "x", N);
    OK(sc->cu.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
    unsigned steps = sc_steps(sc, 32);
    for (unsigned step = 0; step < steps; step++) {
        if (step == steps / 2 && set) {
            set(CU_COREDUMP_ENABLE_ON_EXCEPTION, &yes, &size); /* the driver may refuse it by now */
        }
        for (unsigned i = 0; i < 20; i++) {
            sc_chain(sc, s, x, 3, step + i, N);
        }
        OK(sc->cu.StreamSynchronize(s));
    }
    sc_digest(sc);
    return 0;
}
