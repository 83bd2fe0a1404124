/*
 * The table of allocations, and the search for pointers in params.
 */
#include "shim/verify/memory.h"

#include <string.h>

#include "shim/base/lock.h"
#include "shim/base/mem.h"
#include "shim/graph/relax.h"

struct allocation {
    uint64_t start, bytes;
    CUcontext context;
};

static struct cus_lock lock = CUS_LOCK_OF(CUS_RANK_INNERMOST);
static struct allocation *allocations; /* guarded by lock; sorted by address */
static uint32_t n_allocations, room;   /* guarded by lock */

struct answer {
    uint64_t start, bytes;
    bool device; /* memory of this context's device that is not managed */
    bool remote; /* of another device, which may use it meanwhile */
};

/* False: CUDA knows no memory at this address. */
static bool ask(const struct cus_driver *driver, uint64_t address, struct answer *answer) {
    CUmemorytype type = 0;
    unsigned managed = 0;
    int at = 0;
    CUdeviceptr start = 0;
    CUdevice here = 0;
    size_t size = 0;
    CUpointer_attribute ids[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                 CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
                                 CU_POINTER_ATTRIBUTE_RANGE_SIZE,
                                 CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
    void *values[] = {&type, &managed, &start, &size, &at};
    struct cus_relaxed relaxed = cus_relax(driver);
    CUresult result =
        driver->cuPointerGetAttributes(sizeof ids / sizeof *ids, ids, values, (CUdeviceptr)address);
    if (result == CUDA_SUCCESS)
        result = driver->cuCtxGetDevice(&here);
    cus_relax_end(driver, relaxed);
    bool device = type == CU_MEMORYTYPE_DEVICE && !managed;
    *answer = (struct answer){start, size, device && at == here, device && at != here};
    return result == CUDA_SUCCESS && size > 0 && type != 0;
}

/* The first entry that begins after `address`. Lock held. */
static uint32_t behind(uint64_t address) {
    uint32_t low = 0, high = n_allocations;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (allocations[middle].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Makes sure that an array of `*have` elements has room for one more than `n`. */
static bool grow(void **array, uint32_t n, uint32_t *have, size_t element) {
    if (n < *have)
        return true;
    uint32_t wanted = *have ? *have * 2 : 64;
    void *more = cus_mem_alloc(wanted * element);
    if (!more)
        return false;
    if (n)
        memcpy(more, *array, n * element);
    cus_mem_free(*array);
    *array = more;
    *have = wanted;
    return true;
}

void cus_memory_made(const struct cus_driver *driver, uint64_t address) {
    struct answer answer;
    CUcontext context = NULL;
    if (driver->cuCtxGetCurrent(&context) != CUDA_SUCCESS || !ask(driver, address, &answer) ||
        !answer.device)
        return;
    cus_lock_take(&lock);
    uint32_t at = behind(answer.start);
    struct allocation made = {answer.start, answer.bytes, context};
    if (at > 0 && allocations[at - 1].start == answer.start) {
        allocations[at - 1] = made;
    } else if (grow((void **)&allocations, n_allocations, &room, sizeof made)) {
        memmove(allocations + at + 1, allocations + at, (n_allocations - at) * sizeof made);
        allocations[at] = made;
        n_allocations++;
    }
    cus_lock_give(&lock);
}

void cus_memory_gone(uint64_t address) {
    cus_lock_take(&lock);
    uint32_t at = behind(address);
    if (at > 0 && allocations[at - 1].start == address) {
        memmove(allocations + at - 1, allocations + at, (n_allocations - at) * sizeof *allocations);
        n_allocations--;
    }
    cus_lock_give(&lock);
}

void cus_memory_drop(void) {
    cus_mem_free(allocations);
    allocations = NULL;
    n_allocations = room = 0;
}

/* ---- lists ---- */

static void add(struct cus_range_list *list, struct cus_range range) {
    if (grow((void **)&list->ranges, list->n, &list->room, sizeof range))
        list->ranges[list->n++] = range;
    else
        list->failed = true;
}

void cus_memory_all(const struct cus_driver *driver, CUcontext context,
                    struct cus_range_list *list) {
    cus_lock_take(&lock);
    for (uint32_t i = 0; i < n_allocations; i++)
        if (allocations[i].context == context)
            add(list, (struct cus_range){allocations[i].start, allocations[i].bytes, false});
    cus_lock_give(&lock);
    /* If the program freed memory in a way that no hook saw, it must not be touched. */
    uint32_t kept = 0;
    for (uint32_t i = 0; i < list->n; i++) {
        struct answer answer;
        struct cus_range *range = &list->ranges[i];
        if (ask(driver, range->start, &answer) && answer.device && answer.start == range->start &&
            answer.bytes == range->bytes)
            list->ranges[kept++] = *range;
    }
    list->n = kept;
}

static bool in_list(const struct cus_range_list *list, uint64_t address) {
    for (uint32_t i = list->n; i-- > 0;)
        if (!list->ranges[i].host && address - list->ranges[i].start < list->ranges[i].bytes)
            return true;
    return false;
}

/* Adds the allocation of a word that may be an address. False: the host or another device may
 * use that memory. */
static bool add_word(const struct cus_driver *driver, uint64_t word, struct cus_range_list *list) {
    struct answer answer;
    if (word < 4096 || in_list(list, word) || !ask(driver, word, &answer))
        return true;
    if (!answer.device)
        return false;
    add(list, (struct cus_range){answer.start, answer.bytes, false});
    return true;
}

static bool add_launch(const struct cus_driver *driver, const struct cus_verify_op *op,
                       struct cus_range_list *list) {
    const struct cus_layout *layout = op->kind->layout;
    for (uint32_t i = 0; i < layout->n; i++) {
        const struct cus_argument *argument = &layout->arguments[i];
        /* An address inside a struct lies at a multiple of eight bytes. */
        for (uint32_t at = (8 - argument->offset % 8) % 8; at + 8 <= argument->size; at += 8)
            if (!add_word(driver, cus_word_at(op->requested->params + argument->offset + at), list))
                return false;
    }
    return true;
}

static bool add_copy(const struct cus_driver *driver, const struct cus_verify_op *op,
                     struct cus_range_list *list) {
    struct cus_copy_params params;
    struct answer answer;
    memcpy(&params, op->requested->params, sizeof params);
    uint64_t bytes = op->requested->dims[0] | (uint64_t)op->requested->dims[1] << 32;
    if (!ask(driver, params.dst, &answer) || answer.remote)
        return false;
    if (answer.device)
        return add_word(driver, params.dst, list);
    add(list, (struct cus_range){params.dst, bytes, true});
    return true;
}

bool cus_memory_of_ops(const struct cus_driver *driver, const struct cus_verify_op *ops, uint32_t n,
                       struct cus_range_list *list) {
    for (uint32_t i = 0; i < n; i++) {
        struct cus_memset_params params;
        switch (ops[i].kind->type) {
        case CUS_OP_MEMSET:
            memcpy(&params, ops[i].requested->params, sizeof params);
            if (!add_word(driver, params.dst, list))
                return false;
            break;
        case CUS_OP_RECORD:
        case CUS_OP_WAIT:
            break;
        case CUS_OP_COPY:
            if (!add_copy(driver, &ops[i], list))
                return false;
            break;
        default:
            if (!add_launch(driver, &ops[i], list))
                return false;
        }
    }
    return true;
}

/* An insertion sort, in place: there are few ranges. */
void cus_memory_tidy(struct cus_range_list *list) {
    struct cus_range *r = list->ranges;
    for (uint32_t i = 1; i < list->n; i++) {
        struct cus_range one = r[i];
        uint32_t at = i;
        for (; at > 0 && r[at - 1].start > one.start; at--)
            r[at] = r[at - 1];
        r[at] = one;
    }
    uint32_t kept = 0;
    for (uint32_t i = 0; i < list->n; i++) {
        struct cus_range *last = kept ? &r[kept - 1] : NULL;
        if (last && last->host == r[i].host && r[i].start < last->start + last->bytes) {
            uint64_t end = r[i].start + r[i].bytes;
            if (end > last->start + last->bytes)
                last->bytes = end - last->start;
        } else {
            r[kept++] = r[i];
        }
    }
    list->n = kept;
}

uint64_t cus_memory_bytes(const struct cus_range_list *list, bool host) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < list->n; i++)
        bytes += list->ranges[i].host == host ? list->ranges[i].bytes : 0;
    return bytes;
}

void cus_memory_free(struct cus_range_list *list) {
    cus_mem_free(list->ranges);
    *list = (struct cus_range_list){0};
}
