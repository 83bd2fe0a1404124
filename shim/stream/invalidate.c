/*
 * Every change that may make what the engines know wrong: streams, contexts, code and memory that
 * go, new attributes, captures, profilers. It also gives graphs back where a call of the program
 * ran out of memory. Runs on program threads inside hooks with no engine lock held, and takes one
 * at a time. The hook has flushed what the call covers; what other threads deferred since is
 * flushed here before anything is dropped.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim/base/hazard.h"
#include "shim/base/log.h"
#include "shim/base/mem.h"
#include "shim/base/options.h"
#include "shim/stream/advice.h"
#include "shim/stream/deferred.h"
#include "shim/stream/events.h"
#include "shim/stream/fallback.h"
#include "shim/stream/flush.h"
#include "shim/stream/graphs.h"
#include "shim/stream/origins.h"
#include "shim/stream/ranges.h"
#include "shim/stream/registry.h"
#include "shim/stream/room.h"
#include "shim/stream/streams.h"
#include "shim/stream/trace.h"
#include "shim/stream/watchdog.h"
#include "shim/stream/why.h"
#include "shim/verify/device.h"

/* ---- streams, contexts, code and memory that go ---- */

static CUcontext current_context(void) {
    CUcontext context = NULL;
    return cus_process.driver->cuCtxGetCurrent(&context) == CUDA_SUCCESS ? context : NULL;
}

/* Runs `change` on every engine in use, under its lock, after flushing it. */
static void for_each_engine(void (*change)(struct cus_engine *, const void *),
                            const void *argument) {
    uint32_t n = __atomic_load_n(&cus_process.n_engines, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < n; i++) {
        struct cus_engine *engine = cus_process.engines[i];
        cus_lock_take(&engine->lock);
        if (!engine->closed) {
            cus_flush_locked(engine, CUS_CAUSE_UNKNOWN_API, CUS_BREAK_API, CUS_CUT_OTHER);
            change(engine, argument);
        }
        cus_engine_unlock(engine);
    }
}

static void close_engine(struct cus_engine *engine, const void *unused) {
    (void)unused;
    cus_registry_close(engine);
}

/* What the program has not heard of by then was about this context: a wait for the next one must
 * not tell it. */
static void close_with_context(struct cus_engine *engine, const void *unused) {
    close_engine(engine, unused);
    __atomic_store_n(&engine->late_error, CUDA_SUCCESS, __ATOMIC_RELAXED);
}

/* The driver must not be asked whether a destroyed stream captures. */
static void forget_capture(CUstream stream) {
    for (struct cus_context *context = cus_streams_contexts(); context; context = context->next) {
        if (!__atomic_load_n(&context->captures, __ATOMIC_ACQUIRE))
            continue;
        uint32_t kept = 0;
        cus_lock_take(&context->lock);
        for (uint32_t i = 0; i < context->captures; i++)
            if (context->capturing[i] != stream)
                context->capturing[kept++] = context->capturing[i];
        __atomic_store_n(&context->captures, kept, __ATOMIC_RELEASE);
        cus_lock_give(&context->lock);
    }
}

void cus_engine_stream_gone(const struct cus_stream_ref *stream) {
    CUS_TRACE(.what = CST_CALL_STREAM_GONE, .stream = stream);
    CUcontext current = current_context();
    struct cus_engine *engine = cus_streams_peek(&cus_thread_self, *stream, current);
    forget_capture(stream->handle);
    if (!engine) {
        cus_room_untracked_destroyed(stream->handle, current);
        cus_streams_forget(*stream, current);
        return;
    }
    cus_lock_take(&engine->lock);
    if (!engine->closed) {
        cus_flush_locked(engine, CUS_CAUSE_UNKNOWN_API, CUS_BREAK_API, CUS_CUT_OTHER);
        cus_room_stream_destroyed(engine);
        close_engine(engine, NULL);
    }
    cus_engine_unlock(engine);
}

