/*
 * How a CPU-compiled kernel becomes known to the simulated driver.
 *
 * libcusim_kernels.so holds one list of `struct cusim_kernel`. Each kernel file adds its entries in
 * a constructor by cusim_kernel_register(). The simulated libcuda.so.1 opens that library from its
 * own folder (or the file CUSIM_KERNELS) and reads the list's head, `cusim_kernel_head`, by dlsym.
 * C and C++ may include this header; it needs no CUDA and calls no driver.
 */
#ifndef CUSIM_KERNEL_H
#define CUSIM_KERNEL_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct cusim_kernel {
    const char *name;       /* the name for cuModuleGetFunction and cuLibraryGetKernel */
    unsigned n_params;      /* number of arguments */
    const unsigned *offset; /* byte offset of each argument in the packed argument buffer */
    const unsigned *size;   /* bytes of each argument */
    /* The largest dynamic shared memory that the function attribute may allow, in bytes; 0: the
     * device's limit. */
    unsigned max_dynamic_smem;
    /* Runs the whole grid, and returns when its last thread is done. Called on a stream's
     * thread, without any lock of the simulator; kernels of different streams run at the same
     * time. params[i] points to the i-th argument. */
    void (*run)(const unsigned grid[3], const unsigned block[3], unsigned smem_bytes,
                void **params);

    /* All fields below may be zero. */
    unsigned static_smem; /* bytes of static shared memory, as cuFuncGetAttribute reports them */
    unsigned max_threads; /* launch bound on threads of a block; 0: 1024 */
    unsigned block[3];    /* the only block that it was compiled for (.reqntid); 0: any */
    unsigned cluster[3];  /* cluster dimensions that the kernel was compiled with; 0: none */
    unsigned local_bytes; /* local memory of a thread, as cuFuncGetAttribute reports it */
    struct cusim_kernel *next; /* owned by the list */
};

/* What the simulator answers a kernel on the thread that runs it. */
struct cusim_calls {
    /* Called before each block: which of the n blocks runs as the i-th. May pause. */
    size_t (*block)(size_t i, size_t n);
    /* As cudaTriggerProgrammaticLaunchCompletion and cudaGridDependencySynchronize. */
    void (*trigger)(void);
    void (*wait)(void);
};

/* The simulator sets it when it opens the library; NULL in programs without the simulator. */
__attribute__((weak, visibility("default"))) const struct cusim_calls *cusim_kernel_calls;

/* One list per shared object: the linker merges the weak definitions of all its files. */
__attribute__((weak, visibility("default"))) struct cusim_kernel *cusim_kernel_head;

/* Called from constructors, which run one after another, so no lock is needed. The entry must
 * live for ever. */
static inline void cusim_kernel_register(struct cusim_kernel *kernel) {
    kernel->next = cusim_kernel_head;
    cusim_kernel_head = kernel;
}

#ifdef __cplusplus
}
#endif

#endif
