/*
 * Devices, contexts and versions of the libcudart stand-in. The current device belongs to a thread.
 * `lock` guards the primary contexts, which are retained once for the process. The lock is held
 * over driver calls that wait for nothing but the driver itself.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "harness/sim/rt/rt.h"

#define RT_DEVICES 16

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static CUcontext primary[RT_DEVICES]; /* under `lock` */
static _Thread_local int current;

int rt_device(void) {
    return current;
}

cudaError_t rt_enter_bare(const struct rt_driver **d) {
    CUresult why;
    *d = rt_driver(RT_LEGACY, &why);
    return *d ? cudaSuccess : rt_error(why);
}

bool rt_strange(void) {
    static atomic_int known; /* 0: not asked yet; 1: no; 2: yes */
    if (!known) {
        known = getenv("CUSIM_RUNTIME_NAMES") ? 2 : 1;
    }
    return known == 2;
}

/* Makes the primary context of a device current on this thread. */
static cudaError_t bind(const struct rt_driver *d, int device) {
    if (device < 0 || device >= RT_DEVICES) {
        return cudaErrorInvalidDevice;
    }
    CUresult r = CUDA_SUCCESS;
    pthread_mutex_lock(&lock);
    if (!primary[device]) {
        CUdevice handle;
        r = RT_CALL(d, cuDeviceGet, &handle, device);
        if (r == CUDA_SUCCESS) {
            r = RT_CALL(d, cuDevicePrimaryCtxRetain, &primary[device], handle);
        }
    }
    CUcontext context = primary[device];
    pthread_mutex_unlock(&lock);
    return rt_error(r ? r : RT_CALL(d, cuCtxSetCurrent, context));
}

cudaError_t rt_enter(const struct rt_driver **d, enum rt_zero zero) {
    CUresult why;
    *d = rt_driver(zero, &why);
    if (!*d) {
        return rt_error(why);
    }
    CUcontext context = NULL;
    CUresult r = RT_CALL(*d, cuCtxGetCurrent, &context);
    if (r || context) {
        return rt_error(r);
    }
    return bind(*d, current);
}

#define RT_BARE(name, params, expression)                                                          \
    RT_EXPORT cudaError_t name params {                                                            \
        const struct rt_driver *d;                                                                 \
        cudaError_t error = rt_enter_bare(&d);                                                     \
        return rt_leave(error ? error : rt_error(expression));                                     \
    }

RT_EXPORT cudaError_t cudaSetDevice(int device) {
    const struct rt_driver *d;
    cudaError_t error = rt_enter_bare(&d);
    int count = 0;
    if (!error) {
        error = rt_error(RT_CALL(d, cuDeviceGetCount, &count));
    }
    if (!error) {
        error = device < 0 || device >= count ? cudaErrorInvalidDevice : bind(d, device);
    }
    if (!error) {
        current = device;
    }
    return rt_leave(error);
}

RT_EXPORT cudaError_t cudaInitDevice(int device, unsigned int device_flags, unsigned int flags) {
    (void)device_flags, (void)flags;
    int before = current;
    cudaError_t error = cudaSetDevice(device);
    current = before;
    return error;
}

/* The device of the current context; without a context the device that the thread set. */
RT_EXPORT cudaError_t cudaGetDevice(int *device) {
    const struct rt_driver *d;
    cudaError_t error = rt_enter_bare(&d);
    if (error || !device) {
        return rt_leave(error ? error : cudaErrorInvalidValue);
    }
    CUdevice handle;
    CUresult r = RT_CALL(d, cuCtxGetDevice, &handle, NULL);
    if (r == CUDA_ERROR_INVALID_CONTEXT) {
        *device = current;
        return cudaSuccess;
    }
    if (!r) {
        *device = handle ^ rt_strange();
    }
    return rt_leave(rt_error(r));
}

