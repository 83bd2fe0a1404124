/*
 * Contexts: the primary one of each device, those that a program makes, and the stack of each
 * thread.
 *
 * Any thread, under cusim.lock. The memory of a context is never freed, so a stale handle leads to
 * a dead context. A primary context keeps its address over a reset and gets a new id. A wait on a
 * timeline gives the lock back, so the waiter must look everything up again.
 */
#include "harness/sim/cusim.h"

#include <stdlib.h>
#include <string.h>

CUresult cusim_ctx_check(struct cusim_ctx *ctx) {
    return ctx->alive ? ctx->error : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

struct cusim_ctx *cusim_ctx_by_id(uint64_t id) {
    for (struct cusim_ctx *ctx = cusim.contexts; ctx; ctx = ctx->next)
        if (ctx->id == id)
            return ctx;
    return NULL;
}

CUresult cusim_ctx_current(struct cusim_ctx **ctx) {
    struct cusim_thread *thread = cusim_thread_self();
    if (thread->in_worker)
        return CUDA_ERROR_NOT_PERMITTED;
    if (thread->depth == 0 || !thread->stack[thread->depth - 1])
        return CUDA_ERROR_INVALID_CONTEXT;
    /* If a primary context was reset and retained again, it becomes current again on stacks
     * where it stayed. */
    struct cusim_ctx *top = thread->stack[thread->depth - 1];
    if (!top->alive)
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    *ctx = top;
    return top->error;
}

/* The context of a handle, or the current one if the handle is NULL. */
static CUresult ctx_get(CUcontext handle, struct cusim_ctx **ctx) {
    if (!handle)
        return cusim_ctx_current(ctx);
    if (!cusim_handle_is(handle, CUSIM_CTX))
        return CUDA_ERROR_INVALID_CONTEXT;
    *ctx = (struct cusim_ctx *)handle;
    return cusim_ctx_check(*ctx);
}

static void ctx_start(struct cusim_ctx *ctx, unsigned flags) {
    ctx->id = cusim_new_id();
    ctx->flags = flags;
    ctx->alive = true;
    ctx->error = CUDA_SUCCESS;
    ctx->blocking_captures = 0;
    ctx->cache_config = CU_FUNC_CACHE_PREFER_NONE;
    memset(ctx->limits, 0, sizeof ctx->limits);
    ctx->limits[CU_LIMIT_STACK_SIZE] = 1024;
    ctx->limits[CU_LIMIT_PRINTF_FIFO_SIZE] = 8 << 20;
    ctx->limits[CU_LIMIT_MALLOC_HEAP_SIZE] = 8 << 20;
    ctx->limits[CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH] = 2;
    ctx->limits[CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT] = 2048;
    ctx->limits[CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = 64;
    ctx->next = cusim.contexts;
    cusim.contexts = ctx;
    cusim_handle_add(ctx, CUSIM_CTX);
    ctx->legacy = cusim_stream_new(ctx, CU_STREAM_DEFAULT, 0);
    ctx->legacy->legacy = true;
}

static struct cusim_ctx *ctx_new(struct cusim_device *device) {
    struct cusim_ctx *ctx = calloc(1, sizeof *ctx);
    ctx->device = device;
    return ctx;
}

/* Ends what dies with a context: its streams once they are empty, its modules, its memory. */
static void ctx_end(struct cusim_ctx *ctx) {
    for (struct cusim_capture *capture; ctx->alive && (capture = cusim_capture_of_ctx(ctx));)
        cusim_capture_drop(capture);
    ctx->alive = false;
    cusim_handle_remove(ctx);
    for (struct cusim_ctx **at = &cusim.contexts; *at; at = &(*at)->next)
        if (*at == ctx) {
            *at = ctx->next;
            break;
        }
    cusim_ctx_wait(ctx);
    for (struct cusim_stream *stream = ctx->streams, *next; stream; stream = next) {
        next = stream->next;
        if (!stream->closing)
            cusim_stream_close(stream);
    }
    ctx->legacy = NULL;
    if (!ctx->primary) {
        ctx->next = cusim.dead;
        cusim.dead = ctx;
    }
    cusim_ctx_modules_free(ctx);
    cusim_ctx_memory_free(ctx);
}

void cusim_ctx_wait(struct cusim_ctx *ctx) {
    struct {
        struct cusim_timeline *tl;
        uint64_t target;
    } *marks = NULL;
    size_t n = 0, capacity = 0;
    for (struct cusim_stream *s = ctx->streams; s; s = s->next) {
        if (s->tl->done >= s->submitted)
            continue;
        if (n == capacity)
            marks = realloc(marks, (capacity = capacity ? capacity * 2 : 16) * sizeof *marks);
        marks[n].tl = cusim_timeline_ref(s->tl);
        marks[n++].target = s->submitted;
    }
    for (size_t i = 0; i < n; i++) {
        cusim_timeline_wait(marks[i].tl, marks[i].target);
        cusim_timeline_unref(marks[i].tl);
    }
    free(marks);
}

/* ---- stocks: the driver's pools of streams and graphs ----
 * As measured with driver 580 on an H100: 35 streams and graphs, then 43 more each time; 4000 nodes
 * or more. What is given back can be used again. */

enum { OBJECTS = 35, OBJECTS_MORE = 43, NODES = 4000 };

static void stock_take(struct cusim_ctx *ctx, struct cusim_stock *stock, size_t n, size_t first,
                       size_t more) {
    stock->used += n;
    if (!stock->room)
        stock->room = first;
    if (stock->used <= stock->room)
        return;
    cusim_gate_lock(ctx);
    while (stock->used > stock->room)
        stock->room += more;
}

void cusim_stock_take(struct cusim_ctx *ctx, size_t nodes) {
    stock_take(ctx, &ctx->objects, 1, OBJECTS, OBJECTS_MORE);
    stock_take(ctx, &ctx->nodes, nodes, NODES, NODES);
}

void cusim_stock_give(struct cusim_ctx *ctx, size_t nodes) {
    ctx->objects.used--;
    ctx->nodes.used -= nodes;
}

void cusim_all_wait(void) {
    for (int i = 0; i < cusim.options.devices; i++)
        for (struct cusim_ctx *ctx = cusim.contexts; ctx; ctx = ctx->next)
            if (ctx->device->ordinal == i)
                cusim_ctx_wait(ctx);
}

/* ---- the stack of a thread ---- */

static CUresult push(struct cusim_ctx *ctx) {
    struct cusim_thread *thread = cusim_thread_self();
    if (thread->depth == CUSIM_STACK_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    thread->stack[thread->depth++] = ctx;
    return CUDA_SUCCESS;
}

CUSIM_LOCKED(cuCtxPushCurrent_v2, (CUcontext handle), (handle)) {
    if (!cusim_handle_is(handle, CUSIM_CTX))
        return CUDA_ERROR_INVALID_CONTEXT;
    return push((struct cusim_ctx *)handle);
}

CUSIM_LOCKED(cuCtxPopCurrent_v2, (CUcontext * handle), (handle)) {
    struct cusim_thread *thread = cusim_thread_self();
    if (thread->depth == 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    thread->depth--;
    if (handle)
        *handle = (CUcontext)thread->stack[thread->depth];
    return CUDA_SUCCESS;
}

CUSIM_LOCKED(cuCtxSetCurrent, (CUcontext handle), (handle)) {
    struct cusim_thread *thread = cusim_thread_self();
    if (handle && !cusim_handle_is(handle, CUSIM_CTX))
        return CUDA_ERROR_INVALID_CONTEXT;
    if (thread->depth > 0)
        thread->depth--;
    return handle ? push((struct cusim_ctx *)handle) : CUDA_SUCCESS;
}

CUSIM_LOCKED(cuCtxGetCurrent, (CUcontext * handle), (handle)) {
    struct cusim_thread *thread = cusim_thread_self();
    if (!handle)
        return CUDA_ERROR_INVALID_VALUE;
    *handle = thread->depth > 0 ? (CUcontext)thread->stack[thread->depth - 1] : NULL;
    return CUDA_SUCCESS;
}

/* ---- contexts of the program ---- */

static CUresult create(CUcontext *handle, unsigned flags, CUdevice ordinal) {
    struct cusim_device *device = cusim_device_get(ordinal);
    if (!handle)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    CUresult result = cusim_capture_unsafe();
    if (result != CUDA_SUCCESS)
        return result;
    struct cusim_ctx *ctx = ctx_new(device);
    ctx_start(ctx, flags);
    *handle = (CUcontext)ctx;
    return push(ctx);
}

CUSIM_LOCKED(cuCtxCreate_v2, (CUcontext * handle, unsigned flags, CUdevice device),
             (handle, flags, device)) {
    return create(handle, flags, device);
}

CUSIM_LOCKED(cuCtxCreate_v3,
             (CUcontext * handle, CUexecAffinityParam *affinity, int n, unsigned flags,
              CUdevice device),
             (handle, affinity, n, flags, device)) {
    return affinity || n ? CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY : create(handle, flags, device);
}

CUSIM_LOCKED(cuCtxCreate_v4,
             (CUcontext * handle, CUctxCreateParams *params, unsigned flags, CUdevice device),
             (handle, params, flags, device)) {
    if (params && (params->numExecAffinityParams > 0 || params->cigParams))
        return CUDA_ERROR_NOT_SUPPORTED;
    return create(handle, flags, device);
}

CUSIM_LOCKED(cuCtxDestroy_v2, (CUcontext handle), (handle)) {
    struct cusim_ctx *ctx = (struct cusim_ctx *)handle;
    struct cusim_thread *thread = cusim_thread_self();
    if (!cusim_handle_is(handle, CUSIM_CTX))
        return CUDA_ERROR_INVALID_CONTEXT;
    if (ctx->primary)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (thread->depth > 0 && thread->stack[thread->depth - 1] == ctx)
        thread->depth--;
    ctx_end(ctx);
    return CUDA_SUCCESS;
}

/* ---- primary contexts ---- */

CUSIM_LOCKED(cuDevicePrimaryCtxRetain, (CUcontext * handle, CUdevice ordinal), (handle, ordinal)) {
    struct cusim_device *device = cusim_device_get(ordinal);
    if (!handle)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    if (!device->primary) {
        device->primary = ctx_new(device);
        device->primary->primary = true;
    }
    if (!device->primary->alive)
        ctx_start(device->primary, device->primary_flags);
    device->primary_refs++;
    *handle = (CUcontext)device->primary;
    return CUDA_SUCCESS;
}

static CUresult primary_release(CUdevice ordinal) {
    struct cusim_device *device = cusim_device_get(ordinal);
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    if (device->primary_refs == 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (--device->primary_refs == 0)
        ctx_end(device->primary);
    return CUDA_SUCCESS;
}

static CUresult primary_reset(CUdevice ordinal) {
    struct cusim_device *device = cusim_device_get(ordinal);
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    device->primary_refs = 0;
    if (device->primary && device->primary->alive)
        ctx_end(device->primary);
    return CUDA_SUCCESS;
}

static CUresult primary_set_flags(CUdevice ordinal, unsigned flags) {
    struct cusim_device *device = cusim_device_get(ordinal);
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    device->primary_flags = flags;
    if (device->primary && device->primary->alive)
        device->primary->flags = flags;
    return CUDA_SUCCESS;
}

CUSIM_LOCKED(cuDevicePrimaryCtxRelease, (CUdevice device), (device)) {
    return primary_release(device);
}
CUSIM_LOCKED(cuDevicePrimaryCtxRelease_v2, (CUdevice device), (device)) {
    return primary_release(device);
}
CUSIM_LOCKED(cuDevicePrimaryCtxReset, (CUdevice device), (device)) {
    return primary_reset(device);
}
CUSIM_LOCKED(cuDevicePrimaryCtxReset_v2, (CUdevice device), (device)) {
    return primary_reset(device);
}
CUSIM_LOCKED(cuDevicePrimaryCtxSetFlags, (CUdevice device, unsigned flags), (device, flags)) {
    return primary_set_flags(device, flags);
}
CUSIM_LOCKED(cuDevicePrimaryCtxSetFlags_v2, (CUdevice device, unsigned flags), (device, flags)) {
    return primary_set_flags(device, flags);
}

CUSIM_LOCKED(cuDevicePrimaryCtxGetState, (CUdevice ordinal, unsigned *flags, int *active),
             (ordinal, flags, active)) {
    struct cusim_device *device = cusim_device_get(ordinal);
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    if (!flags || !active)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = device->primary_flags;
    *active = device->primary && device->primary->alive;
    return CUDA_SUCCESS;
}

/* ---- queries about a context ---- */

CUSIM_LOCKED(cuCtxGetDevice, (CUdevice * device), (device)) {
    struct cusim_ctx *ctx;
    CUresult result = cusim_ctx_current(&ctx);
    if (result == CUDA_SUCCESS)
        *device = ctx->device->ordinal;
    return result;
}

CUSIM_LOCKED(cuCtxGetDevice_v2, (CUdevice * device, CUcontext handle), (device, handle)) {
    struct cusim_ctx *ctx;
    CUresult result = ctx_get(handle, &ctx);
    if (result == CUDA_SUCCESS)
        *device = ctx->device->ordinal;
    return result;
}

CUSIM_LOCKED(cuCtxGetId, (CUcontext handle, unsigned long long *id), (handle, id)) {
    struct cusim_ctx *ctx;
    CUresult result = ctx_get(handle, &ctx);
    if (result == CUDA_SUCCESS)
        *id = ctx->id;
    return result;
}

CUSIM_LOCKED(cuCtxGetFlags, (unsigned *flags), (flags)) {
    struct cusim_ctx *ctx;
    CUresult result = cusim_ctx_current(&ctx);
    if (result == CUDA_SUCCESS)
        *flags = ctx->flags;
    return result;
}

CUSIM_LOCKED(cuCtxSetFlags, (unsigned flags), (flags)) {
    struct cusim_ctx *ctx;
    CUresult result = cusim_ctx_current(&ctx);
    if (result == CUDA_SUCCESS)
        ctx->flags = flags;
    return result;
}

CUSIM_LOCKED(cuCtxGetApiVersion, (CUcontext handle, unsigned *version), (handle, version)) {
    struct cusim_ctx *ctx;
    CUresult result = ctx_get(handle, &ctx);
    if (result == CUDA_SUCCESS)
        *version = 3020;
    return result;
}

CUSIM_LOCKED(cuCtxGetStreamPriorityRange, (int *least, int *greatest), (least, greatest)) {
    struct cusim_ctx *ctx;
    CUresult result = cusim_ctx_current(&ctx);
    if (result != CUDA_SUCCESS)
        return result;
    if (least)
        *least = 0;
    if (greatest)
        *greatest = -5;
    return CUDA_SUCCESS;
}

CUSIM_LOCKED(cuCtxGetLimit, (size_t * value, CUlimit limit), (value, limit)) {
    struct cusim_ctx *ctx;
    CUresult result = cusim_ctx_current(&ctx);
    if (result != CUDA_SUCCESS)
        return result;
    if (!value || limit >= CU_LIMIT_MAX)
        return CUDA_ERROR_UNSUPPORTED_LIMIT;
    *value = ctx->limits[limit];
    return CUDA_SUCCESS;
}

CUSIM_LOCKED(cuCtxSetLimit, (CUlimit limit, size_t value), (limit, value)) {
    struct cusim_ctx *ctx;
    CUresult result = cusim_ctx_current(&ctx);
    if (result != CUDA_SUCCESS)
        return result;
    if (limit > CU_LIMIT_PERSISTING_L2_CACHE_SIZE)
        return CUDA_ERROR_UNSUPPORTED_LIMIT;
    ctx->limits[limit] = value;
    return CUDA_SUCCESS;
}

CUSIM_LOCKED(cuCtxGetCacheConfig, (CUfunc_cache * config), (config)) {
    struct cusim_ctx *ctx;
    CUresult result = cusim_ctx_current(&ctx);
    if (result == CUDA_SUCCESS)
        *config = ctx->cache_config;
    return result;
}

CUSIM_LOCKED(cuCtxSetCacheConfig, (CUfunc_cache config), (config)) {
    struct cusim_ctx *ctx;
    CUresult result = cusim_ctx_current(&ctx);
    if (result == CUDA_SUCCESS)
        ctx->cache_config = config;
    return result;
}

CUSIM_LOCKED(cuCtxEnablePeerAccess, (CUcontext handle, unsigned flags), (handle, flags)) {
    (void)flags;
    return cusim_handle_is(handle, CUSIM_CTX) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUSIM_LOCKED(cuCtxDisablePeerAccess, (CUcontext handle), (handle)) {
    return cusim_handle_is(handle, CUSIM_CTX) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

static CUresult synchronize(struct cusim_ctx *ctx) {
    CUresult result = cusim_capture_unsafe_sync(ctx);
    if (result != CUDA_SUCCESS)
        return result;
    cusim_ctx_wait(ctx);
    return cusim_ctx_check(ctx);
}

CUSIM_LOCKED(cuCtxSynchronize, (void), ()) {
    struct cusim_ctx *ctx;
    CUresult result = cusim_ctx_current(&ctx);
    return result == CUDA_SUCCESS ? synchronize(ctx) : result;
}

CUSIM_LOCKED(cuCtxSynchronize_v2, (CUcontext handle), (handle)) {
    struct cusim_ctx *ctx;
    CUresult result = ctx_get(handle, &ctx);
    return result == CUDA_SUCCESS ? synchronize(ctx) : result;
}

/* ---- accepted without effect ---- */

CUSIM_LOCKED(cuCtxGetSharedMemConfig, (CUsharedconfig * config), (config)) {
    struct cusim_ctx *ctx;
    CUresult result = cusim_ctx_current(&ctx);
    if (result == CUDA_SUCCESS)
        *config = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;
    return result;
}

CUSIM_LOCKED(cuCtxSetSharedMemConfig, (CUsharedconfig config), (config)) {
    struct cusim_ctx *ctx;
    (void)config;
    return cusim_ctx_current(&ctx);
}

CUSIM_LOCKED(cuCtxResetPersistingL2Cache, (void), ()) {
    struct cusim_ctx *ctx;
    return cusim_ctx_current(&ctx);
}

CUSIM_LOCKED(cuProfilerStart, (void), ()) {
    struct cusim_ctx *ctx;
    return cusim_ctx_current(&ctx);
}

CUSIM_LOCKED(cuProfilerStop, (void), ()) {
    struct cusim_ctx *ctx;
    return cusim_ctx_current(&ctx);
}
