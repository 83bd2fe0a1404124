/*
 * A plugin with its own launches, in five forms that find the driver in different ways. With
 * PLUGIN_EXPORTS it also exports cuMemAlloc_v2, which calls the next one.
 *
 *   (none)          bound by the loader
 *   PLUGIN_COPIES   its constructor keeps the bound address
 *   PLUGIN_AT_LOAD  its constructor launches
 *   PLUGIN_LOOKS_UP its own dlsym, at the first call; not linked to libcuda
 *   PLUGIN_TABLE    the same in its constructor, into a table
 */
#define _GNU_SOURCE
#include "tests/gpu/programs/plugin.h"

#include <dlfcn.h>
#include <stdlib.h>

typedef __typeof__(&cuLaunchKernel) launch_fn;

#if defined(PLUGIN_LOOKS_UP) || defined(PLUGIN_TABLE)
static launch_fn kept;

static launch_fn launch_kernel(void) {
    if (!kept) {
        void *cuda = dlopen("libcuda.so.1", RTLD_NOW);
        kept = cuda ? (launch_fn)dlsym(cuda, "cuLaunchKernel") : NULL;
    }
    return kept;
}
#elif defined(PLUGIN_COPIES)
static launch_fn volatile kept;

static launch_fn launch_kernel(void) {
    return kept;
}
#else
#define launch_kernel() cuLaunchKernel
#endif

#ifdef PLUGIN_EXPORTS
#undef cuMemAlloc
#undef cuMemAlloc_v2
CUresult cuMemAlloc_v2(CUdeviceptr *at, size_t bytes);
CUresult cuMemAlloc_v2(CUdeviceptr *at, size_t bytes) {
    CUresult (*next)(CUdeviceptr *, size_t) =
        (CUresult(*)(CUdeviceptr *, size_t))dlsym(RTLD_NEXT, "cuMemAlloc_v2");
    return next(at, bytes);
}
#endif

CUresult plugin_launch(const struct plugin_call *call);
CUresult plugin_launch(const struct plugin_call *call) {
    struct plugin_call own = *call;
    void *params[] = {&own.x, &own.a, &own.b, &own.n};
    return launch_kernel()(own.chain, 2, 1, 1, 128, 1, 1, 0, own.stream, params, NULL);
}

__attribute__((constructor)) static void begin(void) {
#if defined(PLUGIN_COPIES)
    kept = cuLaunchKernel;
#elif defined(PLUGIN_TABLE)
    launch_kernel();
#elif defined(PLUGIN_AT_LOAD)
    const char *at = getenv(PLUGIN_AT_ONCE);
    const struct plugin_call *call = at ? (const void *)strtoull(at, NULL, 16) : NULL;
    if (call && call->before)
        call->before();
    if (call)
        plugin_launch(call);
#endif
}
