/*
 * What the programs of a chosen size share: access to the driver, and many functions with one
 * kernel. Any thread; the kernel is a linear map of WORDS words of memory.
 *
 * The programs find the driver as the CUDA runtime does (dlopen, then cuGetProcAddress), so they
 * run on a GPU and on the simulator. Two such maps do not commute: a launch that is lost, doubled
 * or out of order changes the memory at the end. If the driver refuses a call, the program names
 * the call and exits with 3.
 */
#ifndef HARNESS_BENCH_CHAIN_H
#define HARNESS_BENCH_CHAIN_H

#include <stdint.h>

#include <cuda.h>

enum {
    HANDLES = 128, /* different functions: the same code, loaded this many times */
    WORDS = 32,
};

/* The name and the requested version. */
#define CHAIN_CALLS(X)                                                                             \
    X(cuInit, 2000)                                                                                \
    X(cuDeviceGet, 2000)                                                                           \
    X(cuDevicePrimaryCtxRetain, 7000)                                                              \
    X(cuCtxSetCurrent, 4000)                                                                       \
    X(cuCtxSynchronize, 2000)                                                                      \
    X(cuModuleLoadData, 2000)                                                                      \
    X(cuModuleGetFunction, 2000)                                                                   \
    X(cuMemAlloc, 3020)                                                                            \
    X(cuMemFree, 3020)                                                                             \
    X(cuMemGetInfo, 3020)                                                                          \
    X(cuMemcpyDtoH, 3020)                                                                          \
    X(cuMemcpyHtoD, 3020)                                                                          \
    X(cuStreamCreate, 2000)                                                                        \
    X(cuStreamSynchronize, 2000)                                                                   \
    X(cuLaunchKernel, 4000)                                                                        \
    X(cuStreamBeginCapture, 10010)                                                                 \
    X(cuStreamEndCapture, 10000)                                                                   \
    X(cuGraphInstantiateWithFlags, 11040)                                                          \
    X(cuGraphLaunch, 10000)                                                                        \
    X(cuGraphExecDestroy, 10000)                                                                   \
    X(cuGraphDestroy, 10000)

extern struct chain_driver {
#define FIELD(name, version) __typeof__(&name) name;
    CHAIN_CALLS(FIELD)
#undef FIELD
} cu;

extern CUfunction chain_functions[HANDLES];

/* The functions that launch and wait: as the program found them, or as the driver exports them,
 * past any preloaded library. */
struct chain_way {
    __typeof__(&cuLaunchKernel) launch;
    __typeof__(&cuStreamSynchronize) wait;
};
struct chain_way chain_way_past(void);
/* Uses this way from now on; returns the old one. */
struct chain_way chain_go(struct chain_way way);

/* Finds the driver, makes the first device's primary context current, and loads the functions. */
CUcontext chain_open(void);
/* One launch; blocks of `grid` beyond the first do nothing. `i` chooses the map. */
void chain_launch(CUfunction function, unsigned grid, unsigned i, CUdeviceptr memory,
                  CUstream stream);
/* Allocates WORDS words, which count up from `first`. */
CUdeviceptr chain_memory(unsigned first);
/* Hashes the words of `memory` into `sum`. */
uint64_t chain_sum(uint64_t sum, CUdeviceptr memory);

uint64_t chain_mix(uint64_t x);

void chain_must(CUresult code, const char *call);
#define OK(call) chain_must((call), #call)

#endif
