/*
 * Stream-ordered allocation. Under cusim.lock.
 *
 * A freed block returns to its pool at the call, and may be handed out again at once. The same
 * stream gets it as it is; another stream gets a dependency on the free (CUDA's "internal
 * dependencies", on by default). The choice of the block depends on the calls alone, never on
 * timing, so addresses repeat from run to run. Where a pool forbids internal dependencies, another
 * stream gets a block only if it waits for an event behind the free, or if the free has executed.
 *
 * A pool that is destroyed stays until all its memory is freed. Then its handle is given out again,
 * to the next pool that is made.
 */
#include "harness/sim/cusim.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

struct cached {
    struct cached *next;
    struct cusim_mem *mem;
    struct cusim_timeline *tl; /* the stream that freed it */
    uint64_t target;
};

struct cusim_pool {
    struct cusim_pool *next; /* of those that are destroyed, or that nobody has */
    struct cusim_device *device;
    struct cached *cached; /* oldest first */
    unsigned blocks;       /* handed out and not freed */
    size_t held, most;     /* bytes of all its blocks; 0: no largest size */
    CUmemAllocationHandleType shareable;
    CUmemAccess_flags access[CUSIM_DEVICES_MAX];
    cuuint64_t attributes[16];
    size_t used, used_high;
    size_t reserved, reserved_high; /* as a driver takes it: RESERVE at a time */
};

static struct cusim_pool *destroyed, *unused;

/* Gives cached blocks whose free has executed back to the arena. */
static void trim(struct cusim_pool *pool) {
    for (struct cached **at = &pool->cached; *at;) {
        struct cached *c = *at;
        if (c->tl->done < c->target) {
            at = &c->next;
            continue;
        }
        *at = c->next;
        pool->held -= c->mem->reserved;
        cusim_timeline_unref(c->tl);
        cusim_mem_free(c->mem);
        free(c);
    }
}

/* Destroyed pools whose memory is all freed: their handles may be given out again. */
static void sweep(void) {
    for (struct cusim_pool **at = &destroyed; *at;) {
        struct cusim_pool *pool = *at;
        trim(pool);
        if (pool->blocks || pool->cached) {
            at = &pool->next;
            continue;
        }
        *at = pool->next;
        pool->next = unused;
        unused = pool;
    }
}

static struct cusim_pool *pool_new(struct cusim_device *device) {
    sweep();
    struct cusim_pool *pool = unused;
    if (pool)
        unused = pool->next;
    else
        pool = malloc(sizeof *pool);
    *pool = (struct cusim_pool){.device = device};
    pool->access[device->ordinal] = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    pool->attributes[CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES] = 1;
    pool->attributes[CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC] = 1;
    pool->attributes[CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES] = 1;
    cusim_handle_add(pool, CUSIM_POOL);
    return pool;
}

static struct cusim_pool *default_pool(struct cusim_device *device) {
    if (!device->default_pool)
        device->default_pool = pool_new(device);
    return device->default_pool;
}

/* May the stream have the block, which another one freed? */
static bool may_take(const struct cusim_pool *pool, const struct cached *c,
                     const struct cusim_stream *s) {
    const cuuint64_t *allowed = pool->attributes;
    return allowed[CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES] ||
           (allowed[CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES] &&
            cusim_stream_waits_for(s, c->tl, c->target)) ||
           (allowed[CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC] && c->tl->done >= c->target);
}

static struct cached *take_cached(struct cusim_pool *pool, size_t reserved,
                                  struct cusim_stream *s) {
    struct cached **found = NULL;
    for (struct cached **at = &pool->cached; *at; at = &(*at)->next) {
        if ((*at)->mem->reserved != reserved)
            continue;
        if ((*at)->tl == s->tl) {
            found = at;
            break;
        }
        if (!found && may_take(pool, *at, s))
            found = at;
    }
    if (!found)
        return NULL;
    struct cached *c = *found;
    *found = c->next;
    return c;
}

enum { RESERVE = 32 << 20 };

static size_t whole(size_t bytes) {
    return (bytes + RESERVE - 1) / RESERVE * RESERVE;
}

