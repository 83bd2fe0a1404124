/*
 * Streams as a program sees them: handles, queries, attributes, synchronisation.
 *
 * Any thread, under cusim.lock. A wait gives the lock back, so the caller must look the stream up
 * again afterwards.
 */
#include "harness/sim/cusim.h"

#include <stdlib.h>
#include <string.h>

static CUresult per_thread_stream(struct cusim_ctx *ctx, struct cusim_stream **out) {
    struct cusim_thread *thread = cusim_thread_self();
    struct cusim_default *d = thread->defaults;
    while (d && d->ctx_id != ctx->id)
        d = d->next;
    if (!d) {
        d = malloc(sizeof *d);
        d->ctx_id = ctx->id;
        d->stream = cusim_stream_new(ctx, CU_STREAM_DEFAULT, 0);
        d->stream->per_thread = true;
        d->next = thread->defaults;
        thread->defaults = d;
    }
    *out = d->stream;
    return CUDA_SUCCESS;
}

void cusim_thread_streams_close(struct cusim_thread *thread) {
    for (struct cusim_default *d = thread->defaults, *next; d; d = next) {
        next = d->next;
        if (cusim_ctx_by_id(d->ctx_id))
            cusim_stream_close(d->stream);
        free(d);
    }
    thread->defaults = NULL;
}

CUresult cusim_stream_get(CUstream handle, bool ptsz, struct cusim_stream **out) {
    struct cusim_ctx *ctx;
    if (cusim_thread_self()->in_worker)
        return CUDA_ERROR_NOT_PERMITTED;
    if (!handle)
        handle = ptsz ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
    if (handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD) {
        CUresult result = cusim_ctx_current(&ctx);
        if (result != CUDA_SUCCESS)
            return result;
        *out = ctx->legacy;
        return handle == CU_STREAM_LEGACY ? CUDA_SUCCESS : per_thread_stream(ctx, out);
    }
    if (!cusim_handle_is(handle, CUSIM_STREAM))
        return CUDA_ERROR_INVALID_HANDLE;
    *out = (struct cusim_stream *)handle;
    return cusim_ctx_check((*out)->ctx);
}

CUresult cusim_stream_get_for_work(CUstream handle, bool ptsz, struct cusim_stream **out) {
    for (;;) {
        CUresult result = cusim_stream_get(handle, ptsz, out);
        if (result != CUDA_SUCCESS)
            return result;
        struct cusim_stream *s = *out;
        if (s->legacy && s->ctx->blocking_captures > 0) {
            cusim_capture_invalidate_blocking(s->ctx);
            return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
        }
        if (s->capture)
            return cusim_capture_state(s);
        if (s->ctx->locked > 0) {
            cusim_gate_wait(s->ctx);
            continue;
        }
        uint64_t depth = cusim.options.queue_depth;
        if (depth == 0 || s->submitted - s->tl->done < depth)
            return CUDA_SUCCESS;
        cusim_timeline_wait(s->tl, s->submitted - depth + 1);
    }
}

static CUresult create(CUstream *handle, unsigned flags, int priority) {
    struct cusim_ctx *ctx;
    CUresult result = cusim_ctx_current(&ctx);
    if (result != CUDA_SUCCESS)
        return result;
    if (!handle || (flags & ~(unsigned)CU_STREAM_NON_BLOCKING))
        return CUDA_ERROR_INVALID_VALUE;
    priority = priority > 0 ? 0 : priority < -5 ? -5 : priority;
    cusim_stock_take(ctx, 0);
    struct cusim_stream *stream = cusim_stream_new(ctx, flags, priority);
    cusim_handle_add(stream, CUSIM_STREAM);
    *handle = (CUstream)stream;
    return CUDA_SUCCESS;
}

CUSIM_LOCKED(cuStreamCreate, (CUstream * handle, unsigned flags), (handle, flags)) {
    return create(handle, flags, 0);
}

CUSIM_LOCKED(cuStreamCreateWithPriority, (CUstream * handle, unsigned flags, int priority),
             (handle, flags, priority)) {
    return create(handle, flags, priority);
}

static CUresult destroy(CUstream handle) {
    if (cusim_thread_self()->in_worker)
        return CUDA_ERROR_NOT_PERMITTED;
    if (!cusim_handle_is(handle, CUSIM_STREAM))
        return CUDA_ERROR_INVALID_HANDLE;
    cusim_handle_remove(handle);
    cusim_stock_give(((struct cusim_stream *)handle)->ctx, 0);
    cusim_stream_close((struct cusim_stream *)handle);
    return CUDA_SUCCESS;
}

