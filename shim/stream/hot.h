/*
 * The two hot paths. The expected op in the middle of a segment goes from the hook to the plan and
 * back. The op of a demoted stream may go straight to the driver. Inlined into the launch hooks;
 * runs on program threads at depth 1. Takes the lock of the engine on which the thread defers ops,
 * and no other. Allocates nothing and calls nothing that waits. Any other op goes to
 * cus_engine_launch, and nothing is left changed except perhaps the thread's look-up of the op's
 * stream.
 */
#ifndef CUSPLICE_STREAM_HOT_H
#define CUSPLICE_STREAM_HOT_H

#include "shim/base/hazard.h"
#include "shim/stream/demotion.h"
#include "shim/stream/ranges.h"
#include "shim/stream/registry.h"
#include "shim/stream/state.h"
#include "shim/stream/streams.h"
#include "shim/trace/record.h"

/* Process state, profilers and captures are not asked about here. They allowed the segment to begin
 * (may_defer in engine.c), and a thread that changes one of them issues the segment first. Only
 * what may change from op to op is checked.
 *
 * If the process is recorded, the same code runs with a `traced` (cus_recorded_...). Before the op
 * is deferred, `traced` reserves room for the op's record; without room the op goes to
 * cus_engine_launch. The record is written afterwards, from what the node now stands for. In a
 * process that is not recorded, `traced` is a constant or NULL, so the compiler removes all of it.
 */

#define CUS_HOT static inline __attribute__((always_inline))

/* The driver is asked at every op, because the runtime sets contexts through private tables too
 * (HAZARDS E5). */
CUS_HOT bool cus_hot_in_context(CUcontext context) {
    CUcontext current = NULL;
    cus_process.driver->cuCtxGetCurrent(&current);
    return !CUS_HAZARD(E5) || current == context;
}
CUS_HOT bool cus_hot_same_context(const struct cus_thread *thread) {
    return cus_hot_in_context(thread->context);
}

/* True unless legacy ordering makes ops of other streams go before an op on this engine. */
static inline bool cus_hot_untied(const struct cus_engine *engine) {
    const struct cus_context *context = engine->context;
    struct cus_engine *legacy = cus_context_legacy(context);
    if (engine->legacy)
        return !__atomic_load_n(&context->blocking_pending, __ATOMIC_ACQUIRE);
    return !legacy || !__atomic_load_n(&legacy->pending, __ATOMIC_ACQUIRE);
}

/* Is the calling thread in the middle of a segment of this stream? Then `cached_engine` is the
 * thread's `pending`, and its lock is the one to take. The caller asks the driver for the
 * current context last, just before the op is deferred: then no compared value must be kept over
 * that call. */
CUS_HOT bool cus_hot_is_cached(CUstream handle, enum cus_abi abi) {
    return cus_thread_self.cached_stream[abi] == handle;
}
/* Takes the lock only if it is free: a thread that need not wait saves no registers for a wait. */
CUS_HOT bool cus_hot_try(struct cus_engine *engine) {
    cus_lock_check(&engine->lock);
    return __builtin_expect(cus_lock_try(&engine->lock), 1);
}
/* Does the engine still serve that stream, and does no other op go first? Engine lock held. */
CUS_HOT bool cus_hot_good(const struct cus_engine *engine) {
    return __builtin_expect(cus_streams_current(&cus_thread_self), 1) &&
           __builtin_expect(!CUS_HAZARD(B4) || !engine->blocking || cus_hot_untied(engine), 1);
}
CUS_HOT struct cus_engine *cus_hot_enter(CUstream handle, enum cus_abi abi) {
    /* Makes a change visible that a signal handler made before the depth was 1. */
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (!cus_hot_is_cached(handle, abi))
        return NULL;
    struct cus_engine *engine = cus_thread_self.cached_engine;
    cus_lock_take(&engine->lock);
    if (cus_hot_good(engine))
        return engine;
    cus_engine_unlock(engine);
    return NULL;
}

/* An op's record to be, and what is counted with it. */
struct cus_traced {
    uint64_t began; /* trace ticks (trace/ticks.h); 0: nothing is recorded now */
    const struct cus_values *values;
    struct cus_ring *ring;
    uint32_t bytes, kind, stream, abi;
    bool runtime; /* the op was caught before it entered the CUDA runtime */
};

