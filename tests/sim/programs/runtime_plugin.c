/*
 * See the header. Any thread; the handle of the kernel is asked for once.
 */
#include "tests/sim/programs/runtime_plugin.h"

#include <stddef.h>

#define PUBLIC __attribute__((visibility("default")))

/* What nvcc's host code calls; in no header. */
extern void **__cudaRegisterFatBinary(void *image);
extern void __cudaRegisterFatBinaryEnd(void **handle);
extern void __cudaUnregisterFatBinary(void **handle);
extern void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
                                   int thread_limit, void *tid, void *bid, void *block, void *grid,
                                   int *warp);
extern unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared,
                                            cudaStream_t stream);
extern unsigned __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared,
                                           cudaStream_t *stream);
#ifdef RUNTIME_HANDLES
extern cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *function);
#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
#define __cudaLaunchKernel __cudaLaunchKernel_ptsz
#endif
extern cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **params,
                                      size_t shared, cudaStream_t stream);
#endif

static struct {
    int magic, version;
    const void *data;
    void *file;
} image = {0x466243b1, 1, &image, NULL};

static void **registered;

static void stands_for_the_kernel(void) {}

__attribute__((constructor)) static void enter(void) {
    registered = __cudaRegisterFatBinary(&image);
    __cudaRegisterFunction(registered, (const char *)stands_for_the_kernel, KERNEL, KERNEL, -1,
                           NULL, NULL, NULL, NULL, NULL);
    __cudaRegisterFatBinaryEnd(registered);
}

/* Where it stays registered, the driver does not hear that the object goes. */
#ifdef RUNTIME_STAYS
static volatile int stays = 1;
#else
static volatile int stays = 0;
#endif

__attribute__((destructor)) static void leave(void) {
    if (!stays)
        __cudaUnregisterFatBinary(registered);
}

static void stub(void **params) {
    dim3 grid, block;
    size_t shared;
    cudaStream_t stream;
    if (__cudaPopCallConfiguration(&grid, &block, &shared, &stream) == 0)
        cudaLaunchKernel((const void *)stands_for_the_kernel, grid, block, params, shared, stream);
}

/* KERNEL<<<grid, block, 0, stream>>>(x, another launch's value, n): the other one comes between. */
static cudaError_t by_stub(dim3 grid, dim3 block, void **params, cudaStream_t stream) {
    if (__cudaPushCallConfiguration(grid, block, 0, stream))
        return cudaGetLastError();
    if (grid.x && !__cudaPushCallConfiguration(block, grid, 16, NULL)) {
        dim3 inner_grid, inner_block;
        size_t inner_shared;
        cudaStream_t inner_stream;
        if (__cudaPopCallConfiguration(&inner_grid, &inner_block, &inner_shared, &inner_stream) ||
            inner_grid.x != block.x || inner_block.x != grid.x || inner_shared != 16 ||
            inner_stream)
            return cudaErrorUnknown;
    }
    stub(params);
    return cudaSuccess;
}

static cudaError_t launch(enum form form, void *x, int value, int n, unsigned blocks,
                          cudaStream_t stream) {
    void *params[] = {&x, &value, &n};
    const void *function = (const void *)stands_for_the_kernel;
    const dim3 grid = {blocks, 1, 1}, block = {64, 1, 1};
    cudaLaunchAttribute attribute = {.id = cudaLaunchAttributeClusterDimension,
                                     .val.clusterDim = {1, 1, 1}};
    const cudaLaunchConfig_t config = {.gridDim = grid,
                                       .blockDim = block,
                                       .stream = stream,
                                       .attrs = &attribute,
                                       .numAttrs = form == BY_ATTRIBUTE};
    switch (form) {
#ifdef RUNTIME_HANDLES
    case BY_HANDLE: {
        cudaKernel_t handle;
        cudaError_t error = __cudaGetKernel(&handle, function);
        return error ? error : __cudaLaunchKernel(handle, grid, block, params, 0, stream);
    }
#endif
    case BY_STUB:
        return by_stub(grid, block, params, stream);
    case BY_CONFIG:
    case BY_ATTRIBUTE:
        return cudaLaunchKernelExC(&config, function, params);
    default:
        return cudaLaunchKernel(function, grid, block, params, 0, stream);
    }
}

PUBLIC const struct plugin *runtime_plugin(void) {
    static const struct plugin plugin = {launch, cudaPeekAtLastError,
                                         (const void *)stands_for_the_kernel};
    return &plugin;
}
