/*
 * Starts a scenario; keeps its output, its memory and the digest.
 *
 * Runs on the scenario's main thread and holds no lock. Any thread may call sc_random_of, sc_hash,
 * sc_must and sc_sleep_us.
 */
#include "harness/scenario/sc.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

extern const unsigned char scenario_kernels_fatbin[];

const void *sc_image(void) {
    return scenario_kernels_fatbin;
}

static const char *const kernel_names[] = {
#define SC_KERNEL(name) #name,
#include "harness/scenario/kernels.def"
#undef SC_KERNEL
};

const char *sc_kernel_name(enum sc_kernel kernel) {
    return kernel_names[kernel];
}

void sc_load(struct sc *sc, CUmodule *module, CUfunction fn[SC_KERNELS]) {
    OK(sc->cu.ModuleLoadData(module, sc_image()));
    for (int k = 0; k < SC_KERNELS; k++) {
        OK(sc->cu.ModuleGetFunction(&fn[k], *module, kernel_names[k]));
    }
}

void sc_start(struct sc *sc) {
    OK(sc->cu.Init(0));
    OK(sc->cu.DeviceGet(&sc->device, 0));
    OK(sc->cu.PrimaryRetain(&sc->ctx, sc->device));
    OK(sc->cu.CtxSetCurrent(sc->ctx));
    sc_load(sc, &sc->module, sc->fn);
    sc->codes = 14695981039346656037u;
}

void sc_say(const struct sc *sc, const char *format, ...) {
    va_list args;
    (void)sc;
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
    fflush(stdout);
}

void sc_must(CUresult code, const char *call, const char *file, int line) {
    if (code != CUDA_SUCCESS) {
        printf("FAILED %s:%d: %s: %d\n", file, line, call, (int)code);
        fflush(stdout);
        exit(3); /* with exit handlers, so that earlier requests are done and counted */
    }
}

void sc_fail(const char *what) {
    printf("FAILED %s\n", what);
    fflush(stdout);
    _Exit(3);
}

CUresult sc_code(struct sc *sc, CUresult code) {
    int value = (int)code;
    sc->codes = sc_hash(sc->codes, &value, sizeof(value));
    return code;
}

unsigned sc_steps(const struct sc *sc, unsigned by_default) {
    return sc->steps ? sc->steps : by_default;
}

uint64_t sc_hash(uint64_t hash, const void *data, size_t bytes) {
    const unsigned char *p = data;
    for (size_t i = 0; i < bytes; i++) {
        hash = (hash ^ p[i]) * 1099511628211u;
    }
    return hash;
}

unsigned sc_random_of(uint64_t *state, unsigned below) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)((*state >> 33) % below);
}

unsigned sc_random(struct sc *sc, unsigned below) {
    return sc_random_of(&sc->rng, below);
}

void sc_sleep_us(unsigned us) {
    struct timespec t = {us / 1000000, (long)(us % 1000000) * 1000};
    nanosleep(&t, NULL);
}

void sc_register(struct sc *sc, const char *name, CUdeviceptr base, void *host, size_t bytes) {
    if (sc->n_memory == SC_ROWS_MAX) {
        sc_fail("too much memory registered");
    }
    sc->memory[sc->n_memory++] = (struct sc_memory){name, base, host, bytes};
}

void sc_forget(struct sc *sc, CUdeviceptr base, void *host) {
    for (unsigned m = 0; m < sc->n_memory; m++) {
        if (sc->memory[m].base == base && sc->memory[m].host == host) {
            sc->n_memory--;
            memmove(&sc->memory[m], &sc->memory[m + 1], (sc->n_memory - m) * sizeof(sc->memory[0]));
            return;
        }
    }
    sc_fail("forgetting memory that was never registered");
}

CUdeviceptr sc_device(struct sc *sc, const char *name, size_t words) {
    CUdeviceptr p = 0;
    OK(sc->cu.MemAlloc(&p, words * 4));
    OK(sc->cu.MemsetD8(p, 0, words * 4));
    OK(sc->cu.CtxSynchronize());
    sc_register(sc, name, p, NULL, words * 4);
    return p;
}

void *sc_pinned(struct sc *sc, const char *name, size_t bytes) {
    void *p = NULL;
    OK(sc->cu.MemHostAlloc(&p, bytes, CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_PORTABLE));
    memset(p, 0, bytes);
    sc_register(sc, name, 0, p, bytes);
    return p;
}

void sc_digest(struct sc *sc) {
    OK(sc->cu.CtxSynchronize());
    for (unsigned m = 0; m < sc->n_memory; m++) {
        const struct sc_memory *row = &sc->memory[m];
        void *bytes = row->host;
        if (!bytes) {
            bytes = malloc(row->bytes);
            if (!bytes) {
                sc_fail("no memory");
            }
            OK(sc->cu.MemcpyDtoH(bytes, row->base, row->bytes));
        }
        sc_say(sc, "%s: %016llx", row->name,
               (unsigned long long)sc_hash(14695981039346656037u, bytes, row->bytes));
        if (!row->host) {
            free(bytes);
        }
    }
    sc_say(sc, "codes: %016llx", (unsigned long long)sc->codes);
}
