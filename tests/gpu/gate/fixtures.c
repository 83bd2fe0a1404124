/*
 * Makes fresh objects for the measured calls, on the row's thread before the gate closes. If the
 * driver refuses one, the function marks the row as unfit and returns 0.
 */
#include "tests/gpu/gate/gate.h"

#include <string.h>

/* With a managed variable, which not every device has. */
const char gate_ptx_extra[] =
    GATE_PTX_HEAD ".visible .global .attribute(.managed) .align 4 .u32 gate_managed;\n"
                  ".visible .entry extra()\n{\n  ret;\n}\n";

void gate_nothing(void *data) {
    (void)data;
}

CUevent gate_event(struct gate *g, unsigned flags) {
    CUevent event = NULL;
    TRY(cuEventCreate, (&event, flags));
    return event;
}

CUevent gate_event_behind(struct gate *g) {
    CUevent event = gate_event(g, CU_EVENT_DEFAULT);
    gate_now(g);
    TRY(cuEventRecord, (event, g->busy));
    return event;
}

CUstream gate_stream(struct gate *g) {
    CUstream stream = NULL;
    TRY(cuStreamCreate, (&stream, CU_STREAM_NON_BLOCKING));
    return stream;
}

CUmodule gate_module(struct gate *g) {
    CUmodule module = NULL;
    TRY(cuModuleLoadData, (&module, gate_ptx));
    return module;
}

CUfunction gate_fresh_function(struct gate *g, CUmodule *module) {
    CUfunction function = NULL;
    *module = gate_module(g);
    TRY(cuModuleGetFunction, (&function, *module, "touch"));
    return function;
}

CUlibrary gate_library(struct gate *g) {
    CUlibrary library = NULL;
    TRY(cuLibraryLoadData, (&library, gate_ptx, NULL, NULL, 0, NULL, NULL, 0));
    return library;
}

CUkernel gate_kernel(struct gate *g, CUlibrary library) {
    CUkernel kernel = NULL;
    TRY(cuLibraryGetKernel, (&kernel, library, "touch"));
    return kernel;
}

CUdeviceptr gate_memory(struct gate *g, size_t bytes) {
    CUdeviceptr memory = 0;
    TRY(cuMemAlloc_v2, (&memory, bytes));
    return memory;
}

CUdeviceptr gate_managed(struct gate *g) {
    CUdeviceptr memory = 0;
    TRY(cuMemAllocManaged, (&memory, GATE_BYTES, CU_MEM_ATTACH_GLOBAL));
    return memory;
}

CUarray gate_array(struct gate *g) {
    CUDA_ARRAY_DESCRIPTOR description = {
        .Width = 64, .Height = 64, .Format = CU_AD_FORMAT_UNSIGNED_INT8, .NumChannels = 1};
    CUarray array = NULL;
    TRY(cuArrayCreate_v2, (&array, &description));
    return array;
}

CUarray gate_array_1d(struct gate *g) {
    CUDA_ARRAY_DESCRIPTOR description = {
        .Width = 1024, .Format = CU_AD_FORMAT_UNSIGNED_INT8, .NumChannels = 1};
    CUarray array = NULL;
    TRY(cuArrayCreate_v2, (&array, &description));
    return array;
}

CUmipmappedArray gate_mipmapped(struct gate *g) {
    CUDA_ARRAY3D_DESCRIPTOR description = {
        .Width = 64, .Height = 64, .Format = CU_AD_FORMAT_UNSIGNED_INT8, .NumChannels = 1};
    CUmipmappedArray array = NULL;
    TRY(cuMipmappedArrayCreate, (&array, &description, 3));
    return array;
}

CUcontext gate_context(struct gate *g) {
    CUcontext context = NULL, popped;
    TRY(cuCtxCreate_v2, (&context, 0, g->device));
    TRY(cuCtxPopCurrent_v2, (&popped));
    return context;
}

CUmemoryPool gate_pool(struct gate *g) {
    CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                 .location = gate_location(g)};
    CUmemoryPool pool = NULL;
    TRY(cuMemPoolCreate, (&pool, &properties));
    return pool;
}

CUmemLocation gate_location(struct gate *g) {
    CUmemLocation location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = g->device};
    return location;
}

CUmemAllocationProp gate_prop(struct gate *g) {
    CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .requestedHandleTypes =
                                          CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                      .location = gate_location(g)};
    return properties;
}

