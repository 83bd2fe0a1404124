/*
 * Stream-ordered allocation. Under cusim.lock.
 *
 * A freed block returns to its pool at the call, and may be handed out again at once. The same
 * stream gets it as it is; another stream gets a dependency on the free (CUDA's "internal
 * dependencies", on by default). The choice of the block depends on the calls alone, never on
 * timing, so addresses repeat from run to run.
 */
#include "harness/sim/cusim.h"

#include <stdlib.h>
#include <string.h>

struct cached {
    struct cached *next;
    struct cusim_mem *mem;
    struct cusim_timeline *tl; /* the stream that freed it */
    uint64_t target;
};

struct cusim_pool {
    struct cusim_device *device;
    struct cached *cached; /* oldest first */
    cuuint64_t attributes[16];
    size_t used, used_high;
    size_t reserved, reserved_high; /* as a driver takes it: RESERVE at a time */
};

static struct cusim_pool *pool_new(struct cusim_device *device) {
    struct cusim_pool *pool = calloc(1, sizeof *pool);
    pool->device = device;
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

/* Gives cached blocks whose free has executed back to the arena; all: waits for the others. */
static void trim(struct cusim_pool *pool, bool all) {
    for (struct cached **at = &pool->cached; *at;) {
        struct cached *c = *at;
        if (c->tl->done < c->target && !all) {
            at = &c->next;
            continue;
        }
        *at = c->next;
        cusim_timeline_wait(c->tl, c->target);
        cusim_timeline_unref(c->tl);
        cusim_mem_free(c->mem);
        free(c);
        if (all)
            at = &pool->cached; /* the lock was given back meanwhile */
    }
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
        if (!found && pool->attributes[CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES])
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
    pool->used += bytes;
    if (pool->used > pool->used_high)
        pool->used_high = pool->used;
    if (pool->used > pool->reserved)
        pool->reserved = whole(pool->used);
    if (pool->reserved > pool->reserved_high)
        pool->reserved_high = pool->reserved;
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
        result = cusim_mem_alloc(CUSIM_MEM_POOL, s->ctx, bytes, 0, &mem);
        if (result == CUDA_ERROR_OUT_OF_MEMORY) {
            trim(pool, false);
            result = cusim_mem_alloc(CUSIM_MEM_POOL, s->ctx, bytes, 0, &mem);
        }
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
        use(mem->pool, mem->reserved);
    }
    mem->pool->used -= mem->reserved;
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
    if (!out || !device)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = cusim_capture_unsafe();
    if (result == CUDA_SUCCESS)
        *out = (CUmemoryPool)pool_new(device);
    return result;
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
    trim(pool, true); /* blocks in use keep the pool's memory alive; it is small and never freed */
    return CUDA_SUCCESS;
}

CUSIM_LOCKED(cuMemPoolTrimTo, (CUmemoryPool handle, size_t keep), (handle, keep)) {
    (void)keep;
    if (!cusim_handle_is(handle, CUSIM_POOL))
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = cusim_capture_unsafe();
    if (result == CUDA_SUCCESS) {
        struct cusim_pool *pool = (struct cusim_pool *)handle;
        trim(pool, false);
        pool->reserved = whole(pool->used);
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
    return cusim_capture_unsafe();
}
