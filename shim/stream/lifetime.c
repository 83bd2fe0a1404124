/*
 * Start and end of the process, and every change that may make the engines' knowledge wrong. Such
 * changes are streams, contexts, code and memory that go, new attributes, captures and profilers.
 * Runs on program threads inside hooks with no engine lock held, and takes one at a time. The hook
 * has flushed what the call covers. What other threads deferred since is flushed here before
 * anything is dropped.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim/base/hazard.h"
#include "shim/base/log.h"
#include "shim/base/mem.h"
#include "shim/base/options.h"
#include "shim/stream/trace.h"
#include "shim/verify/device.h"

/* ---- process ---- */

/* Environment switches that promise that a launch has completed when it returns, or that a debugger
 * sees each launch (HAZARDS E1). */
static const char *forbidding_switch(void) {
    static const char *const names[] = {"CUDA_LAUNCH_BLOCKING", "CUDA_DEVICE_WAITS_ON_EXCEPTION",
                                        "CUDA_ENABLE_COREDUMP_ON_EXCEPTION",
                                        "CUDA_ENABLE_USER_TRIGGERED_COREDUMP"};
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = getenv(names[i]);
        if (CUS_HAZARD(E1) && value && *value && strcmp(value, "0") != 0)
            return names[i];
    }
    return NULL;
}

static bool driver_suffices(const struct cus_driver *driver) {
    bool all = true;
#define CUS_OWN_NEEDED(name, ...) all &= driver->name != NULL;
#include "shim/api/own.def"
    return all;
}

static bool graphs_suffice(const struct cus_driver *driver) {
    return driver->cuStreamGetCaptureInfo_v3 && driver->cuStreamUpdateCaptureDependencies_v2 &&
           driver->cuGraphExecKernelNodeSetParams_v2 && driver->cuGraphKernelNodeGetParams_v2 &&
           driver->cuFuncGetParamInfo && driver->cuKernelGetParamInfo;
}

bool cus_engine_start(const struct cus_driver *driver) {
    const struct cus_options *options = cus_options();
    const char *forbidden = forbidding_switch();
    cus_process.driver = driver;
    CUS_LOCK_RANK(&cus_process.build_lock, CUS_RANK_INNERMOST);
    CUS_LOCK_RANK(&cus_process.list_lock, CUS_RANK_INNERMOST);
    cus_rules_announce();
    cus_kinds_ask_rules();
    cus_process.hold_ns = (uint64_t)options->hold_us * 1000;
    cus_mem_budget((uint64_t)options->host_mb << 20);
    cus_build_start();
    cus_submit_start();
    cus_process.may_build =
        options->mode >= CUS_MODE_PIECEWISE && options->graph_mb > 0 && graphs_suffice(driver);
    cus_process.learns = cus_process.may_build || cus_rules_steps(cus_rules()) > 0;
    /* The rules have just been read. If memory failed, a rule may be lost, perhaps one that says
     * that a kernel must not wait. */
    bool complete = cus_mem_failures() == 0;
    cus_advice_load();
    bool defer =
        options->mode > CUS_MODE_OBSERVE && !forbidden && complete && driver_suffices(driver);
    if (!complete)
        cus_log(CUS_WARN, "stream", "no memory while the settings were read: nothing is deferred");
    else if (forbidden)
        cus_log(CUS_WARN, "stream", "%s is set: nothing is deferred", forbidden);
    else if (!driver_suffices(driver) || (cus_process.driver && !graphs_suffice(driver)))
        cus_log(CUS_WARN, "stream", "this driver lacks functions that are needed: no graphs");
    __atomic_store_n(&cus_process.state, defer ? CUS_DEFER : CUS_COUNT_ONLY, __ATOMIC_RELEASE);
    return defer;
}

enum { PATIENCE_NS = 2000000000 };

static uint32_t gave_up; /* atomic: a lock could not be taken in time at exit */

static uint64_t patience(void) {
    return __atomic_load_n(&gave_up, __ATOMIC_RELAXED) ? PATIENCE_NS / 1000 : PATIENCE_NS;
}

