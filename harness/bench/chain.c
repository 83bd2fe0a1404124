#define _GNU_SOURCE
#include "harness/bench/chain.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "harness/bench/exported.h"

extern const unsigned char growth_kernels_fatbin[];

struct chain_driver cu;
CUfunction chain_functions[HANDLES];

void chain_must(CUresult code, const char *call) {
    if (code == CUDA_SUCCESS)
        return;
    fprintf(stderr, "%s: %s: error %d\n", program_invocation_short_name, call, (int)code);
    exit(3);
}

static void *driver_library(void) {
    return dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
}

static void *past(const char *name) {
    void *function = exported(driver_library(), name);
    if (!function) {
        fprintf(stderr, "%s: the driver exports no %s\n", program_invocation_short_name, name);
        exit(3);
    }
    return function;
}

struct chain_way chain_way_past(void) {
    return (struct chain_way){
        .launch = (__typeof__(&cuLaunchKernel))past("cuLaunchKernel"),
        .wait = (__typeof__(&cuStreamSynchronize))past("cuStreamSynchronize"),
    };
}

struct chain_way chain_go(struct chain_way way) {
    struct chain_way before = {cu.cuLaunchKernel, cu.cuStreamSynchronize};
    cu.cuLaunchKernel = way.launch;
    cu.cuStreamSynchronize = way.wait;
    return before;
}

static void find_driver(void) {
    typedef CUresult look_up_fn(const char *, void **, int, cuuint64_t,
                                CUdriverProcAddressQueryResult *);
    static const struct {
        const char *name;
        int version;
        void **where;
    } entries[] = {
#define ENTRY(name, version) {#name, version, (void **)&cu.name},
        CHAIN_CALLS(ENTRY)
#undef ENTRY
    };
    void *library = driver_library();
    look_up_fn *look_up = library ? (look_up_fn *)dlsym(library, "cuGetProcAddress_v2") : NULL;
    if (!look_up) {
        fprintf(stderr, "%s: there is no CUDA driver of version 12.0 or later\n",
                program_invocation_short_name);
        exit(3);
    }
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        CUdriverProcAddressQueryResult found;
        OK(look_up(entries[i].name, entries[i].where, entries[i].version, 0, &found));
        if (!*entries[i].where) {
            fprintf(stderr, "%s: the driver has no %s\n", program_invocation_short_name,
                    entries[i].name);
            exit(3);
        }
    }
}

CUcontext chain_open(void) {
    CUdevice device;
    CUcontext context;
    find_driver();
    OK(cu.cuInit(0));
    OK(cu.cuDeviceGet(&device, 0));
    OK(cu.cuDevicePrimaryCtxRetain(&context, device));
    OK(cu.cuCtxSetCurrent(context));
    for (unsigned i = 0; i < HANDLES; i++) {
        CUmodule module;
        OK(cu.cuModuleLoadData(&module, growth_kernels_fatbin));
        OK(cu.cuModuleGetFunction(&chain_functions[i], module, "chain"));
    }
    return context;
}

void chain_launch(CUfunction function, unsigned grid, unsigned i, CUdeviceptr memory,
                  CUstream stream) {
    unsigned a = 2 * i + 1, b = i;
    int n = WORDS;
    void *params[] = {&memory, &a, &b, &n};
    OK(cu.cuLaunchKernel(function, grid, 1, 1, WORDS, 1, 1, 0, stream, params, NULL));
}

CUdeviceptr chain_memory(unsigned first) {
    CUdeviceptr memory;
    unsigned words[WORDS];
    for (unsigned j = 0; j < WORDS; j++)
        words[j] = first + j;
    OK(cu.cuMemAlloc(&memory, sizeof words));
    OK(cu.cuMemcpyHtoD(memory, words, sizeof words));
    return memory;
}

uint64_t chain_sum(uint64_t sum, CUdeviceptr memory) {
    unsigned words[WORDS];
    OK(cu.cuMemcpyDtoH(words, memory, sizeof words));
    for (unsigned j = 0; j < WORDS; j++)
        sum = chain_mix(sum ^ words[j]);
    return sum;
}

uint64_t chain_mix(uint64_t x) {
    x ^= x >> 33;
    x *= 0xff51afd7ed558ccdu;
    x ^= x >> 33;
    x *= 0xc4ceb9fe1a85ec53u;
    return x ^ x >> 33;
}