CUS_HOT struct cus_traced cus_traced_begin(enum cus_abi abi) {
    bool now = __atomic_load_n(&cus_record_on, __ATOMIC_RELAXED);
    return (struct cus_traced){.began = __builtin_expect(now, 1) ? cus_ticks_now() : 0,
                               .abi = abi == CUS_ABI_PTSZ};
}

/* Is there room for the record, and have the stream and kind that it names a number? Engine lock
 * held. */
CUS_HOT bool cus_traced_fits(struct cus_traced *traced, const struct cus_engine *engine,
                             const struct cus_kind *kind) {
    if (!traced || !traced->began)
        return true;
    traced->bytes = (uint32_t)sizeof(struct cst_op) + ((kind->param_bytes + 7u) & ~7u);
    traced->kind = __atomic_load_n(&kind->traced, __ATOMIC_ACQUIRE);
    const struct cus_branch *branch = &engine->branches[kind->branch];
    traced->stream = kind->branch ? branch->traced : engine->traced;
    if (!traced->kind || cus_record_on_op ||
        (kind->branch ? branch->traced_epoch : engine->traced_epoch) !=
            __atomic_load_n(&cus_record_epoch, __ATOMIC_ACQUIRE))
        return false;
    traced->values = cus_plan_before(&engine->view);
    traced->ring = cus_ring_mine;
    return cus_ring_fits(traced->ring, traced->bytes);
}

/* The values of a node have the same layout as the end of a record. */
_Static_assert(sizeof(struct cst_op) - offsetof(struct cst_op, dims) == sizeof(struct cus_values) &&
                   offsetof(struct cst_op, abi) - offsetof(struct cst_op, dims) ==
                       offsetof(struct cus_values, unknown),
               "a record ends as an image does");

/* Writes the record of the op that was deferred last. Engine lock held. */
CUS_HOT void cus_traced_put(const struct cus_traced *traced, const struct cus_engine *engine) {
    if (!traced || !traced->began)
        return;
    struct cus_ring *ring = traced->ring;
    struct cst_op *record = cus_ring_room(ring);
    const struct cus_values *values = cus_plan_after(&engine->view, traced->values);
    uint64_t head = ring->held | (uint64_t)(traced->bytes / 8) << 16;
    memcpy(&record->head, &head, sizeof head);
    record->head.ns = traced->began;
    record->kind = traced->kind;
    record->stream = traced->stream;
    record->result = CUDA_SUCCESS;
    record->eager = record->why = 0;
    memcpy(record->dims, values, sizeof *values);
    const uint8_t *from = values->params;
    uint8_t *to = (uint8_t *)(record + 1), *end = (uint8_t *)record + traced->bytes;
    /* A few words are copied without a call. */
    for (; to + 16 <= end; to += 16, from += 16) {
        memcpy(to, from, 16);
        __asm__("");
    }
    if (to < end)
        memcpy(to, from, 8);
    record->abi = traced->abi;
    record->host_ns = cus_ring_took(ring, traced->began);
    cus_ring_put(ring, traced->bytes);
}

/* Defers the expected op and gives the lock back. */
CUS_HOT void cus_hot_took(struct cus_engine *engine, enum cus_op_type type,
                          const struct cus_traced *traced) {
    cus_plan_took(&engine->view);
    cus_traced_put(traced, engine);
    engine->counters.ops[type]++;
    engine->counters.runtime += traced && traced->runtime;
    __atomic_store_n(&engine->owner, &cus_thread_self, __ATOMIC_RELAXED);
    cus_engine_unlock(engine);
}

/* Ends a hot path. `as_values`: the op is the expected one, and the node holds its values. */
CUS_HOT bool cus_hot_leave(struct cus_engine *engine, enum cus_op_type type, bool as_values,
                           const struct cus_traced *traced) {
    if (as_values && cus_hot_same_context(&cus_thread_self)) {
        cus_hot_took(engine, type, traced);
        return true;
    }
    cus_engine_unlock(engine);
    return false;
}

/* Does this thread defer anything? */
CUS_HOT bool cus_hot_pending(void) {
    return cus_thread_self.pends;
}

/* The packed buffer of the `extra` form. NULL unless it has the usual order of entries. */
CUS_HOT const uint8_t *cus_hot_packed(void *const *extra, uint32_t bytes) {
    if (extra[0] != CU_LAUNCH_PARAM_BUFFER_POINTER || extra[2] != CU_LAUNCH_PARAM_BUFFER_SIZE ||
        extra[4] != CU_LAUNCH_PARAM_END || *(const size_t *)extra[3] != bytes)
        return NULL;
    return extra[1];
}

