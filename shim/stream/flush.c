/*
 * Flushing by scope: issues what must precede a call that is not an op, or an op on another stream.
 * Runs on program threads inside hooks with no engine lock held, and takes one engine lock at a
 * time (HAZARDS B5).
 */
#include "shim/stream/flush.h"
#include "shim/api/api.h"
#include "shim/base/hazard.h"
#include "shim/base/options.h"
#include "shim/stream/access.h"
#include "shim/stream/branches.h"
#include "shim/stream/building.h"
#include "shim/stream/check_launch.h"
#include "shim/stream/deferred.h"
#include "shim/stream/demotion.h"
#include "shim/stream/evict.h"
#include "shim/stream/graphs.h"
#include "shim/stream/news.h"
#include "shim/stream/registry.h"
#include "shim/stream/reserve.h"
#include "shim/stream/room.h"
#include "shim/stream/streams.h"
#include "shim/stream/trace.h"
#include "shim/stream/why.h"

void cus_flush_locked(struct cus_engine *engine, unsigned cause, enum cus_break reason,
                      enum cus_cut cut) {
    bool pushed;
    if (!engine->pending)
        return;
    if (!cus_context_enter(engine->context->handle, &pushed)) {
        cus_deferred_lose(engine);
        return;
    }
    cus_deferred_flush(engine, cause, reason, cut, CUS_EAGER_FLUSHED);
    cus_context_leave(pushed);
}

void cus_settle_locked(struct cus_engine *engine) {
    bool pushed;
    if (!engine->pending)
        return;
    if (!cus_context_enter(engine->context->handle, &pushed)) {
        cus_deferred_lose(engine);
        return;
    }
    cus_deferred_settle(engine);
    cus_context_leave(pushed);
}

void cus_flush_engine(struct cus_engine *engine, unsigned cause, enum cus_break reason,
                      enum cus_cut cut) {
    if (!__atomic_load_n(&engine->pending, __ATOMIC_ACQUIRE))
        return;
    cus_lock_take(&engine->lock);
    cus_flush_locked(engine, cause, reason, cut);
    cus_engine_unlock(engine);
}

/* Flushes for a call. If the calling thread owns the stream's path, the same break will come again
 * in later steps; with another thread it is chance. */
static void flush_for_call(struct cus_engine *engine, unsigned row, enum cus_break reason) {
    bool own = __atomic_load_n(&engine->owner, __ATOMIC_RELAXED) == &cus_thread_self;
    cus_flush_engine(engine, row, own ? reason : CUS_BREAK_FOREIGN_THREAD,
                     own ? CUS_CUT_OWNER : CUS_CUT_OTHER);
}

/* A call ended a run of graphs whose ops were all issued, or ended none. Engine lock held. */
static void note_end(struct cus_engine *engine, unsigned row) {
    if (cus_run_ended(engine))
        cus_news_ended(row, ++engine->counters.cuts[row], 0);
}

/* Flushes the stream that the call names. The next op on it begins a new segment. */
static void flush_named(struct cus_engine *engine, unsigned row, enum cus_break reason) {
    bool own = __atomic_load_n(&engine->owner, __ATOMIC_RELAXED) == &cus_thread_self;
    if (!own) {
        flush_for_call(engine, row, reason);
        return;
    }
    cus_lock_take(&engine->lock);
    cus_flush_locked(engine, row, reason, CUS_CUT_OWNER);
    note_end(engine, row);
    cus_plan_break(cus_engine_plan(engine));
    cus_engine_unlock(engine);
}

/* Ends the run on the stream on which this thread worked last, for a call that covers the stream
 * without naming it. Only for learning and reports, so it does not wait for the lock. */
static void tell_end(struct cus_thread *thread, unsigned row) {
    struct cus_engine *engine = thread->last;
    if (!engine || __atomic_load_n(&engine->owner, __ATOMIC_RELAXED) != thread ||
        !cus_lock_try(&engine->lock))
        return;
    if (!engine->pending) {
        note_end(engine, row);
        cus_plan_covered(cus_engine_plan(engine));
    }
    cus_engine_unlock(engine);
}

