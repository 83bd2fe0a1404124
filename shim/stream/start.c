/*
 * Start and end of the engine in a process, and what the hooks ask of it as a whole: off, counters,
 * segment list. Runs on program threads inside hooks with no engine lock held, and takes one at a
 * time.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim/base/hazard.h"
#include "shim/base/log.h"
#include "shim/base/mem.h"
#include "shim/base/options.h"
#include "shim/stream/access.h"
#include "shim/stream/advice.h"
#include "shim/stream/branches.h"
#include "shim/stream/fallback.h"
#include "shim/stream/flush.h"
#include "shim/stream/passed.h"
#include "shim/stream/priority.h"
#include "shim/stream/realtime.h"
#include "shim/stream/registry.h"
#include "shim/stream/rest.h"
#include "shim/stream/trace.h"
#include "shim/stream/watchdog.h"
#include "shim/verify/device.h"

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

/* With one queue of the hardware the order of calls on several streams decides which kernels run
 * side by side, and programs rely on that. */
static bool is_one_queue(void) {
    const char *value = getenv("CUDA_DEVICE_MAX_CONNECTIONS");
    return value && strcmp(value, "1") == 0;
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
    cus_realtime_start(cus_watchdog_raise);
    cus_rest_start();
    cus_process.may_build =
        options->mode >= CUS_MODE_PIECEWISE && options->graph_mb > 0 && graphs_suffice(driver);
    cus_process.no_branches = is_one_queue();
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

/* First flushes the engines whose locks are free, then all others: an engine that makes the exit
 * wait does not delay the rest. */
static void drain_all(void) {
    uint32_t n = __atomic_load_n(&cus_process.n_engines, __ATOMIC_SEQ_CST);
    for (uint32_t i = 0; i < 2 * n; i++) {
        struct cus_engine *engine = cus_process.engines[i % n];
        if (i < n ? !cus_lock_try(&engine->lock) : !cus_engine_take_in_time(engine))
            continue;
        /* The submit thread may sleep in the driver too. */
        if (cus_submit_wait_for(&engine->submit, i < n ? 0 : cus_exit_patience_ns()))
            cus_flush_locked(engine, CUS_CAUSE_EXIT, CUS_BREAK_EXIT, CUS_CUT_OTHER);
        else if (i >= n)
            cus_exit_give_up();
        if (!engine->pending)
            cus_branch_leave_all(engine);
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
        __atomic_exchange_n(&cus_process.state, CUS_COUNT_ONLY, __ATOMIC_SEQ_CST) >= CUS_RESTING;
    if (deferred)
        drain_all();
    cus_watchdog_stop();
}

void cus_engine_child(void) {
    __atomic_store_n(&cus_process.state, CUS_OFF, __ATOMIC_RELEASE);
}

void cus_engine_defer_off(const char *why) {
    CUS_TRACE(.what = CST_CALL_OFF, .name = why);
    int expected = __atomic_load_n(&cus_process.state, __ATOMIC_RELAXED);
    do {
        if (expected < CUS_RESTING)
            return;
    } while (!__atomic_compare_exchange_n((int *)&cus_process.state, &expected, CUS_COUNT_ONLY,
                                          false, __ATOMIC_SEQ_CST, __ATOMIC_ACQUIRE));
    __atomic_store_n(&cus_process.off_why, why, __ATOMIC_RELEASE);
    cus_flush_for_certain(CUS_CAUSE_EXIT, CUS_BREAK_API);
    cus_fallback(CUS_FALLBACK_OFF);
    cus_log(CUS_WARN, "stream", "nothing is deferred any more: %s", why);
}

void cus_engine_opening(void) {
    CUS_TRACE(.what = CST_CALL_FLUSH, .scope = CUS_SCOPE_P,
              .name = cus_trace_cause(CUS_CAUSE_OPENING));
    if (__atomic_load_n(&cus_process.state, __ATOMIC_ACQUIRE) < CUS_RESTING)
        return;
    cus_flush_for_certain(CUS_CAUSE_OPENING, CUS_BREAK_API);
    cus_thread_pends(&cus_thread_self, NULL);
}

void cus_engine_profiling(bool on) {
    CUS_TRACE(.what = CST_CALL_PROFILING, .value = on);
    if (__atomic_exchange_n(&cus_process.profiling, on, __ATOMIC_SEQ_CST) == on)
        return;
    if (on && __atomic_load_n(&cus_process.state, __ATOMIC_ACQUIRE) >= CUS_RESTING)
        cus_flush_for_certain(CUS_CAUSE_EXIT, CUS_BREAK_API);
    cus_log(CUS_INFO, "stream",
            on ? "a profiler records: ops go out one by one" : "no profiler records any more");
}

/* What is being submitted was not asked whether it may be launched. */
void cus_engine_nodes_timed(bool on) {
    cus_exec_set_timed(on);
    if (on && __atomic_load_n(&cus_process.state, __ATOMIC_ACQUIRE) >= CUS_RESTING)
        cus_flush_for_certain(CUS_CAUSE_EXIT, CUS_BREAK_API);
}

void cus_engine_counters(struct cus_counters *out) {
    *out = (struct cus_counters){0};
    cus_passed_count();
    cus_counters_add(out, &cus_process.counters);
    out->fallbacks[CUS_FALLBACK_NO_MEMORY] += cus_mem_failures();
    uint32_t n = __atomic_load_n(&cus_process.n_engines, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < n; i++) {
        struct cus_engine *engine = cus_process.engines[i];
        bool taken =
            cus_engine_take_in_time(engine); /* if not taken, the counters do not move either */
        engine->counters.segments = engine->view.n_formed;
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
