/*
 * A table of the kernels that a shared runtime launches, and of the places in the program that call
 * the runtime. Private to runtime.c, runtime_table.c, configuration.c and device.c.
 */
#ifndef CUSPLICE_HOOK_RUNTIME_TABLE_H
#define CUSPLICE_HOOK_RUNTIME_TABLE_H

#include "shim/base/hash.h"
#include "shim/base/lock.h"
#include "shim/base/mem.h"
#include "shim/hook/runtime.h"

/* As in <vector_types.h>. */
struct cus_dim3 {
    uint32_t x, y, z;
};

/* A reader checks the slot's tag, reads the fields in this order, and checks the tag again. A
 * writer writes the fields in the same order. */
#define CUS_RUNTIME_GET(field) __atomic_load_n(&(field), __ATOMIC_ACQUIRE)
#define CUS_RUNTIME_PUT(field, value) __atomic_store_n(&(field), value, __ATOMIC_RELEASE)

/*
 * What is known of a kernel. A writer holds cus_runtime_lock and writes `tag` last. After that only
 * `tries`, `handle` (once, from NULL) and the fields marked atomic change. A slot whose tag has
 * another epoch is empty. A reader that finds the same tag before and after its reads has read one
 * kernel's fields.
 */
struct cus_runtime_slot {
    uint32_t tag; /* atomic: the epoch, and which function was called */
    uint32_t tries;
    const void *kernel;
    CUcontext context;
    CUfunction handle; /* atomic: NULL until it is known */
    void *real;        /* of the runtime that answers calls for this kernel */
    bool settled;      /* atomic: nothing more can be learned while no context is known */
    bool known;        /* the runtime's version allows the library to answer in its place */
    bool attrs;        /* atomic: the runtime passes attributes on by address */
    bool paired;       /* atomic: a place that pushes configurations; they are fetched here */
    uint32_t devices;  /* atomic, one bit per device: at a place that asks for the device, the
                        * runtime's number is the driver's */
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
extern uint32_t cus_runtime_open;  /* atomic: the library answers calls; written by reopen() */

static inline uint32_t cus_runtime_tag(enum cus_runtime which) {
    return __atomic_load_n(&cus_runtime_epoch, __ATOMIC_ACQUIRE) | (uint32_t)which;
}

static inline struct cus_runtime_slot *cus_runtime_first(const void *kernel) {
    return &cus_runtime_table[cus_hash_pointer(kernel) >> (64 - CUS_RUNTIME_SLOTS_LOG2)];
}

/* A copy of what is known of a kernel. */
struct cus_runtime_look {
    bool found;                  /* the real function is known */
    bool exact;                  /* so is the driver's function in the thread's present context */
    bool worth;                  /* the driver's function may still be learned */
    struct cus_runtime_slot *at; /* the kernel's slot */
    CUfunction handle;
    void *real;
    bool attrs;
};

struct cus_runtime_look cus_runtime_look_up(uint32_t tag, const void *kernel);
/* Adds a slot. NULL: another thread holds the lock, everything was forgotten meanwhile, or the
 * table is full. A full table is forgotten as a whole. */
struct cus_runtime_slot *cus_runtime_add(uint32_t tag, const void *kernel,
                                         struct cus_runtime_origin origin, CUcontext context,
                                         CUfunction handle);
/* The real function and what is known of the kernel. Adds a slot for a kernel that has none. */
struct cus_runtime_look cus_runtime_known(uint32_t tag, const void *kernel, const void *caller);
/* Counts a kernel whose launches the library leaves to the runtime for this reason. The log says
 * it once. */
void cus_runtime_give_up(const char *why);

#endif