static void flush_all(struct cus_context *only, bool blocking_only, unsigned row,
                      enum cus_break reason) {
    struct cus_walk walk = {.n = __atomic_load_n(&cus_process.n_engines, __ATOMIC_ACQUIRE)};
    for (struct cus_engine *engine; (engine = cus_walk_pending(&walk));)
        if ((!only || engine->context == only) && (!blocking_only || engine->blocking))
            flush_for_call(engine, row, reason);
}

void cus_flush_branch(struct cus_engine *engine, unsigned row) {
    struct cus_engine *home;
    while ((home = __atomic_load_n(&engine->home, __ATOMIC_SEQ_CST))) {
        bool own = __atomic_load_n(&home->owner, __ATOMIC_RELAXED) == &cus_thread_self;
        cus_lock_take(&home->lock);
        if (__atomic_load_n(&engine->home, __ATOMIC_SEQ_CST) == home) {
            cus_flush_locked(home, row, own ? CUS_BREAK_API : CUS_BREAK_FOREIGN_THREAD,
                             own ? CUS_CUT_OWNER : CUS_CUT_OTHER);
            cus_branch_leave(home, engine);
        }
        cus_engine_unlock(home);
    }
}

void cus_flush_branches(unsigned row) {
    uint32_t n = __atomic_load_n(&cus_process.n_engines, __ATOMIC_ACQUIRE);
    if (__atomic_load_n(&cus_process.branches, __ATOMIC_SEQ_CST))
        for (uint32_t i = 0; i < n; i++)
            cus_flush_branch(cus_process.engines[i], row);
}

void cus_flush_everything(unsigned cause, enum cus_break reason) {
    flush_all(NULL, false, cause, reason);
}

void cus_flush_for_certain(unsigned cause, enum cus_break reason) {
    /* The caller has written what forbids to defer. A thread that adds an engine reads that later,
     * in may_defer. */
    uint32_t n = __atomic_load_n(&cus_process.n_engines, __ATOMIC_SEQ_CST);
    cus_flush_branches(cause);
    for (uint32_t i = 0; i < n; i++) {
        struct cus_engine *engine = cus_process.engines[i];
        cus_lock_take(&engine->lock);
        cus_flush_locked(engine, cause, reason, CUS_CUT_OTHER);
        cus_engine_unlock(engine);
    }
}

void cus_flush_own(struct cus_thread *thread) {
    struct cus_engine *engine = thread->pending;
    if (!engine)
        return;
    /* Another thread may have deferred these ops; then the flush is chance. */
    bool own = __atomic_load_n(&engine->owner, __ATOMIC_RELAXED) == thread;
    cus_flush_engine(engine, CUS_CAUSE_OTHER_STREAM, CUS_BREAK_OTHER_STREAM,
                     own ? CUS_CUT_OWNER : CUS_CUT_OTHER);
    cus_thread_pends(thread, NULL);
}

void cus_flush_ties(struct cus_thread *thread, struct cus_engine *engine) {
    struct cus_engine *other = thread->pending;
    if (CUS_HAZARD(B6) && other && other != engine)
        cus_flush_own(thread);
    cus_flush_legacy(engine);
}

void cus_flush_legacy(struct cus_engine *engine) {
    struct cus_engine *other;
    if (!CUS_HAZARD(B4) || !engine->blocking)
        return;
    struct cus_context *context = engine->context;
    if (engine->legacy) {
        if (__atomic_load_n(&context->blocking_pending, __ATOMIC_ACQUIRE))
            flush_all(context, true, CUS_CAUSE_LEGACY, CUS_BREAK_LEGACY);
    } else if ((other = cus_context_legacy(context))) {
        cus_flush_engine(other, CUS_CAUSE_LEGACY, CUS_BREAK_LEGACY, CUS_CUT_OTHER);
    }
}

static CUcontext current_context(void) {
    CUcontext context = NULL;
    return cus_process.driver->cuCtxGetCurrent(&context) == CUDA_SUCCESS ? context : NULL;
}

