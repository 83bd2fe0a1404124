/*
 * An object with one kernel, registered with its runtime as nvcc's host code does. It is compiled
 * into a program and into shared libraries that differ only in `KERNEL`, so one library can replace
 * a closed one.
 */
#ifndef TESTS_SIM_PROGRAMS_RUNTIME_PLUGIN_H
#define TESTS_SIM_PROGRAMS_RUNTIME_PLUGIN_H

#include <cuda_runtime_api.h>

/* How the launch is asked for. */
enum form { BY_FUNCTION, BY_HANDLE, BY_CONFIG, BY_ATTRIBUTE, BY_STUB, FORMS };

struct plugin {
    /* KERNEL(x, value, n): in blocks of 64, `blocks` of them. */
    cudaError_t (*launch)(enum form form, void *x, int value, int n, unsigned blocks,
                          cudaStream_t stream);
    cudaError_t (*peek)(void); /* this runtime's last error, which stays */
    const void *function;      /* that stands for the kernel */
};
typedef const struct plugin *plugin_fn(void);
const struct plugin *runtime_plugin(void);

#endif
