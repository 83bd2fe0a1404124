/*
 * Counts the nodes that hold each event. exec.c calls it where nodes are made, patched and
 * destroyed, under the engine's lock or on the thread that patches a submitted segment. Never calls
 * the driver.
 */
#include "shim/graph/held.h"

#include "shim/base/lock.h"
#include "shim/base/mem.h"
#include "shim/base/uthash.h"

struct held {
    CUevent event;
    uint32_t nodes;
    UT_hash_handle hh;
};

static struct cus_lock lock = CUS_LOCK_OF(CUS_RANK_HELD);
static struct held *all; /* lock */

/* Lock held. */
static struct held *find(CUevent event) {
    struct held *held;
    HASH_FIND_PTR(all, &event, held);
    return held;
}

/* Lock held. */
static struct held *make(CUevent event) {
    struct held *held = cus_mem_alloc(sizeof *held);
    bool added = held != NULL;
    if (!held)
        return NULL;
    *held = (struct held){.event = event};
#undef uthash_nonfatal_oom
#define uthash_nonfatal_oom(element) (added = false)
    HASH_ADD_PTR(all, event, held);
    if (!added)
        cus_mem_free(held);
    return added ? held : NULL;
}

bool cus_held_add(CUevent event) {
    cus_lock_take(&lock);
    struct held *held = find(event);
    if (!held)
        held = make(event);
    if (held)
        held->nodes++;
    cus_lock_give(&lock);
    return held != NULL;
}

void cus_held_drop(CUevent event) {
    cus_lock_take(&lock);
    struct held *held = find(event);
    if (held && !--held->nodes)
        HASH_DEL(all, held);
    else
        held = NULL;
    cus_lock_give(&lock);
    cus_mem_free(held);
}

bool cus_held(CUevent event) {
    cus_lock_take(&lock);
    bool is = find(event) != NULL;
    cus_lock_give(&lock);
    return is;
}