CUSIM_LOCKED(cuStreamDestroy, (CUstream handle), (handle)) {
    return destroy(handle);
}
CUSIM_LOCKED(cuStreamDestroy_v2, (CUstream handle), (handle)) {
    return destroy(handle);
}

/* ---- waits and queries ---- */

static CUresult check_sync(struct cusim_stream *s) {
    if (s->capture) {
        cusim_capture_invalidate(s->capture);
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    if (s->legacy && s->ctx->blocking_captures > 0) {
        cusim_capture_invalidate_blocking(s->ctx);
        return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
    return cusim_capture_unsafe();
}

CUSIM_TWIN_LOCKED(cuStreamSynchronize, _ptsz, (CUstream handle), (handle)) {
    struct cusim_stream *s;
    CUresult result = cusim_stream_get(handle, ptsz, &s);
    if (result == CUDA_SUCCESS)
        result = check_sync(s);
    if (result != CUDA_SUCCESS)
        return result;
    struct cusim_ctx *ctx = s->ctx;
    cusim_stream_wait(s);
    return cusim_ctx_check(ctx);
}

CUSIM_TWIN_LOCKED(cuStreamQuery, _ptsz, (CUstream handle), (handle)) {
    struct cusim_stream *s;
    CUresult result = cusim_stream_get(handle, ptsz, &s);
    if (result == CUDA_SUCCESS)
        result = check_sync(s);
    if (result != CUDA_SUCCESS)
        return result;
    return cusim_stream_done(s) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

/* ---- questions about a stream ---- */

/* A query about the legacy stream counts as using it: it spoils the capture of a blocking
 * stream. Only cuStreamIsCapturing and cuStreamGetCaptureInfo do not. */
static CUresult get_to_ask(CUstream handle, bool ptsz, struct cusim_stream **s) {
    CUresult result = cusim_stream_get(handle, ptsz, s);
    if (result != CUDA_SUCCESS)
        return result;
    if ((*s)->legacy && (*s)->ctx->blocking_captures > 0) {
        cusim_capture_invalidate_blocking((*s)->ctx);
        return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
    return CUDA_SUCCESS;
}

/* These queries count as using any stream: they spoil the capture of the queried stream. As seen
 * on an H200: flags and id do, priority, context and attributes do not. Untested ones (device,
 * green context, cuStreamGetCtx_v2) are assumed to. */
static CUresult get_to_use(CUstream handle, bool ptsz, struct cusim_stream **s) {
    CUresult result = get_to_ask(handle, ptsz, s);
    if (result == CUDA_SUCCESS && (*s)->capture) {
        cusim_capture_invalidate((*s)->capture);
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    return result;
}

CUSIM_TWIN_LOCKED(cuStreamGetFlags, _ptsz, (CUstream handle, unsigned *flags), (handle, flags)) {
    struct cusim_stream *s;
    CUresult result = get_to_use(handle, ptsz, &s);
    if (result == CUDA_SUCCESS)
        *flags = s->flags;
    return result;
}

CUSIM_TWIN_LOCKED(cuStreamGetPriority, _ptsz, (CUstream handle, int *priority),
                  (handle, priority)) {
    struct cusim_stream *s;
    CUresult result = get_to_ask(handle, ptsz, &s);
    if (result == CUDA_SUCCESS)
        *priority = s->priority;
    return result;
}

CUSIM_TWIN_LOCKED(cuStreamGetId, _ptsz, (CUstream handle, unsigned long long *id), (handle, id)) {
    struct cusim_stream *s;
    CUresult result = get_to_use(handle, ptsz, &s);
    if (result == CUDA_SUCCESS)
        *id = s->id;
    return result;
}

CUSIM_TWIN_LOCKED(cuStreamGetCtx, _ptsz, (CUstream handle, CUcontext *ctx), (handle, ctx)) {
    struct cusim_stream *s;
    CUresult result = get_to_ask(handle, ptsz, &s);
    if (result == CUDA_SUCCESS)
        *ctx = (CUcontext)s->ctx;
    return result;
}

CUSIM_TWIN_LOCKED(cuStreamGetCtx_v2, _ptsz, (CUstream handle, CUcontext *ctx, CUgreenCtx *green),
                  (handle, ctx, green)) {
    struct cusim_stream *s;
    CUresult result = get_to_use(handle, ptsz, &s);
    if (result == CUDA_SUCCESS) {
        *ctx = (CUcontext)s->ctx;
        if (green)
            *green = NULL;
    }
    return result;
}

CUSIM_LOCKED(cuStreamGetGreenCtx, (CUstream handle, CUgreenCtx *green), (handle, green)) {
    struct cusim_stream *s;
    CUresult result = get_to_use(handle, false, &s);
    if (result == CUDA_SUCCESS)
        *green = NULL;
    return result;
}

CUSIM_TWIN_LOCKED(cuStreamGetDevice, _ptsz, (CUstream handle, CUdevice *device), (handle, device)) {
    struct cusim_stream *s;
    CUresult result = get_to_use(handle, ptsz, &s);
    if (result == CUDA_SUCCESS)
        *device = s->ctx->device->ordinal;
    return result;
}

/* ---- attributes ---- */

static bool known_attribute(CUstreamAttrID id) {
    return id == CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW ||
           id == CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY || id == CU_LAUNCH_ATTRIBUTE_PRIORITY ||
           id == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP ||
           id == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN;
}

CUSIM_TWIN_LOCKED(cuStreamGetAttribute, _ptsz,
                  (CUstream handle, CUstreamAttrID id, CUstreamAttrValue *value),
                  (handle, id, value)) {
    struct cusim_stream *s;
    CUresult result = get_to_ask(handle, ptsz, &s);
    if (result != CUDA_SUCCESS)
        return result;
    if (!value || !known_attribute(id))
        return CUDA_ERROR_INVALID_VALUE;
    *value = s->attrs[id];
    if (id == CU_LAUNCH_ATTRIBUTE_PRIORITY)
        value->priority = s->priority;
    if (id == CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY && !s->attr_set[id])
        value->syncPolicy = CU_SYNC_POLICY_AUTO;
    return CUDA_SUCCESS;
}

CUSIM_TWIN_LOCKED(cuStreamSetAttribute, _ptsz,
                  (CUstream handle, CUstreamAttrID id, const CUstreamAttrValue *value),
                  (handle, id, value)) {
    struct cusim_stream *s;
    CUresult result = cusim_stream_get(handle, ptsz, &s);
    if (result != CUDA_SUCCESS)
        return result;
    if (!value || !known_attribute(id))
        return CUDA_ERROR_INVALID_VALUE;
    s->attrs[id] = *value;
    s->attr_set[id] = true;
    if (id == CU_LAUNCH_ATTRIBUTE_PRIORITY)
        s->priority = value->priority;
    return CUDA_SUCCESS;
}

CUSIM_TWIN_LOCKED(cuStreamCopyAttributes, _ptsz, (CUstream target, CUstream source),
                  (target, source)) {
    struct cusim_stream *to, *from;
    CUresult result = cusim_stream_get(target, ptsz, &to);
    if (result == CUDA_SUCCESS)
        result = cusim_stream_get(source, ptsz, &from);
    if (result != CUDA_SUCCESS)
        return result;
    if (to->ctx != from->ctx)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(to->attrs, from->attrs, sizeof to->attrs);
    memcpy(to->attr_set, from->attr_set, sizeof to->attr_set);
    to->priority = from->priority;
    return CUDA_SUCCESS;
}

/* ---- host functions and memory values in stream order ---- */

CUSIM_TWIN_LOCKED(cuLaunchHostFunc, _ptsz, (CUstream handle, CUhostFn fn, void *data),
                  (handle, fn, data)) {
    struct cusim_stream *s;
    CUresult result = cusim_stream_get_for_work(handle, ptsz, &s);
    if (result != CUDA_SUCCESS)
        return result;
    if (!fn)
        return CUDA_ERROR_INVALID_VALUE;
    struct cusim_work *work = cusim_work_new(CUSIM_WORK_HOST, s->ctx);
    work->host.fn = fn;
    work->host.data = data;
    return cusim_submit(s, work);
}

CUSIM_TWIN_LOCKED(cuStreamAddCallback, _ptsz,
                  (CUstream handle, CUstreamCallback callback, void *data, unsigned flags),
                  (handle, callback, data, flags)) {
    struct cusim_stream *s;
    CUresult result = cusim_stream_get_for_work(handle, ptsz, &s);
    if (result != CUDA_SUCCESS)
        return result;
    if (!callback || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (s->capture) {
        cusim_capture_invalidate(s->capture);
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    struct cusim_work *work = cusim_work_new(CUSIM_WORK_CALLBACK, s->ctx);
    work->host.callback = callback;
    work->host.stream = handle;
    work->host.data = data;
    return cusim_submit(s, work);
}

static CUresult value_op(enum cusim_work_type type, CUstream handle, bool ptsz, CUdeviceptr address,
                         uint64_t value, unsigned bytes, unsigned flags) {
    struct cusim_stream *s;
    CUresult result = cusim_stream_get_for_work(handle, ptsz, &s);
    if (result != CUDA_SUCCESS)
        return result;
    if (address % bytes != 0 || cusim_mem_kind_of(address, bytes) == CUSIM_MEM_PAGEABLE)
        return CUDA_ERROR_INVALID_VALUE;
    struct cusim_work *work = cusim_work_new(type, s->ctx);
    work->value.address = address;
    work->value.value = value;
    work->value.bytes = bytes;
    work->value.flags = flags;
    return cusim_submit(s, work);
}

#define VALUE_OP(symbol, type, number, bytes)                                                      \
    CUSIM_TWIN_LOCKED(symbol, _ptsz,                                                               \
                      (CUstream handle, CUdeviceptr address, number value, unsigned flags),        \
                      (handle, address, value, flags)) {                                           \
        return value_op(type, handle, ptsz, address, value, bytes, flags);                         \
    }
VALUE_OP(cuStreamWaitValue32, CUSIM_WORK_WAIT_VALUE, cuuint32_t, 4)
VALUE_OP(cuStreamWaitValue64, CUSIM_WORK_WAIT_VALUE, cuuint64_t, 8)
VALUE_OP(cuStreamWriteValue32, CUSIM_WORK_WRITE_VALUE, cuuint32_t, 4)
VALUE_OP(cuStreamWriteValue64, CUSIM_WORK_WRITE_VALUE, cuuint64_t, 8)
VALUE_OP(cuStreamWaitValue32_v2, CUSIM_WORK_WAIT_VALUE, cuuint32_t, 4)
VALUE_OP(cuStreamWaitValue64_v2, CUSIM_WORK_WAIT_VALUE, cuuint64_t, 8)
VALUE_OP(cuStreamWriteValue32_v2, CUSIM_WORK_WRITE_VALUE, cuuint32_t, 4)
VALUE_OP(cuStreamWriteValue64_v2, CUSIM_WORK_WRITE_VALUE, cuuint64_t, 8)

CUSIM_TWIN_LOCKED(cuStreamBatchMemOp_v2, _ptsz,
                  (CUstream handle, unsigned count, CUstreamBatchMemOpParams *ops, unsigned flags),
                  (handle, count, ops, flags)) {
    if (flags != 0 || count > 256 || (count > 0 && !ops))
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count; i++) {
        CUresult result = CUDA_SUCCESS;
        switch (ops[i].operation) {
        case CU_STREAM_MEM_OP_WAIT_VALUE_32:
            result = value_op(CUSIM_WORK_WAIT_VALUE, handle, ptsz, ops[i].waitValue.address,
                              ops[i].waitValue.value, 4, ops[i].waitValue.flags);
            break;
        case CU_STREAM_MEM_OP_WAIT_VALUE_64:
            result = value_op(CUSIM_WORK_WAIT_VALUE, handle, ptsz, ops[i].waitValue.address,
                              ops[i].waitValue.value64, 8, ops[i].waitValue.flags);
            break;
        case CU_STREAM_MEM_OP_WRITE_VALUE_32:
            result = value_op(CUSIM_WORK_WRITE_VALUE, handle, ptsz, ops[i].writeValue.address,
                              ops[i].writeValue.value, 4, ops[i].writeValue.flags);
            break;
        case CU_STREAM_MEM_OP_WRITE_VALUE_64:
            result = value_op(CUSIM_WORK_WRITE_VALUE, handle, ptsz, ops[i].writeValue.address,
                              ops[i].writeValue.value64, 8, ops[i].writeValue.flags);
            break;
        default: /* barriers and flushes: memory is always coherent here */
            break;
        }
        if (result != CUDA_SUCCESS)
            return result;
    }
    return CUDA_SUCCESS;
}

CUSIM_TWIN_LOCKED(cuStreamAttachMemAsync, _ptsz,
                  (CUstream handle, CUdeviceptr address, size_t bytes, unsigned flags),
                  (handle, address, bytes, flags)) {
    struct cusim_stream *s;
    (void)bytes, (void)flags;
    CUresult result = cusim_stream_get_for_work(handle, ptsz, &s);
    if (result != CUDA_SUCCESS)
        return result;
    struct cusim_mem *mem = cusim_mem_find(address);
    return mem && mem->kind == CUSIM_MEM_MANAGED ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