static void forget_paths(struct cus_engine *engine, const void *unused) {
    (void)unused;
    cus_engine_forget_kinds(engine);
    cus_why_keep_segments(engine);
    cus_advice_keep(engine);
    engine->dropping = "code of the context went";
    cus_plan_clear(cus_engine_plan(engine));
    engine->dropping = NULL;
    cus_graphs_destroy_dropped(engine, true);
}

/* Takes the kinds out of the tables first, so that no old kind is found again. They are freed once
 * no engine refers to them. */
static void drop_code(void (*change)(struct cus_engine *, const void *)) {
    struct cus_context *context = cus_streams_contexts();
    do {
        struct cus_garbage garbage[64];
        uint32_t n = 0;
        for (; context && n < sizeof garbage / sizeof *garbage; context = context->next)
            garbage[n++] = cus_kinds_detach(context);
        cus_watchdog_hold();
        for_each_engine(change, NULL);
        cus_watchdog_release();
        while (n)
            cus_kinds_free(garbage[--n]);
    } while (context);
}

void cus_engine_code_gone(void) {
    CUS_TRACE(.what = CST_CALL_CODE_GONE);
    if (CUS_HAZARD(A29))
        drop_code(forget_paths);
}

static void forget_context(struct cus_context *context) {
    __atomic_store_n(&context->captures, 0, __ATOMIC_RELEASE);
    cus_registry_forget_device(context);
}

static void forget_memory(void) {
    cus_exec_memory_goes();
    cus_ranges_forget();
    cus_engine_pool_gone();
    cus_saver_forget();
    __atomic_add_fetch(&cus_process.registry_epoch, 1, __ATOMIC_ACQ_REL);
}

void cus_engine_context_gone(void) {
    CUS_TRACE(.what = CST_CALL_CONTEXT_GONE);
    cus_room_untracked_destroyed(NULL, NULL);
    cus_flush_branches(CUS_CAUSE_UNKNOWN_API);
    drop_code(close_with_context);
    for (struct cus_context *context = cus_streams_contexts(); context; context = context->next)
        forget_context(context);
    cus_streams_forget_alone();
    forget_memory();
    cus_graphs_destroy_events(); /* the last time: what a node still holds is forgotten below */
    cus_events_forget(NULL);
}

bool cus_engine_context_goes(CUcontext handle) {
    struct cus_context *context = cus_streams_take_context(handle);
    if (!context)
        return false;
    cus_room_context_goes(handle);
    cus_streams_free_context(context);
    return true;
}

void cus_engine_context_stays(CUcontext handle) {
    struct cus_context *context = cus_streams_context(handle);
    if (context)
        cus_room_context_stays(context);
}

/* Closes the engine of a dead context, without asking the driver about anything in that context. */
static void bury(struct cus_engine *engine) {
    cus_deferred_lose(engine);
    engine->buried = true;
    cus_registry_close(engine);
    engine->buried = false;
}

void cus_engine_context_ended(CUcontext handle) {
    CUS_TRACE(.what = CST_CALL_CONTEXT_GONE);
    struct cus_context *context = cus_streams_contexts();
    while (context && context->handle != handle)
        context = context->next;
    if (!context)
        return;
    struct cus_garbage garbage = cus_kinds_detach(context);
    cus_watchdog_hold();
    uint32_t n = __atomic_load_n(&cus_process.n_engines, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < n; i++) {
        struct cus_engine *engine = cus_process.engines[i];
        cus_lock_take(&engine->lock);
        if (!engine->closed && engine->context == context)
            bury(engine);
        cus_engine_unlock(engine);
    }
    cus_watchdog_release();
    cus_kinds_free(garbage);
    forget_context(context);
    forget_memory();
    cus_events_forget(handle);
}

void cus_engine_memory_gone(void) {
    CUS_TRACE(.what = CST_CALL_MEMORY_GONE);
    cus_exec_memory_goes();
    if (CUS_HAZARD(C4))
        cus_ranges_forget();
}

