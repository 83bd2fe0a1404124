// What the driver of a test says of an address.
#ifndef CUSPLICE_TESTS_UNIT_STREAM_POINTERS_H
#define CUSPLICE_TESTS_UNIT_STREAM_POINTERS_H

#include <cuda.h>

#include <cstdint>

namespace fake {

// Device memory of the context in tests, unless a field says something else.
struct Pointer {
    uint64_t start = 0; // of the allocation
    size_t size = 0;
    unsigned type = CU_MEMORYTYPE_DEVICE, managed = 0;
    int ordinal = 0;
    CUmemoryPool pool = nullptr;
    CUcontext context = (CUcontext)0x1000;
    unsigned mapped = 0, access = 0;
    uint64_t base = 0; // of the mapping
    size_t bytes = 0;
};

inline void Answer(const Pointer &pointer, unsigned n, const CUpointer_attribute *ids,
                   void **values) {
    for (unsigned i = 0; i < n; i++) {
        switch (ids[i]) {
        case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
            *(unsigned *)values[i] = pointer.type;
            break;
        case CU_POINTER_ATTRIBUTE_IS_MANAGED:
            *(unsigned *)values[i] = pointer.managed;
            break;
        case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
            *(int *)values[i] = pointer.ordinal;
            break;
        case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
            *(CUdeviceptr *)values[i] = pointer.start;
            break;
        case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
            *(size_t *)values[i] = pointer.size;
            break;
        case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
            *(CUmemoryPool *)values[i] = pointer.pool;
            break;
        case CU_POINTER_ATTRIBUTE_CONTEXT:
            *(CUcontext *)values[i] = pointer.context;
            break;
        case CU_POINTER_ATTRIBUTE_MAPPED:
            *(unsigned *)values[i] = pointer.mapped;
            break;
        case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
            *(unsigned *)values[i] = pointer.access;
            break;
        case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
            *(CUdeviceptr *)values[i] = pointer.base;
            break;
        case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
            *(size_t *)values[i] = pointer.bytes;
            break;
        default:
            break;
        }
    }
}

} // namespace fake

#endif
