/*
 * opening_cost LIBRARY [cuda]: prints the cost of dlopen and dlclose in ns, the least of many. Not
 * a test: run it plain and preloaded on the simulator (shim/hook/objects.md has the figures).
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

typedef int init_fn(unsigned flags);

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void measure(const char *what, const char *name, int flags) {
    uint64_t least = UINT64_MAX, sum = 0;
    enum { TIMES = 300 };
    for (int i = 0; i < TIMES; i++) {
        uint64_t from = now();
        void *handle = dlopen(name, flags);
        uint64_t took = now() - from;
        sum += took;
        least = took < least ? took : least;
        if (handle)
            dlclose(handle);
    }
    printf("%-24s %6llu ns, mean %6llu ns\n", what, (unsigned long long)least,
           (unsigned long long)(sum / TIMES));
}

int main(int argc, char **argv) {
    if (argc < 2)
        return 2;
    if (argc > 2) {
        void *cuda = dlopen("libcuda.so.1", RTLD_NOW);
        init_fn *init = cuda ? (init_fn *)dlsym(cuda, "cuInit") : NULL;
        if (!init || init(0))
            return 1;
    }
    measure("opened by its path", argv[1], RTLD_NOW);
    measure("with RTLD_DEEPBIND", argv[1], RTLD_NOW | RTLD_DEEPBIND);
    measure("by a bare name", "libBrokenLocale.so.1", RTLD_NOW);
    void *stays = dlopen(argv[1], RTLD_NOW);
    measure("open already", argv[1], RTLD_NOW);
    measure("open already, NOLOAD", argv[1], RTLD_NOW | RTLD_NOLOAD);
    return stays ? 0 : 1;
}
