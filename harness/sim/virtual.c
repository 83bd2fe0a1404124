/*
 * Virtual memory: reservations of addresses, allocations of memory, and mappings of memory to
 * addresses.
 *
 * Under cusim.lock; only cusim_virtual_reserved may be called without it. A device's memory is one
 * unnamed file, so an allocation may be mapped several times; a mapping is a block of memory.c's
 * table. As in driver 580 (gate table of tests/gpu), nothing here waits for work, and captures
 * forbid nothing. If a program unmaps memory in use, it crashes.
 */
#include "harness/sim/cusim.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { GRANULE = 2 << 20, PAGE = 4096 };

/* Never freed, so it may be read without the lock; a free reservation has no bytes. */
struct reservation {
    struct reservation *_Atomic next;
    _Atomic uintptr_t base;
    _Atomic size_t bytes;
};

struct cusim_physical {
    struct cusim_physical *next; /* of the device, by offset */
    size_t offset, bytes;
    unsigned handles, mappings; /* freed when both are 0 */
    CUmemAllocationProp prop;
};

/* The addresses of reservations without a hint; the second row is for processes under
 * ThreadSanitizer. */
static const struct {
    uintptr_t from, to;
} places[] = {{0x340000000000, 0x3c0000000000}, {0x6800000000, 0x7e00000000}};
extern void __tsan_init(void) __attribute__((weak));

static struct reservation *_Atomic reservations;
static struct {
    int file; /* 0: not yet open */
    struct cusim_physical *first;
} devices[CUSIM_DEVICES_MAX];

static bool aligned(uint64_t value) {
    return value % GRANULE == 0;
}

/* ---- addresses ---- */

static struct reservation *reservation_of(uintptr_t address) {
    struct reservation *r = atomic_load_explicit(&reservations, memory_order_acquire);
    for (; r; r = r->next)
        if (address - r->base < r->bytes)
            return r;
    return NULL;
}

bool cusim_virtual_reserved(uintptr_t address, uintptr_t *base, size_t *bytes) {
    struct reservation *r = reservation_of(address);
    if (r && base)
        *base = r->base;
    if (r && bytes)
        *bytes = r->bytes;
    return r != NULL;
}

static struct reservation *overlapping(uintptr_t at, size_t bytes) {
    for (struct reservation *r = reservations; r; r = r->next)
        if (r->bytes && r->base < at + bytes && at < r->base + r->bytes)
            return r;
    return NULL;
}

/* True: nothing of the process is there. Reserved addresses are not mapped before memory is: the
 * kernel gives them to nobody who does not ask for them, and qemu-user takes 24 bytes and some time
 * for each page of a mapping. */
static bool is_free(uintptr_t at, size_t bytes) {
    uintptr_t low, high, most = (uintptr_t)1 << 47;
    if (at > most || bytes > most - at || overlapping(at, bytes) || cusim_mem_in_arena(at) ||
        cusim_mem_in_arena(at + bytes - 1))
        return false;
    FILE *maps = fopen("/proc/self/maps", "re");
    bool is = maps != NULL;
    while (is && fscanf(maps, "%" SCNxPTR "-%" SCNxPTR "%*[^\n]", &low, &high) == 2)
        is = high <= at || at + bytes <= low;
    if (maps)
        fclose(maps);
    return is;
}

static uintptr_t reserve_anywhere(size_t bytes, size_t alignment) {
    uintptr_t at = places[__tsan_init != NULL].from, to = places[__tsan_init != NULL].to;
    for (;;) {
        at = (at + alignment - 1) / alignment * alignment;
        if (at > to || bytes > to - at)
            return 0;
        struct reservation *taken = overlapping(at, bytes);
        if (!taken && is_free(at, bytes))
            return at;
        at = taken ? taken->base + taken->bytes : at + ((size_t)1 << 32);
    }
}

