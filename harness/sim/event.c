/*
 * Events. Each recording makes its own mark (a timeline and a place on it). So a wait or a query
 * refers to the last recording before its call, even if the event is recorded again later.
 *
 * Any thread, under cusim.lock.
 */
#include "harness/sim/cusim.h"

#include <stdlib.h>

CUSIM_LOCKED(cuEventCreate, (CUevent * handle, unsigned flags), (handle, flags)) {
    static uint64_t next_raw;
    struct cusim_ctx *ctx;
    CUresult result = cusim_ctx_current(&ctx);
    if (result != CUDA_SUCCESS)
        return result;
    if (!handle || (flags & ~7u))
        return CUDA_ERROR_INVALID_VALUE;
    struct cusim_event *event = calloc(1, sizeof *event);
    event->raw = next_raw++;
    event->ctx = ctx;
    event->ctx_id = ctx->id;
    event->flags = flags;
    cusim_handle_add(event, CUSIM_EVENT);
    *handle = (CUevent)event;
    return CUDA_SUCCESS;
}

static CUresult destroy(CUevent handle) {
    if (cusim_thread_self()->in_worker)
        return CUDA_ERROR_NOT_PERMITTED;
    if (!cusim_handle_is(handle, CUSIM_EVENT))
        return CUDA_ERROR_INVALID_HANDLE;
    struct cusim_event *event = (struct cusim_event *)handle;
    cusim_handle_remove(event);
    cusim_event_forget_capture(event);
    cusim_mark_unref(event->last);
    free(event);
    return CUDA_SUCCESS;
}

CUSIM_LOCKED(cuEventDestroy, (CUevent handle), (handle)) {
    return destroy(handle);
}
CUSIM_LOCKED(cuEventDestroy_v2, (CUevent handle), (handle)) {
    return destroy(handle);
}

static CUresult event_get(CUevent handle, struct cusim_event **event) {
    if (cusim_thread_self()->in_worker)
        return CUDA_ERROR_NOT_PERMITTED;
    if (!cusim_handle_is(handle, CUSIM_EVENT))
        return CUDA_ERROR_INVALID_HANDLE;
    *event = (struct cusim_event *)handle;
    if (!(*event)->ctx->alive || (*event)->ctx->id != (*event)->ctx_id)
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    return (*event)->ctx->error;
}

static CUresult record_in(CUevent handle, struct cusim_stream *s, unsigned flags,
                          enum cusim_fires fires) {
    struct cusim_event *event;
    CUresult result = event_get(handle, &event);
    if (result != CUDA_SUCCESS)
        return result;
    if (event->ctx != s->ctx)
        return CUDA_ERROR_INVALID_HANDLE;
    if (s->capture)
        return cusim_capture_record(s, event, flags);
    if (flags & CU_EVENT_RECORD_EXTERNAL)
        return CUDA_ERROR_ILLEGAL_STATE;
    cusim_event_forget_capture(event);
    struct cusim_work *work = cusim_work_new(CUSIM_WORK_RECORD, s->ctx);
    work->event.id = event->raw;
    work->event.fires = fires;
    struct cusim_op *op = cusim_enqueue(s, work);
    if (fires == CUSIM_FIRES_BEHIND) {
        op->mark = cusim_mark_new(s->tl, op->seq);
    } else {
        struct cusim_timeline *tl = cusim_timeline_new(); /* the kernel may end later */
        op->mark = cusim_mark_new(tl, 1);
        cusim_timeline_unref(tl);
    }
    cusim_mark_unref(event->last);
    event->last = cusim_mark_ref(op->mark);
    return CUDA_SUCCESS;
}

CUresult cusim_event_record(CUevent handle, struct cusim_stream *stream, enum cusim_fires fires) {
    return record_in(handle, stream, 0, fires);
}

static CUresult record(bool ptsz, CUevent handle, CUstream stream, unsigned flags) {
    struct cusim_event *event;
    struct cusim_stream *s;
    CUresult result = event_get(handle, &event);
    if (result ==
        CUDA_SUCCESS) /* a wait for room gives the lock back, so the event is looked up again */
        result = cusim_stream_get_for_work(stream, ptsz, &s);
    return result == CUDA_SUCCESS ? record_in(handle, s, flags, CUSIM_FIRES_BEHIND) : result;
}

CUSIM_TWIN_LOCKED(cuEventRecord, _ptsz, (CUevent event, CUstream stream), (event, stream)) {
    return record(ptsz, event, stream, 0);
}

CUSIM_TWIN_LOCKED(cuEventRecordWithFlags, _ptsz, (CUevent event, CUstream stream, unsigned flags),
                  (event, stream, flags)) {
    if (flags & ~(unsigned)CU_EVENT_RECORD_EXTERNAL)
        return CUDA_ERROR_INVALID_VALUE;
    return record(ptsz, event, stream, flags);
}

CUSIM_TWIN_LOCKED(cuStreamWaitEvent, _ptsz, (CUstream stream, CUevent handle, unsigned flags),
                  (stream, handle, flags)) {
    struct cusim_event *event;
    struct cusim_stream *s;
    if (flags & ~(unsigned)CU_EVENT_WAIT_EXTERNAL)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = cusim_stream_get_for_work(stream, ptsz, &s);
    if (result == CUDA_SUCCESS)
        result = event_get(handle, &event);
    if (result != CUDA_SUCCESS)
        return result;
    if (s->capture || cusim_event_captured(event))
        return cusim_capture_wait(s, event, flags);
    if (flags & CU_EVENT_WAIT_EXTERNAL)
        return CUDA_ERROR_ILLEGAL_STATE;
    if (!event->last)
        return CUDA_SUCCESS;
    struct cusim_work *work = cusim_work_new(CUSIM_WORK_WAIT, s->ctx);
    work->event.id = event->raw;
    struct cusim_op *op = cusim_enqueue(s, work);
    cusim_op_depend(op, event->last->tl, event->last->target);
    cusim_stream_note_wait(s, event->last->tl, event->last->target);
    return CUDA_SUCCESS;
}

