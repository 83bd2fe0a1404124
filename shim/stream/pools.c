/*
 * Stream-ordered memory: which allocations live, and which frees may be deferred.
 *
 * An allocation is made at the call, before what is deferred on its stream: no deferred op knows
 * the memory. A free is deferred behind the ops in front of it, so memory stays allocated a little
 * longer. Both keep a segment whole. They hold for a device's default pool, and for a pool that the
 * program made like it, while one stream uses it: with unfinished frees of another stream, the
 * driver may make an allocation wait for these, in front of ops that are not issued yet (HAZARDS
 * C1). A free is deferred of memory that is known to live, so that a free that fails does so at its
 * call (C2). Memory whose free is deferred is given to the stream's next allocation of the same
 * size: then both calls cost no call of the driver, and the address stays the same. Gain: 3690 to
 * 1020 ns a launch with an allocation and a free around each (pools.md).
 *
 * Runs on program threads inside hooks, for pool_calls.c. pools_lock is innermost; the driver is
 * called without it.
 */
#include "shim/stream/pools.h"

#include "shim/base/hazard.h"
#include "shim/base/mem.h"
#include "shim/graph/relax.h"
#include "shim/stream/room.h"
#include "shim/stream/streams.h"

enum {
    POOLS = 16, /* pools that are known at a time; others are flushed for */
    USERS = 4,
    LIVE_MAX = 1 << 16, /* allocations that are known at a time; others are flushed for as before */
    LOOKS = 32,         /* one in so many uses asks whether the other streams are idle */
    NEAR = 64,          /* deferred frees that are looked through for memory of the same size */
    EXTRA = 4           /* deferred frees may make a pool larger by one part in so many */
};

/* A stream that allocated or freed in a pool, and may have unfinished frees there. */
struct user {
    struct cus_engine *engine;
    uint64_t id; /* of the engine's stream, which another one may follow */
    uint32_t uses;
};

struct cus_pool {
    CUmemoryPool handle; /* NULL: the pool is destroyed, or there is none */
    bool is_default;
    bool asked;     /* whether it is the default one, where the program names it */
    bool is_plain;  /* the program made it, like a default pool, */
    int device;     /* on this device */
    bool watched;   /* the program looks at its largest size */
    bool lost;      /* streams that cannot be asked may have unfinished frees in it, */
    uint32_t until; /* up to the wait of this number for the whole context */
    uint32_t n_users;
    struct user users[USERS];
    uint32_t looks;
    uint32_t n_live;        /* allocations that are known, and frees of such that are under way */
    uint64_t deferred;      /* bytes whose free is deferred */
    uint64_t bound;         /* the most that `deferred` and `taken` may be */
    uint64_t taken;         /* bytes allocated since `bound` was asked */
    uint64_t reserved_most; /* the most memory that it was seen to have */
};

struct live {
    uint64_t address, bytes;
    struct cus_pool *pool;
    UT_hash_handle hh;
};

static struct cus_lock pools_lock = CUS_LOCK_OF(CUS_RANK_INNERMOST);
/* All of pools_lock. */
static struct cus_pool pools[POOLS];
static struct live *live;
static uint32_t epoch = 1; /* moves when a device has another pool */
static bool exhausted;     /* memory ran out once: nothing is deferred any more */
static bool numbered;      /* the program looks at the numbers of allocations */

/* ---- pools ---- */

/* pools_lock held, here and below. NULL: there is none. */
static struct cus_pool *known(CUmemoryPool handle) {
    for (unsigned i = 0; i < POOLS; i++)
        if (pools[i].handle == handle)
            return &pools[i];
    return NULL;
}

/* NULL: there are too many. Memory of a pool that is destroyed may live, and its entry with it. */
static struct cus_pool *pool_of(CUmemoryPool handle) {
    struct cus_pool *pool = known(handle);
    for (unsigned i = 0; i < POOLS && !pool; i++)
        if (!pools[i].handle && !pools[i].n_live && !pools[i].deferred) {
            pool = &pools[i];
            *pool = (struct cus_pool){.handle = handle};
        }
    return pool;
}

/* Nobody asks for the pool any more: its handle may be given to another one. */
static void retire(struct cus_pool *pool) {
    pool->handle = NULL;
    pool->is_plain = pool->is_default = false;
    epoch++;
}