static CUcontext handle_of(const struct cus_context *context) {
    return __atomic_load_n(&context->handle, __ATOMIC_RELAXED);
}

static struct cus_engine *peek(const struct cus_stream_ref *stream, CUcontext current) {
    return cus_streams_peek(&cus_thread_self, *stream, current);
}

/* Can the call begin work on its stream that runs for long? */
static bool begins_work(unsigned row) {
    return row < CUS_API_ROWS && cus_api_rows[row].kind == CUS_CLASS_STREAM &&
           cus_api_rows[row].act != CUS_ACT_GONE &&
           strncmp(cus_api_rows[row].name, "cuEventRecord", 13) != 0 &&
           strncmp(cus_api_rows[row].name, "cuStreamWaitEvent", 17) != 0;
}

/* Does the call launch on streams that are not looked up? A call that is in no table is assumed not
 * to launch, because few such calls do. */
static bool launches_elsewhere(unsigned row) {
    return row < CUS_API_ROWS && cus_api_rows[row].kind == CUS_CLASS_BARRIER &&
           strncmp(cus_api_rows[row].name, "cuLaunch", 8) == 0;
}

/* Does the call give its stream work? One that waits or asks does not, nor does a record. */
static bool gives_work(unsigned row) {
    return row >= CUS_API_ROWS || (cus_api_rows[row].kind != CUS_CLASS_SYNC &&
                                   strncmp(cus_api_rows[row].name, "cuEventRecord", 13) != 0);
}

/* A call that may give the stream work comes later. Meanwhile the stream may be joined to another
 * one, and is no branch of that one since two threads use it (B20). */
static void note_work_of(struct cus_engine *engine) {
    cus_branch_note_user(engine, &cus_thread_self);
    __atomic_add_fetch(&engine->calls, 1, __ATOMIC_SEQ_CST);
}

/* The call may give work to `named`, or to any stream if it is in no table or launches on streams
 * that are not looked up. */
static void note_work(const struct cus_engine *named, unsigned row) {
    bool any = row >= CUS_API_ROWS || launches_elsewhere(row);
    uint32_t n = __atomic_load_n(&cus_process.n_engines, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < n; i++)
        if (any || (cus_process.engines[i] == named && gives_work(row)))
            note_work_of(cus_process.engines[i]);
}

/* Nothing is deferred, so nothing is issued. */
static void note_stream(const struct cus_stream_ref *stream, unsigned row) {
    CUcontext current = current_context();
    struct cus_engine *engine = peek(stream, current);
    if (engine && gives_work(row))
        note_work_of(engine);
    else if (!engine && begins_work(row))
        cus_room_begins(*stream, current);
}

/* For a call on a stream without an engine: one on which nothing is deferred. Flushes what this
 * thread defers and what legacy ordering may tie to the stream, and no other stream: its queue may
 * be full until this thread goes on (F2). */
static void flush_ties_of(const struct cus_stream_ref *stream, CUcontext current, unsigned row,
                          enum cus_break reason) {
    struct cus_thread *thread = &cus_thread_self;
    struct cus_walk walk = {.n = __atomic_load_n(&cus_process.n_engines, __ATOMIC_ACQUIRE)};
    bool legacy = cus_ref_is_legacy(*stream);
    if (thread->pending) {
        flush_for_call(thread->pending, row, reason);
        cus_thread_pends(thread, NULL);
    }
    for (struct cus_engine *engine; CUS_HAZARD(B4) && (engine = cus_walk_pending(&walk));)
        if (legacy ? engine->blocking && handle_of(engine->context) == current : engine->legacy)
            flush_for_call(engine, row, reason);
}

