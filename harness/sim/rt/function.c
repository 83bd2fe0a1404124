/*
 * Queries about kernels, libraries that the program loads itself, and the driver's entry points.
 * Any thread, no state.
 */
#include <string.h>

#include "harness/sim/rt/rt.h"

static cudaError_t enter_kernel(const struct rt_driver **d, const void *function,
                                CUkernel *kernel) {
    cudaError_t error = rt_enter(d, RT_LEGACY);
    return error ? error : rt_kernel(function, *d, kernel);
}

RT_EXPORT cudaError_t cudaFuncSetAttribute(const void *function, enum cudaFuncAttribute which,
                                           int value) {
    const struct rt_driver *d;
    CUkernel kernel;
    cudaError_t error = enter_kernel(&d, function, &kernel);
    return rt_leave(error ? error
                          : rt_error(RT_CALL(d, cuKernelSetAttribute, (CUfunction_attribute)which,
                                             value, kernel, rt_device())));
}

RT_EXPORT cudaError_t cudaFuncSetCacheConfig(const void *function, enum cudaFuncCache config) {
    const struct rt_driver *d;
    CUkernel kernel;
    cudaError_t error = enter_kernel(&d, function, &kernel);
    return rt_leave(error ? error
                          : rt_error(RT_CALL(d, cuKernelSetCacheConfig, kernel,
                                             (CUfunc_cache)config, rt_device())));
}

static int attribute(const struct rt_driver *d, CUkernel kernel, CUfunction_attribute which) {
    int value = 0;
    CUresult r = RT_CALL(d, cuKernelGetAttribute, &value, which, kernel, rt_device());
    return r == CUDA_SUCCESS ? value : 0;
}