/* Are the arguments given by pointers, or are there none? */
CUS_HOT bool cus_hot_has_params(const struct cus_kind *kind, void *const *params) {
    return params || !kind->param_bytes;
}

/* Compares a launch without attributes, with arguments by pointers, with the expected one. Engine
 * lock held. */
enum cus_hot {
    CUS_HOT_OTHER,     /* not the expected launch */
    CUS_HOT_SAME,      /* the expected launch; the node holds the same params */
    CUS_HOT_DIFFERENT, /* the expected launch, with other params than the node's */
    CUS_HOT_SHAPE,     /* the expected kernel, in another shape than the node's */
    CUS_HOT_TAIL       /* SAME or DIFFERENT; cus_hot_tail_differs decides */
};
/* Is `f` the function of the expected launch? */
CUS_HOT bool cus_hot_expects(const struct cus_engine *engine, CUfunction f) {
    return cus_hot_good(engine) && engine->view.at->plain == f;
}
/* The expected launch, in the shape of its node. */
CUS_HOT enum cus_hot cus_hot_compare_params(const struct cus_engine *engine, void **params) {
    if (!__builtin_expect(cus_hot_has_params(engine->view.at->kind, params), 1))
        return CUS_HOT_OTHER;
    if (__builtin_expect(cus_plan_words_differ(&engine->view, params), 0))
        return CUS_HOT_DIFFERENT;
    return __builtin_expect(engine->view.at->others, 0) ? CUS_HOT_TAIL : CUS_HOT_SAME;
}
/* The last three arguments come by address: they are read last, and need no register before
 * that. */
CUS_HOT enum cus_hot cus_hot_compare(CUfunction f, uint32_t gx, uint32_t gy, uint32_t gz,
                                     uint32_t bx, uint32_t by, const volatile uint32_t *bz,
                                     const volatile uint32_t *shared, void **const volatile *at) {
    const struct cus_engine *engine = cus_thread_self.cached_engine;
    if (!cus_hot_expects(engine, f))
        return CUS_HOT_OTHER;
    const uint32_t *dims = cus_plan_before(&engine->view)->dims;
    if (gx != dims[0] || gy != dims[1] || gz != dims[2] || bx != dims[3] || by != dims[4] ||
        *bz != dims[5] || *shared != dims[6])
        return CUS_HOT_SHAPE;
    return cus_hot_compare_params(engine, *at);
}

/* Compares arguments that are not whole words. A separate function, so that kernels with word
 * arguments only make no call. */
CUS_HOT bool cus_hot_tail_differs(void *const *params) {
    return cus_plan_others_differ(cus_thread_self.cached_engine->view.at, params);
}

/* These two end a launch that was SAME or DIFFERENT. False: another context is current, and nothing
 * was done; the lock is still held. */
CUS_HOT bool cus_hot_same(void) {
    struct cus_thread *thread = &cus_thread_self;
    if (!cus_hot_same_context(thread))
        return false;
    cus_hot_took(thread->cached_engine, CUS_OP_LAUNCH, NULL);
    return true;
}
CUS_HOT bool cus_hot_different(void *const *params) {
    struct cus_thread *thread = &cus_thread_self;
    if (!cus_hot_same_context(thread))
        return false;
    cus_plan_request_here(&thread->cached_engine->view, params);
    cus_hot_took(thread->cached_engine, CUS_OP_LAUNCH, NULL);
    return true;
}

/* Requests the expected kernel in this shape; the caller then calls cus_hot_took. False: another
 * context is current or no node may have that shape, and nothing was done. The lock is held in both
 * cases. */
CUS_HOT bool cus_hot_shape(struct cus_dims dims, void *const *params) {
    struct cus_plan_view *view = &cus_thread_self.cached_engine->view;
    return cus_hot_has_params(view->at->kind, params) && cus_hot_same_context(&cus_thread_self) &&
           cus_plan_request_shape(view, dims, params, NULL);
}

/* Are the arguments of the expected function readable? They come by pointers, or packed; then
 * `*flat` is the packed block. */