/* Shared checks of a query and a wait of the host. */
static CUresult check_host(CUevent handle, struct cusim_event **event) {
    CUresult result = event_get(handle, event);
    if (result != CUDA_SUCCESS)
        return result;
    if (cusim_event_captured(*event)) {
        struct cusim_capture *capture = cusim_capture_live(*event);
        if (!capture) /* the capture ended, and the event was not recorded since */
            return CUDA_ERROR_INVALID_VALUE;
        cusim_capture_invalidate(capture);
        return CUDA_ERROR_CAPTURED_EVENT;
    }
    return cusim_capture_unsafe();
}

CUSIM_LOCKED(cuEventQuery, (CUevent handle), (handle)) {
    struct cusim_event *event;
    CUresult result = check_host(handle, &event);
    if (result != CUDA_SUCCESS)
        return result;
    struct cusim_mark *mark = event->last;
    return !mark || mark->tl->done >= mark->target ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUSIM_LOCKED(cuEventSynchronize, (CUevent handle), (handle)) {
    struct cusim_event *event;
    CUresult result = check_host(handle, &event);
    if (result != CUDA_SUCCESS || !event->last)
        return result;
    struct cusim_ctx *ctx = event->ctx;
    struct cusim_mark *mark = cusim_mark_ref(event->last);
    cusim_timeline_wait(mark->tl, mark->target);
    cusim_mark_unref(mark);
    return cusim_ctx_check(ctx);
}

static CUresult elapsed(float *ms, CUevent start, CUevent end) {
    struct cusim_event *a, *b;
    CUresult result = event_get(start, &a);
    if (result == CUDA_SUCCESS)
        result = event_get(end, &b);
    if (result != CUDA_SUCCESS)
        return result;
    if (!ms || cusim_event_captured(a) || cusim_event_captured(b))
        return CUDA_ERROR_INVALID_VALUE;
    if (!a->last || !b->last || ((a->flags | b->flags) & CU_EVENT_DISABLE_TIMING))
        return CUDA_ERROR_INVALID_HANDLE;
    if (a->last->tl->done < a->last->target || b->last->tl->done < b->last->target)
        return CUDA_ERROR_NOT_READY;
    *ms = (float)((double)(int64_t)(b->last->time_ns - a->last->time_ns) * 1e-6);
    return CUDA_SUCCESS;
}

CUSIM_LOCKED(cuEventElapsedTime, (float *ms, CUevent start, CUevent end), (ms, start, end)) {
    return elapsed(ms, start, end);
}
CUSIM_LOCKED(cuEventElapsedTime_v2, (float *ms, CUevent start, CUevent end), (ms, start, end)) {
    return elapsed(ms, start, end);
}

/* ---- events of a whole context ---- */

CUSIM_LOCKED(cuCtxRecordEvent, (CUcontext handle, CUevent event_handle), (handle, event_handle)) {
    struct cusim_event *event;
    CUresult result = event_get(event_handle, &event);
    if (result != CUDA_SUCCESS)
        return result;
    struct cusim_ctx *ctx = event->ctx;
    if (handle && handle != (CUcontext)ctx)
        return CUDA_ERROR_INVALID_HANDLE;
    result = cusim_capture_unsafe_sync(ctx); /* acts on all streams, also capturing ones */
    if (result != CUDA_SUCCESS)
        return result;
    cusim_event_forget_capture(event);
    struct cusim_work *work = cusim_work_new(CUSIM_WORK_RECORD, ctx);
    work->event.id = event->raw;
    struct cusim_op *op = cusim_enqueue(ctx->legacy, work);
    for (struct cusim_stream *s = ctx->streams; s; s = s->next)
        if (s != ctx->legacy)
            cusim_op_depend(op, s->tl, s->submitted);
    op->mark = cusim_mark_new(ctx->legacy->tl, op->seq);
    cusim_mark_unref(event->last);
    event->last = cusim_mark_ref(op->mark);
    return CUDA_SUCCESS;
}

CUSIM_LOCKED(cuCtxWaitEvent, (CUcontext handle, CUevent event_handle), (handle, event_handle)) {
    struct cusim_event *event;
    CUresult result = event_get(event_handle, &event);
    if (result != CUDA_SUCCESS)
        return result;
    struct cusim_ctx *ctx = handle ? (struct cusim_ctx *)handle : event->ctx;
    if (!cusim_handle_is(ctx, CUSIM_CTX))
        return CUDA_ERROR_INVALID_CONTEXT;
    result = cusim_capture_unsafe_sync(ctx);
    if (result != CUDA_SUCCESS || !event->last)
        return result;
    for (struct cusim_stream *s = ctx->streams; s; s = s->next) {
        struct cusim_work *work = cusim_work_new(CUSIM_WORK_WAIT, ctx);
        work->event.id = event->raw;
        struct cusim_op *op = cusim_enqueue(s, work);
        cusim_op_depend(op, event->last->tl, event->last->target);
    }
    return CUDA_SUCCESS;
}