static bool give_up(void) {
    __atomic_store_n(&gave_up, 1, __ATOMIC_RELAXED);
    CUS_LOG_ONCE(CUS_WARN, "stream", "a thread sleeps in the driver: the program ends without it");
    return false;
}

/* At exit, a thread may sleep in the driver for ever with its engine locked. That thread is issuing
 * all that the engine deferred. The program ends without that thread, as it would without the
 * library. */
bool cus_engine_take_in_time(struct cus_engine *engine) {
    if (__atomic_load_n(&cus_process.state, __ATOMIC_ACQUIRE) == CUS_DEFER) {
        cus_lock_take(&engine->lock);
        return true;
    }
    return cus_lock_take_for(&engine->lock, patience()) || give_up();
}

/* First flushes the engines whose locks are free, then all others: an engine that makes the exit
 * wait does not delay the rest. */
static void drain_all(void) {
    uint32_t n = __atomic_load_n(&cus_process.n_engines, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < 2 * n; i++) {
        struct cus_engine *engine = cus_process.engines[i % n];
        if (i < n ? !cus_lock_try(&engine->lock) : !cus_engine_take_in_time(engine))
            continue;
        /* The submit thread may sleep in the driver too. */
        if (cus_submit_wait_for(&engine->submit, i < n ? 0 : patience()))
            cus_flush_locked(engine, CUS_CAUSE_EXIT, CUS_BREAK_EXIT, CUS_CUT_OTHER);
        else if (i >= n)
            give_up();
        cus_engine_unlock(engine);
    }
}

void cus_engine_drain(void) {
    CUS_TRACE(.what = CST_CALL_DRAIN);
    if (__atomic_load_n(&cus_process.state, __ATOMIC_ACQUIRE) == CUS_OFF)
        return;
    /* From here on every op passes. Then the deferred ops are issued, and then the watchdog stays
     * out of the driver. */
    bool deferred =
        __atomic_exchange_n(&cus_process.state, CUS_COUNT_ONLY, __ATOMIC_ACQ_REL) == CUS_DEFER;
    if (deferred)
        drain_all();
    cus_watchdog_stop();
}

void cus_engine_child(void) {
    __atomic_store_n(&cus_process.state, CUS_OFF, __ATOMIC_RELEASE);
}

