/* Questions about addresses, ranges, registration and events. */
#include "tests/unit/sim/answers/answers.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static void about(const char *name, CUdeviceptr address) {
    unsigned type = 99, managed = 99;
    int ordinal = 99;
    CUdeviceptr base = 1;
    size_t bytes = 1;
    CUcontext context = (CUcontext)1;
    CUpointer_attribute ids[] = {
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE,    CU_POINTER_ATTRIBUTE_IS_MANAGED,
        CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
        CU_POINTER_ATTRIBUTE_RANGE_SIZE,     CU_POINTER_ATTRIBUTE_CONTEXT};
    void *out[] = {&type, &managed, &ordinal, &base, &bytes, &context};
    int result = cuPointerGetAttributes(6, ids, out, address);
    NOTE("%s: %d, type %u, managed %u, ordinal %d, ", name, result, type, managed, ordinal);
    if (base == 1)
        NOTE("base untouched, ");
    else
        NOTE("base at -%d, ", (int)(address - base));
    NOTE("size %zu, context %s\n", bytes,
         context == answers.ctx ? "there"
         : context              ? "something else"
                                : "NULL");
    int one_type = cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address);
    int one_base = cuPointerGetAttribute(&base, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, address);
    int one_context = cuPointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, address);
    NOTE("%s, one by one: type %d, base %d, context %d\n", name, one_type, one_base, one_context);
}

/* How many bytes an attribute writes. */
static int written(const unsigned char *raw) {
    int n = 32;
    while (n > 0 && raw[n - 1] == 0xa5)
        n--;
    return n;
}

void ask_pointer(void) {
    struct answers *a = &answers;
    int stack[64];
    unsigned char raw[32];
    about("device", a->buffer + 8);
    about("managed", a->managed + 8);
    about("pool", a->pooled + 8);
    about("pinned", (CUdeviceptr)(uintptr_t)a->pinned + 8);
    about("stack", (CUdeviceptr)(uintptr_t)stack);
    about("NULL", 0);
    for (int id = 1; id <= CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE; id++) {
        memset(raw, 0xa5, sizeof raw);
        int result = cuPointerGetAttribute(raw, (CUpointer_attribute)id, a->buffer + 8);
        NOTE("attribute %d of device memory: %d, writes %d bytes\n", id, result, written(raw));
    }
    for (int id = 1; id <= CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE; id++) {
        CUpointer_attribute one = (CUpointer_attribute)id;
        void *out = raw;
        memset(raw, 0xa5, sizeof raw);
        int result = cuPointerGetAttributes(1, &one, &out, (CUdeviceptr)(uintptr_t)stack);
        NOTE("attribute %d of foreign memory: %d, writes %d bytes\n", id, result, written(raw));
    }
}

void ask_memory(void) {
    struct answers *a = &answers;
    int host[64] = {0};
    CUdeviceptr on_stack = (CUdeviceptr)(uintptr_t)host, p;
    size_t bytes;
    ASK(cuMemcpyHtoDAsync(a->buffer, host, 4097, a->stream));
    ASK(cuMemcpyDtoHAsync(host, a->buffer - 4, 8, a->stream));
    ASK(cuMemsetD32Async(a->buffer + 2, 0, 1, a->stream));
    ASK(cuMemsetD8Async(on_stack, 0, 1, a->stream));
    ASK(cuMemsetD32Async(a->buffer, 0, 1025, a->stream));
    ASK(cuMemsetD32Async(a->buffer, 0, 0, a->stream));
    ASK(cuMemsetD2D32(a->buffer, 8, 0, 3, 2));
    ASK(cuMemcpyDtoDAsync(a->buffer, a->buffer, 0, a->stream));
    ASK(cuMemcpyAsync(a->buffer, 0, 4, a->stream));
    ASK(cuMemcpyAsync(on_stack, on_stack + 8, 4, a->stream));
    ASK(cuMemcpyHtoDAsync(on_stack + 8, host, 4, a->stream));
    ASK(cuMemFree(a->buffer + 4));
    ASK(cuMemFree(0));
    ASK(cuMemFree((CUdeviceptr)(uintptr_t)a->pinned));
    ASK(cuMemFreeHost(host));
    ASK(cuMemFreeHost((void *)(uintptr_t)a->buffer));
    ASK(cuMemAlloc(&p, 0));
    ASK(cuMemGetAddressRange(&p, &bytes, on_stack));
    ASK(cuMemHostGetDevicePointer(&p, host, 0));
    ASK(cuMemHostUnregister(host));
    int *registered = aligned_alloc(4096, 8192);
    ASK(cuMemHostRegister(registered, 4096, 0));
    ASK(cuMemHostRegister(registered, 4096, 0));
    ASK(cuMemHostRegister(registered + 4, 16, 0));
    ASK(cuMemcpyHtoDAsync(a->buffer, registered + 1000, 200, a->stream));
    ASK(cuMemHostGetDevicePointer(&p, registered, 0));
    NOTE("device and host pointer are %s\n",
         p == (CUdeviceptr)(uintptr_t)registered ? "the same" : "different");
    DO(cuStreamSynchronize(a->stream));
    ASK(cuMemHostUnregister(registered + 4));
    ASK(cuMemHostUnregister(registered));
    free(registered);
    ASK(cuStreamWaitValue32(a->stream, a->buffer + 2, 0, 0));
    ASK(cuStreamWriteValue32(a->stream, on_stack, 0, 0));
    DO(cuMemAllocAsync(&p, 64, a->stream));
    ASK(cuMemFreeAsync(p, a->stream));
    ASK(cuMemFreeAsync(p, a->stream));
    ASK(cuCtxSynchronize());
}

void ask_event(void) {
    struct answers *a = &answers;
    CUevent never, untimed, bad;
    float ms;
    DO(cuEventCreate(&never, 0));
    DO(cuEventCreate(&untimed, CU_EVENT_DISABLE_TIMING));
    DO(cuEventRecord(untimed, a->stream));
    DO(cuEventRecord(a->event, a->stream));
    DO(cuStreamSynchronize(a->stream));
    ASK(cuEventCreate(&bad, 64));
    ASK(cuEventQuery(never));
    ASK(cuEventSynchronize(never));
    ASK(cuStreamWaitEvent(a->stream, never, 0));
    ASK(cuEventElapsedTime(&ms, never, a->event));
    ASK(cuEventElapsedTime(&ms, untimed, a->event));
    ASK(cuEventElapsedTime(&ms, a->event, a->event));
    ASK(cuEventRecordWithFlags(a->event, a->stream, CU_EVENT_RECORD_EXTERNAL));
    ASK(cuStreamWaitEvent(a->stream, a->event, CU_EVENT_WAIT_EXTERNAL));
    ASK(cuEventRecord(NULL, a->stream));
    DO(cuEventDestroy(never));
    DO(cuEventDestroy(untimed));
}
