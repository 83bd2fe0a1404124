/*
 * Origins: the file and hash of the code that a function is from. A module or library of the driver
 * has them, and what is made from it inherits them. Rules by library and the signature cache ask
 * when a function is learned. Runs on program threads inside hooks; the lock is innermost. Kept
 * only if one of them asks, and longer than functions, which are dropped whenever any code goes. An
 * entry goes with its module or library, or when its handle is used again.
 */
#include <string.h>

#include "shim/base/mem.h"
#include "shim/stream/origins.h"
#include "shim/stream/state.h"

struct origin {
    const void *handle; /* key: module, library, function or kernel */
    const void *owner; /* the module or library that was loaded; its own entry has its own handle */
    char *file;        /* only in an owner's entry: the file's name without folders; owned */
    uint64_t hash;     /* only in an owner's entry: hash of the code; 0: not known */
    UT_hash_handle hh;
};

static struct cus_lock lock = CUS_LOCK_OF(CUS_RANK_INNERMOST);
static struct origin *origins; /* lock */

static struct origin *find(const void *handle) {
    struct origin *entry;
    HASH_FIND_PTR(origins, &handle, entry);
    return entry;
}

static void drop(struct origin *entry) {
    if (!entry)
        return;
    HASH_DEL(origins, entry);
    cus_mem_free(entry->file);
    cus_mem_free(entry);
}

/* False: no memory. */
static bool add(const void *handle, const void *owner, const char *file, uint64_t hash) {
    struct origin *entry = cus_mem_alloc(sizeof *entry);
    bool added = entry != NULL;
    if (!entry)
        return false;
    entry->handle = handle;
    entry->owner = owner;
    entry->hash = hash;
    entry->file = file ? cus_mem_text(file) : NULL;
    if (file && !entry->file)
        added = false;
#undef uthash_nonfatal_oom
#define uthash_nonfatal_oom(element) (added = false)
    if (added)
        HASH_ADD_PTR(origins, handle, entry);
    if (!added) {
        cus_mem_free(entry->file);
        cus_mem_free(entry);
    }
    return added;
}

bool cus_origins_loaded(const void *code, const char *file, uint64_t hash) {
    cus_lock_take(&lock);
    drop(find(code));
    bool kept = (!file && !hash) || add(code, code, file, hash);
    cus_lock_give(&lock);
    return kept;
}

bool cus_origins_made(const void *made, const void *from) {
    cus_lock_take(&lock);
    const struct origin *source = find(from);
    const void *owner = source ? source->owner : NULL;
    struct origin *entry = find(made);
    bool kept = true;
    if (!entry || entry->owner != owner) {
        drop(entry);
        kept = !owner || add(made, owner, NULL, 0);
    }
    cus_lock_give(&lock);
    return kept;
}

void cus_origins_gone(const void *code) {
    struct origin *entry, *next;
    cus_lock_take(&lock);
    HASH_ITER(hh, origins, entry, next)
    if (entry->owner == code)
        drop(entry);
    cus_lock_give(&lock);
}

void cus_origins_drop(void) {
    struct origin *entry, *next;
    HASH_ITER(hh, origins, entry, next)
    drop(entry);
}

const char *cus_origins_file(const void *handle, char name[CUS_FILE_NAME]) {
    cus_lock_take(&lock);
    const struct origin *entry = find(handle);
    const struct origin *owner = entry ? find(entry->owner) : NULL;
    size_t bytes = owner && owner->file ? strlen(owner->file) + 1 : 0;
    bool fits = bytes && bytes <= CUS_FILE_NAME;
    if (fits)
        memcpy(name, owner->file, bytes);
    cus_lock_give(&lock);
    return fits ? name : NULL;
}

uint64_t cus_origins_code(const void *handle) {
    cus_lock_take(&lock);
    const struct origin *entry = find(handle);
    const struct origin *owner = entry ? find(entry->owner) : NULL;
    uint64_t hash = owner ? owner->hash : 0;
    cus_lock_give(&lock);
    return hash;
}