/* Is it the device's default pool, which the program may name before it uses it without a name? */
static void ask_default(CUmemoryPool named, CUdevice device) {
    const struct cus_driver *driver = cus_process.driver;
    CUmemoryPool first = NULL;
    if (!driver->cuDeviceGetDefaultMemPool ||
        driver->cuDeviceGetDefaultMemPool(&first, device) != CUDA_SUCCESS || first != named)
        return;
    cus_lock_take(&pools_lock);
    struct cus_pool *pool = known(named);
    if (pool)
        pool->is_default = true;
    cus_lock_give(&pools_lock);
}

/* Memory of a pool of another device is out of the ordinary: the pool counts as unknown. */
static struct cus_pool *find_named(CUmemoryPool named) {
    CUdevice device = -1;
    if (cus_process.driver->cuCtxGetDevice(&device) != CUDA_SUCCESS)
        return NULL;
    cus_lock_take(&pools_lock);
    struct cus_pool *pool = pool_of(named);
    bool far = pool && pool->is_plain && pool->device != device;
    bool ask = pool && !pool->asked && !pool->is_plain && !pool->is_default;
    if (pool)
        pool->asked = true;
    cus_lock_give(&pools_lock);
    if (ask)
        ask_default(named, device);
    return far ? NULL : pool;
}

/* The pool from which the program allocates. NULL: unknown. */
struct cus_pool *cus_pools_find(struct cus_context *context, CUmemoryPool named) {
    const struct cus_driver *driver = cus_process.driver;
    if (named)
        return find_named(named);
    cus_lock_take(&pools_lock);
    struct cus_pool *pool = context->pool_epoch == epoch ? context->pool : NULL;
    uint32_t asked = epoch;
    cus_lock_give(&pools_lock);
    if (pool || !driver->cuDeviceGetMemPool || !driver->cuDeviceGetDefaultMemPool)
        return pool;
    CUdevice device;
    CUmemoryPool current = NULL, first = NULL;
    if (driver->cuCtxGetDevice(&device) != CUDA_SUCCESS ||
        driver->cuDeviceGetMemPool(&current, device) != CUDA_SUCCESS || !current ||
        driver->cuDeviceGetDefaultMemPool(&first, device) != CUDA_SUCCESS)
        return NULL;
    cus_lock_take(&pools_lock);
    pool = pool_of(current);
    if (pool)
        pool->is_default = current == first;
    context->pool = pool;
    context->pool_epoch = asked;
    cus_lock_give(&pools_lock);
    return pool;
}

/* ---- which streams use a pool ---- */

static bool is_user(const struct user *user, const struct cus_engine *engine) {
    return user->engine == engine && user->id == engine->id;
}

/* pools_lock held, here and below. */
static void lose(struct cus_pool *pool) {
    pool->lost = true;
    pool->until = __atomic_load_n(&cus_process.untracked.waits, __ATOMIC_SEQ_CST) + 1;
}

/* True: the stream is new in the pool. */
static bool note_use(struct cus_pool *pool, struct cus_engine *engine) {
    for (uint32_t i = 0; i < pool->n_users; i++)
        if (is_user(&pool->users[i], engine)) {
            pool->users[i].uses++;
            return false;
        }
    if (pool->n_users == USERS)
        lose(pool);
    else
        pool->users[pool->n_users++] = (struct user){.engine = engine, .id = engine->id};
    return true;
}

/* Another stream than the engine's that uses the pool, each in turn; NULL: none. */
static struct user *another(struct cus_pool *pool, const struct cus_engine *engine) {
    for (uint32_t i = 0; i < pool->n_users; i++) {
        struct user *user = &pool->users[(pool->looks / LOOKS + i) % pool->n_users];
        if (!is_user(user, engine))
            return user;
    }
    return NULL;
}

static bool is_alone(struct cus_pool *pool, const struct cus_engine *engine) {
    return (pool->is_default || pool->is_plain) && !pool->lost && !another(pool, engine);
}

/* Asks one other stream now and then whether it is idle. If it is, and did not use the pool
 * meanwhile, it has no unfinished frees. */
