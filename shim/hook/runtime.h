/*
 * Launches by the exported functions of a shared CUDA runtime: what they are, and from which
 * library a call of one would have been answered without us.
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

/* What the calling thread waits to see: the one launch that the runtime makes of the call that it
 * is inside of. Initial-exec, as cus_thread_self.depth. */
struct cus_runtime_watch {
    bool on;
    bool same;     /* the last one was handed on as it was asked for */
    uint32_t seen; /* launches */
    uint32_t dims[7];
    enum cus_abi abi;
    CUstream stream;
    void **args;
    const void *attrs; /* of cudaLaunchKernelExC, by address */
    uint32_t n_attrs;
    CUfunction handle; /* what was launched, */
    CUcontext context; /* and where */
};
extern _Thread_local struct cus_runtime_watch cus_runtime_watch
    __attribute__((tls_model("initial-exec"), visibility("hidden")));
/* A launch on the long way, while `on`. At depth 1. */
void cus_runtime_saw(const struct cus_launch *launch);

/* The library came up. `plainly`: nobody but the plan looks at ops. The option holds from now on.
 */
void cus_runtime_start(bool plainly);
/* Somebody listens to calls of the runtime, or nobody does any more. */
void cus_runtime_listened(bool on);
/* Code, a context, or an object of the loader goes: what is known of functions is forgotten. */
void cus_runtime_forget(void);

/* ---- origin.c ---- */

/* What a call would have reached. */
struct cus_runtime_origin {
    void *function; /* NULL: there is none */
    bool known; /* of a runtime that is known to use the context that the driver calls current */
};
/* For a call of `which` from `caller` for the kernel `kernel` (an address in the object that
 * registered it, or a handle). Walks the objects of the loader without waiting for constructors. */
struct cus_runtime_origin cus_runtime_origin(enum cus_runtime which, const void *kernel,
                                             const void *caller);
/* Does the name belong to one of the functions? Its number, or -1. */
int cus_runtime_find(const char *name);
/* Do both addresses lie in one object of the loader? */
bool cus_runtime_same_object(const void *one, const void *other);
/* ---- configuration.c, device.c ---- */
extern void *const cus_runtime_push_export, *const cus_runtime_pop_export;
extern void *const cus_runtime_device_export;

/* ---- again runtime.c ---- */
/* Our own export of the function. */
void *cus_runtime_export(int which);
/* The function that dlsym(RTLD_DEFAULT) would find for `caller` if our own export were not there;
 * NULL: none. */
void *cus_runtime_behind(int which, const void *caller);

#endif
