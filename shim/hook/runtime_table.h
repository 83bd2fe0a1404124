/*
 * What is known of the kernels that a shared runtime launches, and of the places in the program
 * from which it is asked to: private to runtime.c, runtime_table.c, configuration.c and device.c.
 */
#ifndef CUSPLICE_HOOK_RUNTIME_TABLE_H
#define CUSPLICE_HOOK_RUNTIME_TABLE_H

#include "shim/base/hash.h"
#include "shim/base/lock.h"
#include "shim/base/mem.h"
#include "shim/hook/runtime.h"

/* As <vector_types.h> has it. */
struct cus_dim3 {
    uint32_t x, y, z;
};

/* Fields of a slot are read in this order, between two looks at its tag, and written so. */
#define CUS_RUNTIME_GET(field) __atomic_load_n(&(field), __ATOMIC_ACQUIRE)
#define CUS_RUNTIME_PUT(field, value) __atomic_store_n(&(field), value, __ATOMIC_RELEASE)

/*
 * What is known of a kernel. Written under `table_lock`, `tag` last; then only `handle` changes,
 * once, from NULL, and `tries`. A slot with another tag than the present one is empty: so that
 * whoever finds the tag before and after it read the rest has read one kernel's.
 */
struct cus_runtime_slot {
    uint32_t tag; /* atomic: the epoch, and which function was called */
    uint32_t tries;
    const void *kernel;
    CUcontext context;
    CUfunction handle; /* atomic: NULL while it is not known */
    void *real;        /* of the runtime that answers calls for this kernel */
    bool settled;      /* atomic: there is nothing more to learn where no context is known */
    bool known;        /* it is of a version that may be met here */
    bool attrs;        /* atomic: attributes are handed on by address */
    bool paired;       /* atomic: of a place that pushes configurations: they are fetched here */
    uint32_t devices;  /* atomic, a bit each: of a place that asks for the device: the runtime's
                          number is the driver's */
} __attribute__((aligned(CUS_LINE)));

enum {
    CUS_RUNTIME_SLOTS_LOG2 = 14,
    CUS_RUNTIME_SLOTS = 1 << CUS_RUNTIME_SLOTS_LOG2,
    CUS_RUNTIME_TRIES = 4,
    CUS_RUNTIME_EPOCH = 16
};
_Static_assert((int)CUS_RUNTIMES < (int)CUS_RUNTIME_EPOCH, "a tag has room for the function");
extern struct cus_runtime_slot cus_runtime_table[CUS_RUNTIME_SLOTS];
extern struct cus_lock cus_runtime_lock;

extern uint32_t cus_runtime_epoch; /* atomic: a multiple of EPOCH, never 0 */
extern uint32_t cus_runtime_open;  /* atomic: calls are met here; written by started and listened */

static inline uint32_t cus_runtime_tag(enum cus_runtime which) {
    return __atomic_load_n(&cus_runtime_epoch, __ATOMIC_ACQUIRE) | (uint32_t)which;
}

static inline struct cus_runtime_slot *cus_runtime_first(const void *kernel) {
    return &cus_runtime_table[cus_hash_pointer(kernel) >> (64 - CUS_RUNTIME_SLOTS_LOG2)];
}

/* What is known of a kernel, copied. */
struct cus_runtime_look {
    bool found; /* the real function is known */
    bool exact; /* and in which way it is launched in the context where the thread works */
    bool worth; /* it may yet be learned */
    struct cus_runtime_slot *at; /* the slot that is about it */
    CUfunction handle;
    void *real;
    bool attrs;
};

struct cus_runtime_look cus_runtime_look_up(uint32_t tag, const void *kernel);
/* A new slot. NULL: another thread writes just now, everything was forgotten, or there is no room:
 * then all is forgotten, to begin anew. */
struct cus_runtime_slot *cus_runtime_add(uint32_t tag, const void *kernel,
                                         struct cus_runtime_origin origin, CUcontext context,
                                         CUfunction handle);
/* The real function, and what is known; a slot for a kernel of which nothing was. */
struct cus_runtime_look cus_runtime_known(uint32_t tag, const void *kernel, const void *caller);
/* Launches of a kernel are not met, for this reason: counted, and said once. */
void cus_runtime_give_up(const char *why);

#endif
