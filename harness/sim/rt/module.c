/*
 * What nvcc's host code registers with the libcudart stand-in: images, kernels and variables. As in
 * the CUDA 13 runtime, the first use of an image loads it as a library of the driver; kernels are
 * CUkernels.
 *
 * Constructors register; any thread uses. `lock` guards all of it and is held while a library
 * loads. Nothing here may call back into the program.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "harness/sim/rt/rt.h"

#define BUCKETS 512

/* nvcc's structure around an image. */
struct fatbin_wrapper {
    int magic, version;
    const void *data;
    void *file;
};

struct module {
    const void *image;
    CUlibrary library; /* NULL until the first use */
};

/* A kernel or a variable; `host` is its address in the program. */
struct symbol {
    const void *host;
    const char *name;
    struct module
        *module; /* NULL: a kernel of cudaLibraryGetKernel, which this library did not load */
    bool variable;
    size_t bytes;
    CUkernel kernel; /* NULL until the first use */
    struct symbol *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct symbol *symbols[BUCKETS]; /* under `lock` */

static struct symbol **bucket(const void *host) {
    return &symbols[((uintptr_t)host >> 4) % BUCKETS];
}

static struct symbol *find(const void *host, bool variable) {
    for (struct symbol *s = *bucket(host); s; s = s->next) {
        if (s->host == host && s->variable == variable) {
            return s;
        }
    }
    return NULL;
}

static void add(struct symbol value) {
    struct symbol *s = malloc(sizeof *s);
    if (!s) {
        return; /* the kernel stays unknown, and its launch reports it */
    }
    *s = value;
    pthread_mutex_lock(&lock);
    s->next = *bucket(s->host);
    *bucket(s->host) = s;
    pthread_mutex_unlock(&lock);
}

RT_EXPORT void **__cudaRegisterFatBinary(void *image);
RT_EXPORT void **__cudaRegisterFatBinary(void *image) {
    struct module *m = calloc(1, sizeof *m);
    if (m) {
        m->image = ((struct fatbin_wrapper *)image)->data;
    }
    return (void **)m;
}

RT_EXPORT void __cudaRegisterFatBinaryEnd(void **handle);
RT_EXPORT void __cudaRegisterFatBinaryEnd(void **handle) {
    (void)handle;
}

RT_EXPORT char __cudaInitModule(void **handle);
RT_EXPORT char __cudaInitModule(void **handle) {
    return handle != NULL;
}

RT_EXPORT void __cudaRegisterFunction(void **handle, const char *host, char *device,
                                      const char *name, int thread_limit, void *tid, void *bid,
                                      void *block, void *grid, int *warp);
RT_EXPORT void __cudaRegisterFunction(void **handle, const char *host, char *device,
                                      const char *name, int thread_limit, void *tid, void *bid,
                                      void *block, void *grid, int *warp) {
    (void)device, (void)thread_limit, (void)tid, (void)bid, (void)block, (void)grid, (void)warp;
    add((struct symbol){.host = host, .name = name, .module = (struct module *)handle});
}

RT_EXPORT void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int ext,
                                 size_t bytes, int constant, int global);
RT_EXPORT void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int ext,
                                 size_t bytes, int constant, int global) {
    (void)device, (void)ext, (void)constant, (void)global;
    add((struct symbol){.host = host,
                        .name = name,
                        .module = (struct module *)handle,
                        .variable = true,
                        .bytes = bytes});
}

RT_EXPORT void __cudaUnregisterFatBinary(void **handle);
RT_EXPORT void __cudaUnregisterFatBinary(void **handle) {
    struct module *m = (struct module *)handle;
    if (!m) {
        return;
    }
    pthread_mutex_lock(&lock);
    for (int i = 0; i < BUCKETS; i++) {
        for (struct symbol **at = &symbols[i]; *at;) {
            struct symbol *s = *at;
            if (s->module == m) {
                *at = s->next;
                free(s);
            } else {
                at = &s->next;
            }
        }
    }
    CUlibrary library = m->library;
    pthread_mutex_unlock(&lock);
    CUresult why;
    const struct rt_driver *d = library ? rt_driver(RT_LEGACY, &why) : NULL;
    if (d) {
        RT_CALL(d, cuLibraryUnload, library);
    }
    free(m);
}