RT_EXPORT cudaError_t cudaGetDeviceCount(int *count) {
    const struct rt_driver *d;
    cudaError_t error = rt_enter_bare(&d);
    *count = 0;
    if (!error) {
        error = rt_error(RT_CALL(d, cuDeviceGetCount, count));
    }
    if (!error && *count == 0) {
        error = cudaErrorNoDevice;
    }
    return rt_leave(error);
}

RT_BARE(cudaDeviceGetAttribute, (int *value, enum cudaDeviceAttr attr, int device),
        RT_CALL(d, cuDeviceGetAttribute, value, (CUdevice_attribute)attr, device))
RT_BARE(cudaSetDeviceFlags, (unsigned int flags),
        RT_CALL(d, cuDevicePrimaryCtxSetFlags, current, flags & 0x1f))
RT_BARE(cudaDeviceGetPCIBusId, (char *id, int length, int device),
        RT_CALL(d, cuDeviceGetPCIBusId, id, length, device))
RT_BARE(cudaDeviceGetByPCIBusId, (int *device, const char *id),
        RT_CALL(d, cuDeviceGetByPCIBusId, device, id))
RT_BARE(cudaDeviceCanAccessPeer, (int *can, int device, int peer),
        RT_CALL(d, cuDeviceCanAccessPeer, can, device, peer))

RT_EXPORT cudaError_t cudaGetDeviceFlags(unsigned int *flags) {
    const struct rt_driver *d;
    int active = 0;
    cudaError_t error = rt_enter_bare(&d);
    if (!error) {
        error = rt_error(RT_CALL(d, cuDevicePrimaryCtxGetState, current, flags, &active));
    }
    return rt_leave(error);
}

RT_FUNCTION(cudaDeviceGetLimit, (size_t * value, enum cudaLimit limit),
            RT_CALL(d, cuCtxGetLimit, value, (CUlimit)limit))
RT_FUNCTION(cudaDeviceSetLimit, (enum cudaLimit limit, size_t value),
            RT_CALL(d, cuCtxSetLimit, (CUlimit)limit, value))
RT_FUNCTION(cudaDeviceGetStreamPriorityRange, (int *least, int *greatest),
            RT_CALL(d, cuCtxGetStreamPriorityRange, least, greatest))
RT_FUNCTION(cudaProfilerStart, (void), RT_CALL(d, cuProfilerStart))
RT_FUNCTION(cudaProfilerStop, (void), RT_CALL(d, cuProfilerStop))

static CUresult synchronize(const struct rt_driver *d) {
    CUcontext context = NULL;
    CUresult r = RT_CALL(d, cuCtxGetCurrent, &context);
    return r ? r : RT_CALL(d, cuCtxSynchronize, context);
}

RT_FUNCTION(cudaDeviceSynchronize, (void), synchronize(d))

static CUresult reset(const struct rt_driver *d) {
    pthread_mutex_lock(&lock);
    primary[current] = NULL;
    CUresult r = RT_CALL(d, cuDevicePrimaryCtxReset, current);
    pthread_mutex_unlock(&lock);
    RT_CALL(d, cuCtxSetCurrent, NULL);
    return r;
}

RT_FUNCTION(cudaDeviceReset, (void), reset(d))

RT_EXPORT cudaError_t cudaRuntimeGetVersion(int *version) {
    if (!version) {
        return rt_leave(cudaErrorInvalidValue);
    }
    *version = CUDART_VERSION;
    return cudaSuccess;
}

/* Without a driver the version is 0, which is no error. */
RT_EXPORT cudaError_t cudaDriverGetVersion(int *version) {
    const struct rt_driver *d;
    if (!version) {
        return rt_leave(cudaErrorInvalidValue);
    }
    *version = 0;
    return rt_enter_bare(&d) ? cudaSuccess
                             : rt_leave(rt_error(RT_CALL(d, cuDriverGetVersion, version)));
}

static int attribute(const struct rt_driver *d, int device, CUdevice_attribute which) {
    int value = 0;
    return RT_CALL(d, cuDeviceGetAttribute, &value, which, device) == CUDA_SUCCESS ? value : 0;
}

