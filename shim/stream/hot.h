/*
 * The hot paths: the op that is expected in the midst of a piece, from the hook to the plan and
 * back without a call; and the op of a stream that is left alone, which may go straight to the
 * driver.
 *
 * Inlined into the launch hooks; runs on program threads at depth 1. Takes the lock of the engine
 * on which the calling thread withholds ops, and no other; allocates nothing, calls nothing that
 * waits. Whatever is not exactly what it expects is left, without a trace, to cus_engine_launch.
 *
 * Where a piece has begun, the state of the process, profilers and captures allowed it, and whoever
 * changes one of them issues the piece first (may_withhold in engine.c): so that all that is asked
 * here is what may change from op to op.
 *
 * In a process that is recorded the same code runs with a `told` (cus_recorded_...): the op's
 * record has its room before the op is withheld, or the op goes the long way, and is written
 * afterwards out of what the node now stands for. Elsewhere `told` is a constant NULL and leaves
 * nothing behind.
 */
#ifndef CUSPLICE_STREAM_HOT_H
#define CUSPLICE_STREAM_HOT_H

#include "shim/base/hazard.h"
#include "shim/stream/state.h"
#include "shim/trace/record.h"

#define CUS_HOT static inline __attribute__((always_inline))

/* Asked of the driver at every op: the runtime sets contexts by private tables too (HAZARDS E5). */
CUS_HOT bool cus_hot_same_context(const struct cus_thread *thread) {
    CUcontext current = NULL;
    cus_process.driver->cuCtxGetCurrent(&current);
    return !CUS_HAZARD(E5) || current == thread->context;
}

/* Is there nothing that legacy ordering puts first? */
static inline bool cus_hot_untied(const struct cus_engine *engine) {
    const struct cus_context *context = engine->context;
    struct cus_engine *legacy = cus_context_legacy(context);
    if (engine->legacy)
        return !__atomic_load_n(&context->blocking_pending, __ATOMIC_ACQUIRE);
    return !legacy || !__atomic_load_n(&legacy->pending, __ATOMIC_ACQUIRE);
}

/* The engine whose piece the calling thread is in the midst of, if this is its stream; then its
 * lock is held. */
CUS_HOT struct cus_engine *cus_hot_enter(CUstream handle, enum cus_abi abi) {
    struct cus_thread *thread = &cus_thread_self;
    struct cus_engine *engine = thread->pending;
    if (!engine || engine != thread->found || thread->ref.handle != handle ||
        thread->ref.abi != abi)
        return NULL;
    if (!cus_hot_same_context(thread) ||
        (CUS_HAZARD(B4) && engine->blocking && !cus_hot_untied(engine)))
        return NULL;
    cus_lock_take(&engine->lock);
    if (__builtin_expect(cus_registry_current(thread), 1))
        return engine;
    cus_lock_give(&engine->lock);
    return NULL;
}

/* What becomes the record of an op. */
struct cus_told {
    uint64_t began; /* a moment (trace/ticks.h); 0: nothing is recorded now */
    const struct cus_held *held;
    struct cus_ring *ring;
    uint32_t bytes, kind, abi;
};

CUS_HOT struct cus_told cus_told_begin(enum cus_abi abi) {
    bool now = __atomic_load_n(&cus_record_on, __ATOMIC_RELAXED);
    return (struct cus_told){.began = __builtin_expect(now, 1) ? cus_ticks_now() : 0,
                             .abi = abi == CUS_ABI_PTSZ};
}

/* Is there room, and has what the record names a number? Lock held. */
CUS_HOT bool cus_told_fits(struct cus_told *told, const struct cus_engine *engine,
                           const struct cus_kind *kind) {
    if (!told || !told->began)
        return true;
    told->bytes = (uint32_t)sizeof(struct cst_op) + ((kind->param_bytes + 7u) & ~7u);
    told->kind = __atomic_load_n(&kind->traced, __ATOMIC_ACQUIRE);
    if (!told->kind || cus_record_on_op ||
        engine->traced_epoch != __atomic_load_n(&cus_record_epoch, __ATOMIC_ACQUIRE))
        return false;
    told->held = cus_plan_before(&engine->plan);
    told->ring = cus_ring_mine;
    return cus_ring_fits(told->ring, told->bytes);
}

/* A node's op at rest has the shape and the params of the record, in the same places. */
_Static_assert(sizeof(struct cst_op) - offsetof(struct cst_op, dims) == sizeof(struct cus_held) &&
                   offsetof(struct cst_op, abi) - offsetof(struct cst_op, dims) ==
                       offsetof(struct cus_held, unknown),
               "a record ends as an image does");

