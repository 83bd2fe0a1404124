/*
 * Attributes and settings of functions; occupancy.
 *
 * Any thread, under cusim.lock. The Func calls accept only CUfunction, the Kernel calls only
 * CUkernel; occupancy accepts both, as launches do. A value of a CUfunction overrides the value of
 * its CUkernel.
 */
#include "harness/sim/cusim.h"

enum { SMEM_STANDARD = 49152, SMEM_OPTIN = 232448, SMEM_SM = 233472, SMEM_RESERVED = 1024 };

unsigned cusim_kernel_blob_bytes(const struct cusim_kernel *kernel) {
    unsigned bytes = 0;
    for (unsigned i = 0; i < kernel->n_params; i++)
        if (kernel->offset[i] + kernel->size[i] > bytes)
            bytes = kernel->offset[i] + kernel->size[i];
    return bytes;
}

static unsigned smem_most(const struct cusim_kernel *kernel) {
    unsigned most = SMEM_OPTIN - kernel->static_smem;
    return kernel->max_dynamic_smem && kernel->max_dynamic_smem < most ? kernel->max_dynamic_smem
                                                                       : most;
}

unsigned cusim_func_smem_limit(const struct cusim_func *func) {
    if (func->max_dynamic_smem >= 0)
        return (unsigned)func->max_dynamic_smem;
    int ordinal = func->ctx->device->ordinal;
    if (func->kern && func->kern->max_dynamic_smem[ordinal] >= 0)
        return (unsigned)func->kern->max_dynamic_smem[ordinal];
    return SMEM_STANDARD - func->kernel->static_smem;
}

unsigned cusim_kernel_max_threads(const struct cusim_kernel *kernel) {
    return kernel->max_threads ? kernel->max_threads : 1024;
}

