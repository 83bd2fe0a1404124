/*
 * runtime_alone LIBRARY...: launches kernels of libraries that each have and export their own
 * runtime, opened locally as extension modules are. The program itself is linked to no runtime.
 * Prints the memory at the end; status 1 with a line if a launch fails.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/sim/programs/runtime_plugin.h"

enum { N = 256, STEPS = 40, EACH = 24 };

#define CHECK(call)                                                                                \
    do {                                                                                           \
        int status_ = (int)(call);                                                                 \
        if (status_) {                                                                             \
            fprintf(stderr, "runtime_alone: line %d: %s: %d\n", __LINE__, #call, status_);         \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

typedef cudaError_t malloc_fn(void **, size_t);
typedef cudaError_t copy_fn(void *, const void *, size_t, enum cudaMemcpyKind);
typedef cudaError_t set_fn(void *, int, size_t);

static void work(const char *path) {
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        fprintf(stderr, "runtime_alone: %s\n", dlerror());
    CHECK(!handle);
    const struct plugin *plugin = ((plugin_fn *)dlsym(handle, "runtime_plugin"))();
    malloc_fn *make = (malloc_fn *)dlsym(handle, "cudaMalloc");
    copy_fn *copy = (copy_fn *)dlsym(handle, "cudaMemcpy");
    set_fn *set = (set_fn *)dlsym(handle, "cudaMemset");
    int *x, host[N];
    unsigned sum = 0;
    CHECK(make((void **)&x, sizeof host));
    CHECK(set(x, 0, sizeof host));
    for (int turn = 0; turn < STEPS; turn++) {
        for (int i = 0; i < EACH; i++)
            CHECK(plugin->launch(i % 2 ? BY_STUB : BY_FUNCTION, x, i, N, N / 64, NULL));
        CHECK(copy(host, x, sizeof host, cudaMemcpyDeviceToHost));
        CHECK(plugin->peek());
    }
    for (int i = 0; i < N; i++)
        sum = sum * 31 + (unsigned)host[i];
    printf("%08x\n", sum);
}

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++)
        work(argv[i]);
    return argc < 3 ? 2 : 0;
}