size_t gate_granularity(struct gate *g) {
    CUmemAllocationProp properties = gate_prop(g);
    size_t bytes = 0;
    TRY(cuMemGetAllocationGranularity, (&bytes, &properties, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
    return bytes;
}

CUmemGenericAllocationHandle gate_physical(struct gate *g) {
    CUmemAllocationProp properties = gate_prop(g);
    CUmemGenericAllocationHandle handle = 0;
    size_t bytes = gate_granularity(g);
    TRY(cuMemCreate, (&handle, bytes, &properties, 0));
    return handle;
}

CUdeviceptr gate_mapped(struct gate *g, CUmemGenericAllocationHandle *physical) {
    CUdeviceptr address = 0;
    CUmemAccessDesc access = {.location = gate_location(g),
                              .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    size_t bytes = gate_granularity(g);
    *physical = gate_physical(g);
    TRY(cuMemAddressReserve, (&address, bytes, 0, 0, 0));
    TRY(cuMemMap, (address, bytes, 0, *physical, 0));
    TRY(cuMemSetAccess, (address, bytes, &access, 1));
    return address;
}

void gate_unmap(struct gate *g, CUdeviceptr address, CUmemGenericAllocationHandle physical) {
    size_t bytes = gate_granularity(g);
    TRY(cuMemUnmap, (address, bytes));
    TRY(cuMemRelease, (physical));
    TRY(cuMemAddressFree, (address, bytes));
}

CUtexObject gate_texture(struct gate *g) {
    CUDA_RESOURCE_DESC resource;
    CUDA_TEXTURE_DESC texture;
    CUtexObject object = 0;
    memset(&resource, 0, sizeof resource);
    memset(&texture, 0, sizeof texture);
    resource.resType = CU_RESOURCE_TYPE_LINEAR;
    resource.res.linear.devPtr = g->memory;
    resource.res.linear.format = CU_AD_FORMAT_UNSIGNED_INT8;
    resource.res.linear.numChannels = 1;
    resource.res.linear.sizeInBytes = GATE_BYTES;
    TRY(cuTexObjectCreate, (&object, &resource, &texture, NULL));
    return object;
}

CUsurfObject gate_surface(struct gate *g, CUarray *array) {
    CUDA_ARRAY3D_DESCRIPTOR description = {.Width = 64,
                                           .Height = 64,
                                           .Format = CU_AD_FORMAT_UNSIGNED_INT8,
                                           .NumChannels = 1,
                                           .Flags = CUDA_ARRAY3D_SURFACE_LDST};
    CUDA_RESOURCE_DESC resource;
    CUsurfObject object = 0;
    memset(&resource, 0, sizeof resource);
    TRY(cuArray3DCreate_v2, (array, &description));
    resource.resType = CU_RESOURCE_TYPE_ARRAY;
    resource.res.array.hArray = *array;
    TRY(cuSurfObjectCreate, (&object, &resource));
    return object;
}

CUtexref gate_texref(struct gate *g) {
    CUtexref reference = NULL;
    TRY(cuTexRefCreate, (&reference));
    return reference;
}

CUgreenCtx gate_green(struct gate *g) {
    CUdevResource whole, *part = OUT(CUdevResource, 14);
    CUdevResourceDesc description = NULL;
    CUgreenCtx green = NULL;
    unsigned groups = 1;
    TRY(cuDeviceGetDevResource, (g->device, &whole, CU_DEV_RESOURCE_TYPE_SM));
    TRY(cuDevSmResourceSplitByCount, (part, &groups, &whole, NULL, 0, 8));
    TRY(cuDevResourceGenerateDesc, (&description, part, 1));
    TRY(cuGreenCtxCreate, (&green, description, g->device, CU_GREEN_CTX_DEFAULT_STREAM));
    return green;
}

CUlinkState gate_link(struct gate *g) {
    CUlinkState state = NULL;
    TRY(cuLinkCreate_v2, (0, NULL, NULL, &state));
    return state;
}

/* ---- graphs ---- */

CUDA_KERNEL_NODE_PARAMS gate_kernel_params(struct gate *g) {
    static CUdeviceptr target;
    static void *parameters[] = {&target};
    target = g->memory2;
    CUDA_KERNEL_NODE_PARAMS node = {.func = g->touch,
                                    .gridDimX = 1,
                                    .gridDimY = 1,
                                    .gridDimZ = 1,
                                    .blockDimX = 1,
                                    .blockDimY = 1,
                                    .blockDimZ = 1,
                                    .kernelParams = parameters};
    return node;
}

CUDA_MEMSET_NODE_PARAMS gate_memset_params(struct gate *g) {
    CUDA_MEMSET_NODE_PARAMS node = {
        .dst = g->memory, .elementSize = 1, .width = 256, .height = 1, .value = 1};
    return node;
}

CUDA_MEMCPY3D gate_memcpy_params(struct gate *g) {
    CUDA_MEMCPY3D node = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                          .srcDevice = g->memory,
                          .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                          .dstDevice = g->memory2 + 1024,
                          .WidthInBytes = 256,
                          .Height = 1,
                          .Depth = 1};
    return node;
}

CUgraph gate_graph(struct gate *g, unsigned n, CUgraphNode *node) {
    CUgraph graph = NULL;
    CUgraphNode before = NULL, last = NULL;
    CUDA_KERNEL_NODE_PARAMS parameters = gate_kernel_params(g);
    TRY(cuGraphCreate, (&graph, 0));
    for (unsigned i = 0; i < n; i++) {
        TRY(cuGraphAddKernelNode_v2, (&last, graph, &before, i > 0, &parameters));
        before = last;
    }
    if (node)
        *node = last;
    return graph;
}

CUgraphExec gate_exec(struct gate *g, CUgraph graph) {
    CUgraphExec exec = NULL;
    TRY(cuGraphInstantiateWithFlags, (&exec, graph, 0));
    return exec;
}