CUS_HOT bool cus_hot_arguments(const struct cus_kind *kind, void *const *params, void *const *extra,
                               const uint8_t **flat) {
    *flat = NULL;
    if (__builtin_expect(extra != NULL, 0)) {
        *flat = params ? NULL : cus_hot_packed(extra, kind->param_bytes);
        return *flat != NULL;
    }
    return cus_hot_has_params(kind, params);
}

/* Ends a launch whose shape differs from the node's. Not inlined, to keep the path of equal shapes
 * small. `traced` is a copy, so that the other path can keep its own in registers. */
__attribute__((noinline, unused)) static bool cus_hot_leave_shape(struct cus_engine *engine,
                                                                  struct cus_dims dims,
                                                                  void **params, void **extra,
                                                                  struct cus_traced traced) {
    struct cus_plan_view *view = &engine->view;
    const struct cus_kind *kind = view->at->kind;
    const uint8_t *flat;
    if (!cus_traced_fits(&traced, engine, kind) || !cus_hot_arguments(kind, params, extra, &flat) ||
        !cus_hot_same_context(&cus_thread_self) ||
        !cus_plan_request_shape(view, dims, params, flat)) {
        cus_engine_unlock(engine);
        return false;
    }
    cus_hot_took(engine, CUS_OP_LAUNCH, &traced);
    return true;
}

/* Ends a launch of the expected function. */
CUS_HOT bool cus_hot_leave_launch(struct cus_engine *engine, struct cus_dims dims, void **params,
                                  void **extra, struct cus_traced *traced) {
    struct cus_plan_view *view = &engine->view;
    const struct cus_kind *kind = view->at->kind;
    const uint8_t *flat;
    if (__builtin_expect(!cus_plan_same_dims(view, dims), 0))
        return cus_hot_leave_shape(engine, dims, params, extra,
                                   traced ? *traced : (struct cus_traced){.began = 0});
    if (!cus_traced_fits(traced, engine, kind) || !cus_hot_arguments(kind, params, extra, &flat) ||
        !cus_hot_same_context(&cus_thread_self)) {
        cus_engine_unlock(engine);
        return false;
    }
    if (__builtin_expect(flat != NULL, 0))
        cus_plan_request_flat(view, flat);
    else if (__builtin_expect(cus_plan_differs(view, params), 0))
        cus_plan_request(view, params);
    cus_hot_took(engine, CUS_OP_LAUNCH, traced);
    return true;
}

/* True: the launch is deferred. False: nothing was done. */
CUS_HOT bool cus_traced_launch(CUfunction f, struct cus_dims dims, CUstream handle,
                               enum cus_abi abi, void **params, void **extra,
                               struct cus_traced *traced) {
    struct cus_engine *engine = cus_hot_enter(handle, abi);
    if (!engine)
        return false;
    if (engine->view.at->plain == f)
        return cus_hot_leave_launch(engine, dims, params, extra, traced);
    return cus_hot_leave(engine, CUS_OP_LAUNCH, false, traced);
}

CUS_HOT bool cus_traced_launch_ex(const CUlaunchConfig *config, CUfunction f, enum cus_abi abi,
                                  void **params, void **extra, struct cus_traced *traced) {
    struct cus_engine *engine = cus_hot_enter(config->hStream, abi);
    if (!engine)
        return false;
    const struct cus_dims dims = {{config->gridDimX, config->gridDimY, config->gridDimZ,
                                   config->blockDimX, config->blockDimY, config->blockDimZ,
                                   config->sharedMemBytes}};
    const struct cus_kind *kind = cus_plan_midst(&engine->view);
    if (kind && kind->handle == f && kind->type == CUS_OP_LAUNCH &&
        cus_kinds_has_attrs(kind, config->attrs, config->numAttrs))
        return cus_hot_leave_launch(engine, dims, params, extra, traced);
    return cus_hot_leave(engine, CUS_OP_LAUNCH, false, traced);
}

_Static_assert(sizeof(struct cus_memset_params) == 24 &&
                   offsetof(struct cus_memset_params, pitch) == 8 &&
                   offsetof(struct cus_memset_params, value) == 16 &&
                   offsetof(struct cus_memset_params, height) == 20 &&
                   sizeof(struct cus_copy_params) == 16 &&
                   offsetof(struct cus_copy_params, src) == 8 &&
                   __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "params are compared by words");

/* Does the node already hold this memset or copy, with the same addresses? The memory is still
 * known if no memory may have gone since the segment began. */
