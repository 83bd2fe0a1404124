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
 */
#ifndef CUSPLICE_STREAM_HOT_H
#define CUSPLICE_STREAM_HOT_H

#include "shim/base/hazard.h"
#include "shim/stream/state.h"

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

CUS_HOT bool cus_hot_leave(struct cus_engine *engine, enum cus_op_type type, bool held) {
    if (held) {
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
CUS_HOT bool cus_hot_launch(CUfunction f, struct cus_dims dims, CUstream handle, enum cus_abi abi,
                            void **params, void **extra) {
    struct cus_engine *engine = cus_hot_enter(handle, abi);
    if (!engine)
        return false;
    const struct cus_kind *kind = cus_plan_midst(&engine->plan);
    return cus_hot_leave(engine, CUS_OP_LAUNCH,
                         kind && !kind->n_attrs && !kind->cooperative &&
                             cus_hot_hold(engine, kind, f, dims, params, extra));
}

CUS_HOT bool cus_hot_launch_ex(const CUlaunchConfig *config, CUfunction f, enum cus_abi abi,
                               void **params, void **extra) {
    struct cus_engine *engine = cus_hot_enter(config->hStream, abi);
    if (!engine)
        return false;
    const struct cus_dims dims = {{config->gridDimX, config->gridDimY, config->gridDimZ,
                                   config->blockDimX, config->blockDimY, config->blockDimZ,
                                   config->sharedMemBytes}};
    const struct cus_kind *kind = cus_plan_midst(&engine->plan);
    return cus_hot_leave(engine, CUS_OP_LAUNCH,
                         kind && cus_kinds_has_attrs(kind, config->attrs, config->numAttrs) &&
                             cus_hot_hold(engine, kind, f, dims, params, extra));
}

/* A memset or copy of what the node holds already, addresses included, is one in memory that is
 * known as long as none may have gone since the piece began. */
CUS_HOT bool cus_hot_memory(struct cus_engine *engine, uint64_t wide, const void *flat) {
    const struct cus_dims dims = {{(uint32_t)wide, (uint32_t)(wide >> 32)}};
    return engine->plan.memory_epoch == cus_ranges_epoch() &&
           cus_plan_hold_same(&engine->plan, dims, flat);
}

CUS_HOT bool cus_hot_memset(CUdeviceptr dst, uint32_t value, uint32_t elem, size_t width,
                            CUstream handle, enum cus_abi abi) {
    struct cus_engine *engine = cus_hot_enter(handle, abi);
    if (!engine)
        return false;
    const struct cus_kind *kind = cus_plan_midst(&engine->plan);
    const struct cus_memset_params params = {.dst = dst, .value = value, .height = 1};
    return cus_hot_leave(engine, CUS_OP_MEMSET,
                         kind && kind->type == CUS_OP_MEMSET && kind->elem == elem &&
                             kind->abis >> abi & 1 && cus_hot_memory(engine, width, &params));
}

CUS_HOT bool cus_hot_copy(enum cus_copy_form form, uint64_t dst, uint64_t src, size_t bytes,
                          CUstream handle, enum cus_abi abi) {
    struct cus_engine *engine = cus_hot_enter(handle, abi);
    if (!engine)
        return false;
    const struct cus_kind *kind = cus_plan_midst(&engine->plan);
    const struct cus_copy_params params = {.dst = dst, .src = src};
    return cus_hot_leave(engine, CUS_OP_COPY,
                         kind && kind->type == CUS_OP_COPY && kind->copy_form == form &&
                             kind->abis >> abi & 1 && cus_hot_memory(engine, bytes, &params));
}

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
    /* Two threads that count down at once may count one op twice, which matters to nobody. */
    __atomic_store_n(&engine->dormant, left - 1, __ATOMIC_RELAXED);
    __atomic_add_fetch(&engine->passed[type], 1, __ATOMIC_RELAXED);
    thread->last = engine;
    return true;
}

#endif
