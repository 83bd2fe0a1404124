/*
 * The table of runtime_table.h, and the conditions under which it is used.
 *
 * Any thread. A writer tries the lock and writes nothing if another thread has it. Nothing is
 * freed: a slot of an older epoch is overwritten.
 */
#define __CUDA_API_VERSION_INTERNAL
#include "shim/hook/runtime_table.h"

#include "shim/base/hazard.h"
#include "shim/base/log.h"
#include "shim/base/options.h"
#include "shim/stream/state.h"

#include "shim/base/forbid.h"

enum { PROBES = 32 };

struct cus_runtime_slot cus_runtime_table[CUS_RUNTIME_SLOTS];
struct cus_lock cus_runtime_lock = CUS_LOCK_OF(CUS_RANK_NONE);
uint32_t cus_runtime_epoch = CUS_RUNTIME_EPOCH;
uint32_t cus_runtime_open;
static uint32_t started, listened; /* atomic */

static bool may_open(void) {
    return __atomic_load_n(&started, __ATOMIC_SEQ_CST) &&
           !__atomic_load_n(&listened, __ATOMIC_SEQ_CST);
}

/* Repeats if another thread changed the answer meanwhile: the thread that writes last has then
 * written the answer that holds. */
static void reopen(void) {
    bool open;
    do {
        open = may_open();
        __atomic_store_n(&cus_runtime_open, open, __ATOMIC_SEQ_CST);
    } while (open != may_open());
}

void cus_runtime_start(bool plainly) {
    __atomic_store_n(&started, plainly && cus_options()->runtime_fast_path, __ATOMIC_SEQ_CST);
    reopen();
}

void cus_runtime_listened(bool on) {
    __atomic_store_n(&listened, on, __ATOMIC_SEQ_CST);
    reopen();
}

void cus_runtime_forget(void) {
    if (!CUS_HAZARD(E12))
        return;
    if (__atomic_add_fetch(&cus_runtime_epoch, CUS_RUNTIME_EPOCH, __ATOMIC_ACQ_REL) == 0)
        __atomic_add_fetch(&cus_runtime_epoch, CUS_RUNTIME_EPOCH, __ATOMIC_ACQ_REL);
}

struct cus_runtime_look cus_runtime_look_up(uint32_t tag, const void *kernel) {
    struct cus_runtime_look look = {.found = false};
    struct cus_runtime_slot *slot = cus_runtime_first(kernel);
    for (unsigned i = 0; i < PROBES; i++, slot = slot + 1 == cus_runtime_table + CUS_RUNTIME_SLOTS
                                                     ? cus_runtime_table
                                                     : slot + 1) {
        if (__atomic_load_n(&slot->tag, __ATOMIC_ACQUIRE) != tag) {
            /* A slot of this epoch for another function is skipped. An empty slot ends the
             * search. */
            if ((__atomic_load_n(&slot->tag, __ATOMIC_RELAXED) ^ tag) >= CUS_RUNTIME_EPOCH)
                break;
            continue;
        }
        if (CUS_RUNTIME_GET(slot->kernel) != kernel)
            continue;
        struct cus_runtime_look now = {.found = true,
                                       .at = slot,
                                       .handle = CUS_RUNTIME_GET(slot->handle),
                                       .real = CUS_RUNTIME_GET(slot->real),
                                       .attrs = CUS_RUNTIME_GET(slot->attrs)};
        now.exact = now.handle && CUS_RUNTIME_GET(slot->context) == cus_thread_self.context;
        bool few = __atomic_load_n(&slot->tries, __ATOMIC_ACQUIRE) < CUS_RUNTIME_TRIES;
        now.worth = CUS_RUNTIME_GET(slot->known) && (now.handle ? !now.exact : few);
        if (__atomic_load_n(&slot->tag, __ATOMIC_RELAXED) != tag)
            continue;
        look = now;
        if (now.exact)
            break;
    }
    return look;
}

/* The lock of the table is held. NULL: no room. */
static struct cus_runtime_slot *empty_slot(uint32_t tag, const void *kernel) {
    struct cus_runtime_slot *slot = cus_runtime_first(kernel);
    for (unsigned i = 0; i < PROBES; i++, slot = slot + 1 == cus_runtime_table + CUS_RUNTIME_SLOTS
                                                     ? cus_runtime_table
                                                     : slot + 1) {
        if ((__atomic_load_n(&slot->tag, __ATOMIC_RELAXED) ^ tag) >= CUS_RUNTIME_EPOCH)
            return slot;
    }
    return NULL;
}

void cus_runtime_give_up(const char *why) {
    __atomic_add_fetch(&cus_process.counters.fallbacks[CUS_FALLBACK_RUNTIME], 1, __ATOMIC_RELAXED);
    CUS_LOG_ONCE(CUS_INFO, "hook", "launches of a kernel go through the runtime: %s", why);
}

struct cus_runtime_slot *cus_runtime_add(uint32_t tag, const void *kernel,
                                         struct cus_runtime_origin origin, CUcontext context,
                                         CUfunction handle) {
    if (!cus_lock_try(&cus_runtime_lock))
        return NULL;
    bool now = tag == cus_runtime_tag((enum cus_runtime)(tag % CUS_RUNTIME_EPOCH));
    struct cus_runtime_slot *slot = now ? empty_slot(tag, kernel) : NULL;
    bool full = now && !slot;
    if (slot) {
        __atomic_store_n(&slot->tag, 0, __ATOMIC_RELAXED);
        CUS_RUNTIME_PUT(slot->tries, 0);
        CUS_RUNTIME_PUT(slot->kernel, kernel);
        CUS_RUNTIME_PUT(slot->context, context);
        CUS_RUNTIME_PUT(slot->real, origin.function);
        CUS_RUNTIME_PUT(slot->known, origin.known);
        CUS_RUNTIME_PUT(slot->settled, handle || !origin.known);
        CUS_RUNTIME_PUT(slot->attrs, false);
        CUS_RUNTIME_PUT(slot->paired, false);
        CUS_RUNTIME_PUT(slot->devices, 0);
        CUS_RUNTIME_PUT(slot->handle, handle);
        __atomic_store_n(&slot->tag, tag, __ATOMIC_RELEASE);
    }
    cus_lock_give(&cus_runtime_lock);
    if (full)
        cus_runtime_forget();
    return slot;
}

struct cus_runtime_look cus_runtime_known(uint32_t tag, const void *kernel, const void *caller) {
    struct cus_runtime_look look = cus_runtime_look_up(tag, kernel);
    if (look.found)
        return look;
    struct cus_runtime_origin origin =
        cus_runtime_origin((enum cus_runtime)(tag % CUS_RUNTIME_EPOCH), kernel, caller);
    look.real = origin.function;
    if (!origin.function)
        return look;
    look.at = cus_runtime_add(tag, kernel, origin, NULL, NULL);
    look.worth = look.at && origin.known;
    if (look.at && !origin.known && tag % CUS_RUNTIME_EPOCH != CUS_RUNTIME_cudaGetDevice)
        cus_runtime_give_up("it is none of version 12 or newer");
    return look;
}