static void use(struct cusim_pool *pool, size_t bytes) {
    pool->blocks++;
    pool->used += bytes;
    if (pool->used > pool->used_high)
        pool->used_high = pool->used;
    if (pool->used > pool->reserved)
        pool->reserved = whole(pool->used);
    if (pool->reserved > pool->reserved_high)
        pool->reserved_high = pool->reserved;
}

static void unuse(struct cusim_pool *pool, size_t bytes) {
    pool->blocks--;
    pool->used -= bytes;
}

void cusim_pool_block_gone(struct cusim_mem *mem) {
    unuse(mem->pool, mem->reserved);
    mem->pool->held -= mem->reserved;
}

/* A block that is new to the pool. */
static CUresult block_new(struct cusim_pool *pool, struct cusim_ctx *ctx, size_t bytes,
                          struct cusim_mem **mem) {
    size_t most = whole(pool->most);
    if (pool->most && pool->held + bytes > most)
        trim(pool);
    if (pool->most && (bytes > most || pool->held + bytes > most))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = cusim_mem_alloc(CUSIM_MEM_POOL, ctx, bytes, 0, mem);
    if (result == CUDA_ERROR_OUT_OF_MEMORY) {
        trim(pool);
        sweep();
        result = cusim_mem_alloc(CUSIM_MEM_POOL, ctx, bytes, 0, mem);
    }
    if (result == CUDA_SUCCESS)
        pool->held += (*mem)->reserved;
    return result;
}