RT_EXPORT cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *p, int device) {
    const struct rt_driver *d;
    cudaError_t error = rt_enter_bare(&d);
    if (error) {
        return rt_leave(error);
    }
    memset(p, 0, sizeof *p);
    error = rt_error(RT_CALL(d, cuDeviceGetName, p->name, (int)sizeof p->name, device));
    if (!error) {
        error = rt_error(RT_CALL(d, cuDeviceTotalMem, &p->totalGlobalMem, device));
    }
    if (error) {
        return rt_leave(error);
    }
#define ASK(field, which)                                                                          \
    p->field = (__typeof__(p->field))attribute(d, device, CU_DEVICE_ATTRIBUTE_##which)
    ASK(sharedMemPerBlock, MAX_SHARED_MEMORY_PER_BLOCK);
    ASK(sharedMemPerBlockOptin, MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
    ASK(sharedMemPerMultiprocessor, MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
    ASK(reservedSharedMemPerBlock, RESERVED_SHARED_MEMORY_PER_BLOCK);
    ASK(regsPerBlock, MAX_REGISTERS_PER_BLOCK);
    ASK(regsPerMultiprocessor, MAX_REGISTERS_PER_MULTIPROCESSOR);
    ASK(warpSize, WARP_SIZE);
    ASK(maxThreadsPerBlock, MAX_THREADS_PER_BLOCK);
    ASK(maxThreadsPerMultiProcessor, MAX_THREADS_PER_MULTIPROCESSOR);
    ASK(maxBlocksPerMultiProcessor, MAX_BLOCKS_PER_MULTIPROCESSOR);
    ASK(maxThreadsDim[0], MAX_BLOCK_DIM_X);
    ASK(maxThreadsDim[1], MAX_BLOCK_DIM_Y);
    ASK(maxThreadsDim[2], MAX_BLOCK_DIM_Z);
    ASK(maxGridSize[0], MAX_GRID_DIM_X);
    ASK(maxGridSize[1], MAX_GRID_DIM_Y);
    ASK(maxGridSize[2], MAX_GRID_DIM_Z);
    ASK(totalConstMem, TOTAL_CONSTANT_MEMORY);
    ASK(major, COMPUTE_CAPABILITY_MAJOR);
    ASK(minor, COMPUTE_CAPABILITY_MINOR);
    ASK(multiProcessorCount, MULTIPROCESSOR_COUNT);
    ASK(l2CacheSize, L2_CACHE_SIZE);
    ASK(memPitch, MAX_PITCH);
    ASK(textureAlignment, TEXTURE_ALIGNMENT);
    ASK(memoryBusWidth, GLOBAL_MEMORY_BUS_WIDTH);
    ASK(asyncEngineCount, ASYNC_ENGINE_COUNT);
    ASK(integrated, INTEGRATED);
    ASK(canMapHostMemory, CAN_MAP_HOST_MEMORY);
    ASK(concurrentKernels, CONCURRENT_KERNELS);
    ASK(ECCEnabled, ECC_ENABLED);
    ASK(pciBusID, PCI_BUS_ID);
    ASK(pciDeviceID, PCI_DEVICE_ID);
    ASK(pciDomainID, PCI_DOMAIN_ID);
    ASK(unifiedAddressing, UNIFIED_ADDRESSING);
    ASK(managedMemory, MANAGED_MEMORY);
    ASK(concurrentManagedAccess, CONCURRENT_MANAGED_ACCESS);
    ASK(pageableMemoryAccess, PAGEABLE_MEMORY_ACCESS);
    ASK(streamPrioritiesSupported, STREAM_PRIORITIES_SUPPORTED);
    ASK(cooperativeLaunch, COOPERATIVE_LAUNCH);
    ASK(clusterLaunch, CLUSTER_LAUNCH);
    ASK(memoryPoolsSupported, MEMORY_POOLS_SUPPORTED);
    ASK(hostRegisterSupported, HOST_REGISTER_SUPPORTED);
#undef ASK
    return cudaSuccess;
}
