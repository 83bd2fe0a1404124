/*
 * The hot path: the launch that is expected in the midst of a piece, from the hook to the plan and
 * back without a call.
 *
 * Inlined into the launch hooks; runs on program threads at depth 1. Takes the lock of the engine on
 * which the calling thread withholds ops, and no other; allocates nothing, calls nothing that waits.
 * Whatever is not exactly what it expects is left, without a trace, to cus_engine_launch.
 *
 * Where a piece has begun, the state of the process, profilers and captures allowed it, and whoever
 * changes one of them issues the piece first (may_withhold in engine.c): so that all that is asked
 * here is what may change from op to op.
 */
#ifndef CUSPLICE_STREAM_HOT_H
#define CUSPLICE_STREAM_HOT_H

#include "shim/stream/state.h"

#define CUS_HOT static inline __attribute__((always_inline))

/* Asked of the driver at every op: the runtime sets contexts by private tables too (HAZARDS E5). */
CUS_HOT bool cus_hot_same_context(const struct cus_thread *thread) {
    CUcontext current = NULL;
    cus_process.driver->cuCtxGetCurrent(&current);
    return current == thread->context;
}

/* Is there nothing that legacy ordering puts first? */
static inline bool cus_hot_untied(const struct cus_engine *engine) {
    const struct cus_context *context = engine->context;
    struct cus_engine *legacy = cus_context_legacy(context);
    if (engine->legacy)
        return !__atomic_load_n(&context->blocking_pending, __ATOMIC_ACQUIRE);
    return !legacy || !__atomic_load_n(&legacy->pending, __ATOMIC_ACQUIRE);
}

/* The engine whose piece the calling thread is in the midst of, if this is its stream; then its lock
 * is held. */
CUS_HOT struct cus_engine *cus_hot_enter(CUstream handle, enum cus_abi abi) {
    struct cus_thread *thread = &cus_thread_self;
    struct cus_engine *engine = thread->pending;
    if (!engine || engine != thread->found || thread->ref.handle != handle ||
        thread->ref.abi != abi)
        return NULL;
    if (!cus_hot_same_context(thread) || (engine->blocking && !cus_hot_untied(engine)))
        return NULL;
    cus_lock_take(&engine->lock);
    if (__builtin_expect(cus_registry_current(thread), 1))
        return engine;
    cus_lock_give(&engine->lock);
    return NULL;
}

CUS_HOT bool cus_hot_leave(struct cus_engine *engine, bool held) {
    if (held) {
        engine->counters.ops[CUS_OP_LAUNCH]++;
        __atomic_store_n(&engine->owner, &cus_thread_self, __ATOMIC_RELAXED);
        __atomic_store_n(&engine->pending, engine->plan.n, __ATOMIC_RELEASE);
    }
    cus_lock_give(&engine->lock);
    return held;
}

/* Is it a launch of this function, whose arguments can be read as the kind says? */
CUS_HOT bool cus_hot_launches(const struct cus_kind *kind, CUfunction f, void **params) {
    return kind && kind->handle == f && kind->type == CUS_OP_LAUNCH &&
           (params || !kind->param_bytes);
}

/* True: the launch is withheld. False: nothing was done. Not for the `extra` form. */
CUS_HOT bool cus_hot_launch(CUfunction f, struct cus_dims dims, CUstream handle,
                                  enum cus_abi abi, void **params) {
    struct cus_engine *engine = cus_hot_enter(handle, abi);
    if (!engine)
        return false;
    const struct cus_kind *kind = cus_plan_midst(&engine->plan);
    return cus_hot_leave(engine, cus_hot_launches(kind, f, params) && !kind->n_attrs &&
                                     !kind->cooperative &&
                                     cus_plan_hold(&engine->plan, dims, params));
}

CUS_HOT bool cus_hot_launch_ex(const CUlaunchConfig *config, CUfunction f, enum cus_abi abi,
                                     void **params) {
    struct cus_engine *engine = cus_hot_enter(config->hStream, abi);
    if (!engine)
        return false;
    const struct cus_dims dims = {{config->gridDimX, config->gridDimY, config->gridDimZ,
                                   config->blockDimX, config->blockDimY, config->blockDimZ,
                                   config->sharedMemBytes}};
    const struct cus_kind *kind = cus_plan_midst(&engine->plan);
    return cus_hot_leave(engine, cus_hot_launches(kind, f, params) &&
                                     cus_kinds_has_attrs(kind, config->attrs, config->numAttrs) &&
                                     cus_plan_hold(&engine->plan, dims, params));
}

#endif
