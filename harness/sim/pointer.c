/*
 * Queries about an address.
 *
 * Any thread, under cusim.lock. For memory that is not the simulator's, cuPointerGetAttributes
 * answers zero and cuPointerGetAttribute fails. The range of a reserved address is the reservation,
 * mapped or not; MAPPING_BASE_ADDR and MAPPING_SIZE describe the mapping.
 */
#include "harness/sim/cusim.h"

#include <string.h>

static CUresult attribute_of(void *out, CUpointer_attribute attribute, CUdeviceptr address,
                             const struct cusim_mem *m) {
    bool host = m && (m->kind == CUSIM_MEM_HOST || m->kind == CUSIM_MEM_REGISTERED);
    bool both = host || (m && m->kind == CUSIM_MEM_MANAGED);
    uintptr_t base;
    switch ((int)attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        /* Pools and mappings belong to no context. */
        *(CUcontext *)out = m && m->kind != CUSIM_MEM_POOL ? (CUcontext)m->ctx : NULL;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *(unsigned *)out = !m ? 0 : host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        *(CUdeviceptr *)out = m ? address : 0;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        *(void **)out = both ? (void *)(uintptr_t)address : NULL;
        return both ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_MANAGED: {
        bool yes = attribute == CU_POINTER_ATTRIBUTE_IS_MANAGED
                       ? m && m->kind == CUSIM_MEM_MANAGED
                       : attribute == CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE && m &&
                             m->kind == CUSIM_MEM_DEVICE;
        *(unsigned *)out = yes; /* booleans are four bytes wide */
        return CUDA_SUCCESS;
    }
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
        *(unsigned long long *)out = m ? m->id : 0;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *(int *)out = m ? m->device : -2;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        if (cusim_virtual_reserved(address, &base, NULL))
            *(CUdeviceptr *)out = base;
        else if (m) /* the ranges of foreign memory stay unchanged */
            *(CUdeviceptr *)out = m->base;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        if (!cusim_virtual_reserved(address, NULL, (size_t *)out) && m)
            *(size_t *)out = m->bytes;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
        *(CUdeviceptr *)out = m ? m->base : 0;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
        *(size_t *)out = m ? m->bytes : 0;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MAPPED:
        *(unsigned *)out = m != NULL;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
        *(unsigned long long *)out = 0;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
        *(unsigned *)out = !m ? 0
                           : m->kind == CUSIM_MEM_VIRTUAL
                               ? m->flags
                               : CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_P2P_TOKENS:
        memset(out, 0, 12);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
        *(CUmemoryPool *)out = m ? (CUmemoryPool)m->pool : NULL;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUSIM_LOCKED(cuPointerGetAttribute, (void *out, CUpointer_attribute attribute, CUdeviceptr address),
             (out, attribute, address)) {
    struct cusim_mem *mem = cusim_mem_find(address);
    bool about_range = attribute == CU_POINTER_ATTRIBUTE_RANGE_START_ADDR ||
                       attribute == CU_POINTER_ATTRIBUTE_RANGE_SIZE ||
                       attribute == CU_POINTER_ATTRIBUTE_MAPPED;
    if (!out || (!mem && !(about_range && cusim_virtual_reserved(address, NULL, NULL))))
        return CUDA_ERROR_INVALID_VALUE;
    return attribute_of(out, attribute, address, mem);
}

CUSIM_LOCKED(cuPointerGetAttributes,
             (unsigned n, CUpointer_attribute *attributes, void **out, CUdeviceptr address),
             (n, attributes, out, address)) {
    if (n == 0 || !attributes || !out)
        return CUDA_ERROR_INVALID_VALUE;
    struct cusim_mem *mem = cusim_mem_find(address);
    for (unsigned i = 0; i < n; i++) {
        if (attributes[i] < CU_POINTER_ATTRIBUTE_CONTEXT ||
            attributes[i] > CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE ||
            attributes[i] == CU_POINTER_ATTRIBUTE_P2P_TOKENS)
            return CUDA_ERROR_INVALID_VALUE;
        if (out[i]) /* an attribute that does not apply is zero here, not an error */
            attribute_of(out[i], attributes[i], address, mem);
    }
    return CUDA_SUCCESS;
}

CUSIM_LOCKED(cuPointerSetAttribute,
             (const void *value, CUpointer_attribute attribute, CUdeviceptr address),
             (value, attribute, address)) {
    if (!value || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS || !cusim_mem_find(address))
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

CUSIM_LOCKED(cuMemGetAddressRange_v2, (CUdeviceptr * base, size_t *bytes, CUdeviceptr address),
             (base, bytes, address)) {
    struct cusim_ctx *ctx;
    CUresult result = cusim_ctx_current(&ctx);
    if (result != CUDA_SUCCESS)
        return result;
    struct cusim_mem *mem = cusim_mem_find(address);
    if (!mem)
        return CUDA_ERROR_NOT_FOUND;
    if (base)
        *base = mem->base;
    if (bytes)
        *bytes = mem->bytes;
    return CUDA_SUCCESS;
}

CUSIM_LOCKED(cuMemHostGetDevicePointer_v2, (CUdeviceptr * device, void *host, unsigned flags),
             (device, host, flags)) {
    struct cusim_mem *mem = cusim_mem_find((uintptr_t)host);
    if (!device || flags != 0 || !mem ||
        (mem->kind != CUSIM_MEM_HOST && mem->kind != CUSIM_MEM_REGISTERED))
        return CUDA_ERROR_INVALID_VALUE;
    *device = (uintptr_t)host;
    return CUDA_SUCCESS;
}

CUSIM_LOCKED(cuMemHostGetFlags, (unsigned *flags, void *host), (flags, host)) {
    struct cusim_mem *mem = cusim_mem_find((uintptr_t)host);
    if (!flags || !mem || (mem->kind != CUSIM_MEM_HOST && mem->kind != CUSIM_MEM_REGISTERED))
        return CUDA_ERROR_INVALID_VALUE;
    *flags = mem->flags;
    return CUDA_SUCCESS;
}

static CUresult advise(CUdeviceptr address, size_t bytes) {
    return cusim_mem_kind_of(address, bytes) == CUSIM_MEM_MANAGED ? CUDA_SUCCESS
                                                                  : CUDA_ERROR_INVALID_VALUE;
}

CUSIM_LOCKED(cuMemAdvise, (CUdeviceptr address, size_t bytes, CUmem_advise advice, CUdevice device),
             (address, bytes, advice, device)) {
    (void)advice, (void)device;
    return advise(address, bytes);
}

CUSIM_LOCKED(cuMemAdvise_v2,
             (CUdeviceptr address, size_t bytes, CUmem_advise advice, CUmemLocation location),
             (address, bytes, advice, location)) {
    (void)advice, (void)location;
    return advise(address, bytes);
}

static CUresult prefetch(bool ptsz, CUdeviceptr address, size_t bytes, CUstream stream) {
    struct cusim_stream *s;
    CUresult result = cusim_stream_get_for_work(stream, ptsz, &s);
    return result == CUDA_SUCCESS ? advise(address, bytes) : result;
}

CUSIM_TWIN_LOCKED(cuMemPrefetchAsync, _ptsz,
                  (CUdeviceptr address, size_t bytes, CUdevice device, CUstream stream),
                  (address, bytes, device, stream)) {
    (void)device;
    return prefetch(ptsz, address, bytes, stream);
}

CUSIM_TWIN_LOCKED(cuMemPrefetchAsync_v2, _ptsz,
                  (CUdeviceptr address, size_t bytes, CUmemLocation location, unsigned flags,
                   CUstream stream),
                  (address, bytes, location, flags, stream)) {
    (void)location, (void)flags;
    return prefetch(ptsz, address, bytes, stream);
}
