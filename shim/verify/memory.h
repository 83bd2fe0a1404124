/*
 * What device memory there is, as far as the program's calls tell, and what of it the ops of a
 * graph may write. Filled only in mode verify, by the hooks of calls that allocate and free; read
 * by the verifier. Any thread; takes an innermost lock of its own. Calls only cuCtxGetCurrent,
 * cuCtxGetDevice and cuPointerGetAttributes. Memory of an unknown call is missing until an op has a
 * pointer to it.
 */
#ifndef CUSPLICE_VERIFY_MEMORY_H
#define CUSPLICE_VERIFY_MEMORY_H

#include "shim/api/driver.h"
#include "shim/plan/op.h"

/* Called after the program allocated; the context is current. */
void cus_memory_made(const struct cus_driver *driver, uint64_t address);
/* Called before the program frees, or may free, what begins at this address. */
void cus_memory_gone(uint64_t address);
/* Forgets all allocations. For cus_engine_end. */
void cus_memory_drop(void);

struct cus_range {
    uint64_t start, bytes;
    bool host; /* pinned memory that a copy writes: exactly what it writes */
};

struct cus_range_list {
    struct cus_range *ranges; /* by address, no two alike */
    uint32_t n, room;
    bool failed; /* no memory: the list is incomplete */
};

/* One op, as the program asked for it. */
struct cus_verify_op {
    const struct cus_kind *kind;
    const struct cus_values *requested;
    const struct cus_values *node; /* what its node held at the graph's last launch, or when the
                                    * graph was built */
};

/* Adds all known device memory of the context. */
void cus_memory_all(const struct cus_driver *driver, CUcontext context,
                    struct cus_range_list *list);
/* Adds the memory to which the ops have pointers: the allocation around each word of their
 * params that is an address, and the pinned memory that copies write. False: the host may use
 * that memory at the same time (managed, or pinned and given to a kernel), or another device
 * may. Such memory cannot be restored. */
bool cus_memory_of_ops(const struct cus_driver *driver, const struct cus_verify_op *ops, uint32_t n,
                       struct cus_range_list *list);
/* Sorts, and merges ranges that overlap. */
void cus_memory_tidy(struct cus_range_list *list);
uint64_t cus_memory_bytes(const struct cus_range_list *list, bool host);
void cus_memory_free(struct cus_range_list *list);

#endif