CUSIM_LOCKED(cuMemAddressReserve,
             (CUdeviceptr * out, size_t bytes, size_t alignment, CUdeviceptr hint,
              unsigned long long flags),
             (out, bytes, alignment, hint, flags)) {
    if (!out || bytes == 0 || bytes % PAGE != 0 || hint % PAGE != 0 || flags != 0 ||
        (alignment & (alignment - 1)) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (alignment < GRANULE)
        alignment = GRANULE;
    uintptr_t at = hint && hint % alignment == 0 && is_free(hint, bytes) ? hint : 0;
    if (!at)
        at = reserve_anywhere(bytes, alignment);
    if (!at)
        return CUDA_ERROR_OUT_OF_MEMORY;
    struct reservation *r = reservations;
    while (r && r->bytes)
        r = r->next;
    if (r) {
        r->base = at;
        r->bytes = bytes;
    } else {
        r = calloc(1, sizeof *r);
        r->base = at;
        r->bytes = bytes;
        r->next = reservations;
        atomic_store_explicit(&reservations, r, memory_order_release);
    }
    *out = at;
    return CUDA_SUCCESS;
}

CUSIM_LOCKED(cuMemAddressFree, (CUdeviceptr base, size_t bytes), (base, bytes)) {
    struct reservation *r = reservation_of(base);
    if (!r || r->base != base || r->bytes != bytes || cusim_mem_next(base, base + bytes))
        return CUDA_ERROR_INVALID_VALUE;
    r->bytes = 0;
    return CUDA_SUCCESS;
}

/* ---- memory ---- */

static CUresult check_prop(const CUmemAllocationProp *prop) {
    if (!prop || prop->type != CU_MEM_ALLOCATION_TYPE_PINNED)
        return CUDA_ERROR_INVALID_VALUE;
    if (prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE || prop->requestedHandleTypes != 0)
        return CUDA_ERROR_NOT_SUPPORTED;
    return cusim_device_get(prop->location.id) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUSIM_LOCKED(cuMemGetAllocationGranularity,
             (size_t * bytes, const CUmemAllocationProp *prop,
              CUmemAllocationGranularity_flags option),
             (bytes, prop, option)) {
    if (!bytes || (option != CU_MEM_ALLOC_GRANULARITY_MINIMUM &&
                   option != CU_MEM_ALLOC_GRANULARITY_RECOMMENDED))
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = check_prop(prop);
    if (result == CUDA_SUCCESS)
        *bytes = GRANULE;
    return result;
}

static struct cusim_physical *physical_of(CUmemGenericAllocationHandle handle) {
    void *pointer = (void *)(uintptr_t)handle;
    return cusim_handle_is(pointer, CUSIM_PHYSICAL) ? pointer : NULL;
}

CUSIM_LOCKED(cuMemCreate,
             (CUmemGenericAllocationHandle * out, size_t bytes, const CUmemAllocationProp *prop,
              unsigned long long flags),
             (out, bytes, prop, flags)) {
    if (!out || bytes == 0 || !aligned(bytes) || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = check_prop(prop);
    if (result != CUDA_SUCCESS)
        return result;
    int device = prop->location.id;
    if (!devices[device].file) {
        int file = memfd_create("cusim device memory", MFD_CLOEXEC);
        if (file < 0)
            return CUDA_ERROR_OUT_OF_MEMORY;
        devices[device].file = file;
    }
    if (!cusim_mem_charge(device, bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    /* First fit. The file grows as needed, and may be longer than the device's memory. */
    size_t offset = 0;
    struct cusim_physical **at = &devices[device].first;
    for (; *at && (*at)->offset - offset < bytes; at = &(*at)->next)
        offset = (*at)->offset + (*at)->bytes;
    if (!*at && ftruncate(devices[device].file, (off_t)(offset + bytes)) != 0) {
        cusim_mem_discharge(device, bytes);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    struct cusim_physical *p = calloc(1, sizeof *p);
    *p = (struct cusim_physical){
        .next = *at, .offset = offset, .bytes = bytes, .handles = 1, .prop = *prop};
    *at = p;
    cusim_handle_add(p, CUSIM_PHYSICAL);
    *out = (CUmemGenericAllocationHandle)(uintptr_t)p;
    return CUDA_SUCCESS;
}

static void physical_unref(struct cusim_physical *p) {
    if (p->handles || p->mappings)
        return;
    int device = p->prop.location.id;
    struct cusim_physical **at = &devices[device].first;
    while (*at != p)
        at = &(*at)->next;
    *at = p->next;
    /* The next allocation there must be zero. */
    fallocate(devices[device].file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)p->offset,
              (off_t)p->bytes);
    cusim_mem_discharge(device, p->bytes);
    free(p);
}

CUSIM_LOCKED(cuMemRelease, (CUmemGenericAllocationHandle handle), (handle)) {
    struct cusim_physical *p = physical_of(handle);
    if (!p)
        return CUDA_ERROR_INVALID_VALUE;
    if (--p->handles == 0)
        cusim_handle_remove(p);
    physical_unref(p);
    return CUDA_SUCCESS;
}

CUSIM_LOCKED(cuMemRetainAllocationHandle, (CUmemGenericAllocationHandle * out, void *address),
             (out, address)) {
    struct cusim_mem *mem = cusim_mem_find((uintptr_t)address);
    if (!out || !mem || mem->kind != CUSIM_MEM_VIRTUAL)
        return CUDA_ERROR_INVALID_VALUE;
    if (mem->physical->handles++ == 0)
        cusim_handle_add(mem->physical, CUSIM_PHYSICAL);
    *out = (CUmemGenericAllocationHandle)(uintptr_t)mem->physical;
    return CUDA_SUCCESS;
}

CUSIM_LOCKED(cuMemGetAllocationPropertiesFromHandle,
             (CUmemAllocationProp * prop, CUmemGenericAllocationHandle handle), (prop, handle)) {
    struct cusim_physical *p = physical_of(handle);
    if (!prop || !p)
        return CUDA_ERROR_INVALID_VALUE;
    *prop = p->prop;
    return CUDA_SUCCESS;
}

/* ---- mappings ---- */

CUSIM_LOCKED(cuMemMap,
             (CUdeviceptr base, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
              unsigned long long flags),
             (base, bytes, offset, handle, flags)) {
    struct cusim_physical *p = physical_of(handle);
    struct reservation *r = reservation_of(base);
    if (!p || !r || !aligned(base) || bytes == 0 || !aligned(bytes) || bytes > p->bytes ||
        offset != 0 || flags != 0 || bytes > r->bytes - (base - r->base) ||
        cusim_mem_next(base, base + bytes))
        return CUDA_ERROR_INVALID_VALUE;
    int device = p->prop.location.id;
    /* Not by mmap(): a sanitizer's mmap would touch the shadow of all of it. */
    if ((void *)syscall(SYS_mmap, base, bytes, PROT_NONE, MAP_SHARED | MAP_FIXED,
                        devices[device].file, (off_t)p->offset) == MAP_FAILED)
        return CUDA_ERROR_OUT_OF_MEMORY;
    madvise((void *)base, bytes, MADV_DONTDUMP);
    struct cusim_mem *mem = calloc(1, sizeof *mem);
    *mem = (struct cusim_mem){.base = base,
                              .bytes = bytes,
                              .kind = CUSIM_MEM_VIRTUAL,
                              .device = device,
                              .id = cusim_new_id(),
                              .physical = p};
    p->mappings++;
    cusim_mem_insert(mem);
    return CUDA_SUCCESS;
}

/* Tells whether [base, base + bytes) consists of whole mappings. */
static bool whole_mappings(uintptr_t base, size_t bytes) {
    uintptr_t at = base;
    if (bytes == 0 || base + bytes < base)
        return false;
    while (at < base + bytes) {
        struct cusim_mem *mem = cusim_mem_at(at);
        if (!mem || mem->kind != CUSIM_MEM_VIRTUAL)
            return false;
        at += mem->bytes;
    }
    return at == base + bytes;
}

CUSIM_LOCKED(cuMemUnmap, (CUdeviceptr base, size_t bytes), (base, bytes)) {
    if (!whole_mappings(base, bytes))
        return CUDA_ERROR_INVALID_VALUE;
    syscall(SYS_munmap, base, bytes);
    for (struct cusim_mem *mem; (mem = cusim_mem_next(base, base + bytes));) {
        struct cusim_physical *p = mem->physical;
        cusim_mem_free(mem);
        p->mappings--;
        physical_unref(p);
    }
    return CUDA_SUCCESS;
}

static CUresult device_of(const CUmemLocation *location, int *device) {
    if (!location || location->type == CU_MEM_LOCATION_TYPE_INVALID)
        return CUDA_ERROR_INVALID_VALUE;
    if (location->type != CU_MEM_LOCATION_TYPE_DEVICE)
        return CUDA_ERROR_NOT_SUPPORTED;
    *device = location->id;
    return cusim_device_get(location->id) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUSIM_LOCKED(cuMemSetAccess,
             (CUdeviceptr base, size_t bytes, const CUmemAccessDesc *access, size_t n),
             (base, bytes, access, n)) {
    if (!access || n == 0 || !whole_mappings(base, bytes))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < n; i++) {
        int device;
        CUresult result = device_of(&access[i].location, &device);
        if (result != CUDA_SUCCESS)
            return result;
        if (access[i].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE &&
            access[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READ &&
            access[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
            return CUDA_ERROR_INVALID_VALUE;
    }
    for (uintptr_t at = base; at < base + bytes;) {
        struct cusim_mem *mem = cusim_mem_at(at);
        for (size_t i = 0; i < n; i++)
            mem->access[access[i].location.id] = (unsigned char)access[i].flags;
        /* The pages allow what the device with the most access may do. */
        mem->flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
        for (int i = 0; i < CUSIM_DEVICES_MAX; i++)
            if (mem->access[i] > mem->flags)
                mem->flags = mem->access[i];
        syscall(SYS_mprotect, at, mem->bytes,
                mem->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE ? PROT_READ | PROT_WRITE
                : mem->flags == CU_MEM_ACCESS_FLAGS_PROT_READ    ? PROT_READ
                                                                 : PROT_NONE);
        at += mem->bytes;
    }
    return CUDA_SUCCESS;
}

CUSIM_LOCKED(cuMemGetAccess,
             (unsigned long long *flags, const CUmemLocation *location, CUdeviceptr address),
             (flags, location, address)) {
    int device;
    struct cusim_mem *mem = cusim_mem_find(address);
    if (!flags || !mem || mem->kind != CUSIM_MEM_VIRTUAL)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = device_of(location, &device);
    if (result == CUDA_SUCCESS)
        *flags = mem->access[device];
    return result;
}

bool cusim_virtual_allows(uintptr_t address, size_t bytes, unsigned flags) {
    uintptr_t at = address, end = address + bytes;
    while (at < end) {
        struct cusim_mem *mem = cusim_mem_find(at);
        if (!mem || mem->kind != CUSIM_MEM_VIRTUAL || mem->flags < flags)
            return false;
        at = mem->base + mem->bytes;
    }
    return true;
}