static CUresult attribute_of(int *value, CUfunction_attribute attribute,
                             const struct cusim_kernel *kernel, int dynamic_smem, int carveout,
                             int nonportable) {
    if (!value)
        return CUDA_ERROR_INVALID_VALUE;
    switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        *value = (int)cusim_kernel_max_threads(kernel);
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
        *value = (int)kernel->static_smem;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
        *value = (int)kernel->local_bytes;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
        *value = 32;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
        *value = 90;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        *value = dynamic_smem;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        *value = carveout;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET:
        *value = kernel->cluster[0] != 0;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
        *value = (int)kernel->cluster[attribute - CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH];
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
        *value = nonportable > 0;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
    case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA:
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        *value = 0;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

static CUresult set_attribute(CUfunction_attribute attribute, int value,
                              const struct cusim_kernel *kernel, int *dynamic_smem, int *carveout,
                              int *nonportable) {
    switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        if (value < 0 || (unsigned)value > smem_most(kernel))
            return CUDA_ERROR_INVALID_VALUE;
        *dynamic_smem = value;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        if (value < -1 || value > 100)
            return CUDA_ERROR_INVALID_VALUE;
        *carveout = value;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
        *nonportable = value;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUSIM_LOCKED(cuFuncGetAttribute, (int *value, CUfunction_attribute attribute, CUfunction handle),
             (value, attribute, handle)) {
    if (!cusim_handle_is(handle, CUSIM_FUNC))
        return CUDA_ERROR_INVALID_HANDLE;
    struct cusim_func *f = (struct cusim_func *)handle;
    return attribute_of(value, attribute, f->kernel, (int)cusim_func_smem_limit(f), f->carveout,
                        f->cluster_nonportable);
}

CUSIM_LOCKED(cuFuncSetAttribute, (CUfunction handle, CUfunction_attribute attribute, int value),
             (handle, attribute, value)) {
    if (!cusim_handle_is(handle, CUSIM_FUNC))
        return CUDA_ERROR_INVALID_HANDLE;
    struct cusim_func *f = (struct cusim_func *)handle;
    return set_attribute(attribute, value, f->kernel, &f->max_dynamic_smem, &f->carveout,
                         &f->cluster_nonportable);
}

CUSIM_LOCKED(cuKernelGetAttribute,
             (int *value, CUfunction_attribute attribute, CUkernel handle, CUdevice device),
             (value, attribute, handle, device)) {
    if (!cusim_handle_is(handle, CUSIM_KERNEL))
        return CUDA_ERROR_INVALID_HANDLE;
    if (!cusim_device_get(device))
        return CUDA_ERROR_INVALID_DEVICE;
    struct cusim_kern *k = (struct cusim_kern *)handle;
    int dynamic = k->max_dynamic_smem[device];
    if (dynamic < 0)
        dynamic = (int)(SMEM_STANDARD - k->kernel->static_smem);
    return attribute_of(value, attribute, k->kernel, dynamic, k->carveout, k->cluster_nonportable);
}

CUSIM_LOCKED(cuKernelSetAttribute,
             (CUfunction_attribute attribute, int value, CUkernel handle, CUdevice device),
             (attribute, value, handle, device)) {
    if (!cusim_handle_is(handle, CUSIM_KERNEL))
        return CUDA_ERROR_INVALID_HANDLE;
    if (!cusim_device_get(device))
        return CUDA_ERROR_INVALID_DEVICE;
    struct cusim_kern *k = (struct cusim_kern *)handle;
    return set_attribute(attribute, value, k->kernel, &k->max_dynamic_smem[device], &k->carveout,
                         &k->cluster_nonportable);
}

CUSIM_LOCKED(cuFuncGetName, (const char **name, CUfunction handle), (name, handle)) {
    if (!cusim_handle_is(handle, CUSIM_FUNC))
        return CUDA_ERROR_INVALID_HANDLE;
    *name = ((struct cusim_func *)handle)->kernel->name;
    return CUDA_SUCCESS;
}

CUSIM_LOCKED(cuKernelGetName, (const char **name, CUkernel handle), (name, handle)) {
    if (!cusim_handle_is(handle, CUSIM_KERNEL))
        return CUDA_ERROR_INVALID_HANDLE;
    *name = ((struct cusim_kern *)handle)->kernel->name;
    return CUDA_SUCCESS;
}

static CUresult param_info(const struct cusim_kernel *kernel, size_t index, size_t *offset,
                           size_t *size) {
    if (index >= kernel->n_params)
        return CUDA_ERROR_INVALID_VALUE;
    if (offset)
        *offset = kernel->offset[index];
    if (size)
        *size = kernel->size[index];
    return CUDA_SUCCESS;
}

CUSIM_LOCKED(cuFuncGetParamInfo, (CUfunction handle, size_t index, size_t *offset, size_t *size),
             (handle, index, offset, size)) {
    if (!cusim_handle_is(handle, CUSIM_FUNC))
        return CUDA_ERROR_INVALID_HANDLE;
    return param_info(((struct cusim_func *)handle)->kernel, index, offset, size);
}

CUSIM_LOCKED(cuKernelGetParamInfo, (CUkernel handle, size_t index, size_t *offset, size_t *size),
             (handle, index, offset, size)) {
    if (!cusim_handle_is(handle, CUSIM_KERNEL))
        return CUDA_ERROR_INVALID_HANDLE;
    return param_info(((struct cusim_kern *)handle)->kernel, index, offset, size);
}

CUSIM_LOCKED(cuFuncSetCacheConfig, (CUfunction handle, CUfunc_cache config), (handle, config)) {
    (void)config;
    return cusim_handle_is(handle, CUSIM_FUNC) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUSIM_LOCKED(cuFuncSetSharedMemConfig, (CUfunction handle, CUsharedconfig config),
             (handle, config)) {
    (void)config;
    return cusim_handle_is(handle, CUSIM_FUNC) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUSIM_LOCKED(cuKernelSetCacheConfig, (CUkernel handle, CUfunc_cache config, CUdevice device),
             (handle, config, device)) {
    (void)config, (void)device;
    return cusim_handle_is(handle, CUSIM_KERNEL) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUSIM_LOCKED(cuFuncIsLoaded, (CUfunctionLoadingState * state, CUfunction handle), (state, handle)) {
    if (!cusim_handle_is(handle, CUSIM_FUNC))
        return CUDA_ERROR_INVALID_HANDLE;
    *state = ((struct cusim_func *)handle)->loaded ? CU_FUNCTION_LOADING_STATE_LOADED
                                                   : CU_FUNCTION_LOADING_STATE_UNLOADED;
    return CUDA_SUCCESS;
}

CUSIM_LOCKED(cuFuncLoad, (CUfunction handle), (handle)) {
    if (!cusim_handle_is(handle, CUSIM_FUNC))
        return CUDA_ERROR_INVALID_HANDLE;
    ((struct cusim_func *)handle)->loaded = true;
    return CUDA_SUCCESS;
}

/* ---- occupancy ---- */

int cusim_blocks_per_sm(const struct cusim_kernel *kernel, int threads, size_t smem) {
    if (threads <= 0 || (unsigned)threads > cusim_kernel_max_threads(kernel))
        return 0;
    int warps = (threads + 31) / 32;
    int blocks = 64 / warps;                 /* 2048 threads */
    int by_regs = 65536 / (warps * 32 * 32); /* 32 registers a thread */
    int by_smem = (int)(SMEM_SM / (smem + kernel->static_smem + SMEM_RESERVED));
    blocks = blocks < by_regs ? blocks : by_regs;
    blocks = blocks < by_smem ? blocks : by_smem;
    return blocks < 32 ? blocks : 32;
}

static CUresult kernel_of(CUfunction handle, const struct cusim_kernel **kernel) {
    if (cusim_handle_is(handle, CUSIM_FUNC))
        *kernel = ((struct cusim_func *)handle)->kernel;
    else if (cusim_handle_is(handle, CUSIM_KERNEL))
        *kernel = ((struct cusim_kern *)handle)->kernel;
    else
        return CUDA_ERROR_INVALID_HANDLE;
    return CUDA_SUCCESS;
}

static CUresult active_blocks(int *blocks, CUfunction handle, int threads, size_t smem) {
    const struct cusim_kernel *kernel;
    CUresult result = kernel_of(handle, &kernel);
    if (result == CUDA_SUCCESS && (!blocks || threads <= 0))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        *blocks = cusim_blocks_per_sm(kernel, threads, smem);
    return result;
}

CUSIM_LOCKED(cuOccupancyMaxActiveBlocksPerMultiprocessor,
             (int *blocks, CUfunction handle, int threads, size_t smem),
             (blocks, handle, threads, smem)) {
    return active_blocks(blocks, handle, threads, smem);
}

CUSIM_LOCKED(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
             (int *blocks, CUfunction handle, int threads, size_t smem, unsigned flags),
             (blocks, handle, threads, smem, flags)) {
    (void)flags;
    return active_blocks(blocks, handle, threads, smem);
}

static CUresult potential(int *grid, int *block, CUfunction handle, CUoccupancyB2DSize size_of,
                          size_t smem, int limit) {
    const struct cusim_kernel *kernel;
    cusim_lock();
    CUresult result = kernel_of(handle, &kernel);
    cusim_unlock();
    if (result != CUDA_SUCCESS)
        return result;
    if (!grid || !block)
        return CUDA_ERROR_INVALID_VALUE;
    int most = (int)cusim_kernel_max_threads(kernel), best = 0;
    if (limit > 0 && limit < most)
        most = limit;
    *block = most;
    for (int threads = most; threads > 0; threads -= 32) {
        size_t bytes = size_of ? size_of(threads) : smem; /* the program's: no lock held */
        int blocks = cusim_blocks_per_sm(kernel, threads, bytes);
        if (blocks * threads > best) {
            best = blocks * threads;
            *block = threads;
            *grid = blocks * 132;
        }
    }
    return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxPotentialBlockSize(int *grid, int *block, CUfunction handle,
                                          CUoccupancyB2DSize size_of, size_t smem, int limit) {
    CUSIM_ENTER(cuOccupancyMaxPotentialBlockSize);
    return potential(grid, block, handle, size_of, smem, limit);
}

CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int *grid, int *block, CUfunction handle,
                                                   CUoccupancyB2DSize size_of, size_t smem,
                                                   int limit, unsigned flags) {
    CUSIM_ENTER(cuOccupancyMaxPotentialBlockSizeWithFlags);
    (void)flags;
    return potential(grid, block, handle, size_of, smem, limit);
}

CUSIM_LOCKED(cuOccupancyAvailableDynamicSMemPerBlock,
             (size_t * bytes, CUfunction handle, int blocks, int threads),
             (bytes, handle, blocks, threads)) {
    const struct cusim_kernel *kernel;
    CUresult result = kernel_of(handle, &kernel);
    if (result != CUDA_SUCCESS)
        return result;
    if (!bytes || blocks <= 0 || threads <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    long room = SMEM_SM / blocks - SMEM_RESERVED - (long)kernel->static_smem;
    *bytes = room > 0 ? (size_t)room : 0;
    return CUDA_SUCCESS;
}

CUSIM_LOCKED(cuOccupancyMaxActiveClusters,
             (int *clusters, CUfunction handle, const CUlaunchConfig *config),
             (clusters, handle, config)) {
    const struct cusim_kernel *kernel;
    CUresult result = kernel_of(handle, &kernel);
    if (result != CUDA_SUCCESS)
        return result;
    if (!clusters || !config)
        return CUDA_ERROR_INVALID_VALUE;
    *clusters = 132 / 8;
    return CUDA_SUCCESS;
}

CUSIM_LOCKED(cuOccupancyMaxPotentialClusterSize,
             (int *size, CUfunction handle, const CUlaunchConfig *config), (size, handle, config)) {
    const struct cusim_kernel *kernel;
    CUresult result = kernel_of(handle, &kernel);
    if (result != CUDA_SUCCESS)
        return result;
    if (!size || !config)
        return CUDA_ERROR_INVALID_VALUE;
    *size = 8;
    return CUDA_SUCCESS;
}