CUS_HOT bool cus_hot_memory(struct cus_engine *engine, uint64_t wide, const uint64_t *flat,
                            uint32_t words) {
    const struct cus_dims dims = {{(uint32_t)wide, (uint32_t)(wide >> 32)}};
    return engine->view.memory_epoch == cus_ranges_epoch() &&
           cus_plan_same_words(&engine->view, dims, flat, words);
}

CUS_HOT bool cus_traced_memset(CUdeviceptr dst, uint32_t value, uint32_t elem, size_t width,
                               CUstream handle, enum cus_abi abi, struct cus_traced *traced) {
    struct cus_engine *engine = cus_hot_enter(handle, abi);
    if (!engine)
        return false;
    const struct cus_kind *kind = cus_plan_midst(&engine->view);
    const uint64_t params[] = {dst, 0, value | (uint64_t)1 << 32}; /* struct cus_memset_params */
    return cus_hot_leave(engine, CUS_OP_MEMSET,
                         kind && kind->type == CUS_OP_MEMSET && kind->elem == elem &&
                             kind->abis >> abi & 1 && cus_traced_fits(traced, engine, kind) &&
                             cus_hot_memory(engine, width, params, 3),
                         traced);
}

CUS_HOT bool cus_traced_copy(enum cus_copy_form form, uint64_t dst, uint64_t src, size_t bytes,
                             CUstream handle, enum cus_abi abi, struct cus_traced *traced) {
    struct cus_engine *engine = cus_hot_enter(handle, abi);
    if (!engine)
        return false;
    const struct cus_kind *kind = cus_plan_midst(&engine->view);
    const uint64_t params[] = {dst, src}; /* struct cus_copy_params */
    return cus_hot_leave(engine, CUS_OP_COPY,
                         kind && kind->type == CUS_OP_COPY && kind->copy_form == form &&
                             kind->abis >> abi & 1 && cus_traced_fits(traced, engine, kind) &&
                             cus_hot_memory(engine, bytes, params, 2),
                         traced);
}

CUS_HOT bool cus_recorded_launch(CUfunction f, struct cus_dims dims, CUstream handle,
                                 enum cus_abi abi, void **params, void **extra) {
    struct cus_traced traced = cus_traced_begin(abi);
    return cus_traced_launch(f, dims, handle, abi, params, extra, &traced);
}

/* The other ops, in a process that is not recorded and in one that is. */
#define CUS_TRACED(name, parameters, ...)                                                          \
    CUS_HOT bool cus_hot_##name parameters {                                                       \
        return cus_traced_##name(__VA_ARGS__, NULL);                                               \
    }                                                                                              \
    CUS_HOT bool cus_recorded_##name parameters {                                                  \
        struct cus_traced traced = cus_traced_begin(abi);                                          \
        return cus_traced_##name(__VA_ARGS__, &traced);                                            \
    }
CUS_TRACED(launch_ex,
           (const CUlaunchConfig *config, CUfunction f, enum cus_abi abi, void **params,
            void **extra),
           config, f, abi, params, extra)
CUS_TRACED(memset,
           (CUdeviceptr dst, uint32_t value, uint32_t elem, size_t width, CUstream handle,
            enum cus_abi abi),
           dst, value, elem, width, handle, abi)
CUS_TRACED(copy,
           (enum cus_copy_form form, uint64_t dst, uint64_t src, size_t bytes, CUstream handle,
            enum cus_abi abi),
           form, dst, src, bytes, handle, abi)

/* The same for a launch without attributes on a side stream, if the thread defers ops of its home
 * (branches.c). */
