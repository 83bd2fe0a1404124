/*
 * Remembers the last value of each setting that the program made for a function or a stream. Some
 * libraries set the same value before each launch (HAZARDS A10); such a call must neither flush nor
 * drop a graph.
 *
 * Any thread, inside a hook. One lock guards the table; no thread holds it over a call of the
 * driver or the engine.
 */
#include "shim/hook/handles.h"

#include <stddef.h>

#include "shim/base/hazard.h"
#include "shim/base/lock.h"
#include "shim/base/uthash.h"

#include "shim/base/forbid.h"

/* If a program makes more settings than this, the table is emptied. Each forgotten setting costs
 * one flush. */
enum { ENTRIES_MAX = 65536 };

struct key {
    const void *handle;
    uint64_t attribute;
    uint64_t place;
};

struct entry {
    struct key key;
    uint8_t value[sizeof((struct cus_setting_call *)0)->value];
    uint32_t bytes;
    UT_hash_handle hh;
};

static struct cus_lock lock = CUS_LOCK_OF(CUS_RANK_INNERMOST);
static struct entry *entries; /* guarded by lock */

static struct entry *find(const struct cus_setting_call *call) {
    struct key key = {call->handle, call->attribute, call->place};
    struct entry *entry = NULL;
    HASH_FIND(hh, entries, &key, sizeof key, entry);
    return entry;
}

static void drop(const void *handle) {
    struct entry *entry, *next;
    HASH_ITER(hh, entries, entry, next) {
        if (!handle || entry->key.handle == handle) {
            HASH_DEL(entries, entry);
            cus_mem_free(entry);
        }
    }
}

bool cus_settings_same(const struct cus_setting_call *call) {
    if (call->bytes == 0)
        return false;
    cus_lock_take(&lock);
    struct entry *entry = find(call);
    bool same = CUS_HAZARD(A10) && entry && entry->bytes == call->bytes &&
                memcmp(entry->value, call->value, call->bytes) == 0;
    cus_lock_give(&lock);
    return same;
}

void cus_settings_remember(const struct cus_setting_call *call) {
    if (call->bytes == 0)
        return;
    cus_lock_take(&lock);
    struct entry *entry = find(call);
    if (!entry) {
        if (HASH_COUNT(entries) >= ENTRIES_MAX)
            drop(NULL);
        entry = cus_mem_alloc(sizeof *entry);
        if (entry) {
            entry->key = (struct key){call->handle, call->attribute, call->place};
            HASH_ADD(hh, entries, key, sizeof entry->key, entry);
            if (!entry->hh.tbl) {
                cus_mem_free(entry);
                entry = NULL;
            }
        }
    }
    if (entry) {
        memcpy(entry->value, call->value, call->bytes);
        entry->bytes = call->bytes;
    }
    cus_lock_give(&lock);
}

void cus_settings_forget(const void *handle) {
    cus_lock_take(&lock);
    drop(handle);
    cus_lock_give(&lock);
}
