/*
 * Launches of the libcudart stand-in: the two halves of <<<>>>, the calls of nvcc's stubs in CUDA
 * 13 (__cudaGetKernel once, then __cudaLaunchKernel), and the public calls. Any thread. The only
 * state is the configuration that a thread has pushed.
 */
#include <stdlib.h>

#include "harness/sim/rt/rt.h"

#define DEPTH 16

static _Thread_local struct configuration {
    dim3 grid, block;
    size_t shared;
    cudaStream_t stream;
} pushed[DEPTH];
static _Thread_local int depth;

RT_EXPORT unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared,
                                               cudaStream_t stream);
RT_EXPORT unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared,
                                               cudaStream_t stream) {
    if (depth == DEPTH) {
        return (unsigned)rt_leave(cudaErrorMissingConfiguration);
    }
    pushed[depth++] = (struct configuration){grid, block, shared, stream};
    return 0;
}

RT_EXPORT cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared,
                                                 void *stream);
RT_EXPORT cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared,
                                                 void *stream) {
    if (depth == 0) {
        return rt_leave(cudaErrorMissingConfiguration);
    }
    struct configuration *c = &pushed[--depth];
    *grid = c->grid;
    *block = c->block;
    *shared = c->shared;
    *(cudaStream_t *)stream = c->stream;
    return cudaSuccess;
}

static cudaError_t get_kernel(cudaKernel_t *kernel, const void *function) {
    const struct rt_driver *d;
    cudaError_t error = rt_enter(&d, RT_LEGACY);
    return rt_leave(error ? error : rt_kernel(function, d, (CUkernel *)kernel));
}

RT_EXPORT cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *function);
RT_EXPORT cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *function) {
    return get_kernel(kernel, function);
}

RT_EXPORT cudaError_t cudaGetKernel(cudaKernel_t *kernel, const void *function) {
    return get_kernel(kernel, function);
}

RT_EXPORT cudaError_t cudaGetFuncBySymbol(cudaFunction_t *out, const void *function) {
    const struct rt_driver *d;
    CUkernel kernel;
    cudaError_t error = rt_enter(&d, RT_LEGACY);
    if (!error) {
        error = rt_kernel(function, d, &kernel);
    }
    return rt_leave(error ? error : rt_error(RT_CALL(d, cuKernelGetFunction, out, kernel)));
}

/* How a launch reaches the driver. */
enum how { PLAIN, COOPERATIVE };

static cudaStream_t named(cudaStream_t stream) {
    return rt_strange() && !stream ? cudaStreamLegacy : stream;
}

static cudaError_t launch(const struct rt_driver *d, enum how how, CUkernel kernel, dim3 grid,
                          dim3 block, void **params, size_t shared, cudaStream_t stream) {
    CUfunction f = (CUfunction)kernel;
    if (!kernel) {
        return cudaErrorInvalidResourceHandle;
    }
    if (shared >> 32) { /* no driver call can express that */
        return cudaErrorInvalidValue;
    }
    stream = named(stream);
    CUresult r = how == COOPERATIVE
                     ? RT_CALL(d, cuLaunchCooperativeKernel, f, grid.x, grid.y, grid.z, block.x,
                               block.y, block.z, (unsigned)shared, stream, params)
                     : RT_CALL(d, cuLaunchKernel, f, grid.x, grid.y, grid.z, block.x, block.y,
                               block.z, (unsigned)shared, stream, params, NULL);
    return rt_error(r);
}

static cudaError_t launch_kernel(enum rt_zero zero, cudaKernel_t kernel, dim3 grid, dim3 block,
                                 void **params, size_t shared, cudaStream_t stream) {
    const struct rt_driver *d;
    cudaError_t error = rt_enter(&d, zero);
    return rt_leave(
        error ? error : launch(d, PLAIN, (CUkernel)kernel, grid, block, params, shared, stream));
}

static cudaError_t launch_function(enum rt_zero zero, enum how how, const void *function, dim3 grid,
                                   dim3 block, void **params, size_t shared, cudaStream_t stream) {
    const struct rt_driver *d;
    CUkernel kernel;
    cudaError_t error = rt_enter(&d, zero);
    if (!error) {
        error = rt_kernel(function, d, &kernel);
    }
    return rt_leave(error ? error : launch(d, how, kernel, grid, block, params, shared, stream));
}

static cudaError_t launch_config(enum rt_zero zero, const cudaLaunchConfig_t *c,
                                 const void *function, void **params) {
    const struct rt_driver *d;
    CUkernel kernel;
    cudaError_t error = rt_enter(&d, zero);
    if (!error) {
        error = rt_kernel(function, d, &kernel);
    }
    if (error) {
        return rt_leave(error);
    }
    CUlaunchConfig config = {
        .gridDimX = c->gridDim.x,
        .gridDimY = c->gridDim.y,
        .gridDimZ = c->gridDim.z,
        .blockDimX = c->blockDim.x,
        .blockDimY = c->blockDim.y,
        .blockDimZ = c->blockDim.z,
        .sharedMemBytes = (unsigned)c->dynamicSmemBytes,
        .hStream = c->stream,
        .attrs = (CUlaunchAttribute *)c->attrs,
        .numAttrs = c->numAttrs,
    };
    return rt_leave(
        rt_error(RT_CALL(d, cuLaunchKernelEx, &config, (CUfunction)kernel, params, NULL)));
}

#define LAUNCH_PARAMS dim3 grid, dim3 block, void **params, size_t shared, cudaStream_t stream
#define LAUNCHES(suffix, zero)                                                                     \
    RT_EXPORT cudaError_t __cudaLaunchKernel##suffix(cudaKernel_t kernel, LAUNCH_PARAMS);          \
    RT_EXPORT cudaError_t __cudaLaunchKernel##suffix(cudaKernel_t kernel, LAUNCH_PARAMS) {         \
        return launch_kernel(zero, kernel, grid, block, params, shared, stream);                   \
    }                                                                                              \
    RT_EXPORT cudaError_t cudaLaunchKernel##suffix(const void *function, LAUNCH_PARAMS);           \
    RT_EXPORT cudaError_t cudaLaunchKernel##suffix(const void *function, LAUNCH_PARAMS) {          \
        return launch_function(zero, PLAIN, function, grid, block, params, shared, stream);        \
    }                                                                                              \
    RT_EXPORT cudaError_t cudaLaunchCooperativeKernel##suffix(const void *function,                \
                                                              LAUNCH_PARAMS);                      \
    RT_EXPORT cudaError_t cudaLaunchCooperativeKernel##suffix(const void *function,                \
                                                              LAUNCH_PARAMS) {                     \
        return launch_function(zero, COOPERATIVE, function, grid, block, params, shared, stream);  \
    }                                                                                              \
    RT_EXPORT cudaError_t cudaLaunchKernelExC##suffix(const cudaLaunchConfig_t *config,            \
                                                      const void *function, void **params);        \
    RT_EXPORT cudaError_t cudaLaunchKernelExC##suffix(const cudaLaunchConfig_t *config,            \
                                                      const void *function, void **params) {       \
        return launch_config(zero, config, function, params);                                      \
    }

LAUNCHES(, RT_LEGACY)
LAUNCHES(_ptsz, RT_PER_THREAD)
