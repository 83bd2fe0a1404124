/*
 * Memory of the libcudart stand-in: allocation, copies, sets, pools. Each call makes one driver
 * call, chosen as the real runtime does: by the caller's direction, or cuMemcpy without one. Any
 * thread, no lock, no state.
 */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "harness/sim/rt/rt.h"

#define DEVICE(p) ((CUdeviceptr)(uintptr_t)(p))

static CUresult allocate(const struct rt_driver *d, void **p, size_t bytes) {
    CUdeviceptr at = 0;
    if (!p) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    CUresult r = bytes ? RT_CALL(d, cuMemAlloc, &at, bytes) : CUDA_SUCCESS;
    if (r == CUDA_SUCCESS) {
        *p = (void *)at;
    }
    return r;
}

static CUresult allocate_pitch(const struct rt_driver *d, void **p, size_t *pitch, size_t width,
                               size_t height) {
    CUdeviceptr at = 0;
    CUresult r = RT_CALL(d, cuMemAllocPitch, &at, pitch, width, height, 4);
    if (r == CUDA_SUCCESS) {
        *p = (void *)at;
    }
    return r;
}

static CUresult allocate_managed(const struct rt_driver *d, void **p, size_t bytes,
                                 unsigned int flags) {
    CUdeviceptr at = 0;
    CUresult r = RT_CALL(d, cuMemAllocManaged, &at, bytes, flags);
    if (r == CUDA_SUCCESS) {
        *p = (void *)at;
    }
    return r;
}

static CUresult allocate_async(const struct rt_driver *d, void **p, size_t bytes,
                               cudaMemPool_t pool, cudaStream_t stream) {
    CUdeviceptr at = 0;
    CUresult r = pool ? RT_CALL(d, cuMemAllocFromPoolAsync, &at, bytes, pool, stream)
                      : RT_CALL(d, cuMemAllocAsync, &at, bytes, stream);
    if (r == CUDA_SUCCESS) {
        *p = (void *)at;
    }
    return r;
}

RT_FUNCTION(cudaMalloc, (void **p, size_t bytes), allocate(d, p, bytes))
RT_FUNCTION(cudaMallocPitch, (void **p, size_t *pitch, size_t width, size_t height),
            allocate_pitch(d, p, pitch, width, height))
RT_FUNCTION(cudaMallocManaged, (void **p, size_t bytes, unsigned int flags),
            allocate_managed(d, p, bytes, flags))
RT_FUNCTION(cudaFree, (void *p), p ? RT_CALL(d, cuMemFree, DEVICE(p)) : CUDA_SUCCESS)
RT_FUNCTION(cudaMallocHost, (void **p, size_t bytes), RT_CALL(d, cuMemHostAlloc, p, bytes, 0))
RT_FUNCTION(cudaHostAlloc, (void **p, size_t bytes, unsigned int flags),
            RT_CALL(d, cuMemHostAlloc, p, bytes, flags))
RT_FUNCTION(cudaFreeHost, (void *p), p ? RT_CALL(d, cuMemFreeHost, p) : CUDA_SUCCESS)
RT_FUNCTION(cudaHostRegister, (void *p, size_t bytes, unsigned int flags),
            RT_CALL(d, cuMemHostRegister, p, bytes, flags))
RT_FUNCTION(cudaHostUnregister, (void *p), RT_CALL(d, cuMemHostUnregister, p))
RT_FUNCTION(cudaHostGetDevicePointer, (void **device, void *host, unsigned int flags),
            RT_CALL(d, cuMemHostGetDevicePointer, (CUdeviceptr *)device, host, flags))
RT_FUNCTION(cudaHostGetFlags, (unsigned int *flags, void *host),
            RT_CALL(d, cuMemHostGetFlags, flags, host))
RT_FUNCTION(cudaMemGetInfo, (size_t * free, size_t *total), RT_CALL(d, cuMemGetInfo, free, total))
RT_STREAM_FUNCTION(cudaMallocAsync, (void **p, size_t bytes, cudaStream_t stream),
                   allocate_async(d, p, bytes, NULL, stream))
RT_STREAM_FUNCTION(cudaMallocFromPoolAsync,
                   (void **p, size_t bytes, cudaMemPool_t pool, cudaStream_t stream),
                   allocate_async(d, p, bytes, pool, stream))
