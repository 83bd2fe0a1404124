/*
 * A preloaded tool that stands before only one half of <<<>>>, and before dlclose. It counts the
 * calls and prints the counts at the end.
 */
#define _GNU_SOURCE
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <stdio.h>

#define PUBLIC __attribute__((visibility("default")))

static unsigned pops, closes;

typedef unsigned pop_fn(dim3 *grid, dim3 *block, size_t *shared, cudaStream_t *stream);
PUBLIC pop_fn __cudaPopCallConfiguration;
PUBLIC unsigned __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared,
                                           cudaStream_t *stream) {
    static pop_fn *next;
    if (!next)
        next = (pop_fn *)dlsym(RTLD_NEXT, "__cudaPopCallConfiguration");
    pops++;
    return next(grid, block, shared, stream);
}

PUBLIC int dlclose(void *handle) {
    static __typeof__(dlclose) *next;
    if (!next)
        next = (__typeof__(next))dlsym(RTLD_NEXT, "dlclose");
    closes++;
    return next(handle);
}

__attribute__((destructor)) static void say(void) {
    if (pops || closes)
        printf("half: %u %u\n", pops, closes);
}
