/*
 * What device memory there is, as far as the program's calls tell, and which of it the ops of a
 * graph may write.
 *
 * Filled in mode verify alone, by the hooks of calls that allocate and free; read by the verifier.
 * Any thread; an innermost lock of its own. Calls nothing of the driver but cuCtxGetCurrent,
 * cuCtxGetDevice and cuPointerGetAttributes. What a call of an unknown kind allocated is missing
 * here; its ranges are found when an op points at them.
 */
#ifndef CUSPLICE_VERIFY_MEMORY_H
#define CUSPLICE_VERIFY_MEMORY_H

#include "shim/api/driver.h"
#include "shim/plan/op.h"

/* The program allocated; the context is current. */
void cus_memory_made(const struct cus_driver *driver, uint64_t address);
/* It is about to free what begins at this address, or may be. */
void cus_memory_gone(uint64_t address);

struct cus_range {
    uint64_t start, bytes;
    bool host; /* pinned memory that a copy writes: exactly what it writes */
};

struct cus_range_list {
    struct cus_range *ranges; /* by address, no two alike */
    uint32_t n, room;
    bool failed; /* no memory: something is missing */
};

/* One op, as the program asked for it. */
struct cus_verify_op {
    const struct cus_kind *kind;
    const struct cus_values *requested;
    const struct cus_values *node; /* what its node held when the graph was launched last, or was
                                    made with */
};

/* Device memory of the context that is known, all of it. */
void cus_memory_all(const struct cus_driver *driver, CUcontext context,
                    struct cus_range_list *list);
/* What the ops have pointers to: the allocation around each word of their params that is an address
 * in one; what copies into pinned memory write. False where that is memory that the host may use at
 * the same time (managed, or pinned and given to a kernel), or another device: it cannot be set
 * back. */
bool cus_memory_of_ops(const struct cus_driver *driver, const struct cus_verify_op *ops, uint32_t n,
                       struct cus_range_list *list);
/* Sorts, throws out doubles. */
void cus_memory_tidy(struct cus_range_list *list);
uint64_t cus_memory_bytes(const struct cus_range_list *list, bool host);
void cus_memory_free(struct cus_range_list *list);

#endif
