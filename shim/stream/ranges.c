/*
 * What memory an address lies in, as far as CUDA knows it.
 *
 * Asked at memset and copy ops on program threads. One query per range and life: the answer is kept
 * until anything is freed, unmapped or unregistered anywhere (cus_ranges_forget). Only memory that
 * CUDA allocated or registered, and that is not managed, is ever more than UNKNOWN: anything else
 * may be pageable, foreign or wrong, and its op goes out at once (HAZARDS C4, C6, C10).
 *
 * Virtual memory belongs to no context, and the range that the driver names is its reservation,
 * holes included. There the mapping is the range, it must allow this device to write, and an op may
 * lie across mappings that touch.
 */
#include "shim/base/hazard.h"
#include "shim/graph/relax.h"
#include "shim/stream/tap.h"

enum { RANGES = 64 };

struct range {
    uint64_t start, end;
    CUcontext context;
    enum cus_family family;
};

static struct cus_lock range_lock = CUS_LOCK_OF(CUS_RANK_INNERMOST);
static struct range ranges[RANGES]; /* range_lock; most recently found first within the first few */
static uint32_t n_ranges, next_range;

void cus_ranges_forget(void) {
    cus_lock_take(&range_lock);
    n_ranges = next_range = 0;
    __atomic_add_fetch(&cus_process.memory_epoch, 1, __ATOMIC_RELEASE);
    cus_lock_give(&range_lock);
}

/* Makes of the reservation that an address lies in the mapping. True: the current context may read
 * and write it. */
static bool ask_mapping(uint64_t address, CUdeviceptr *start, size_t *size) {
    unsigned mapped = 0;
    unsigned access = 0;
    CUdeviceptr base = 0;
    size_t bytes = 0;
    CUpointer_attribute ids[] = {CU_POINTER_ATTRIBUTE_MAPPED, CU_POINTER_ATTRIBUTE_ACCESS_FLAGS,
                                 CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR,
                                 CU_POINTER_ATTRIBUTE_MAPPING_SIZE};
    void *values[] = {&mapped, &access, &base, &bytes};
    struct cus_relaxed relaxed = cus_relax(cus_process.driver);
    CUresult result = cus_process.driver->cuPointerGetAttributes(sizeof ids / sizeof *ids, ids,
                                                                 values, (CUdeviceptr)address);
    cus_relax_end(cus_process.driver, relaxed);
    if (result != CUDA_SUCCESS || !(mapped & 1) || address < base || address - base >= bytes)
        return false;
    *start = base;
    *size = bytes;
    return access == CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE;
}

static enum cus_family ask(uint64_t address, CUcontext current, struct range *range) {
    CUmemorytype type = 0;
    unsigned managed = 0;
    int ordinal = -1;
    CUdeviceptr start = 0;
    size_t size = 0;
    CUmemoryPool pool = NULL;
    CUcontext context = NULL;
    CUpointer_attribute ids[] = {
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE,    CU_POINTER_ATTRIBUTE_IS_MANAGED,
        CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
        CU_POINTER_ATTRIBUTE_RANGE_SIZE,     CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE,
        CU_POINTER_ATTRIBUTE_CONTEXT};
    void *values[] = {&type, &managed, &ordinal, &start, &size, &pool, &context};
    struct cus_relaxed relaxed = cus_relax(cus_process.driver);
    CUresult result = cus_process.driver->cuPointerGetAttributes(sizeof ids / sizeof *ids, ids,
                                                                 values, (CUdeviceptr)address);
    cus_relax_end(cus_process.driver, relaxed);
    bool mapped = false;
    if (result == CUDA_SUCCESS && !context && !pool && !managed) {
        if (type == CU_MEMORYTYPE_DEVICE)
            mapped = ask_mapping(address, &start, &size);
        if (!mapped && type != CU_MEMORYTYPE_HOST)
            start = size = 0; /* a reservation at most, of which this address says nothing */
    }
    if (cus_recording())
        cus_tap_range(
            &(struct cst_range){
                .result = (int32_t)result,
                .asked = address,
                .start = start,
                .size = size,
                .type = type,
                .managed = managed,
                .device = ordinal,
                .own = pool     ? 2
                       : mapped ? 3
                                : context == current,
            },
            current);
    if (result != CUDA_SUCCESS || (CUS_HAZARD(C10) && managed) || size == 0)
        return CUS_FAMILY_UNKNOWN;
    range->start = start;
    range->end = start + size;
    range->context = current;
    if (type == CU_MEMORYTYPE_HOST)
        return CUS_FAMILY_HOST;
    if (type != CU_MEMORYTYPE_DEVICE)
        return CUS_FAMILY_UNKNOWN;
    /* Memory of another device is a peer's. */
    CUdevice device = -1;
    if (cus_process.driver->cuCtxGetDevice(&device) != CUDA_SUCCESS || device != ordinal)
        return CUS_FAMILY_UNKNOWN;
    if (pool)
        return CUS_FAMILY_POOL;
    if (mapped)
        return CUS_FAMILY_VIRTUAL;
    return context == current ? CUS_FAMILY_DEVICE : CUS_FAMILY_UNKNOWN;
}

/* Mappings come by the thousand: those that touch are kept as one range. Lock held. */
static bool joined(const struct range *range) {
    if (range->family != CUS_FAMILY_VIRTUAL)
        return false;
    for (uint32_t i = 0; i < n_ranges; i++) {
        struct range *have = &ranges[i];
        if (have->family != CUS_FAMILY_VIRTUAL || have->context != range->context ||
            range->start > have->end || range->end < have->start)
            continue;
        if (range->start < have->start)
            have->start = range->start;
        if (range->end > have->end)
            have->end = range->end;
        return true;
    }
    return false;
}

enum cus_family cus_ranges_family(uint64_t address, uint64_t bytes) {
    CUcontext current = NULL;
    if (cus_process.driver->cuCtxGetCurrent(&current) != CUDA_SUCCESS || !current)
        return CUS_FAMILY_UNKNOWN;
    uint64_t end = address + bytes;
    cus_lock_take(&range_lock);
    uint32_t age = cus_ranges_epoch(); /* what is asked before a forget is not kept after it */
    for (uint32_t i = 0; i < n_ranges; i++)
        if (address >= ranges[i].start && end <= ranges[i].end && end >= address &&
            ranges[i].context == current) {
            enum cus_family family = ranges[i].family;
            cus_lock_give(&range_lock);
            return family;
        }
    cus_lock_give(&range_lock);

    struct range range = {0};
    range.family = ask(address, current, &range);
    while (range.family == CUS_FAMILY_VIRTUAL && end > range.end) {
        struct range next = {0};
        if (ask(range.end, current, &next) != CUS_FAMILY_VIRTUAL)
            break;
        range.end = next.end;
    }
    if (range.family == CUS_FAMILY_UNKNOWN ||
        (CUS_HAZARD(C4) && (address < range.start || end > range.end || end < address)))
        return CUS_FAMILY_UNKNOWN;
    cus_lock_take(&range_lock);
    if (age == cus_ranges_epoch() && !joined(&range)) {
        ranges[next_range] = range;
        next_range = (next_range + 1) % RANGES;
        if (n_ranges < RANGES)
            n_ranges++;
    }
    cus_lock_give(&range_lock);
    return range.family;
}