/* Upper bound of what graphs keep in the driver: GRAPHS_TIMES the estimate, and GRAPHS_MORE. It is
 * generous, because the answer only saves time. */
enum { GRAPHS_TIMES = 4, GRAPHS_MORE = 256 << 20 };

static void give_back(struct cus_engine *engine, const void *unused) {
    (void)unused;
    engine->dropping = "a call ran out of memory";
    cus_plan_drop_handle(cus_engine_plan(engine), NULL);
    engine->dropping = NULL;
    cus_graphs_destroy_dropped(engine, true);
    cus_fallback(CUS_FALLBACK_BUDGET);
}

/* Does the program want so much memory that the memory of graphs could not suffice? False if
 * `bytes` is 0 (unknown). */
static bool wants_more(uint64_t bytes) {
    size_t available, total;
    return bytes && cus_process.driver->cuMemGetInfo_v2 &&
           cus_process.driver->cuMemGetInfo_v2(&available, &total) == CUDA_SUCCESS &&
           bytes >
               available +
                   GRAPHS_TIMES * __atomic_load_n(&cus_process.graph_bytes_most, __ATOMIC_RELAXED) +
                   GRAPHS_MORE;
}

bool cus_engine_cannot_fit(uint64_t bytes) {
    if (!CUS_HAZARD(G6) || !__atomic_load_n(&cus_process.pools_hold, __ATOMIC_RELAXED))
        return false;
    CUcontext current = current_context();
    struct cus_context *context = current ? cus_streams_context(current) : NULL;
    return context && !__atomic_load_n(&context->captures, __ATOMIC_ACQUIRE) && wants_more(bytes) &&
           !cus_room_idle(context);
}

bool cus_engine_give_memory_back(uint64_t bytes) {
    CUS_TRACE(.what = CST_CALL_GIVE_BACK);
    CUcontext current = current_context();
    struct cus_context *context = current ? cus_streams_context(current) : NULL;
    if (!context || __atomic_load_n(&context->captures, __ATOMIC_ACQUIRE) ||
        __atomic_load_n(&cus_process.copiers, __ATOMIC_ACQUIRE) ||
        (!__atomic_load_n(&cus_process.graph_bytes, __ATOMIC_RELAXED) &&
         !cus_saver_has_room(current)) ||
        wants_more(bytes))
        return false;
    /* The program's second try waits for everything that runs. */
    if (CUS_HAZARD(G6) && !cus_room_await_idle(context))
        return false;
    for_each_engine(give_back, NULL);
    cus_saver_shrink(current);
    return !CUS_HAZARD(G6) || cus_room_await_idle(context);
}

/* ---- functions and streams that change ---- */

static void drop_handle(struct cus_engine *engine, const void *handle) {
    engine->dropping = "the program changed a function of it";
    cus_plan_drop_handle(cus_engine_plan(engine), handle);
    engine->dropping = NULL;
}

void cus_engine_function_changed(const void *handle) {
    CUS_TRACE(.what = CST_CALL_FUNCTION_CHANGED, .value = (uint64_t)(uintptr_t)handle);
    for (struct cus_context *context = cus_streams_contexts(); context; context = context->next)
        cus_kinds_forget_shapes(context, handle);
    if (CUS_HAZARD(A9))
        for_each_engine(drop_handle, handle);
}

static void forget_stream(struct cus_engine *engine, const void *unused) {
    (void)unused;
    engine->dropping = "the program changed the stream";
    cus_plan_drop_handle(cus_engine_plan(engine), NULL);
    engine->dropping = NULL;
    cus_graphs_drop_stream(engine);
}

void cus_engine_limits_changed(void) {
    CUS_TRACE(.what = CST_CALL_STREAM_CHANGED);
    cus_flush_branches(CUS_CAUSE_UNKNOWN_API);
    for_each_engine(forget_stream, NULL);
}

