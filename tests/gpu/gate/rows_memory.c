/* Memory: allocation, release, mapping, pools, questions about addresses, arrays, textures. */
#include "tests/gpu/gate/gate.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- plain allocations ---- */

ROW(cuMemAlloc_v2) {
    GATE(cuMemAlloc_v2, (OUT(CUdeviceptr, 0), 1 << 20));
    TRY(cuMemFree_v2, (*OUT(CUdeviceptr, 0)));
}
ROW(cuMemAllocPitch_v2) {
    GATE(cuMemAllocPitch_v2, (OUT(CUdeviceptr, 0), OUT(size_t, 1), 100, 100, 4));
    TRY(cuMemFree_v2, (*OUT(CUdeviceptr, 0)));
}
ROW(cuMemAllocManaged) {
    GATE(cuMemAllocManaged, (OUT(CUdeviceptr, 0), GATE_BYTES, CU_MEM_ATTACH_GLOBAL));
    TRY(cuMemFree_v2, (*OUT(CUdeviceptr, 0)));
}
ROW(cuMemFree_v2) {
    CUdeviceptr memory = gate_memory(g, 1 << 20);
    GATE_END(cuMemFree_v2, (memory));
}
#define HOST(symbol, arguments)                                                                    \
    ROW(symbol) {                                                                                  \
        GATE(symbol, arguments);                                                                   \
        TRY(cuMemFreeHost, (*OUT(void *, 0)));                                                     \
    }
HOST(cuMemAllocHost, (OUT(void *, 0), 4096))
HOST(cuMemAllocHost_v2, (OUT(void *, 0), 4096))
HOST(cuMemHostAlloc, (OUT(void *, 0), 4096, 0))
ROW(cuMemFreeHost) {
    TRY(cuMemHostAlloc, (OUT(void *, 0), 4096, 0));
    GATE_END(cuMemFreeHost, (*OUT(void *, 0)));
}
#define REGISTER(symbol)                                                                           \
    ROW(symbol) {                                                                                  \
        void *memory = aligned_alloc(4096, GATE_BYTES);                                            \
        GATE(symbol, (memory, GATE_BYTES, 0));                                                     \
        TRY(cuMemHostUnregister, (memory));                                                        \
        free(memory);                                                                              \
    }
REGISTER(cuMemHostRegister)
REGISTER(cuMemHostRegister_v2)
ROW(cuMemHostUnregister) {
    void *memory = aligned_alloc(4096, GATE_BYTES);
    TRY(cuMemHostRegister_v2, (memory, GATE_BYTES, 0));
    GATE_END(cuMemHostUnregister, (memory));
    free(memory);
}

/* ---- questions ---- */