RT_STREAM_FUNCTION(cudaFreeAsync, (void *p, cudaStream_t stream),
                   RT_CALL(d, cuMemFreeAsync, DEVICE(p), stream))
RT_FUNCTION(cudaDeviceGetDefaultMemPool, (cudaMemPool_t * pool, int device),
            RT_CALL(d, cuDeviceGetDefaultMemPool, pool, device))
RT_FUNCTION(cudaDeviceGetMemPool, (cudaMemPool_t * pool, int device),
            RT_CALL(d, cuDeviceGetMemPool, pool, device))
RT_FUNCTION(cudaDeviceSetMemPool, (int device, cudaMemPool_t pool),
            RT_CALL(d, cuDeviceSetMemPool, device, pool))
RT_FUNCTION(cudaMemPoolCreate, (cudaMemPool_t * pool, const struct cudaMemPoolProps *props),
            RT_CALL(d, cuMemPoolCreate, pool, (const CUmemPoolProps *)props))
RT_FUNCTION(cudaMemPoolDestroy, (cudaMemPool_t pool), RT_CALL(d, cuMemPoolDestroy, pool))
RT_FUNCTION(cudaMemPoolSetAttribute, (cudaMemPool_t pool, enum cudaMemPoolAttr attr, void *value),
            RT_CALL(d, cuMemPoolSetAttribute, pool, (CUmemPool_attribute)attr, value))
RT_FUNCTION(cudaMemPoolGetAttribute, (cudaMemPool_t pool, enum cudaMemPoolAttr attr, void *value),
            RT_CALL(d, cuMemPoolGetAttribute, pool, (CUmemPool_attribute)attr, value))
RT_FUNCTION(cudaMemPoolTrimTo, (cudaMemPool_t pool, size_t keep),
            RT_CALL(d, cuMemPoolTrimTo, pool, keep))

static CUresult copy(const struct rt_driver *d, void *to, const void *from, size_t bytes,
                     enum cudaMemcpyKind kind) {
    if (!bytes) {
        return CUDA_SUCCESS;
    }
    switch (kind) {
    case cudaMemcpyHostToDevice:
        return RT_CALL(d, cuMemcpyHtoD, DEVICE(to), from, bytes);
    case cudaMemcpyDeviceToHost:
        return RT_CALL(d, cuMemcpyDtoH, to, DEVICE(from), bytes);
    case cudaMemcpyDeviceToDevice:
        return RT_CALL(d, cuMemcpyDtoD, DEVICE(to), DEVICE(from), bytes);
    case cudaMemcpyHostToHost:
    case cudaMemcpyDefault:
        return RT_CALL(d, cuMemcpy, DEVICE(to), DEVICE(from), bytes);
    }
    return (CUresult)cudaErrorInvalidMemcpyDirection;
}

static CUresult copy_async(const struct rt_driver *d, void *to, const void *from, size_t bytes,
                           enum cudaMemcpyKind kind, cudaStream_t stream) {
    if (!bytes) {
        return CUDA_SUCCESS;
    }
    switch (kind) {
    case cudaMemcpyHostToDevice:
        return RT_CALL(d, cuMemcpyHtoDAsync, DEVICE(to), from, bytes, stream);
    case cudaMemcpyDeviceToHost:
        return RT_CALL(d, cuMemcpyDtoHAsync, to, DEVICE(from), bytes, stream);
    case cudaMemcpyDeviceToDevice:
        return RT_CALL(d, cuMemcpyDtoDAsync, DEVICE(to), DEVICE(from), bytes, stream);
    case cudaMemcpyHostToHost:
    case cudaMemcpyDefault:
        return RT_CALL(d, cuMemcpyAsync, DEVICE(to), DEVICE(from), bytes, stream);
    }
    return (CUresult)cudaErrorInvalidMemcpyDirection;
}

RT_FUNCTION_TWICE(cudaMemcpy, _ptds,
                  (void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind),
                  copy(d, to, from, bytes, kind))
RT_STREAM_FUNCTION(cudaMemcpyAsync,
                   (void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                    cudaStream_t stream),
                   copy_async(d, to, from, bytes, kind, stream))