/* The op that was withheld last is told. Lock held. */
CUS_HOT void cus_told_put(const struct cus_told *told, const struct cus_engine *engine) {
    if (!told || !told->began)
        return;
    struct cus_ring *ring = told->ring;
    struct cst_op *record = cus_ring_room(ring);
    const struct cus_held *held = cus_plan_after(&engine->plan, told->held);
    uint64_t head = ring->held | (uint64_t)(told->bytes / 8) << 16;
    memcpy(&record->head, &head, sizeof head);
    record->head.ns = told->began;
    record->kind = told->kind;
    record->stream = engine->traced;
    record->result = CUDA_SUCCESS;
    record->eager = record->why = 0;
    memcpy(record->dims, held, sizeof *held);
    const uint8_t *from = held->params;
    uint8_t *to = (uint8_t *)(record + 1), *end = (uint8_t *)record + told->bytes;
    /* A few words: no call. */
    for (; to + 16 <= end; to += 16, from += 16) {
        memcpy(to, from, 16);
        __asm__("");
    }
    if (to < end)
        memcpy(to, from, 8);
    record->abi = told->abi;
    record->host_ns = cus_ring_took(ring, told->began);
    cus_ring_put(ring, told->bytes);
}

CUS_HOT bool cus_hot_leave(struct cus_engine *engine, enum cus_op_type type, bool held,
                           const struct cus_told *told) {
    if (held) {
        cus_told_put(told, engine);
        engine->counters.ops[type]++;
        __atomic_store_n(&engine->owner, &cus_thread_self, __ATOMIC_RELAXED);
        __atomic_store_n(&engine->pending, engine->plan.n, __ATOMIC_RELEASE);
    }
    cus_lock_give(&engine->lock);
    return held;
}

/* Is anything withheld by this thread? */
CUS_HOT bool cus_hot_pending(void) {
    return cus_thread_self.pending != NULL;
}

/* The packed buffer of the `extra` form, as everybody fills it; NULL where it looks otherwise. */
CUS_HOT const uint8_t *cus_hot_packed(void *const *extra, uint32_t bytes) {
    if (extra[0] != CU_LAUNCH_PARAM_BUFFER_POINTER || extra[2] != CU_LAUNCH_PARAM_BUFFER_SIZE ||
        extra[4] != CU_LAUNCH_PARAM_END || *(const size_t *)extra[3] != bytes)
        return NULL;
    return extra[1];
}

/* With `extra` only what the node holds already is taken. */
CUS_HOT bool cus_hot_hold(struct cus_engine *engine, const struct cus_kind *kind, CUfunction f,
                          struct cus_dims dims, void **params, void **extra) {
    if (kind->handle != f || kind->type != CUS_OP_LAUNCH)
        return false;
    if (__builtin_expect(!extra, 1))
        return (params || !kind->param_bytes) && cus_plan_hold(&engine->plan, dims, params);
    const uint8_t *flat = params ? NULL : cus_hot_packed(extra, kind->param_bytes);
    return flat && cus_plan_hold_same(&engine->plan, dims, flat);
}

/* True: the launch is withheld. False: nothing was done. */
CUS_HOT bool cus_told_launch(CUfunction f, struct cus_dims dims, CUstream handle, enum cus_abi abi,
                             void **params, void **extra, struct cus_told *told) {
    struct cus_engine *engine = cus_hot_enter(handle, abi);
    if (!engine)
        return false;
    const struct cus_kind *kind = cus_plan_midst(&engine->plan);
    return cus_hot_leave(engine, CUS_OP_LAUNCH,
                         kind && !kind->n_attrs && !kind->cooperative &&
                             cus_told_fits(told, engine, kind) &&
                             cus_hot_hold(engine, kind, f, dims, params, extra),
                         told);
}

CUS_HOT bool cus_told_launch_ex(const CUlaunchConfig *config, CUfunction f, enum cus_abi abi,
                                void **params, void **extra, struct cus_told *told) {
    struct cus_engine *engine = cus_hot_enter(config->hStream, abi);
    if (!engine)
        return false;
    const struct cus_dims dims = {{config->gridDimX, config->gridDimY, config->gridDimZ,
                                   config->blockDimX, config->blockDimY, config->blockDimZ,
                                   config->sharedMemBytes}};
    const struct cus_kind *kind = cus_plan_midst(&engine->plan);
    return cus_hot_leave(engine, CUS_OP_LAUNCH,
                         kind && cus_kinds_has_attrs(kind, config->attrs, config->numAttrs) &&
                             cus_told_fits(told, engine, kind) &&
                             cus_hot_hold(engine, kind, f, dims, params, extra),
                         told);
}

/* A memset or copy of what the node holds already, addresses included, is one in memory that is
 * known as long as none may have gone since the piece began. */