static CUresult alloc_async(bool ptsz, CUdeviceptr *out, size_t bytes, struct cusim_pool *pool,
                            CUstream handle) {
    struct cusim_stream *s;
    struct cusim_mem *mem = NULL;
    CUresult result = cusim_stream_get_for_work(handle, ptsz, &s);
    if (result != CUDA_SUCCESS)
        return result;
    if (!out || bytes == 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (!s->capture && (result = cusim_capture_unsafe()) != CUDA_SUCCESS)
        return result;
    if (!pool)
        pool = s->ctx->device->current_pool ? s->ctx->device->current_pool
                                            : default_pool(s->ctx->device);
    struct cached *c = s->capture ? NULL : take_cached(pool, (bytes + 511) / 512 * 512, s);
    if (c) {
        mem = c->mem;
    } else {
        result = block_new(pool, s->ctx, bytes, &mem);
        if (result != CUDA_SUCCESS)
            return result;
    }
    mem->freed = false;
    mem->bytes = bytes;
    mem->pool = pool;
    mem->id = cusim_new_id();
    use(pool, mem->reserved);
    struct cusim_work *work = cusim_work_new(CUSIM_WORK_ALLOC, s->ctx);
    work->alloc.address = mem->base;
    work->alloc.bytes = bytes;
    *out = mem->base;
    if (s->capture)
        return cusim_capture_work(s, work);
    struct cusim_op *op = cusim_enqueue(s, work);
    if (c) {
        cusim_op_depend(op, c->tl, c->target);
        cusim_timeline_unref(c->tl);
        free(c);
    }
    return CUDA_SUCCESS;
}

CUSIM_TWIN_LOCKED(cuMemAllocAsync, _ptsz, (CUdeviceptr * out, size_t bytes, CUstream stream),
                  (out, bytes, stream)) {
    return alloc_async(ptsz, out, bytes, NULL, stream);
}

CUSIM_TWIN_LOCKED(cuMemAllocFromPoolAsync, _ptsz,
                  (CUdeviceptr * out, size_t bytes, CUmemoryPool pool, CUstream stream),
                  (out, bytes, pool, stream)) {
    if (!cusim_handle_is(pool, CUSIM_POOL))
        return CUDA_ERROR_INVALID_VALUE;
    return alloc_async(ptsz, out, bytes, (struct cusim_pool *)pool, stream);
}

CUSIM_TWIN_LOCKED(cuMemFreeAsync, _ptsz, (CUdeviceptr base, CUstream handle), (base, handle)) {
    struct cusim_stream *s;
    CUresult result = cusim_stream_get_for_work(handle, ptsz, &s);
    if (result != CUDA_SUCCESS)
        return result;
    struct cusim_mem *mem = cusim_mem_at(base);
    if (!mem || (mem->kind != CUSIM_MEM_POOL && mem->kind != CUSIM_MEM_DEVICE))
        return CUDA_ERROR_INVALID_VALUE;
    if (!s->capture && (result = cusim_capture_unsafe()) != CUDA_SUCCESS)
        return result;
    struct cusim_work *work = cusim_work_new(CUSIM_WORK_FREE, s->ctx);
    work->alloc.address = base;
    work->alloc.bytes = mem->bytes;
    if (s->capture)
        return cusim_capture_work(s, work);
    struct cusim_op *op = cusim_enqueue(s, work);
    struct cached *c = malloc(sizeof *c), **end;
    if (!mem->pool) { /* memory of cuMemAlloc may be freed in stream order too */
        mem->kind = CUSIM_MEM_POOL;
        mem->pool = default_pool(&cusim.devices[mem->device]);
        mem->pool->held += mem->reserved;
        use(mem->pool, mem->reserved);
    }
    unuse(mem->pool, mem->reserved);
    mem->freed = true;
    *c = (struct cached){.mem = mem, .tl = cusim_timeline_ref(s->tl), .target = op->seq};
    for (end = &mem->pool->cached; *end; end = &(*end)->next)
        ;
    *end = c;
    return CUDA_SUCCESS;
}

/* ---- pools ----
 * As with driver 580 (the gate table of tests/gpu), a capture refuses calls that query or change a
 * pool; asking for a device's pool is allowed. */

static CUresult device_pool(CUmemoryPool *out, CUdevice ordinal, bool current) {
    struct cusim_device *device = cusim_device_get(ordinal);
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    struct cusim_pool *pool = current ? device->current_pool : NULL;
    *out = (CUmemoryPool)(pool ? pool : default_pool(device));
    return CUDA_SUCCESS;
}

CUSIM_LOCKED(cuDeviceGetDefaultMemPool, (CUmemoryPool * out, CUdevice device), (out, device)) {
    return device_pool(out, device, false);
}

CUSIM_LOCKED(cuDeviceGetMemPool, (CUmemoryPool * out, CUdevice device), (out, device)) {
    return device_pool(out, device, true);
}

CUSIM_LOCKED(cuDeviceSetMemPool, (CUdevice ordinal, CUmemoryPool pool), (ordinal, pool)) {
    struct cusim_device *device = cusim_device_get(ordinal);
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    if (!cusim_handle_is(pool, CUSIM_POOL))
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = cusim_capture_unsafe();
    if (result == CUDA_SUCCESS)
        device->current_pool = (struct cusim_pool *)pool;
    return result;
}

CUSIM_LOCKED(cuMemPoolCreate, (CUmemoryPool * out, const CUmemPoolProps *props), (out, props)) {
    struct cusim_device *device = props && props->location.type == CU_MEM_LOCATION_TYPE_DEVICE
                                      ? cusim_device_get(props->location.id)
                                      : NULL;
    if (!out || !device || props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
        props->handleTypes & ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = cusim_capture_unsafe();
    if (result != CUDA_SUCCESS)
        return result;
    struct cusim_pool *pool = pool_new(device);
    pool->most = props->maxSize;
    pool->shareable = props->handleTypes;
    *out = (CUmemoryPool)pool;
    return CUDA_SUCCESS;
}

CUSIM_LOCKED(cuMemPoolDestroy, (CUmemoryPool handle), (handle)) {
    if (!cusim_handle_is(handle, CUSIM_POOL))
        return CUDA_ERROR_INVALID_VALUE;
    struct cusim_pool *pool = (struct cusim_pool *)handle;
    if (pool == pool->device->default_pool)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = cusim_capture_unsafe();
    if (result != CUDA_SUCCESS)
        return result;
    if (pool == pool->device->current_pool)
        pool->device->current_pool = NULL;
    cusim_handle_remove(pool);
    pool->next = destroyed;
    destroyed = pool;
    sweep();
    return CUDA_SUCCESS;
}

CUSIM_LOCKED(cuMemPoolTrimTo, (CUmemoryPool handle, size_t keep), (handle, keep)) {
    if (!cusim_handle_is(handle, CUSIM_POOL))
        return CUDA_ERROR_INVALID_VALUE;
    struct cusim_pool *pool = (struct cusim_pool *)handle;
    CUresult result = cusim_capture_unsafe();
    if (result == CUDA_SUCCESS && pool->reserved > keep) {
        trim(pool);
        size_t least = pool->used > keep ? pool->used : keep;
        pool->reserved = whole(least);
    }
    return result;
}

CUSIM_LOCKED(cuMemPoolGetAttribute, (CUmemoryPool handle, CUmemPool_attribute id, void *value),
             (handle, id, value)) {
    if (!cusim_handle_is(handle, CUSIM_POOL) || !value || id < 1 || id > 8)
        return CUDA_ERROR_INVALID_VALUE;
    struct cusim_pool *pool = (struct cusim_pool *)handle;
    CUresult result = cusim_capture_unsafe();
    if (result != CUDA_SUCCESS)
        return result;
    if (id <= CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES)
        *(int *)value = (int)pool->attributes[id];
    else if (id == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
        *(cuuint64_t *)value = pool->attributes[id];
    else if (id == CU_MEMPOOL_ATTR_USED_MEM_CURRENT)
        *(cuuint64_t *)value = pool->used;
    else if (id == CU_MEMPOOL_ATTR_USED_MEM_HIGH)
        *(cuuint64_t *)value = pool->used_high;
    else
        *(cuuint64_t *)value =
            id == CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT ? pool->reserved : pool->reserved_high;
    return CUDA_SUCCESS;
}

CUSIM_LOCKED(cuMemPoolSetAttribute, (CUmemoryPool handle, CUmemPool_attribute id, void *value),
             (handle, id, value)) {
    if (!cusim_handle_is(handle, CUSIM_POOL) || !value || id < 1 || id > 8)
        return CUDA_ERROR_INVALID_VALUE;
    struct cusim_pool *pool = (struct cusim_pool *)handle;
    CUresult result = cusim_capture_unsafe();
    if (result != CUDA_SUCCESS)
        return result;
    pool->attributes[id] = id <= CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES
                               ? (cuuint64_t) * (int *)value
                               : *(cuuint64_t *)value;
    return CUDA_SUCCESS;
}

CUSIM_LOCKED(cuMemPoolSetAccess, (CUmemoryPool handle, const CUmemAccessDesc *access, size_t n),
             (handle, access, n)) {
    if (!cusim_handle_is(handle, CUSIM_POOL) || (n > 0 && !access))
        return CUDA_ERROR_INVALID_VALUE;
    struct cusim_pool *pool = (struct cusim_pool *)handle;
    for (size_t i = 0; i < n; i++)
        if (access[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
            !cusim_device_get(access[i].location.id))
            return CUDA_ERROR_INVALID_VALUE;
    CUresult result = cusim_capture_unsafe();
    for (size_t i = 0; result == CUDA_SUCCESS && i < n; i++)
        pool->access[access[i].location.id] = access[i].flags;
    return result;
}

CUSIM_LOCKED(cuMemPoolGetAccess,
             (CUmemAccess_flags * out, CUmemoryPool handle, CUmemLocation *location),
             (out, handle, location)) {
    if (!out || !cusim_handle_is(handle, CUSIM_POOL) || !location ||
        location->type != CU_MEM_LOCATION_TYPE_DEVICE || !cusim_device_get(location->id))
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = cusim_capture_unsafe();
    if (result == CUDA_SUCCESS)
        *out = ((struct cusim_pool *)handle)->access[location->id];
    return result;
}

/* Nobody imports the pool here: the file is empty. */
CUSIM_LOCKED(cuMemPoolExportToShareableHandle,
             (void *out, CUmemoryPool handle, CUmemAllocationHandleType type,
              unsigned long long flags),
             (out, handle, type, flags)) {
    if (!out || flags || !cusim_handle_is(handle, CUSIM_POOL) || !type ||
        ((struct cusim_pool *)handle)->shareable != type)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = cusim_capture_unsafe();
    if (result == CUDA_SUCCESS)
        *(int *)out = open("/dev/null", O_RDONLY | O_CLOEXEC);
    return result;
}
