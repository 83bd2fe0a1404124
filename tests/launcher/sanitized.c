/*
 * An ordinary CUDA program built with the address sanitizer in gcc's default way: a shared run-time
 * library that must be loaded first. Prints a digest; `leak` leaks 77 bytes.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 60, OPS = 24, BYTES = OPS * 256 };

typedef int call_fn();

static call_fn *look(void *cuda, const char *name) {
    call_fn *function = (call_fn *)dlsym(cuda, name);
    if (!function) {
        fprintf(stderr, "%s: %s\n", name, dlerror());
        exit(2);
    }
    return function;
}

static void need(int error, const char *what) {
    if (error) {
        fprintf(stderr, "%s: %d\n", what, error);
        exit(3);
    }
}

static void forget(void) {
    char *volatile forgotten = malloc(77);
    forgotten = NULL;
}

int main(int argc, char **argv) {
    void *cuda = dlopen("libcuda.so.1", RTLD_NOW), *context, *stream;
    uint64_t memory, digest = 0;
    static uint32_t bytes[BYTES / 4];
    int device;
    if (!cuda) {
        fprintf(stderr, "%s\n", dlerror());
        return 2;
    }
    call_fn *set = look(cuda, "cuMemsetD32Async"), *wait = look(cuda, "cuStreamSynchronize");
    need(look(cuda, "cuInit")(0), "cuInit");
    need(look(cuda, "cuDeviceGet")(&device, 0), "cuDeviceGet");
    need(look(cuda, "cuDevicePrimaryCtxRetain")(&context, device), "cuDevicePrimaryCtxRetain");
    need(look(cuda, "cuCtxSetCurrent")(context), "cuCtxSetCurrent");
    need(look(cuda, "cuMemAlloc_v2")(&memory, (size_t)BYTES), "cuMemAlloc");
    need(look(cuda, "cuStreamCreate")(&stream, 1), "cuStreamCreate");
    for (uint32_t step = 0; step < STEPS; step++) {
        for (uint32_t i = 0; i < OPS; i++)
            need(set(memory + i * 256, step * i, (size_t)64, stream), "cuMemsetD32Async");
        need(wait(stream), "cuStreamSynchronize");
    }
    need(look(cuda, "cuMemcpyDtoH_v2")(bytes, memory, sizeof bytes), "cuMemcpyDtoH");
    for (unsigned i = 0; i < BYTES / 4; i++)
        digest = digest * 31 + bytes[i];
    printf("digest %llx\n", (unsigned long long)digest);
    if (argc > 1 && strcmp(argv[1], "leak") == 0)
        forget();
    return 0;
}
