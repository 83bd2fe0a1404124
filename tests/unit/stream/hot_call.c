#include "tests/unit/stream/hot_call.h"

#include "shim/stream/hot.h"
#include "shim/stream/streams.h"

/* The parts of the hot path, put together as hook/ops.c puts them. */
static bool hot_parts(CUfunction f, struct cus_dims dims, void **params) {
    const uint32_t *d = dims.d;
    enum cus_hot is = cus_hot_compare(f, d[0], d[1], d[2], d[3], d[4], &d[5], &d[6], &params);
    if (is == CUS_HOT_TAIL)
        is = cus_hot_tail_differs(params) ? CUS_HOT_DIFFERENT : CUS_HOT_SAME;
    if (is == CUS_HOT_SAME)
        return cus_hot_same();
    if (is == CUS_HOT_DIFFERENT)
        return cus_hot_different(params);
    if (is != CUS_HOT_SHAPE || !cus_hot_shape(dims, params))
        return false;
    cus_hot_took(cus_thread_self.cached_engine, CUS_OP_LAUNCH, NULL);
    return true;
}

bool hot_launch(CUfunction f, const uint32_t *dims, CUstream handle, enum cus_abi abi,
                void **params, void **extra) {
    struct cus_dims shape;
    memcpy(shape.d, dims, sizeof shape.d);
    if (extra)
        return cus_traced_launch(f, shape, handle, abi, params, extra, NULL);
    __atomic_signal_fence(__ATOMIC_SEQ_CST); /* as cus_hot_enter */
    if (!cus_hot_is_cached(handle, abi) || !cus_hot_try(cus_thread_self.cached_engine))
        return false;
    struct cus_lock *lock = &cus_thread_self.cached_engine->lock;
    bool deferred = hot_parts(f, shape, params);
    if (!deferred)
        cus_lock_give(lock);
    return deferred;
}

bool hot_launch_ex(const CUlaunchConfig *config, CUfunction f, enum cus_abi abi, void **params) {
    return cus_hot_launch_ex(config, f, abi, params, NULL);
}

bool hot_branch(CUfunction f, const uint32_t *dims, CUstream handle, void **params) {
    struct cus_dims shape;
    memcpy(shape.d, dims, sizeof shape.d);
    return cus_hot_pending() && __atomic_load_n(&cus_process.branches, __ATOMIC_RELAXED) &&
           cus_hot_branch(f, shape, handle, params);
}

bool hot_memset(CUdeviceptr dst, uint32_t value, uint32_t elem, size_t width, CUstream handle,
                enum cus_abi abi) {
    return cus_hot_memset(dst, value, elem, width, handle, abi);
}

bool hot_copy(enum cus_copy_form form, uint64_t dst, uint64_t src, size_t bytes, CUstream handle,
              enum cus_abi abi) {
    return cus_hot_copy(form, dst, src, bytes, handle, abi);
}

bool recorded_launch(const struct cus_launch *launch) {
    struct cus_dims shape;
    memcpy(shape.d, launch->dims, sizeof shape.d);
    if (launch->form == CUS_LAUNCH_EX)
        return cus_recorded_launch_ex(launch->config, launch->f, launch->stream.abi, launch->params,
                                      launch->extra);
    return cus_recorded_launch(launch->f, shape, launch->stream.handle, launch->stream.abi,
                               launch->params, launch->extra);
}

bool recorded_memset(const struct cus_memset *memset) {
    return cus_recorded_memset(memset->dst, memset->value, memset->elem, memset->width,
                               memset->stream.handle, memset->stream.abi);
}

bool recorded_copy(const struct cus_copy *copy) {
    return cus_recorded_copy(copy->form, copy->dst, copy->src, copy->bytes, copy->stream.handle,
                             copy->stream.abi);
}

bool hot_passes(CUstream handle, enum cus_abi abi, CUfunction f) {
    uint64_t left;
    struct cus_engine *engine = NULL;
    if (!cus_hot_pending())
        engine = cus_hot_may_pass(handle, abi, CUS_OP_LAUNCH, f, &left);
    if (engine && cus_hot_passes_only(engine, left, CUS_OP_LAUNCH, f))
        return true;
    return !cus_hot_pending() && cus_hot_passes(handle, abi, CUS_OP_LAUNCH, f);
}

_Static_assert((int)HOT_LINE == (int)CUS_LINE, "the same");

void hot_writes(struct hot_memory written[2]) {
    const struct cus_engine *engine = cus_thread_self.pending;
    const struct cus_segment *segment = engine->view.segment;
    written[0].begin = (uintptr_t)engine;
    written[0].end = (uintptr_t)(&engine->view + 1);
    written[1].begin = (uintptr_t)segment->requested;
    written[1].end = written[1].begin + segment->image_bytes;
}

void no_room(void) {
    for (struct cus_context *context = cus_streams_contexts(); context; context = context->next) {
        context->room = (struct cus_room){
            .begun = true,
            .program_made = cus_process.made_streams + cus_process.made_graphs,
            .program_graphs = cus_process.made_graphs,
        };
    }
}
