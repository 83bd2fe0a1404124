/*
 * Launches by the exported functions of a shared CUDA runtime: how the library recognises them, and
 * which runtime would have answered a call without this library.
 */
#ifndef CUSPLICE_HOOK_RUNTIME_H
#define CUSPLICE_HOOK_RUNTIME_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/stream/engine.h"

/* The exported functions, numbered in this order. */
#define CUS_RUNTIME_FUNCTIONS(X)                                                                   \
    X(cudaLaunchKernel)                                                                            \
    X(cudaLaunchKernel_ptsz)                                                                       \
    X(__cudaLaunchKernel)                                                                          \
    X(__cudaLaunchKernel_ptsz)                                                                     \
    X(cudaLaunchKernelExC)                                                                         \
    X(cudaLaunchKernelExC_ptsz)                                                                    \
    X(__cudaPushCallConfiguration)                                                                 \
    X(__cudaPopCallConfiguration)                                                                  \
    X(cudaGetDevice)
enum cus_runtime {
#define CUS_RUNTIME_ENUM(name) CUS_RUNTIME_##name,
    CUS_RUNTIME_FUNCTIONS(CUS_RUNTIME_ENUM)
#undef CUS_RUNTIME_ENUM
        CUS_RUNTIMES
};

/* ---- runtime.c ---- */

/* What the calling thread waits to see: the one launch in the driver that the runtime makes
 * during the present call of the runtime. Initial-exec, as cus_thread_self.depth. */
struct cus_runtime_watch {
    bool on;
    bool same;     /* the runtime passed the last launch on unchanged */
    uint32_t seen; /* number of launches */
    uint32_t dims[7];
    enum cus_abi abi;
    CUstream stream;
    void **args;
    const void *attrs; /* of cudaLaunchKernelExC, by address */
    uint32_t n_attrs;
    CUfunction handle; /* what was launched */
    CUcontext context; /* where it was launched */
};
extern _Thread_local struct cus_runtime_watch cus_runtime_watch
    __attribute__((tls_model("initial-exec"), visibility("hidden")));
/* Called at depth 1 for a launch that is not on the hot path, while `on` is set. */
void cus_runtime_saw(const struct cus_launch *launch);

/* Called when the library has started. `plainly`: only the plan looks at ops. From now on the
 * setting `runtime_fast_path` holds. */
void cus_runtime_start(bool plainly);
/* Called when a tool begins or stops to listen to calls of the runtime. */
void cus_runtime_listened(bool on);
/* Called when code, a context or an object of the loader goes: forgets what is known of
 * functions. */
void cus_runtime_forget(void);

/* ---- origin.c ---- */

/* The function that a call would have reached without this library. */
struct cus_runtime_origin {
    void *function; /* NULL: there is none */
    bool known;     /* its runtime is known to use the context that the driver calls current */
};
/* Finds the origin for a call of `which` from `caller` for the kernel `kernel`. `kernel` is an
 * address in the object that registered it, or a handle. Walks the loader's objects; never waits
 * for constructors. */
struct cus_runtime_origin cus_runtime_origin(enum cus_runtime which, const void *kernel,
                                             const void *caller);
/* The number of an exported function with this name, or -1. */
int cus_runtime_find(const char *name);
/* True: both addresses lie in one object of the loader. */
bool cus_runtime_same_object(const void *one, const void *other);
/* ---- configuration.c, device.c ---- */
extern void *const cus_runtime_push_export, *const cus_runtime_pop_export;
extern void *const cus_runtime_device_export;

/* ---- again runtime.c ---- */
/* This library's export of the function. */
void *cus_runtime_export(int which);
/* The function that dlsym(RTLD_DEFAULT) would find for `caller` if this library did not export
 * it; NULL: none. */
void *cus_runtime_behind(int which, const void *caller);

#endif