static void look_at_others(struct cus_pool *pool, const struct cus_engine *engine) {
    cus_lock_take(&pools_lock);
    struct user *other = pool->looks++ % LOOKS ? NULL : another(pool, engine);
    struct user asked = other ? *other : (struct user){0};
    cus_lock_give(&pools_lock);
    /* While its lock is held, the stream does not go. */
    if (!asked.engine || !cus_lock_try(&asked.engine->lock))
        return;
    bool gone = asked.engine->closed || asked.engine->id != asked.id;
    bool complete = !gone && !asked.engine->pending && cus_room_complete(asked.engine);
    cus_engine_unlock(asked.engine);
    if (!complete && !gone)
        return;
    cus_lock_take(&pools_lock);
    for (uint32_t i = 0; i < pool->n_users; i++)
        if (memcmp(&pool->users[i], &asked, sizeof asked) == 0) {
            pool->users[i] = pool->users[--pool->n_users];
            if (gone)
                lose(pool);
            break;
        }
    cus_lock_give(&pools_lock);
}

bool cus_pools_note_use(struct cus_pool *pool, struct cus_engine *engine) {
    cus_lock_take(&pools_lock);
    bool new = note_use(pool, engine) && pool->n_users > 1;
    cus_lock_give(&pools_lock);
    return new;
}

struct cus_pool_use cus_pools_use(struct cus_pool *pool, struct cus_engine *engine) {
    cus_lock_take(&pools_lock);
    note_use(pool, engine);
    struct cus_pool_use use = {.alone = is_alone(pool, engine)};
    use.others_free = !use.alone && pool->deferred;
    use.may_reuse = use.alone && pool->deferred && !numbered;
    cus_lock_give(&pools_lock);
    if (!use.alone)
        look_at_others(pool, engine);
    return use;
}

void cus_pools_stream_goes(struct cus_engine *engine) {
    bool used = false;
    cus_lock_take(&pools_lock);
    for (unsigned i = 0; i < POOLS; i++)
        for (uint32_t k = 0; k < pools[i].n_users; k++)
            used |= pools[i].users[k].engine == engine;
    cus_lock_give(&pools_lock);
    bool complete = !used || (!engine->buried && cus_room_complete(engine));
    cus_lock_take(&pools_lock);
    for (unsigned i = 0; i < POOLS; i++)
        for (uint32_t k = pools[i].n_users; k-- > 0;)
            if (pools[i].users[k].engine == engine) {
                pools[i].users[k] = pools[i].users[--pools[i].n_users];
                if (!complete)
                    lose(&pools[i]);
            }
    cus_lock_give(&pools_lock);
}

/* ---- allocations ---- */

void cus_pools_add(struct cus_pool *pool, uint64_t address, uint64_t bytes) {
    cus_lock_take(&pools_lock);
    struct live *entry;
    HASH_FIND(hh, live, &address, sizeof address, entry);
    if (!entry && HASH_COUNT(live) < LIVE_MAX && (entry = cus_mem_grow(sizeof *entry))) {
        entry->address = address;
        bool added = true;
#undef uthash_nonfatal_oom
#define uthash_nonfatal_oom(element) (added = false)
        HASH_ADD(hh, live, address, sizeof address, entry);
        if (!added) {
            cus_mem_shrink(entry);
            entry = NULL;
        }
    }
    if (entry) {
        if (entry->pool)
            entry->pool->n_live--;
        entry->bytes = bytes;
        entry->pool = pool;
        pool->n_live++;
    }
    cus_lock_give(&pools_lock);
}

/* Takes memory of this size out of the deferred frees, the newest first. The driver would give it
 * to the next allocation of the stream as well. Engine lock held. */
bool cus_pools_reuse(struct cus_engine *engine, struct cus_pool *pool, uint64_t bytes,
                     uint64_t *address) {
    struct cus_frees *frees = &engine->frees;
    uint32_t last = frees->n > NEAR ? frees->n - NEAR : 0;
    if (cus_program_captures(engine->context))
        return false;
    for (uint32_t i = frees->n; i-- > last;) {
        if (frees->of[i].bytes != bytes || frees->of[i].pool != pool)
            continue;
        *address = frees->of[i].address;
        memmove(&frees->of[i], &frees->of[i + 1], (--frees->n - i) * sizeof *frees->of);
        engine->counters.frees_reused++;
        cus_pools_made(1);
        cus_lock_take(&pools_lock);
        pool->deferred -= bytes;
        cus_lock_give(&pools_lock);
        return true;
    }
    return false;
}

void cus_pools_took(struct cus_pool *pool, uint64_t bytes) {
    cus_lock_take(&pools_lock);
    pool->taken += bytes;
    cus_lock_give(&pools_lock);
}

