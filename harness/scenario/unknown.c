/*
 * Stream work by calls that no table of cusplice knows, as in a newer driver. The library exports
 * one call; only cuGetProcAddress returns the other. A driver of version 14000 has newer forms of
 * cuLaunchKernel and cuGetProcAddress as well (harness/sim/cusim_next.h; the latter is a route).
 *
 * Main thread. Only the simulator has such calls; with another driver the scenario says that they
 * are missing.
 */
#include "harness/scenario/sc.h"
#include "harness/sim/cusim_next.h"

#include <dlfcn.h>

enum { N = 256 };

typedef CUresult (*look_fn)(const char *, void **, int, cuuint64_t,
                            CUdriverProcAddressQueryResult *);

static void *of_driver(const char *name) {
    void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    return lib ? dlsym(lib, name) : NULL;
}

/* Looks the function up for each call, as a program without its own table does. */
static sc_fill_fn hidden_fill(look_fn look) {
    CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    void *fill = NULL;
    if (look("cuSimHiddenFill", &fill, 13000, 0, &found) != CUDA_SUCCESS) {
        return NULL;
    }
    return (sc_fill_fn)fill;
}

sc_fill_fn sc_unknown_fill(void) {
    look_fn look = (look_fn)of_driver("cuGetProcAddress_v2");
    return look ? hidden_fill(look) : NULL;
}

/* A call that the loader binds, in a program that is linked to it (scenario_unknown). */
__attribute__((weak)) CUresult sc_linked_fill(CUdeviceptr, unsigned, size_t, CUstream);

/* The newest form of cuLaunchKernel, if its arguments are others. */
static cusim_next_launch_fn newer_launch(look_fn look) {
    CUdriverProcAddressQueryResult found;
    void *launch = NULL;
    if (look("cuLaunchKernel", &launch, 14000, 0, &found) != CUDA_SUCCESS) {
        return NULL; /* the driver is older */
    }
    return (cusim_next_launch_fn)launch;
}

static void newer_chain(struct sc *sc, cusim_next_launch_fn launch, CUstream s, CUdeviceptr x,
                        unsigned a, unsigned b) {
    int n = N;
    struct cusim_next_launch next = {.params = (void *[]){&x, &a, &b, &n},
                                     .stream = s,
                                     .function = sc->fn[SC_chain],
                                     .grid = N / 64,
                                     .block = 64};
    OK(launch(&next));
}

int sc_run_unknown_calls(struct sc *sc) {
    CUstream s, b;
    sc_fill_fn exported = sc_linked_fill ? sc_linked_fill : (sc_fill_fn)of_driver("cuSimFillX");
    look_fn look = (look_fn)of_driver("cuGetProcAddress_v2");
    if (!exported || !look || !hidden_fill(look)) {
        sc_say(sc, "a driver without it");
        return 0;
    }
    cusim_next_launch_fn newer = newer_launch(look);
    sc_start(sc);
    CUdeviceptr x = sc_device(sc, "x", N), y = sc_device(sc, "y", N);
    OK(sc->cu.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
    OK(sc->cu.StreamCreate(&b, CU_STREAM_DEFAULT));
    for (unsigned step = 0; step < sc_steps(sc, 24); step++) {
        unsigned n = step % 8 == 7 ? 7 : 9; /* sometimes they come earlier */
        for (unsigned i = 0; i < n; i++) {
            sc_chain(sc, s, x, 3, step + i, N);
        }
        OK(hidden_fill(look)(x + 4 * (step % 8), step, N / 2, s));
        for (unsigned i = 0; i < n; i++) {
            sc_chain(sc, s, x, 5, step + i, N);
        }
        OK(exported(x, step, 8, s));
        if (newer) {
            for (unsigned i = 0; i < n; i++) {
                sc_chain(sc, s, x, 9, step + i, N);
            }
            newer_chain(sc, newer, s, x, 5, step);
        }
        for (unsigned i = 0; i < n; i++) {
            sc_chain(sc, b, y, 7, step + i, N);
        }
        /* In the legacy stream, which waits for the blocking stream, and for which the blocking
         * stream waits. */
        OK(hidden_fill(look)(y, step, N / 4, NULL));
        for (unsigned i = 0; i < n; i++) {
            sc_chain(sc, b, y, 11, step + i, N);
        }
        OK(sc->cu.StreamSynchronize(s));
        OK(sc->cu.StreamSynchronize(b));
    }
    sc_digest(sc);
    return 0;
}
