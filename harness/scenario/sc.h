/*
 * What every scenario uses: the driver by the chosen route, kernels, memory with a digest, and
 * output.
 *
 * A scenario is one function. It never prints an address, a time or a count of polls, so two right
 * runs print the same. At its end it prints a digest of all memory that it registered. One thread
 * at a time may call a function here unless its comment says otherwise; any thread may call
 * launches, memsets and copies.
 */
#ifndef HARNESS_SCENARIO_SC_H
#define HARNESS_SCENARIO_SC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* In cuda.h the plain names are the entry points of api.def; per-thread names are requested by
 * name. */
#include <cuda.h>

#include "kernels/kernels.h"

struct sc_api {
#define SC_API(field, symbol, name, version, flags, params) CUresult(CUDAAPI *field) params;
#include "harness/scenario/api.def"
#undef SC_API
};

enum sc_kernel {
#define SC_KERNEL(name) SC_##name,
#include "harness/scenario/kernels.def"
#undef SC_KERNEL
    SC_KERNELS
};

enum { SC_ROWS_MAX = 4096 };

/* Memory that sc_digest reads: of the device (base) or the host (host). */
struct sc_memory {
    const char *name;
    CUdeviceptr base;
    void *host;
    size_t bytes;
};

struct sc {
    struct sc_api cu;
    unsigned steps; /* how often the scenario repeats its step; sc_steps gives the default */
    uint64_t seed;
    uint64_t rng;
    const char *route;
    CUdevice device;
    CUcontext ctx;
    CUmodule module;
    CUfunction fn[SC_KERNELS];
    struct sc_memory memory[SC_ROWS_MAX];
    unsigned n_memory;
    uint64_t codes; /* running hash of return codes, see sc_code */
};

struct sc_scenario {
    const char *name;
    const char *what;
    int (*run)(struct sc *sc);
};

/* Every scenario; the last row has no name. */
extern const struct sc_scenario sc_scenarios[];

/* --- start (route.c, start.c) --- */

/* Fills sc->cu by the route of that name. Returns false with a line on stderr if there is no
 * such route, or if it does not lead to the driver. */
bool sc_route_fill(const char *route, struct sc_api *cu);
/* Binds the entry points through the program's own link map; NULL if the program is not linked
 * to libcuda. */
extern bool (*const sc_route_elf)(struct sc_api *cu);
/* Makes the primary context of device 0 current, and loads the module and its kernels. */
void sc_start(struct sc *sc);
/* Loads the kernels into the current context: module and handles. */
void sc_load(struct sc *sc, CUmodule *module, CUfunction fn[SC_KERNELS]);
const char *sc_kernel_name(enum sc_kernel kernel);
/* The image that holds every kernel. */
const void *sc_image(void);

/* Fills words by a call that no table of cusplice knows (unknown.c); NULL: the driver has none. */
typedef CUresult (*sc_fill_fn)(CUdeviceptr, unsigned, size_t, CUstream);
sc_fill_fn sc_unknown_fill(void);

/* --- output (start.c) --- */

/* One line on stdout, "NAME: text". */
void sc_say(const struct sc *sc, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Ends the program with status 3 unless `code` is CUDA_SUCCESS: for calls that never fail in a
 * right run. */
void sc_must(CUresult code, const char *call, const char *file, int line);
#define OK(call) sc_must((call), #call, __FILE__, __LINE__)
/* Ends the program with status 3, for failures of the host (no memory, no thread). */
void sc_fail(const char *what);
/* Adds a return code, which may be an error, to the running hash, and returns it. */
CUresult sc_code(struct sc *sc, CUresult code);
/* Returns the number of steps: that of the command line, or `by_default`. */
unsigned sc_steps(const struct sc *sc, unsigned by_default);
/* Prints a digest of all registered memory and of the return codes. Synchronises the context. */
void sc_digest(struct sc *sc);
uint64_t sc_hash(uint64_t hash, const void *data, size_t bytes);
/* The next number of the scenario's own generator, less than `below`. */
unsigned sc_random(struct sc *sc, unsigned below);
unsigned sc_random_of(uint64_t *state, unsigned below);
void sc_sleep_us(unsigned us);

/* --- memory (start.c) --- */

/* Device memory of `words` 32-bit words, all zero, registered under `name`. */
CUdeviceptr sc_device(struct sc *sc, const char *name, size_t words);
/* Pinned and mapped host memory, all zero, registered under `name`. */
void *sc_pinned(struct sc *sc, const char *name, size_t bytes);
/* Registers memory for the digest. */
void sc_register(struct sc *sc, const char *name, CUdeviceptr base, void *host, size_t bytes);
/* Removes memory from the digest, before it is freed. */
void sc_forget(struct sc *sc, CUdeviceptr base, void *host);

/* --- launches (launch.c): all return the driver's code --- */

CUresult sc_launch(struct sc *sc, CUfunction fn, unsigned grid, unsigned block, unsigned smem,
                   CUstream stream, void **params);

/* These end the program if the launch fails. Grid: enough blocks of 64 for n. */
void sc_axpy(struct sc *sc, CUstream s, CUdeviceptr y, CUdeviceptr x, float a, int n);
void sc_saxpy_n(struct sc *sc, CUstream s, CUdeviceptr y, CUdeviceptr x, float a, int n,
                int rounds);
void sc_fill(struct sc *sc, CUstream s, CUdeviceptr dst, unsigned value, int n);
void sc_iota(struct sc *sc, CUstream s, CUdeviceptr dst, int start, int n);
void sc_add(struct sc *sc, CUstream s, CUdeviceptr dst, int value, int n);
void sc_chain(struct sc *sc, CUstream s, CUdeviceptr x, unsigned a, unsigned b, int n);
void sc_copy(struct sc *sc, CUstream s, CUdeviceptr dst, CUdeviceptr src, int n);
void sc_reduce(struct sc *sc, CUstream s, CUdeviceptr out, CUdeviceptr in, int n);
void sc_checksum(struct sc *sc, CUstream s, CUdeviceptr out, CUdeviceptr data,
                 unsigned long long bytes);
void sc_touch(struct sc *sc, CUstream s, CUdeviceptr p);
void sc_set_flag(struct sc *sc, CUstream s, CUdeviceptr flag, unsigned value);

#endif