bool cus_pools_may_grow(struct cus_pool *pool, uint64_t bytes) {
    cus_lock_take(&pools_lock);
    bool may = !pool->deferred || pool->taken + bytes <= pool->bound;
    cus_lock_give(&pools_lock);
    return may;
}

/* ---- frees ---- */

/* pools_lock held. */
static void forget(struct live *entry) {
    HASH_DEL(live, entry);
    cus_mem_shrink(entry);
}

static void forget_all(void) {
    struct live *entry, *next;
    HASH_ITER(hh, live, entry, next) {
        entry->pool->n_live--;
        forget(entry);
    }
}

/* Takes the allocation out of the table. NULL: it is not known to live. The pool's entry stays up
 * to cus_pools_let_go. */
struct cus_pool *cus_pools_take_out(uint64_t address, uint64_t *bytes) {
    struct live *entry;
    struct cus_pool *pool = NULL;
    cus_lock_take(&pools_lock);
    HASH_FIND(hh, live, &address, sizeof address, entry);
    if (entry) {
        pool = entry->pool;
        *bytes = entry->bytes;
        forget(entry);
    }
    cus_lock_give(&pools_lock);
    return pool;
}

void cus_pools_let_go(struct cus_pool *pool) {
    cus_lock_take(&pools_lock);
    pool->n_live--;
    cus_lock_give(&pools_lock);
}

/* Memory of a pool that is unknown may be of any. */
void cus_pools_note_unknown(struct cus_engine *engine) {
    cus_lock_take(&pools_lock);
    for (unsigned i = 0; i < POOLS; i++) {
        if (pools[i].handle && engine)
            note_use(&pools[i], engine);
        if (pools[i].handle && !engine)
            lose(&pools[i]);
    }
    cus_lock_give(&pools_lock);
}

/* How many bytes of frees may be deferred: what the pool has idle, and a part of the most that it
 * ever had. */
static uint64_t bound_of(struct cus_pool *pool, CUmemoryPool handle) {
    const struct cus_driver *driver = cus_process.driver;
    cuuint64_t reserved = 0, used = 0;
    struct cus_relaxed relaxed = cus_relax(driver);
    bool told = driver->cuMemPoolGetAttribute &&
                driver->cuMemPoolGetAttribute(handle, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT,
                                              &reserved) == CUDA_SUCCESS &&
                driver->cuMemPoolGetAttribute(handle, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used) ==
                    CUDA_SUCCESS;
    cus_relax_end(driver, relaxed);
    if (!told)
        return 0;
    if (reserved > pool->reserved_most)
        pool->reserved_most = reserved;
    return (reserved > used ? reserved - used : 0) + pool->reserved_most / EXTRA;
}

/* True: the free counts as deferred. Engine lock held. */
static bool has_place(struct cus_engine *engine, struct cus_pool *pool, uint64_t bytes) {
    struct cus_frees *frees = &engine->frees;
    if (!cus_process.driver->cuMemFreeAsync || frees->n == CUS_FREES_MAX ||
        (!frees->of && !(frees->of = cus_mem_grow(CUS_FREES_MAX * sizeof *frees->of))))
        return false;
    cus_lock_take(&pools_lock);
    note_use(pool, engine);
    bool allowed = is_alone(pool, engine) && !pool->watched && !exhausted;
    bool ask = allowed && !pool->deferred;
    CUmemoryPool handle = pool->handle; /* it stays while the engine's lock is held */
    cus_lock_give(&pools_lock);
    uint64_t bound = ask ? bound_of(pool, handle) : 0;
    cus_lock_take(&pools_lock);
    if (ask)
        pool->bound = bound, pool->taken = 0;
    allowed &= pool->deferred + bytes <= pool->bound && pool->taken <= pool->bound;
    if (allowed)
        pool->deferred += bytes;
    cus_lock_give(&pools_lock);
    return allowed;
}

bool cus_pools_defer(struct cus_engine *engine, struct cus_pool *pool, uint64_t address,
                     uint64_t bytes) {
    if (!has_place(engine, pool, bytes))
        return false;
    engine->frees.of[engine->frees.n++] = (struct cus_block){address, bytes, pool};
    engine->counters.frees++;
    __atomic_add_fetch(&cus_process.frees, 1, __ATOMIC_ACQ_REL);
    return true;
}