CUS_HOT bool cus_hot_memory(struct cus_engine *engine, uint64_t wide, const void *flat) {
    const struct cus_dims dims = {{(uint32_t)wide, (uint32_t)(wide >> 32)}};
    return engine->plan.memory_epoch == cus_ranges_epoch() &&
           cus_plan_hold_same(&engine->plan, dims, flat);
}

CUS_HOT bool cus_told_memset(CUdeviceptr dst, uint32_t value, uint32_t elem, size_t width,
                             CUstream handle, enum cus_abi abi, struct cus_told *told) {
    struct cus_engine *engine = cus_hot_enter(handle, abi);
    if (!engine)
        return false;
    const struct cus_kind *kind = cus_plan_midst(&engine->plan);
    const struct cus_memset_params params = {.dst = dst, .value = value, .height = 1};
    return cus_hot_leave(engine, CUS_OP_MEMSET,
                         kind && kind->type == CUS_OP_MEMSET && kind->elem == elem &&
                             kind->abis >> abi & 1 && cus_told_fits(told, engine, kind) &&
                             cus_hot_memory(engine, width, &params),
                         told);
}

CUS_HOT bool cus_told_copy(enum cus_copy_form form, uint64_t dst, uint64_t src, size_t bytes,
                           CUstream handle, enum cus_abi abi, struct cus_told *told) {
    struct cus_engine *engine = cus_hot_enter(handle, abi);
    if (!engine)
        return false;
    const struct cus_kind *kind = cus_plan_midst(&engine->plan);
    const struct cus_copy_params params = {.dst = dst, .src = src};
    return cus_hot_leave(engine, CUS_OP_COPY,
                         kind && kind->type == CUS_OP_COPY && kind->copy_form == form &&
                             kind->abis >> abi & 1 && cus_told_fits(told, engine, kind) &&
                             cus_hot_memory(engine, bytes, &params),
                         told);
}

/* Each in a process that is not recorded, and in one that is. */
#define CUS_TOLD(name, parameters, ...)                                                            \
    CUS_HOT bool cus_hot_##name parameters {                                                       \
        return cus_told_##name(__VA_ARGS__, NULL);                                                 \
    }                                                                                              \
    CUS_HOT bool cus_recorded_##name parameters {                                                  \
        struct cus_told told = cus_told_begin(abi);                                                \
        return cus_told_##name(__VA_ARGS__, &told);                                                \
    }
CUS_TOLD(launch,
         (CUfunction f, struct cus_dims dims, CUstream handle, enum cus_abi abi, void **params,
          void **extra),
         f, dims, handle, abi, params, extra)
CUS_TOLD(launch_ex,
         (const CUlaunchConfig *config, CUfunction f, enum cus_abi abi, void **params,
          void **extra),
         config, f, abi, params, extra)
CUS_TOLD(memset,
         (CUdeviceptr dst, uint32_t value, uint32_t elem, size_t width, CUstream handle,
          enum cus_abi abi),
         dst, value, elem, width, handle, abi)
CUS_TOLD(copy,
         (enum cus_copy_form form, uint64_t dst, uint64_t src, size_t bytes, CUstream handle,
          enum cus_abi abi),
         form, dst, src, bytes, handle, abi)

/* May the op of a stream that is left alone go straight to the driver? A copy, which may sleep
 * there, goes the long way, and so does a function (`f`, of launches) that nobody knows. Asked of
 * as little memory as can be: a program whose launches never repeat pays for each cache line that
 * is touched here. The stream was found dormant under this very name; there is only one context, so
 * that it cannot mean another stream by now. Counted; nothing follows the real call. */
CUS_HOT bool cus_hot_passes(CUstream handle, enum cus_abi abi, enum cus_op_type type,
                            CUfunction f) {
    struct cus_thread *thread = &cus_thread_self;
    struct cus_engine *engine = thread->found;
    if (type == CUS_OP_COPY || !engine || thread->ref.handle != handle || thread->ref.abi != abi ||
        !cus_registry_current(thread) ||
        __atomic_load_n(&cus_process.n_contexts, __ATOMIC_RELAXED) != 1 ||
        __atomic_load_n(&cus_process.never_defer, __ATOMIC_ACQUIRE))
        return false;
    uint64_t left = __atomic_load_n(&engine->dormant, __ATOMIC_RELAXED);
    if (!left || __atomic_load_n(&engine->late_error, __ATOMIC_RELAXED) != CUDA_SUCCESS ||
        (type == CUS_OP_LAUNCH && !cus_kinds_seen(engine->context, f)) ||
        (engine->blocking && !cus_hot_untied(engine)))
        return false;
    cus_dormant_op(engine, left, type, f);
    thread->last = engine;
    return true;
}

#endif
