/*
 * The kind of memory that an address lies in, as far as CUDA knows. Asked for memsets and copies on
 * program threads; range_lock is innermost. The driver is asked once per range: answers are kept
 * until anything is freed, unmapped or unregistered (cus_ranges_forget). Only memory that CUDA
 * allocated or registered, and that is not managed, is known. An op on other memory is issued at
 * once (HAZARDS C4, C6, C10), but for small uploads from an address of which the driver knows
 * nothing (C15).
 */
#include <string.h>

#include "shim/base/hazard.h"
#include "shim/base/mem.h"
#include "shim/graph/relax.h"
#include "shim/stream/ranges.h"
#include "shim/stream/trace.h"

enum { RANGES_FIRST = 64, RANGES_MAX = 8192 };

struct range {
    uint64_t start, end;
    CUcontext context;
    enum cus_family family;
};

static struct cus_lock range_lock = CUS_LOCK_OF(CUS_RANK_INNERMOST);
/* Ordered by context and start. No range lies in another one of its context. range_lock. */
static struct range first_ranges[RANGES_FIRST], *ranges = first_ranges;
static uint32_t n_ranges, room = RANGES_FIRST, victim;

void cus_ranges_forget(void) {
    cus_lock_take(&range_lock);
    n_ranges = 0;
    __atomic_add_fetch(&cus_process.memory_epoch, 1, __ATOMIC_RELEASE);
    cus_lock_give(&range_lock);
}

void cus_ranges_drop(void) {
    if (ranges != first_ranges)
        cus_mem_shrink(ranges);
    ranges = first_ranges;
    room = RANGES_FIRST;
    n_ranges = victim = 0;
}

/* Replaces the reservation of an address by its mapping. True: the current context may read and
 * write the mapping.
 *
 * Virtual memory belongs to no context. For virtual memory the driver names the whole reservation
 * as the range, holes included. So the mapping is used as the range. The mapping must allow this
 * device to write, and an op may lie across mappings that touch. */
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
    bool unknown =
        result == CUDA_SUCCESS && !type && !managed && !start && !size && !pool && !context;
    bool mapped = false;
    if (result == CUDA_SUCCESS && !context && !pool && !managed) {
        if (type == CU_MEMORYTYPE_DEVICE)
            mapped = ask_mapping(address, &start, &size);
        if (!mapped && type != CU_MEMORYTYPE_HOST)
            start = size = 0; /* at most a reservation, which says nothing about this address */
    }
    if (cus_recording())
        cus_trace_range(
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
    if (unknown)
        return CUS_FAMILY_PAGEABLE;
    if (result != CUDA_SUCCESS || (CUS_HAZARD(C10) && managed) || size == 0)
        return CUS_FAMILY_UNKNOWN;
    range->start = start;
    range->end = start + size;
    range->context = current;
    if (type == CU_MEMORYTYPE_HOST)
        return CUS_FAMILY_HOST;
    if (type != CU_MEMORYTYPE_DEVICE)
        return CUS_FAMILY_UNKNOWN;
    /* Memory of another device is peer memory. */
    CUdevice device = -1;
    if (cus_process.driver->cuCtxGetDevice(&device) != CUDA_SUCCESS || device != ordinal)
        return CUS_FAMILY_UNKNOWN;
    if (pool)
        return CUS_FAMILY_POOL;
    if (mapped)
        return CUS_FAMILY_VIRTUAL;
    return context == current ? CUS_FAMILY_DEVICE : CUS_FAMILY_UNKNOWN;
}

/* The number of ranges, in their order, that begin at or before this address of the context. */
static uint32_t begun_by(CUcontext context, uint64_t address) {
    uint32_t from = 0, to = n_ranges;
    while (from < to) {
        uint32_t mid = from + (to - from) / 2;
        const struct range *have = &ranges[mid];
        if (have->context < context || (have->context == context && have->start <= address))
            from = mid + 1;
        else
            to = mid;
    }
    return from;
}

static void take_out(uint32_t i) {
    memmove(&ranges[i], &ranges[i + 1], (--n_ranges - i) * sizeof *ranges);
}

/* Makes room for one more range. If the table cannot grow, a different range goes each time, so
 * that some of many ranges used in turn are still found. */
static void have_room(void) {
    if (n_ranges < room)
        return;
    struct range *more = room < RANGES_MAX ? cus_mem_grow(2 * room * sizeof *more) : NULL;
    if (!more) {
        victim = victim * 1664525 + 1013904223;
        take_out((victim >> 8) % n_ranges);
        return;
    }
    memcpy(more, ranges, n_ranges * sizeof *more);
    if (ranges != first_ranges)
        cus_mem_shrink(ranges);
    ranges = more;
    room *= 2;
}

/* Keeps a range. Mappings come by the thousand, so mappings that touch become one range. Any other
 * range that overlaps the new one is outdated and goes. Range lock held. */
static void keep(struct range range) {
    for (uint32_t i = begun_by(range.context, range.end); i > 0; i--) {
        const struct range *have = &ranges[i - 1];
        if (have->context != range.context || have->end < range.start)
            break;
        bool mappings = have->family == CUS_FAMILY_VIRTUAL && range.family == CUS_FAMILY_VIRTUAL;
        if (!mappings && (have->start == range.end || have->end == range.start))
            continue;
        if (mappings && have->start < range.start)
            range.start = have->start;
        if (mappings && have->end > range.end)
            range.end = have->end;
        take_out(i - 1);
    }
    have_room();
    uint32_t at = begun_by(range.context, range.start);
    memmove(&ranges[at + 1], &ranges[at], (n_ranges++ - at) * sizeof *ranges);
    ranges[at] = range;
}

/* Range lock held. */
static const struct range *find(CUcontext context, uint64_t address, uint64_t end) {
    uint32_t n = begun_by(context, address);
    const struct range *range = n ? &ranges[n - 1] : NULL;
    return range && range->context == context && end <= range->end && end >= address ? range : NULL;
}

bool cus_ranges_forget_at(uint64_t address) {
    bool known = false;
    cus_lock_take(&range_lock);
    for (uint32_t at = 0; at < n_ranges;) {
        CUcontext context = ranges[at].context;
        uint32_t n = begun_by(context, address);
        if (n > at && address < ranges[n - 1].end) {
            take_out(n - 1);
            known = true;
        }
        at = begun_by(context, UINT64_MAX);
    }
    if (known)
        __atomic_add_fetch(&cus_process.memory_epoch, 1, __ATOMIC_RELEASE);
    cus_lock_give(&range_lock);
    return known;
}

enum cus_family cus_ranges_family(uint64_t address, uint64_t bytes) {
    CUcontext current = NULL;
    if (cus_process.driver->cuCtxGetCurrent(&current) != CUDA_SUCCESS || !current)
        return CUS_FAMILY_UNKNOWN;
    uint64_t end = address + bytes;
    cus_lock_take(&range_lock);
    uint32_t age = cus_ranges_epoch(); /* an answer from before a forget is not kept after it */
    const struct range *known = find(current, address, end);
    enum cus_family family = known ? known->family : CUS_FAMILY_UNKNOWN;
    cus_lock_give(&range_lock);
    if (family != CUS_FAMILY_UNKNOWN)
        return family;

    struct range range = {0};
    range.family = ask(address, current, &range);
    if (range.family == CUS_FAMILY_PAGEABLE)
        return range.family;
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
    if (age == cus_ranges_epoch())
        keep(range);
    cus_lock_give(&range_lock);
    return range.family;
}