static CUDA_MEMCPY2D plane(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                           size_t width, size_t height, enum cudaMemcpyKind kind) {
    bool from_host = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyHostToHost;
    bool to_host = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyHostToHost;
    CUmemorytype other = kind == cudaMemcpyDefault ? CU_MEMORYTYPE_UNIFIED : CU_MEMORYTYPE_DEVICE;
    return (CUDA_MEMCPY2D){
        .srcMemoryType = from_host ? CU_MEMORYTYPE_HOST : other,
        .srcHost = from,
        .srcDevice = DEVICE(from),
        .srcPitch = from_pitch,
        .dstMemoryType = to_host ? CU_MEMORYTYPE_HOST : other,
        .dstHost = to,
        .dstDevice = DEVICE(to),
        .dstPitch = to_pitch,
        .WidthInBytes = width,
        .Height = height,
    };
}

static CUresult copy_plane(const struct rt_driver *d, CUDA_MEMCPY2D p) {
    return RT_CALL(d, cuMemcpy2DUnaligned, &p);
}

static CUresult copy_plane_async(const struct rt_driver *d, CUDA_MEMCPY2D p, cudaStream_t stream) {
    return RT_CALL(d, cuMemcpy2DAsync, &p, stream);
}

RT_FUNCTION_TWICE(cudaMemcpy2D, _ptds,
                  (void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                   size_t height, enum cudaMemcpyKind kind),
                  copy_plane(d, plane(to, to_pitch, from, from_pitch, width, height, kind)))
RT_STREAM_FUNCTION(cudaMemcpy2DAsync,
                   (void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                    size_t height, enum cudaMemcpyKind kind, cudaStream_t stream),
                   copy_plane_async(d, plane(to, to_pitch, from, from_pitch, width, height, kind),
                                    stream))

RT_FUNCTION_TWICE(cudaMemset, _ptds, (void *p, int value, size_t bytes),
                  bytes ? RT_CALL(d, cuMemsetD8, DEVICE(p), (unsigned char)value, bytes)
                        : CUDA_SUCCESS)
RT_STREAM_FUNCTION(cudaMemsetAsync, (void *p, int value, size_t bytes, cudaStream_t stream),
                   bytes
                       ? RT_CALL(d, cuMemsetD8Async, DEVICE(p), (unsigned char)value, bytes, stream)
                       : CUDA_SUCCESS)
RT_FUNCTION_TWICE(cudaMemset2D, _ptds,
                  (void *p, size_t pitch, int value, size_t width, size_t height),
                  RT_CALL(d, cuMemsetD2D8, DEVICE(p), pitch, (unsigned char)value, width, height))
RT_STREAM_FUNCTION(cudaMemset2DAsync,
                   (void *p, size_t pitch, int value, size_t width, size_t height,
                    cudaStream_t stream),
                   RT_CALL(d, cuMemsetD2D8Async, DEVICE(p), pitch, (unsigned char)value, width,
                           height, stream))
RT_STREAM_FUNCTION(cudaMemPrefetchAsync,
                   (const void *p, size_t bytes, struct cudaMemLocation where, unsigned int flags,
                    cudaStream_t stream),
                   RT_CALL(d, cuMemPrefetchAsync, DEVICE(p), bytes,
                           (CUmemLocation){.type = (CUmemLocationType)where.type, .id = where.id},
                           flags, stream))

RT_EXPORT cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *out, const void *p) {
    const struct rt_driver *d;
    cudaError_t error = rt_enter(&d, RT_LEGACY);
    if (error) {
        return rt_leave(error);
    }
    unsigned int type = 0, managed = 0;
    int device = -2;
    void *host = NULL;
    CUdeviceptr at = 0;
    CUpointer_attribute which[] = {
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE,    CU_POINTER_ATTRIBUTE_IS_MANAGED,
        CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_HOST_POINTER,
        CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
    };
    void *values[] = {&type, &managed, &device, &host, &at};
    error = rt_error(RT_CALL(d, cuPointerGetAttributes, 5, which, values, DEVICE(p)));
    if (!error) {
        memset(out, 0, sizeof *out);
        out->type = managed                        ? cudaMemoryTypeManaged
                    : type == CU_MEMORYTYPE_HOST   ? cudaMemoryTypeHost
                    : type == CU_MEMORYTYPE_DEVICE ? cudaMemoryTypeDevice
                                                   : cudaMemoryTypeUnregistered;
        out->device = device;
        out->devicePointer = (void *)at;
        out->hostPointer = type ? host : (void *)(uintptr_t)p;
    }
    return rt_leave(error);
}