/* Flushes the named stream and what legacy ordering ties to it. */
static void flush_stream(const struct cus_stream_ref *stream, unsigned row, enum cus_break reason) {
    CUcontext current = current_context();
    struct cus_engine *engine = peek(stream, current);
    if (!engine) {
        if (begins_work(row))
            cus_room_begins(*stream, current);
        flush_ties_of(stream, current, row, reason);
        return;
    }
    if (gives_work(row))
        note_work_of(engine);
    cus_flush_branch(engine, row);
    flush_named(engine, row, reason);
    if (!CUS_HAZARD(B4))
        return;
    if (engine->legacy) {
        flush_all(engine->context, true, row, reason);
    } else if (engine->blocking) {
        /* read once, because another thread may be closing it */
        struct cus_engine *legacy = cus_context_legacy(engine->context);
        if (legacy)
            flush_for_call(legacy, row, reason);
    }
}

void cus_engine_flush(enum cus_scope scope, const struct cus_stream_ref *stream, unsigned row) {
    struct cus_thread *thread = &cus_thread_self;
    CUS_TRACE(.what = CST_CALL_FLUSH, .scope = scope, .stream = stream,
              .name = cus_trace_cause(row));
    /* Goes on in state CUS_COUNT_ONLY: a thread that is switching deferral off may not have issued
     * yet what this call must see issued. */
    if (scope == CUS_SCOPE_NONE || __atomic_load_n(&cus_process.state, __ATOMIC_ACQUIRE) == CUS_OFF)
        return;
    /* In mode verify a stream without an op gets an engine too. Such a stream may wait for the
     * host, and only the wait for known streams has a time limit (check_launch.c). */
    if (stream && cus_check_on())
        cus_registry_find(thread, *stream, current_context());
    if (launches_elsewhere(row))
        cus_room_begins_elsewhere(
            row == CUS_ROW_cuLaunchCooperativeKernelMultiDevice ? NULL : current_context());
    if (!__atomic_load_n(&cus_process.n_engines, __ATOMIC_ACQUIRE)) {
        if (stream && begins_work(row))
            cus_room_begins(*stream, current_context());
        return;
    }
    if (cus_rests()) {
        if (stream)
            note_stream(stream, row);
        return;
    }
    if (scope == CUS_SCOPE_P || ((scope == CUS_SCOPE_S) && !stream)) {
        note_work(stream ? peek(stream, current_context()) : NULL, row);
        cus_flush_branches(row);
        flush_all(NULL, false, row, CUS_BREAK_API);
        cus_thread_pends(thread, NULL);
        tell_end(thread, row);
        return;
    }
    if (stream)
        flush_stream(stream, row, CUS_BREAK_API);
    if (scope == CUS_SCOPE_C || scope == CUS_SCOPE_CT) {
        CUcontext current = current_context();
        struct cus_context *context = current ? cus_streams_context(current) : NULL;
        if (context)
            flush_all(context, false, row, CUS_BREAK_SYNC);
    }
    if (CUS_HAZARD(F2) && (scope == CUS_SCOPE_T || scope == CUS_SCOPE_CT) && thread->pending) {
        flush_for_call(thread->pending, row, CUS_BREAK_SYNC);
        cus_thread_pends(thread, NULL);
    }
    if (scope != CUS_SCOPE_S)
        tell_end(thread, row);
}

/* True: this driver is of the release that tests/gpu/gate-*.csv tell of. */
static bool is_measured(void) {
    int version;
    return cus_process.driver->cuDriverGetVersion &&
           cus_process.driver->cuDriverGetVersion(&version) == CUDA_SUCCESS &&
           version == CUS_GATE_VERSION;
}

/* A copy may begin behind the look, and the call sleep. The watchdog then issues what this thread
 * defers: launches do not need the lock that the copy holds (HAZARDS F13). */
void cus_engine_getter(unsigned row) {
    if (!CUS_HAZARD(F13))
        return;
    if (!is_measured())
        cus_engine_flush(CUS_SCOPE_P, NULL, row);
    else if (__atomic_load_n(&cus_process.copiers, __ATOMIC_ACQUIRE))
        cus_engine_flush(CUS_SCOPE_T, NULL, row);
}