SIMPLE(cuMemGetInfo, (OUT(unsigned, 0), OUT(unsigned, 1)))
SIMPLE(cuMemGetInfo_v2, (OUT(size_t, 0), OUT(size_t, 1)))
SIMPLE(cuMemGetAddressRange_v2, (OUT(CUdeviceptr, 0), OUT(size_t, 1), g->memory + 64))
SIMPLE(cuMemHostGetDevicePointer_v2, (OUT(CUdeviceptr, 0), g->pinned, 0))
SIMPLE(cuMemHostGetFlags, (OUT(unsigned, 0), g->pinned))
SIMPLE(cuPointerGetAttribute, (OUT(unsigned, 0), CU_POINTER_ATTRIBUTE_MEMORY_TYPE, g->memory))
ROW(cuPointerGetAttributes) {
    CUpointer_attribute what[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_CONTEXT,
                                  CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                  CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
                                  CU_POINTER_ATTRIBUTE_RANGE_SIZE};
    void *answers[] = {g->out[0], g->out[1], g->out[2], g->out[3], g->out[4]};
    GATE(cuPointerGetAttributes, (5, what, answers, g->memory));
}
ROW(cuPointerSetAttribute) {
    unsigned on = 1;
    CUdeviceptr memory = gate_memory(g, GATE_BYTES);
    GATE(cuPointerSetAttribute, (&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, memory));
    TRY(cuMemFree_v2, (memory));
}
ROW(cuMemGetHandleForAddressRange) {
    CUmemGenericAllocationHandle physical;
    CUdeviceptr address = gate_mapped(g, &physical);
    size_t bytes = gate_granularity(g);
    GATE(cuMemGetHandleForAddressRange,
         (OUT(int, 0), address, bytes, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
    close(*OUT(int, 0));
    gate_unmap(g, address, physical);
}
SIMPLE(cuIpcGetMemHandle, (OUT(CUipcMemHandle, 0), g->memory))
ROW(cuIpcGetEventHandle) {
    CUevent event = gate_event(g, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING);
    GATE(cuIpcGetEventHandle, (OUT(CUipcEventHandle, 0), event));
    TRY(cuEventDestroy_v2, (event));
}

/* ---- managed memory ---- */

#define MANAGED(symbol, arguments)                                                                 \
    ROW(symbol) {                                                                                  \
        CUdeviceptr managed = gate_managed(g);                                                     \
        GATE(symbol, arguments);                                                                   \
        TRY(cuMemFree_v2, (managed));                                                              \
    }
MANAGED(cuMemAdvise, (managed, GATE_BYTES, CU_MEM_ADVISE_SET_READ_MOSTLY, g->device))
MANAGED(cuMemAdvise_v2, (managed, GATE_BYTES, CU_MEM_ADVISE_SET_READ_MOSTLY, gate_location(g)))
MANAGED(cuMemRangeGetAttribute,
        (OUT(int, 0), 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, managed, GATE_BYTES))
ROW(cuMemRangeGetAttributes) {
    CUdeviceptr managed = gate_managed(g);
    CUmem_range_attribute what = CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY;
    void *answer = g->out[0];
    size_t bytes = 4;
    GATE(cuMemRangeGetAttributes, (&answer, &bytes, &what, 1, managed, GATE_BYTES));
    TRY(cuMemFree_v2, (managed));
}
MANAGED(cuMemPrefetchAsync, (managed, GATE_BYTES, g->device, g->side))
MANAGED(cuMemPrefetchAsync_ptsz, (managed, GATE_BYTES, g->device, g->side))
MANAGED(cuMemPrefetchAsync_v2, (managed, GATE_BYTES, gate_location(g), 0, g->side))
MANAGED(cuMemPrefetchAsync_v2_ptsz, (managed, GATE_BYTES, gate_location(g), 0, g->side))
#define PREFETCH_BATCH(symbol)                                                                     \
    ROW(symbol) {                                                                                  \
        CUdeviceptr managed = gate_managed(g);                                                     \
        size_t bytes = GATE_BYTES, index = 0;                                                      \
        CUmemLocation where = gate_location(g);                                                    \
        GATE(symbol, (&managed, &bytes, 1, &where, &index, 1, 0, g->side));                        \
        TRY(cuMemFree_v2, (managed));                                                              \
    }
PREFETCH_BATCH(cuMemPrefetchBatchAsync)
PREFETCH_BATCH(cuMemPrefetchBatchAsync_ptsz)
PREFETCH_BATCH(cuMemDiscardAndPrefetchBatchAsync)
PREFETCH_BATCH(cuMemDiscardAndPrefetchBatchAsync_ptsz)
#define DISCARD_BATCH(symbol)                                                                      \
    ROW(symbol) {                                                                                  \
        CUdeviceptr managed = gate_managed(g);                                                     \
        size_t bytes = GATE_BYTES;                                                                 \
        GATE(symbol, (&managed, &bytes, 1, 0, g->side));                                           \
        TRY(cuMemFree_v2, (managed));                                                              \
    }
DISCARD_BATCH(cuMemDiscardBatchAsync)
DISCARD_BATCH(cuMemDiscardBatchAsync_ptsz)

/* ---- address ranges and physical memory ---- */

ROW(cuMemGetAllocationGranularity) {
    CUmemAllocationProp properties = gate_prop(g);
    GATE(cuMemGetAllocationGranularity,
         (OUT(size_t, 0), &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
}
ROW(cuMemAddressReserve) {
    size_t bytes = gate_granularity(g);
    GATE(cuMemAddressReserve, (OUT(CUdeviceptr, 0), bytes, 0, 0, 0));
    TRY(cuMemAddressFree, (*OUT(CUdeviceptr, 0), bytes));
}
ROW(cuMemAddressFree) {
    size_t bytes = gate_granularity(g);
    TRY(cuMemAddressReserve, (OUT(CUdeviceptr, 0), bytes, 0, 0, 0));
    GATE_END(cuMemAddressFree, (*OUT(CUdeviceptr, 0), bytes));
}
ROW(cuMemCreate) {
    CUmemAllocationProp properties = gate_prop(g);
    size_t bytes = gate_granularity(g);
    GATE(cuMemCreate, (OUT(CUmemGenericAllocationHandle, 0), bytes, &properties, 0));
    TRY(cuMemRelease, (*OUT(CUmemGenericAllocationHandle, 0)));
}
ROW(cuMemRelease) {
    CUmemGenericAllocationHandle physical = gate_physical(g);
    GATE_END(cuMemRelease, (physical));
}
ROW(cuMemMap) {
    CUmemGenericAllocationHandle physical = gate_physical(g);
    size_t bytes = gate_granularity(g);
    CUdeviceptr address = 0;
    TRY(cuMemAddressReserve, (&address, bytes, 0, 0, 0));
    GATE(cuMemMap, (address, bytes, 0, physical, 0));
    gate_unmap(g, address, physical);
}
ROW(cuMemUnmap) {
    CUmemGenericAllocationHandle physical;
    CUdeviceptr address = gate_mapped(g, &physical);
    size_t bytes = gate_granularity(g);
    GATE_END(cuMemUnmap, (address, bytes));
    TRY(cuMemRelease, (physical));
    TRY(cuMemAddressFree, (address, bytes));
}
#define MAPPED(symbol, arguments)                                                                  \
    ROW(symbol) {                                                                                  \
        CUmemGenericAllocationHandle physical;                                                     \
        CUmemLocation where = gate_location(g);                                                    \
        CUmemAccessDesc access = {.location = where, .flags = CU_MEM_ACCESS_FLAGS_PROT_READ};      \
        CUdeviceptr address = gate_mapped(g, &physical);                                           \
        size_t bytes = gate_granularity(g);                                                        \
        (void)access, (void)bytes;                                                                 \
        GATE(symbol, arguments);                                                                   \
        gate_unmap(g, address, physical);                                                          \
    }
MAPPED(cuMemSetAccess, (address, bytes, &access, 1))
MAPPED(cuMemGetAccess, (OUT(unsigned long long, 0), &where, address))
ROW(cuMemRetainAllocationHandle) {
    CUmemGenericAllocationHandle physical;
    CUdeviceptr address = gate_mapped(g, &physical);
    GATE(cuMemRetainAllocationHandle, (OUT(CUmemGenericAllocationHandle, 0), (void *)address));
    TRY(cuMemRelease, (*OUT(CUmemGenericAllocationHandle, 0)));
    gate_unmap(g, address, physical);
}
ROW(cuMemGetAllocationPropertiesFromHandle) {
    CUmemGenericAllocationHandle physical = gate_physical(g);
    GATE(cuMemGetAllocationPropertiesFromHandle, (OUT(CUmemAllocationProp, 0), physical));
    TRY(cuMemRelease, (physical));
}
ROW(cuMemExportToShareableHandle) {
    CUmemGenericAllocationHandle physical = gate_physical(g);
    GATE(cuMemExportToShareableHandle,
         (OUT(int, 0), physical, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    close(*OUT(int, 0));
    TRY(cuMemRelease, (physical));
}
ROW(cuMemImportFromShareableHandle) {
    CUmemGenericAllocationHandle physical = gate_physical(g);
    TRY(cuMemExportToShareableHandle,
        (OUT(int, 0), physical, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    GATE(cuMemImportFromShareableHandle,
         (OUT(CUmemGenericAllocationHandle, 1), (void *)(intptr_t)*OUT(int, 0),
          CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    close(*OUT(int, 0));
    TRY(cuMemRelease, (*OUT(CUmemGenericAllocationHandle, 1)));
    TRY(cuMemRelease, (physical));
}

/* ---- pools ---- */

#define ALLOC_ASYNC(symbol)                                                                        \
    ROW(symbol) {                                                                                  \
        GATE(symbol, (OUT(CUdeviceptr, 0), GATE_BYTES, g->side));                                  \
        TRY(cuMemFreeAsync, (*OUT(CUdeviceptr, 0), g->side));                                      \
    }
ALLOC_ASYNC(cuMemAllocAsync)
ALLOC_ASYNC(cuMemAllocAsync_ptsz)
#define FREE_ASYNC(symbol)                                                                         \
    ROW(symbol) {                                                                                  \
        TRY(cuMemAllocAsync, (OUT(CUdeviceptr, 0), GATE_BYTES, g->side));                          \
        GATE(symbol, (*OUT(CUdeviceptr, 0), g->side));                                             \
    }
FREE_ASYNC(cuMemFreeAsync)
FREE_ASYNC(cuMemFreeAsync_ptsz)
#define ALLOC_FROM_POOL(symbol)                                                                    \
    ROW(symbol) {                                                                                  \
        CUmemoryPool pool = gate_pool(g);                                                          \
        GATE(symbol, (OUT(CUdeviceptr, 0), GATE_BYTES, pool, g->side));                            \
        TRY(cuMemFreeAsync, (*OUT(CUdeviceptr, 0), g->side));                                      \
        TRY(cuStreamSynchronize, (g->side));                                                       \
        TRY(cuMemPoolDestroy, (pool));                                                             \
    }
ALLOC_FROM_POOL(cuMemAllocFromPoolAsync)
ALLOC_FROM_POOL(cuMemAllocFromPoolAsync_ptsz)
ROW(cuMemPoolCreate) {
    CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .location = gate_location(g)};
    GATE(cuMemPoolCreate, (OUT(CUmemoryPool, 0), &properties));
    TRY(cuMemPoolDestroy, (*OUT(CUmemoryPool, 0)));
}
ROW(cuMemPoolDestroy) {
    CUmemoryPool pool = gate_pool(g);
    GATE_END(cuMemPoolDestroy, (pool));
}
#define POOL(symbol, arguments)                                                                    \
    ROW(symbol) {                                                                                  \
        CUmemoryPool pool = gate_pool(g);                                                          \
        CUmemLocation where = gate_location(g);                                                    \
        CUmemAccessDesc access = {.location = where, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE}; \
        (void)access;                                                                              \
        GATE(symbol, arguments);                                                                   \
        TRY(cuMemPoolDestroy, (pool));                                                             \
    }
POOL(cuMemPoolGetAccess, (OUT(CUmemAccess_flags, 0), pool, &where))
POOL(cuMemPoolSetAccess, (pool, &access, 1))
POOL(cuMemPoolGetAttribute, (pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, OUT(cuuint64_t, 0)))
POOL(cuMemPoolSetAttribute, (pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, OUT(cuuint64_t, 0)))
POOL(cuMemPoolTrimTo, (pool, 0))
ROW(cuMemPoolExportToShareableHandle) {
    CUmemoryPool pool = gate_pool(g);
    GATE(cuMemPoolExportToShareableHandle,
         (OUT(int, 0), pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    close(*OUT(int, 0));
    TRY(cuMemPoolDestroy, (pool));
}
ROW(cuMemPoolImportFromShareableHandle) {
    CUmemoryPool pool = gate_pool(g);
    TRY(cuMemPoolExportToShareableHandle,
        (OUT(int, 0), pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    GATE(cuMemPoolImportFromShareableHandle, (OUT(CUmemoryPool, 1), (void *)(intptr_t)*OUT(int, 0),
                                              CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    close(*OUT(int, 0));
    TRY(cuMemPoolDestroy, (*OUT(CUmemoryPool, 1)));
    TRY(cuMemPoolDestroy, (pool));
}
ROW(cuMemPoolExportPointer) {
    CUmemoryPool pool = gate_pool(g);
    CUdeviceptr memory = 0;
    TRY(cuMemAllocFromPoolAsync, (&memory, GATE_BYTES, pool, g->side));
    TRY(cuStreamSynchronize, (g->side));
    GATE(cuMemPoolExportPointer, (OUT(CUmemPoolPtrExportData, 0), memory));
    TRY(cuMemFreeAsync, (memory, g->side));
    TRY(cuStreamSynchronize, (g->side));
    TRY(cuMemPoolDestroy, (pool));
}
ROW(cuMemGetDefaultMemPool) {
    *OUT(CUmemLocation, 1) = gate_location(g);
    GATE(cuMemGetDefaultMemPool,
         (OUT(CUmemoryPool, 0), OUT(CUmemLocation, 1), CU_MEM_ALLOCATION_TYPE_PINNED));
}
ROW(cuMemGetMemPool) {
    *OUT(CUmemLocation, 1) = gate_location(g);
    GATE(cuMemGetMemPool,
         (OUT(CUmemoryPool, 0), OUT(CUmemLocation, 1), CU_MEM_ALLOCATION_TYPE_PINNED));
}
ROW(cuMemSetMemPool) {
    *OUT(CUmemLocation, 1) = gate_location(g);
    TRY(cuMemGetMemPool,
        (OUT(CUmemoryPool, 0), OUT(CUmemLocation, 1), CU_MEM_ALLOCATION_TYPE_PINNED));
    GATE(cuMemSetMemPool,
         (OUT(CUmemLocation, 1), CU_MEM_ALLOCATION_TYPE_PINNED, *OUT(CUmemoryPool, 0)));
}

/* ---- arrays ---- */

ROW(cuArrayCreate_v2) {
    CUDA_ARRAY_DESCRIPTOR description = {
        .Width = 64, .Height = 64, .Format = CU_AD_FORMAT_UNSIGNED_INT8, .NumChannels = 1};
    GATE(cuArrayCreate_v2, (OUT(CUarray, 0), &description));
    TRY(cuArrayDestroy, (*OUT(CUarray, 0)));
}
ROW(cuArray3DCreate_v2) {
    CUDA_ARRAY3D_DESCRIPTOR description = {.Width = 16,
                                           .Height = 16,
                                           .Depth = 16,
                                           .Format = CU_AD_FORMAT_UNSIGNED_INT8,
                                           .NumChannels = 1};
    GATE(cuArray3DCreate_v2, (OUT(CUarray, 0), &description));
    TRY(cuArrayDestroy, (*OUT(CUarray, 0)));
}
ROW(cuArrayDestroy) {
    CUarray array = gate_array(g);
    GATE_END(cuArrayDestroy, (array));
}
#define ARRAY(symbol, arguments)                                                                   \
    ROW(symbol) {                                                                                  \
        CUarray array = gate_array(g);                                                             \
        GATE(symbol, arguments);                                                                   \
        TRY(cuArrayDestroy, (array));                                                              \
    }
ARRAY(cuArrayGetDescriptor, (OUT(CUDA_ARRAY_DESCRIPTOR_v1, 0), array))
ARRAY(cuArrayGetDescriptor_v2, (OUT(CUDA_ARRAY_DESCRIPTOR, 0), array))
ARRAY(cuArray3DGetDescriptor, (OUT(CUDA_ARRAY3D_DESCRIPTOR_v1, 0), array))
ARRAY(cuArray3DGetDescriptor_v2, (OUT(CUDA_ARRAY3D_DESCRIPTOR, 0), array))
#define DEFERRED(symbol)                                                                           \
    ROW(symbol) {                                                                                  \
        CUDA_ARRAY3D_DESCRIPTOR description = {.Width = 64,                                        \
                                               .Height = 64,                                       \
                                               .Format = CU_AD_FORMAT_UNSIGNED_INT8,               \
                                               .NumChannels = 1,                                   \
                                               .Flags = CUDA_ARRAY3D_DEFERRED_MAPPING};            \
        CUarray array = NULL;                                                                      \
        TRY(cuArray3DCreate_v2, (&array, &description));                                           \
        GATE(symbol, (OUT(CUDA_ARRAY_MEMORY_REQUIREMENTS, 0), array, g->device));                  \
        TRY(cuArrayDestroy, (array));                                                              \
    }
DEFERRED(cuArrayGetMemoryRequirements)
ROW(cuMipmappedArrayGetMemoryRequirements) {
    CUDA_ARRAY3D_DESCRIPTOR description = {.Width = 64,
                                           .Height = 64,
                                           .Format = CU_AD_FORMAT_UNSIGNED_INT8,
                                           .NumChannels = 1,
                                           .Flags = CUDA_ARRAY3D_DEFERRED_MAPPING};
    CUmipmappedArray array = NULL;
    TRY(cuMipmappedArrayCreate, (&array, &description, 3));
    GATE(cuMipmappedArrayGetMemoryRequirements,
         (OUT(CUDA_ARRAY_MEMORY_REQUIREMENTS, 0), array, g->device));
    TRY(cuMipmappedArrayDestroy, (array));
}
ROW(cuArrayGetSparseProperties) {
    CUDA_ARRAY3D_DESCRIPTOR description = {.Width = 1024,
                                           .Height = 1024,
                                           .Format = CU_AD_FORMAT_UNSIGNED_INT8,
                                           .NumChannels = 1,
                                           .Flags = CUDA_ARRAY3D_SPARSE};
    CUarray array = NULL;
    TRY(cuArray3DCreate_v2, (&array, &description));
    GATE(cuArrayGetSparseProperties, (OUT(CUDA_ARRAY_SPARSE_PROPERTIES, 0), array));
    TRY(cuArrayDestroy, (array));
}
ROW(cuMipmappedArrayGetSparseProperties) {
    CUDA_ARRAY3D_DESCRIPTOR description = {.Width = 1024,
                                           .Height = 1024,
                                           .Format = CU_AD_FORMAT_UNSIGNED_INT8,
                                           .NumChannels = 1,
                                           .Flags = CUDA_ARRAY3D_SPARSE};
    CUmipmappedArray array = NULL;
    TRY(cuMipmappedArrayCreate, (&array, &description, 3));
    GATE(cuMipmappedArrayGetSparseProperties, (OUT(CUDA_ARRAY_SPARSE_PROPERTIES, 0), array));
    TRY(cuMipmappedArrayDestroy, (array));
}
ROW(cuMipmappedArrayCreate) {
    CUDA_ARRAY3D_DESCRIPTOR description = {
        .Width = 64, .Height = 64, .Format = CU_AD_FORMAT_UNSIGNED_INT8, .NumChannels = 1};
    GATE(cuMipmappedArrayCreate, (OUT(CUmipmappedArray, 0), &description, 3));
    TRY(cuMipmappedArrayDestroy, (*OUT(CUmipmappedArray, 0)));
}
ROW(cuMipmappedArrayDestroy) {
    CUmipmappedArray array = gate_mipmapped(g);
    GATE_END(cuMipmappedArrayDestroy, (array));
}
ROW(cuMipmappedArrayGetLevel) {
    CUmipmappedArray array = gate_mipmapped(g);
    GATE(cuMipmappedArrayGetLevel, (OUT(CUarray, 0), array, 1));
    TRY(cuMipmappedArrayDestroy, (array));
}

/* ---- textures and surfaces ---- */

static void linear(struct gate *g, CUDA_RESOURCE_DESC *resource) {
    resource->resType = CU_RESOURCE_TYPE_LINEAR;
    resource->res.linear.devPtr = g->memory;
    resource->res.linear.format = CU_AD_FORMAT_UNSIGNED_INT8;
    resource->res.linear.numChannels = 1;
    resource->res.linear.sizeInBytes = GATE_BYTES;
}
ROW(cuTexObjectCreate) {
    linear(g, OUT(CUDA_RESOURCE_DESC, 0));
    GATE(cuTexObjectCreate,
         (OUT(CUtexObject, 1), OUT(CUDA_RESOURCE_DESC, 0), OUT(CUDA_TEXTURE_DESC, 2), NULL));
    TRY(cuTexObjectDestroy, (*OUT(CUtexObject, 1)));
}
ROW(cuTexObjectDestroy) {
    CUtexObject texture = gate_texture(g);
    GATE_END(cuTexObjectDestroy, (texture));
}
#define TEXTURE(symbol, type)                                                                      \
    ROW(symbol) {                                                                                  \
        CUtexObject texture = gate_texture(g);                                                     \
        GATE(symbol, (OUT(type, 0), texture));                                                     \
        TRY(cuTexObjectDestroy, (texture));                                                        \
    }
TEXTURE(cuTexObjectGetResourceDesc, CUDA_RESOURCE_DESC)
TEXTURE(cuTexObjectGetTextureDesc, CUDA_TEXTURE_DESC)
ROW(cuTexObjectGetResourceViewDesc) {
    CUarray array = gate_array(g);
    CUDA_RESOURCE_DESC *resource = OUT(CUDA_RESOURCE_DESC, 0);
    CUDA_RESOURCE_VIEW_DESC *view = OUT(CUDA_RESOURCE_VIEW_DESC, 3);
    resource->resType = CU_RESOURCE_TYPE_ARRAY;
    resource->res.array.hArray = array;
    view->format = CU_RES_VIEW_FORMAT_UINT_1X8;
    view->width = view->height = 64;
    TRY(cuTexObjectCreate, (OUT(CUtexObject, 1), resource, OUT(CUDA_TEXTURE_DESC, 2), view));
    GATE(cuTexObjectGetResourceViewDesc, (OUT(CUDA_RESOURCE_VIEW_DESC, 4), *OUT(CUtexObject, 1)));
    TRY(cuTexObjectDestroy, (*OUT(CUtexObject, 1)));
    TRY(cuArrayDestroy, (array));
}
ROW(cuSurfObjectCreate) {
    CUarray array = NULL;
    CUDA_RESOURCE_DESC *resource = OUT(CUDA_RESOURCE_DESC, 0);
    CUsurfObject other = gate_surface(g, &array);
    resource->resType = CU_RESOURCE_TYPE_ARRAY;
    resource->res.array.hArray = array;
    GATE(cuSurfObjectCreate, (OUT(CUsurfObject, 1), resource));
    TRY(cuSurfObjectDestroy, (*OUT(CUsurfObject, 1)));
    TRY(cuSurfObjectDestroy, (other));
    TRY(cuArrayDestroy, (array));
}
ROW(cuSurfObjectDestroy) {
    CUarray array = NULL;
    CUsurfObject surface = gate_surface(g, &array);
    GATE_END(cuSurfObjectDestroy, (surface));
    TRY(cuArrayDestroy, (array));
}
ROW(cuSurfObjectGetResourceDesc) {
    CUarray array = NULL;
    CUsurfObject surface = gate_surface(g, &array);
    GATE(cuSurfObjectGetResourceDesc, (OUT(CUDA_RESOURCE_DESC, 0), surface));
    TRY(cuSurfObjectDestroy, (surface));
    TRY(cuArrayDestroy, (array));
}

/* ---- texture references ---- */

ROW(cuTexRefCreate) {
    GATE(cuTexRefCreate, (OUT(CUtexref, 0)));
    TRY(cuTexRefDestroy, (*OUT(CUtexref, 0)));
}
ROW(cuTexRefDestroy) {
    CUtexref reference = gate_texref(g);
    GATE_END(cuTexRefDestroy, (reference));
}
#define TEXREF(symbol, arguments)                                                                  \
    ROW(symbol) {                                                                                  \
        CUtexref reference = gate_texref(g);                                                       \
        GATE(symbol, arguments);                                                                   \
        TRY(cuTexRefDestroy, (reference));                                                         \
    }
TEXREF(cuTexRefGetAddressMode, (OUT(CUaddress_mode, 0), reference, 0))
TEXREF(cuTexRefGetBorderColor, (OUT(float, 0), reference))
TEXREF(cuTexRefGetFilterMode, (OUT(CUfilter_mode, 0), reference))
TEXREF(cuTexRefGetFlags, (OUT(unsigned, 0), reference))
TEXREF(cuTexRefGetFormat, (OUT(CUarray_format, 0), OUT(int, 1), reference))
TEXREF(cuTexRefGetMaxAnisotropy, (OUT(int, 0), reference))
TEXREF(cuTexRefGetMipmapFilterMode, (OUT(CUfilter_mode, 0), reference))
TEXREF(cuTexRefGetMipmapLevelBias, (OUT(float, 0), reference))
TEXREF(cuTexRefGetMipmapLevelClamp, (OUT(float, 0), OUT(float, 1), reference))
TEXREF(cuTexRefSetAddress_v2, (OUT(size_t, 0), reference, g->memory, GATE_BYTES))
TEXREF(cuTexRefSetAddressMode, (reference, 0, CU_TR_ADDRESS_MODE_CLAMP))
TEXREF(cuTexRefSetBorderColor, (reference, OUT(float, 0)))
TEXREF(cuTexRefSetFilterMode, (reference, CU_TR_FILTER_MODE_POINT))
TEXREF(cuTexRefSetFlags, (reference, 0))
TEXREF(cuTexRefSetFormat, (reference, CU_AD_FORMAT_UNSIGNED_INT8, 1))
TEXREF(cuTexRefSetMaxAnisotropy, (reference, 1))
TEXREF(cuTexRefSetMipmapFilterMode, (reference, CU_TR_FILTER_MODE_POINT))
TEXREF(cuTexRefSetMipmapLevelBias, (reference, 0))
TEXREF(cuTexRefSetMipmapLevelClamp, (reference, 0, 1))
#define TEXREF_2D(symbol)                                                                          \
    ROW(symbol) {                                                                                  \
        CUtexref reference = gate_texref(g);                                                       \
        CUDA_ARRAY_DESCRIPTOR description = {                                                      \
            .Width = 64, .Height = 64, .Format = CU_AD_FORMAT_UNSIGNED_INT8, .NumChannels = 1};    \
        GATE(symbol, (reference, &description, g->memory, 512));                                   \
        TRY(cuTexRefDestroy, (reference));                                                         \
    }
TEXREF_2D(cuTexRefSetAddress2D_v2)
TEXREF_2D(cuTexRefSetAddress2D_v3)
ROW(cuTexRefGetAddress_v2) {
    CUtexref reference = gate_texref(g);
    TRY(cuTexRefSetAddress_v2, (OUT(size_t, 1), reference, g->memory, GATE_BYTES));
    GATE(cuTexRefGetAddress_v2, (OUT(CUdeviceptr, 0), reference));
    TRY(cuTexRefDestroy, (reference));
}
ROW(cuTexRefSetArray) {
    CUtexref reference = gate_texref(g);
    CUarray array = gate_array(g);
    GATE(cuTexRefSetArray, (reference, array, CU_TRSA_OVERRIDE_FORMAT));
    TRY(cuTexRefDestroy, (reference));
    TRY(cuArrayDestroy, (array));
}
ROW(cuTexRefGetArray) {
    CUtexref reference = gate_texref(g);
    CUarray array = gate_array(g);
    TRY(cuTexRefSetArray, (reference, array, CU_TRSA_OVERRIDE_FORMAT));
    GATE(cuTexRefGetArray, (OUT(CUarray, 0), reference));
    TRY(cuTexRefDestroy, (reference));
    TRY(cuArrayDestroy, (array));
}
ROW(cuTexRefSetMipmappedArray) {
    CUtexref reference = gate_texref(g);
    CUmipmappedArray array = gate_mipmapped(g);
    GATE(cuTexRefSetMipmappedArray, (reference, array, CU_TRSA_OVERRIDE_FORMAT));
    TRY(cuTexRefDestroy, (reference));
    TRY(cuMipmappedArrayDestroy, (array));
}
ROW(cuTexRefGetMipmappedArray) {
    CUtexref reference = gate_texref(g);
    CUmipmappedArray array = gate_mipmapped(g);
    TRY(cuTexRefSetMipmappedArray, (reference, array, CU_TRSA_OVERRIDE_FORMAT));
    GATE(cuTexRefGetMipmappedArray, (OUT(CUmipmappedArray, 0), reference));
    TRY(cuTexRefDestroy, (reference));
    TRY(cuMipmappedArrayDestroy, (array));
}

/* ---- tensor maps: descriptors in host memory ---- */

static const cuuint64_t map_sizes[] = {32, 32, 4, 4}, map_strides[] = {32, 1024, 4096};
static const cuuint32_t map_box[] = {16, 16, 1, 1}, map_steps[] = {1, 1, 1, 1};
static const int map_corner[] = {0, 0};

SIMPLE(cuTensorMapEncodeTiled,
       (OUT(CUtensorMap, 0), CU_TENSOR_MAP_DATA_TYPE_UINT8, 2, (void *)g->memory, map_sizes,
        map_strides, map_box, map_steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
        CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE))
SIMPLE(cuTensorMapEncodeIm2col,
       (OUT(CUtensorMap, 0), CU_TENSOR_MAP_DATA_TYPE_UINT8, 4, (void *)g->memory, map_sizes,
        map_strides, map_corner, map_corner, 16, 16, map_steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
        CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
        CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE))
SIMPLE(cuTensorMapEncodeIm2colWide,
       (OUT(CUtensorMap, 0), CU_TENSOR_MAP_DATA_TYPE_UINT8, 4, (void *)g->memory, map_sizes,
        map_strides, 0, 0, 16, 16, map_steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
        CU_TENSOR_MAP_IM2COL_WIDE_MODE_W, CU_TENSOR_MAP_SWIZZLE_128B,
        CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE))
ROW(cuTensorMapReplaceAddress) {
    TRY(cuTensorMapEncodeTiled,
        (OUT(CUtensorMap, 0), CU_TENSOR_MAP_DATA_TYPE_UINT8, 2, (void *)g->memory, map_sizes,
         map_strides, map_box, map_steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
         CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
    GATE(cuTensorMapReplaceAddress, (OUT(CUtensorMap, 0), (void *)g->memory2));
}