RT_EXPORT cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *a, const void *function) {
    const struct rt_driver *d;
    CUkernel kernel;
    cudaError_t error = enter_kernel(&d, function, &kernel);
    if (error) {
        return rt_leave(error);
    }
    memset(a, 0, sizeof *a);
    a->sharedSizeBytes = (size_t)attribute(d, kernel, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
    a->constSizeBytes = (size_t)attribute(d, kernel, CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES);
    a->localSizeBytes = (size_t)attribute(d, kernel, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
    a->maxThreadsPerBlock = attribute(d, kernel, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    a->numRegs = attribute(d, kernel, CU_FUNC_ATTRIBUTE_NUM_REGS);
    a->ptxVersion = attribute(d, kernel, CU_FUNC_ATTRIBUTE_PTX_VERSION);
    a->binaryVersion = attribute(d, kernel, CU_FUNC_ATTRIBUTE_BINARY_VERSION);
    a->maxDynamicSharedSizeBytes =
        attribute(d, kernel, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
    a->preferredShmemCarveout =
        attribute(d, kernel, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT);
    return cudaSuccess;
}

RT_EXPORT cudaError_t cudaFuncGetName(const char **name, const void *function) {
    const struct rt_driver *d;
    CUkernel kernel;
    cudaError_t error = enter_kernel(&d, function, &kernel);
    return rt_leave(error ? error : rt_error(RT_CALL(d, cuKernelGetName, name, kernel)));
}

RT_EXPORT cudaError_t cudaFuncGetParamInfo(const void *function, size_t index, size_t *offset,
                                           size_t *bytes) {
    const struct rt_driver *d;
    CUkernel kernel;
    cudaError_t error = enter_kernel(&d, function, &kernel);
    return rt_leave(
        error ? error : rt_error(RT_CALL(d, cuKernelGetParamInfo, kernel, index, offset, bytes)));
}

RT_EXPORT cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int *blocks, const void *function, int threads, size_t shared, unsigned int flags) {
    const struct rt_driver *d;
    CUkernel kernel;
    cudaError_t error = enter_kernel(&d, function, &kernel);
    return rt_leave(error
                        ? error
                        : rt_error(RT_CALL(d, cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
                                           blocks, (CUfunction)kernel, threads, shared, flags)));
}

RT_EXPORT cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks,
                                                                    const void *function,
                                                                    int threads, size_t shared) {
    return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, threads, shared,
                                                                  0);
}

RT_FUNCTION(cudaLibraryLoadData,
            (cudaLibrary_t * library, const void *code, enum cudaJitOption *jit, void **jit_values,
             unsigned int jit_count, enum cudaLibraryOption *options, void **values,
             unsigned int count),
            RT_CALL(d, cuLibraryLoadData, library, code, (CUjit_option *)jit, jit_values, jit_count,
                    (CUlibraryOption *)options, values, count))
RT_FUNCTION(cudaLibraryLoadFromFile,
            (cudaLibrary_t * library, const char *file, enum cudaJitOption *jit, void **jit_values,
             unsigned int jit_count, enum cudaLibraryOption *options, void **values,
             unsigned int count),
            RT_CALL(d, cuLibraryLoadFromFile, library, file, (CUjit_option *)jit, jit_values,
                    jit_count, (CUlibraryOption *)options, values, count))
RT_FUNCTION(cudaLibraryUnload, (cudaLibrary_t library), RT_CALL(d, cuLibraryUnload, library))

RT_EXPORT cudaError_t cudaLibraryGetKernel(cudaKernel_t *kernel, cudaLibrary_t library,
                                           const char *name) {
    const struct rt_driver *d;
    cudaError_t error = rt_enter(&d, RT_LEGACY);
    if (!error) {
        error = rt_error(RT_CALL(d, cuLibraryGetKernel, (CUkernel *)kernel, library, name));
    }
    return rt_leave(error ? error : rt_kernel_add((CUkernel)*kernel));
}

/* Asks the driver for an entry point. An unknown name is an answer, not an error. */
static cudaError_t entry_point(enum rt_zero zero, const char *name, void **found,
                               unsigned int version, unsigned long long flags,
                               enum cudaDriverEntryPointQueryResult *how) {
    const struct rt_driver *d;
    cudaError_t error = rt_enter_bare(&d);
    if (error) {
        return rt_leave(error);
    }
    if (flags == cudaEnableDefault) {
        flags = zero == RT_LEGACY ? cudaEnableLegacyStream : cudaEnablePerThreadDefaultStream;
    }
    CUdriverProcAddressQueryResult result = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    CUresult r = RT_CALL(d, cuGetProcAddress, name, found, (int)version, flags, &result);
    if (how) {
        *how = (enum cudaDriverEntryPointQueryResult)result;
    }
    if (r == CUDA_ERROR_NOT_FOUND) {
        *found = NULL;
        return how ? cudaSuccess : rt_leave(cudaErrorSymbolNotFound);
    }
    return rt_leave(rt_error(r));
}

#define ENTRY_POINTS(suffix, zero)                                                                 \
    RT_EXPORT cudaError_t cudaGetDriverEntryPoint##suffix(                                         \
        const char *name, void **found, unsigned long long flags,                                  \
        enum cudaDriverEntryPointQueryResult *how);                                                \
    RT_EXPORT cudaError_t cudaGetDriverEntryPoint##suffix(                                         \
        const char *name, void **found, unsigned long long flags,                                  \
        enum cudaDriverEntryPointQueryResult *how) {                                               \
        return entry_point(zero, name, found, CUDART_VERSION, flags, how);                         \
    }                                                                                              \
    RT_EXPORT cudaError_t cudaGetDriverEntryPointByVersion##suffix(                                \
        const char *name, void **found, unsigned int version, unsigned long long flags,            \
        enum cudaDriverEntryPointQueryResult *how);                                                \
    RT_EXPORT cudaError_t cudaGetDriverEntryPointByVersion##suffix(                                \
        const char *name, void **found, unsigned int version, unsigned long long flags,            \
        enum cudaDriverEntryPointQueryResult *how) {                                               \
        return entry_point(zero, name, found, version, flags, how);                                \
    }

ENTRY_POINTS(, RT_LEGACY)
ENTRY_POINTS(_ptsz, RT_PER_THREAD)