void cus_pools_settle(struct cus_engine *engine) {
    if (!engine->frees.n)
        return;
    cus_lock_take(&pools_lock);
    for (uint32_t i = 0; i < engine->frees.n; i++)
        engine->frees.of[i].pool->deferred -= engine->frees.of[i].bytes;
    cus_lock_give(&pools_lock);
}

/* ---- what others see and change ---- */

void cus_engine_pool_waited(uint32_t number) {
    if (__atomic_load_n(&cus_process.n_contexts, __ATOMIC_RELAXED) > 1)
        return;
    cus_lock_take(&pools_lock);
    for (unsigned i = 0; i < POOLS; i++)
        if (pools[i].lost && (int32_t)(pools[i].until - number) <= 0)
            pools[i].lost = false;
    cus_lock_give(&pools_lock);
}

void cus_pools_exhaust(void) {
    cus_lock_take(&pools_lock);
    exhausted = true;
    cus_lock_give(&pools_lock);
}

void cus_engine_pool_numbers(void) {
    cus_lock_take(&pools_lock);
    numbered = true;
    cus_lock_give(&pools_lock);
}

void cus_engine_pool_memory_gone(uint64_t address) {
    uint64_t bytes;
    struct cus_pool *pool = cus_pools_take_out(address, &bytes);
    if (pool)
        cus_pools_let_go(pool);
}

/* Whether the program's pools outlive a context is not known for all ways in which one goes. */
void cus_engine_pool_gone(void) {
    cus_lock_take(&pools_lock);
    forget_all();
    for (unsigned i = 0; i < POOLS; i++)
        pools[i].is_plain = false;
    epoch++; /* the device may have its default pool again */
    cus_lock_give(&pools_lock);
}

/* Whatever stands behind the location is 0, whether this header has a name for it or not: each
 * CUDA gives more of it a meaning. */
static bool like_default(const CUmemPoolProps *props) {
    const CUmemPoolProps plain = {
        .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
        .handleTypes = CU_MEM_HANDLE_TYPE_NONE,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = props->location.id}};
    enum { REST = offsetof(CUmemPoolProps, win32SecurityAttributes) };
    return props->allocType == plain.allocType && props->handleTypes == plain.handleTypes &&
           props->location.type == plain.location.type &&
           memcmp((const char *)props + REST, (const char *)&plain + REST, sizeof plain - REST) ==
               0;
}

void cus_engine_pool_made(CUmemoryPool handle, const CUmemPoolProps *props) {
    bool plain = like_default(props);
    cus_lock_take(&pools_lock);
    struct cus_pool *pool = known(handle);
    if (pool) /* of a pool that went unseen */
        retire(pool);
    pool = plain ? pool_of(handle) : NULL;
    if (pool) {
        pool->is_plain = true;
        pool->device = props->location.id;
    }
    cus_lock_give(&pools_lock);
}

/* Behind this, no thread asks the driver about the pool: one that frees memory of it does so with
 * its engine's lock held (has_place). */
void cus_engine_pool_goes(CUmemoryPool handle) {
    struct user users[USERS];
    uint32_t n_users = 0;
    cus_lock_take(&pools_lock);
    struct cus_pool *pool = handle ? known(handle) : NULL;
    if (pool && !pool->is_default) { /* which cannot be destroyed */
        n_users = pool->n_users;
        memcpy(users, pool->users, sizeof users);
        retire(pool);
    }
    epoch++; /* the device may have its default pool again */
    cus_lock_give(&pools_lock);
    for (uint32_t i = 0; i < n_users; i++) {
        cus_lock_take(&users[i].engine->lock);
        cus_engine_unlock(users[i].engine);
    }
}

void cus_engine_pool_shared(CUmemoryPool handle) {
    cus_lock_take(&pools_lock);
    struct cus_pool *pool = handle ? known(handle) : NULL;
    if (pool)
        pool->is_plain = false;
    cus_lock_give(&pools_lock);
}

void cus_engine_pool_set(void) {
    cus_lock_take(&pools_lock);
    epoch++;
    cus_lock_give(&pools_lock);
}

void cus_engine_pool_watched(CUmemoryPool handle) {
    cus_lock_take(&pools_lock);
    struct cus_pool *pool = handle ? pool_of(handle) : NULL;
    if (pool)
        pool->watched = true;
    cus_lock_give(&pools_lock);
}

void cus_pools_drop(void) {
    forget_all();
    memset(pools, 0, sizeof pools);
    epoch++;
    exhausted = numbered = false;
}