void cus_engine_stream_changed(const struct cus_stream_ref *stream) {
    CUS_TRACE(.what = CST_CALL_STREAM_CHANGED, .stream = stream);
    CUcontext current = current_context();
    __atomic_store_n(&cus_process.no_branches, true, __ATOMIC_RELEASE);
    cus_flush_branches(CUS_CAUSE_UNKNOWN_API);
    struct cus_engine *engine = cus_streams_peek(&cus_thread_self, *stream, current);
    struct cus_context *context = cus_streams_context(current);
    if (context && cus_ref_is_legacy(*stream))
        __atomic_store_n(&context->legacy_attributes, true, __ATOMIC_RELEASE);
    if (!engine)
        return; /* nothing was built for a stream that was never used */
    cus_lock_take(&engine->lock);
    cus_flush_locked(engine, CUS_CAUSE_UNKNOWN_API, CUS_BREAK_API, CUS_CUT_OTHER);
    if (!engine->closed)
        forget_stream(engine, NULL);
    cus_engine_unlock(engine);
}

void cus_engine_taint(const void *handle) {
    CUS_TRACE(.what = CST_CALL_TAINT, .value = (uint64_t)(uintptr_t)handle);
    /* NULL: references of a whole module (A20). Otherwise the old launch API of one function
     * (A24). */
    bool counts = handle ? CUS_HAZARD(A24) : CUS_HAZARD(A20);
    if (!counts || !cus_kinds_note_taint(handle))
        return;
    for (struct cus_context *context = cus_streams_contexts(); context; context = context->next)
        cus_kinds_taint(context, handle);
    for_each_engine(drop_handle, handle);
}

void cus_engine_unknown_call(void) {
    CUS_TRACE(.what = CST_CALL_UNKNOWN);
    cus_exec_memory_goes();
    cus_ranges_forget();
}

void cus_engine_note_handle(const void *handle, enum cus_handle kind) {
    cus_func_note(handle, kind);
}

/* ---- which file code is from ---- */

/* Without memory for this, a rule may be lost that says that a kernel must not wait. */
static void must_be_kept(bool kept) {
    if (!kept && cus_rules_have(cus_rules(), CUS_PATTERN_LIB))
        cus_engine_defer_off("no memory to keep which library a kernel is from");
}

void cus_engine_code_loaded(const void *code, const char *file, uint64_t hash) {
    must_be_kept(cus_origins_loaded(code, file, hash));
}

void cus_engine_code_made(const void *made, const void *from) {
    must_be_kept(cus_origins_made(made, from));
}

void cus_engine_code_unloaded(const void *code) {
    cus_origins_gone(code);
}

/* ---- captures of the program ---- */

void cus_engine_capture_begins(void) {
    cus_room_capture_begins();
}

void cus_engine_capture_tried(void) {
    cus_room_capture_tried();
}

void cus_engine_capture_began(const struct cus_stream_ref *stream) {
    CUS_TRACE(.what = CST_CALL_CAPTURE_BEGAN, .stream = stream);
    struct cus_context *context = cus_streams_context(current_context());
    if (!context)
        return;
    enum { MAX = sizeof context->capturing / sizeof *context->capturing };
    cus_lock_take(&context->lock);
    uint32_t n = context->captures;
    /* If more streams capture than fit, the last entry is replaced. A per-thread stream cannot be
     * asked by other threads; the legacy stream tells whether it captures. */
    bool named = stream->handle && !cus_ref_is_per_thread(*stream);
    context->capturing[n < MAX ? n : MAX - 1] = named ? stream->handle : CU_STREAM_LEGACY;
    __atomic_store_n(&context->captures, n < MAX ? n + 1 : n, __ATOMIC_RELEASE);
    cus_lock_give(&context->lock);
}

void cus_engine_capture_ended(const struct cus_stream_ref *stream) {
    CUS_TRACE(.what = CST_CALL_CAPTURE_ENDED, .stream = stream);
    (void)stream; /* each stream is asked when the next segment begins */
}
