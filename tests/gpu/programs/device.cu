/*
 * Prints what a shared runtime's cudaGetDevice returns and leaves in all states of a thread's
 * context, and its cost, as one JSON line. tests/gpu/runtime_cases.py runs it plain and preloaded;
 * it knows nothing of cusplice.
 */
#include <cuda.h>
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include <algorithm>
#include <chrono>
#include <thread>

#define CHECK(call)                                                                                \
    do {                                                                                           \
        int status_ = (int)(call);                                                                 \
        if (status_) {                                                                             \
            fprintf(stderr, "device: %s: %d (line %d)\n", #call, status_, __LINE__);               \
            exit(2);                                                                               \
        }                                                                                          \
    } while (0)

__global__ void write_to(int *address) {
    *address = 1;
}

/* All from one place. */
__attribute__((noinline)) static cudaError_t ask(int *device) {
    cudaError_t error = cudaGetDevice(device);
    asm volatile(""); /* nor is this call the last thing here */
    return error;
}

/* Twice, for what the first time may have taught somebody. */
static void say(const char *where) {
    static bool any;
    for (int i = 0; i < 2; i++) {
        int device = -1;
        cudaError_t error = ask(&device);
        printf("%s[\"%s\", %d, %d, %d]", any ? ", " : "", where, error, device, cudaGetLastError());
        any = true;
    }
}

static void *driver(const char *name) {
    static void *library = dlopen("libcuda.so.1", RTLD_NOW);
    void *function = library ? dlsym(library, name) : nullptr;
    CHECK(!function);
    return function;
}

/* ns of a call, the best of a few rounds. */
static double ns() {
    enum { CALLS = 200000, ROUNDS = 7 };
    double best = 1e9;
    for (int round = 0; round < ROUNDS; round++) {
        int device;
        auto begin = std::chrono::steady_clock::now();
        for (int i = 0; i < CALLS; i++)
            ask(&device);
        std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
        best = std::min(best, took.count() / CALLS);
    }
    return best;
}

int main() {
    typedef CUresult set_fn(CUcontext context);
    typedef CUresult create_fn(CUcontext * context, unsigned flags, CUdevice device);
    set_fn *set = (set_fn *)driver("cuCtxSetCurrent");
    set_fn *destroy = (set_fn *)driver("cuCtxDestroy_v2");
    create_fn *create = (create_fn *)driver("cuCtxCreate_v2");
    int n = 0;
    printf("{\"program\": \"device\", \"said\": [");
    say("nothing yet");
    CHECK(cudaGetDeviceCount(&n));
    for (int device = n; device--;) {
        CHECK(cudaSetDevice(device));
        say("set");
        CHECK(cudaFree(nullptr));
        say("used");
    }
    CHECK(set(nullptr));
    say("no context");
    CUcontext own;
    CHECK(create(&own, 0, n - 1));
    say("its own");
    std::thread([] { say("another thread"); }).join();
    std::thread([=] { CHECK(destroy(own)); }).join();
    say("its own, which another thread destroyed");
    CHECK(set(nullptr));
    CHECK(cudaSetDevice(0));
    CHECK(ask(nullptr) != cudaErrorInvalidValue);
    say("nowhere to put it");
    CHECK(cudaDeviceReset());
    say("reset");
    CHECK(cudaSetDevice(0));
    double each = ns();
    write_to<<<1, 1>>>((int *)16);
    say("a kernel that fails");
    printf(", [\"waited\", %d, 0, 0]", cudaDeviceSynchronize());
    say("behind it");
    printf("], \"ns\": %.1f}\n", each);
}