void cus_engine_defer_off(const char *why) {
    CUS_TRACE(.what = CST_CALL_OFF, .name = why);
    int expected = CUS_DEFER;
    if (!__atomic_compare_exchange_n((int *)&cus_process.state, &expected, CUS_COUNT_ONLY, false,
                                     __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return;
    __atomic_store_n(&cus_process.off_why, why, __ATOMIC_RELEASE);
    cus_flush_for_certain(CUS_CAUSE_EXIT, CUS_BREAK_API);
    cus_fallback(CUS_FALLBACK_OFF);
    cus_log(CUS_WARN, "stream", "nothing is deferred any more: %s", why);
}

void cus_engine_opening(void) {
    CUS_TRACE(.what = CST_CALL_FLUSH, .scope = CUS_SCOPE_P,
              .name = cus_trace_cause(CUS_CAUSE_OPENING));
    if (__atomic_load_n(&cus_process.state, __ATOMIC_ACQUIRE) != CUS_DEFER)
        return;
    cus_flush_for_certain(CUS_CAUSE_OPENING, CUS_BREAK_API);
    cus_thread_pends(&cus_thread_self, NULL);
}

void cus_engine_profiling(bool on) {
    CUS_TRACE(.what = CST_CALL_PROFILING, .value = on);
    if (__atomic_exchange_n(&cus_process.profiling, on, __ATOMIC_ACQ_REL) == on)
        return;
    if (on && __atomic_load_n(&cus_process.state, __ATOMIC_ACQUIRE) == CUS_DEFER)
        cus_flush_for_certain(CUS_CAUSE_EXIT, CUS_BREAK_API);
    cus_log(CUS_INFO, "stream",
            on ? "a profiler records: ops go out one by one" : "no profiler records any more");
}

void cus_engine_counters(struct cus_counters *out) {
    *out = (struct cus_counters){0};
    cus_counters_add(out, &cus_process.counters);
    out->fallbacks[CUS_FALLBACK_NO_MEMORY] += cus_mem_failures();
    uint32_t n = __atomic_load_n(&cus_process.n_engines, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < n; i++) {
        struct cus_engine *engine = cus_process.engines[i];
        bool taken =
            cus_engine_take_in_time(engine); /* if not taken, the counters do not move either */
        engine->counters.segments = engine->plan.n_formed;
        cus_counters_add(out, &engine->counters);
        for (unsigned type = 0; type < CUS_OP_TYPES; type++) {
            uint64_t passed = __atomic_load_n(&engine->passed[type], __ATOMIC_RELAXED);
            out->ops[type] += passed;
            out->eager_by[CUS_EAGER_PASSTHROUGH] += passed;
        }
        if (taken)
            cus_engine_unlock(engine);
    }
    /* the most of all engines together, not the sum of each one's most */
    out->graph_bytes = __atomic_load_n(&cus_process.graph_bytes_most, __ATOMIC_RELAXED);
}

/* The list of the engine with the most ops in graphs. Closed engines are included, because a
 * runtime destroys its streams before the program ends. */
bool cus_engine_segment_list(char *text, size_t bytes) {
    struct cus_process *process = &cus_process;
    uint32_t n = __atomic_load_n(&process->n_engines, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < n; i++) {
        if (!cus_engine_take_in_time(process->engines[i]))
            continue;
        cus_registry_keep_list(process->engines[i]);
        cus_lock_give(&process->engines[i]->lock);
    }
    cus_lock_take(&process->list_lock);
    size_t length = strlen(process->list);
    bool fits = length > 0 && length < bytes;
    if (fits)
        memcpy(text, process->list, length + 1);
    else if (bytes > 2)
        memcpy(text, "[]", 3);
    cus_lock_give(&process->list_lock);
    return fits;
}

unsigned cus_engine_steps(struct cus_stats_step steps[CUS_STATS_STEPS]) {
    const struct cus_dispatch *known = &cus_process.dispatch;
    enum cus_mode mode = cus_options_graphs(cus_options());
    unsigned n = 0;
    cus_lock_take(&cus_process.list_lock);
    for (unsigned class = 0; class < CUS_STEP_CLASSES; class ++) {
        if (!cus_process.steps[class])
            continue;
        struct cus_stats_step *step = &steps[n++];
        *step = (struct cus_stats_step){
            .name = cus_step_name(class),
            .steps = cus_process.steps[class],
            .runs_as = cus_step_runs_as(mode, class, known->weakest[class]),
        };
        const struct cus_rule *rule =
            known->weakest[class] == CUS_POLICY_GRAPH
                ? NULL
                : cus_rules_get(cus_rules(), (unsigned)known->rule[class]);
        if (!rule)
            continue;
        memcpy(step->kernel, known->kernel[class], sizeof step->kernel);
        step->policy = cus_policy_name(rule->policy);
        step->pattern = rule->pattern;
        step->file = rule->file;
        step->line = rule->line;
    }
    cus_lock_give(&cus_process.list_lock);
    return n;
}

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

/* The driver must not be asked whether a destroyed stream captures. */
static void forget_capture(CUstream stream) {
    for (struct cus_context *context = cus_registry_contexts(); context; context = context->next) {
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
    struct cus_engine *engine = cus_registry_peek(&cus_thread_self, *stream, current);
    forget_capture(stream->handle);
    if (!engine) {
        cus_room_untracked_destroyed(stream->handle, current);
        cus_registry_forget(*stream, current);
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
    cus_plan_clear(&engine->plan);
    cus_graphs_destroy_dropped(engine, true);
}

/* Takes the kinds out of the tables first, so that no old kind is found again. They are freed once
 * no engine refers to them. */
static void drop_code(void (*change)(struct cus_engine *, const void *)) {
    struct cus_context *context = cus_registry_contexts();
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
    cus_ranges_forget();
    cus_saver_forget();
    __atomic_add_fetch(&cus_process.registry_epoch, 1, __ATOMIC_ACQ_REL);
}

void cus_engine_context_gone(void) {
    CUS_TRACE(.what = CST_CALL_CONTEXT_GONE);
    cus_room_untracked_destroyed(NULL, NULL);
    drop_code(close_engine);
    for (struct cus_context *context = cus_registry_contexts(); context; context = context->next)
        forget_context(context);
    forget_memory();
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
    struct cus_context *context = cus_registry_contexts();
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
}

void cus_engine_memory_gone(void) {
    CUS_TRACE(.what = CST_CALL_MEMORY_GONE);
    if (CUS_HAZARD(C4))
        cus_ranges_forget();
}

/* Upper bound of what graphs keep in the driver: GRAPHS_TIMES the estimate, and GRAPHS_MORE. It is
 * generous, because the answer only saves time. */
enum { GRAPHS_TIMES = 4, GRAPHS_MORE = 256 << 20 };

static void give_back(struct cus_engine *engine, const void *unused) {
    (void)unused;
    cus_plan_drop_handle(&engine->plan, NULL);
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
    struct cus_context *context = current ? cus_registry_context(current) : NULL;
    return context && !__atomic_load_n(&context->captures, __ATOMIC_ACQUIRE) && wants_more(bytes) &&
           !cus_room_idle(context);
}

bool cus_engine_give_memory_back(uint64_t bytes) {
    CUS_TRACE(.what = CST_CALL_GIVE_BACK);
    CUcontext current = current_context();
    struct cus_context *context = current ? cus_registry_context(current) : NULL;
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
    cus_plan_drop_handle(&engine->plan, handle);
}

void cus_engine_function_changed(const void *handle) {
    CUS_TRACE(.what = CST_CALL_FUNCTION_CHANGED, .value = (uint64_t)(uintptr_t)handle);
    for (struct cus_context *context = cus_registry_contexts(); context; context = context->next)
        cus_kinds_forget_shapes(context, handle);
    if (CUS_HAZARD(A9))
        for_each_engine(drop_handle, handle);
}

static void forget_stream(struct cus_engine *engine, const void *unused) {
    (void)unused;
    cus_plan_drop_handle(&engine->plan, NULL);
    cus_graphs_drop_stream(engine);
}

void cus_engine_stream_changed(const struct cus_stream_ref *stream) {
    CUS_TRACE(.what = CST_CALL_STREAM_CHANGED, .stream = stream);
    CUcontext current = current_context();
    struct cus_engine *engine =
        stream ? cus_registry_peek(&cus_thread_self, *stream, current) : NULL;
    struct cus_context *context = cus_registry_context(current);
    if (stream && context && cus_ref_is_legacy(*stream))
        __atomic_store_n(&context->legacy_attributes, true, __ATOMIC_RELEASE);
    if (!engine) {
        /* Nothing was built for a stream that was never used. */
        if (!stream)
            for_each_engine(forget_stream, NULL);
        return;
    }
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
    for (struct cus_context *context = cus_registry_contexts(); context; context = context->next)
        cus_kinds_taint(context, handle);
    for_each_engine(drop_handle, handle);
}

void cus_engine_unknown_call(void) {
    CUS_TRACE(.what = CST_CALL_UNKNOWN);
    cus_ranges_forget();
}

void cus_engine_note_handle(const void *handle, enum cus_handle kind) {
    cus_func_note(handle, kind);
}

/* ---- which file code is from ---- */

bool cus_engine_asks_code(void) {
    return cus_advice_on();
}

bool cus_engine_asks_library(void) {
    return cus_advice_on() || cus_rules_have(cus_rules(), CUS_PATTERN_LIB);
}

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

void cus_engine_capture_began(const struct cus_stream_ref *stream) {
    CUS_TRACE(.what = CST_CALL_CAPTURE_BEGAN, .stream = stream);
    struct cus_context *context = cus_registry_context(current_context());
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