CUS_HOT bool cus_traced_branch(CUfunction f, struct cus_dims dims, CUstream handle, void **params,
                               struct cus_traced *traced) {
    struct cus_engine *home = cus_thread_self.pending;
    if (!cus_hot_try(home))
        return false;
    struct cus_plan_view *view = &home->view;
    const struct cus_kind *kind = view->at->kind;
    if (kind && kind->branch && kind->handle == f && kind->type == CUS_OP_LAUNCH &&
        !kind->n_attrs && !kind->cooperative) {
        struct cus_branch *branch = &home->branches[kind->branch];
        if (branch->handle == handle && branch->open &&
            __atomic_load_n(&branch->engine->home, __ATOMIC_RELAXED) == home &&
            cus_hot_good(home) && cus_hot_has_params(kind, params) &&
            cus_plan_same_dims(view, dims) && cus_traced_fits(traced, home, kind) &&
            cus_hot_in_context(home->context->handle)) {
            if (cus_plan_differs(view, params))
                cus_plan_request_here(view, params);
            branch->at = cus_engine_ops(home) + 1;
            cus_hot_took(home, CUS_OP_LAUNCH, traced);
            return true;
        }
    }
    cus_engine_unlock(home);
    return false;
}
CUS_HOT bool cus_hot_branch(CUfunction f, struct cus_dims dims, CUstream handle, void **params) {
    return cus_traced_branch(f, dims, handle, params, NULL);
}
CUS_HOT bool cus_recorded_branch(CUfunction f, struct cus_dims dims, CUstream handle,
                                 enum cus_abi abi, void **params) {
    if (!cus_hot_pending() || !__atomic_load_n(&cus_process.branches, __ATOMIC_RELAXED))
        return false;
    struct cus_traced traced = cus_traced_begin(abi);
    return cus_traced_branch(f, dims, handle, params, &traced);
}

/* May this op of a demoted stream go straight to the driver? A copy may not, as it may sleep there;
 * nor a launch of an unknown function `f`. The thread found the stream demoted under this very
 * handle, and there is only one context, so the handle still means that stream. The op is counted
 * before the real call, and nothing follows that call. Reads as little memory as possible: a
 * program whose launches never repeat pays for each cache line. */
CUS_HOT struct cus_engine *cus_hot_may_pass(CUstream handle, enum cus_abi abi,
                                            enum cus_op_type type, CUfunction f, uint64_t *left) {
    struct cus_thread *thread = &cus_thread_self;
    struct cus_engine *engine = thread->cached_engine;
    if (type == CUS_OP_COPY || !engine)
        return NULL;
    *left = __atomic_load_n(&engine->demoted, __ATOMIC_RELAXED);
    if (!*left || thread->ref.handle != handle || thread->ref.abi != abi ||
        !cus_streams_current(thread) ||
        __atomic_load_n(&cus_process.n_contexts, __ATOMIC_RELAXED) != 1 ||
        __atomic_load_n(&cus_process.never_defer, __ATOMIC_ACQUIRE) ||
        __atomic_load_n(&cus_process.build_now, __ATOMIC_RELAXED) & CUS_PRIORITY_NOW ||
        __atomic_load_n(&engine->pending, __ATOMIC_ACQUIRE) ||
        __atomic_load_n(&engine->late_error, __ATOMIC_RELAXED) != CUDA_SUCCESS ||
        (type == CUS_OP_LAUNCH && !cus_kinds_may_know(engine->context, f)) ||
        (engine->blocking && !cus_hot_untied(engine)))
        return NULL;
    return engine;
}
/* Is this another stream than the one that the thread looked up last? */
CUS_HOT bool cus_hot_elsewhere(CUstream handle, enum cus_abi abi) {
    return cus_thread_self.ref.handle != handle || cus_thread_self.ref.abi != abi;
}
/* The depth is set for a signal handler that launches meanwhile. */
CUS_HOT bool cus_hot_turn(CUstream handle, enum cus_abi abi) {
    cus_thread_self.depth = 1;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    bool known = cus_registry_turn(&cus_thread_self, (struct cus_stream_ref){handle, abi});
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    cus_thread_self.depth = 0;
    return known;
}
CUS_HOT bool cus_hot_passes(CUstream handle, enum cus_abi abi, enum cus_op_type type,
                            CUfunction f) {
    uint64_t left;
    if (cus_hot_elsewhere(handle, abi) && !cus_hot_turn(handle, abi))
        return false;
    struct cus_engine *engine = cus_hot_may_pass(handle, abi, type, f, &left);
    if (!engine)
        return false;
    cus_demoted_op(engine, left, type, f);
    cus_thread_self.last = engine;
    return true;
}
/* Lets an op pass without any call, so that no value must be kept over one. False: nothing was
 * done, and cus_hot_passes must do it. */
CUS_HOT bool cus_hot_passes_only(struct cus_engine *engine, uint64_t left, enum cus_op_type type,
                                 CUfunction f) {
    if (!cus_demoted_op_only(engine, left, type, f))
        return false;
    cus_thread_self.last = engine;
    return true;
}

#endif