/* Loads the image of a symbol if needed. Under `lock`. */
static CUresult load(const struct rt_driver *d, struct module *m) {
    if (m->library) {
        return CUDA_SUCCESS;
    }
    return RT_CALL(d, cuLibraryLoadData, &m->library, m->image, NULL, NULL, 0, NULL, NULL, 0);
}

cudaError_t rt_kernel(const void *function, const struct rt_driver *d, CUkernel *kernel) {
    CUresult r = CUDA_SUCCESS;
    pthread_mutex_lock(&lock);
    struct symbol *s = find(function, false);
    if (s && !s->kernel) {
        r = load(d, s->module);
        if (r == CUDA_SUCCESS) {
            r = RT_CALL(d, cuLibraryGetKernel, &s->kernel, s->module->library, s->name);
        }
        if (r == CUDA_ERROR_NOT_FOUND) {
            fprintf(stderr, "cusim: the CPU has no form of kernel %s (see kernels/README.md)\n",
                    s->name);
        }
    }
    *kernel = s ? s->kernel : NULL;
    pthread_mutex_unlock(&lock);
    if (!s) {
        return cudaErrorInvalidResourceHandle; /* as on an H200: the address could be a handle */
    }
    return r == CUDA_ERROR_NOT_FOUND ? cudaErrorInvalidDeviceFunction : rt_error(r);
}

cudaError_t rt_kernel_add(CUkernel kernel) {
    pthread_mutex_lock(&lock);
    bool known = find(kernel, false);
    pthread_mutex_unlock(&lock);
    if (!known) {
        add((struct symbol){.host = kernel, .name = "", .kernel = kernel});
    }
    return cudaSuccess;
}

static cudaError_t variable(const void *host, const struct rt_driver *d, CUdeviceptr *at,
                            size_t *bytes) {
    pthread_mutex_lock(&lock);
    struct symbol *s = find(host, true);
    CUresult r = s ? load(d, s->module) : CUDA_ERROR_NOT_FOUND;
    if (r == CUDA_SUCCESS) {
        r = RT_CALL(d, cuLibraryGetGlobal, at, bytes, s->module->library, s->name);
    }
    pthread_mutex_unlock(&lock);
    return r == CUDA_ERROR_NOT_FOUND ? cudaErrorInvalidSymbol : rt_error(r);
}

static cudaError_t enter_variable(const struct rt_driver **d, const void *symbol, CUdeviceptr *at,
                                  size_t *bytes) {
    cudaError_t error = rt_enter(d, RT_LEGACY);
    return error ? error : variable(symbol, *d, at, bytes);
}

RT_EXPORT cudaError_t cudaGetSymbolAddress(void **p, const void *symbol) {
    const struct rt_driver *d;
    size_t bytes;
    return rt_leave(enter_variable(&d, symbol, (CUdeviceptr *)p, &bytes));
}

RT_EXPORT cudaError_t cudaGetSymbolSize(size_t *bytes, const void *symbol) {
    const struct rt_driver *d;
    CUdeviceptr at;
    return rt_leave(enter_variable(&d, symbol, &at, bytes));
}

RT_EXPORT cudaError_t cudaMemcpyToSymbol(const void *symbol, const void *from, size_t bytes,
                                         size_t offset, enum cudaMemcpyKind kind) {
    const struct rt_driver *d;
    CUdeviceptr at;
    size_t room;
    cudaError_t error = enter_variable(&d, symbol, &at, &room);
    if (!error && (offset > room || bytes > room - offset)) {
        error = cudaErrorInvalidValue;
    }
    return error ? rt_leave(error) : cudaMemcpy((void *)(at + offset), from, bytes, kind);
}

RT_EXPORT cudaError_t cudaMemcpyFromSymbol(void *to, const void *symbol, size_t bytes,
                                           size_t offset, enum cudaMemcpyKind kind) {
    const struct rt_driver *d;
    CUdeviceptr at;
    size_t room;
    cudaError_t error = enter_variable(&d, symbol, &at, &room);
    if (!error && (offset > room || bytes > room - offset)) {
        error = cudaErrorInvalidValue;
    }
    return error ? rt_leave(error) : cudaMemcpy(to, (void *)(at + offset), bytes, kind);
}