void cus_engine_force_break(unsigned cause) {
    struct cus_thread *thread = &cus_thread_self;
    CUS_TRACE(.what = CST_CALL_BREAK, .name = cus_trace_cause(cause));
    cus_engine_flush(CUS_SCOPE_T, NULL, cause);
    if (thread->last && !__atomic_load_n(&thread->last->closed, __ATOMIC_ACQUIRE))
        flush_named(thread->last, cause, CUS_BREAK_API);
}

void cus_engine_suspend(bool on) {
    struct cus_thread *thread = &cus_thread_self;
    CUS_TRACE(.what = CST_CALL_SUSPEND, .value = on);
    if (on || thread->suspended)
        thread->suspended += on ? 1 : -1;
}

static void end_step(struct cus_engine *engine) {
    cus_lock_take(&engine->lock);
    if (__atomic_load_n(&engine->demoted, __ATOMIC_RELAXED)) {
        cus_demoted_step_end(engine);
        cus_step_covered(engine);
    }
    if ((!CUS_HAZARD(F9) ||
         __atomic_load_n(&engine->owner, __ATOMIC_RELAXED) == &cus_thread_self) &&
        !engine->view.segment && engine->view.step_ops) {
        cus_branch_step_ends(engine);
        cus_step_covered(engine);
        cus_plan_step_end(cus_engine_plan(engine));
        cus_record_step();
        cus_graphs_destroy_dropped(engine, false);
        cus_build_allow(engine);
        engine->counters.steps++;
        engine->ended++;
        engine->counters.breaks[CUS_BREAK_SYNC]++;
        engine->counters.runs++;
    }
    cus_engine_unlock(engine);
}

/* Programs copy results on a side stream, and wait for that one alone. So the step also ends on the
 * stream from which it was forked, and on so many in all. */
enum { WAITED_FOR = 3 };

static void end_step_before(struct cus_engine *engine) {
    struct cus_stream_ref stream = {engine->handle, CUS_ABI_LEGACY};
    CUS_TRACE(.what = CST_CALL_STEP_END, .stream = &stream);
    end_step(engine);
}

void cus_engine_step_end(const struct cus_stream_ref *stream) {
    CUS_TRACE(.what = CST_CALL_STEP_END, .stream = stream);
    if (cus_rests())
        return;
    struct cus_engine *engine = stream ? peek(stream, current_context()) : cus_thread_self.last;
    if (engine && !__atomic_load_n(&engine->closed, __ATOMIC_ACQUIRE))
        end_step(engine);
    for (unsigned i = 1; engine && i < WAITED_FOR; i++) {
        engine = __atomic_exchange_n(&engine->waited_for, NULL, __ATOMIC_RELAXED);
        if (engine && !__atomic_load_n(&engine->closed, __ATOMIC_ACQUIRE))
            end_step_before(engine);
    }
    cus_thread_self.scheduled -= cus_thread_self.scheduled > 0;
    cus_evict_idle();
}

void cus_engine_wait_took(const struct cus_stream_ref *stream, uint64_t ns) {
    struct cus_engine *engine = stream ? peek(stream, current_context()) : cus_thread_self.last;
    if (!engine || __atomic_load_n(&engine->closed, __ATOMIC_ACQUIRE) ||
        __atomic_load_n(&engine->owner, __ATOMIC_RELAXED) != &cus_thread_self)
        return;
    cus_lock_take(&engine->lock);
    cus_plan_waited(cus_engine_plan(engine), ns);
    cus_engine_unlock(engine);
}

CUresult cus_engine_take_error(const struct cus_stream_ref *stream, unsigned row) {
    CUS_TRACE(.what = CST_CALL_WAITED, .stream = stream, .name = cus_trace_cause(row));
    struct cus_engine *engine = stream ? peek(stream, current_context()) : cus_thread_self.last;
    if (stream && cus_ref_is_per_thread(*stream))
        cus_room_waited_own(current_context());
    if (engine)
        cus_room_waited(engine);
    if (!engine || __atomic_load_n(&engine->late_error, __ATOMIC_RELAXED) == CUDA_SUCCESS)
        return CUDA_SUCCESS;
    return __atomic_exchange_n(&engine->late_error, CUDA_SUCCESS, __ATOMIC_RELAXED);
}
