/*
 * Start, exit and fork of the library. The engine starts on the thread whose cuInit succeeds first,
 * never in a constructor and never in a look-up. The exit handler is registered at that moment, so
 * it runs before all older handlers. What older handlers launch goes straight to the driver
 * (HAZARDS E10). Holds only the lock that keeps two threads from writing the stats file at once.
 * Runs at depth 0 unless a function says otherwise.
 */
#define __CUDA_API_VERSION_INTERNAL
#define _GNU_SOURCE
#include "shim/hook/lifecycle.h"

#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim/base/hazard.h"
#include "shim/base/lock.h"
#include "shim/base/log.h"
#include "shim/base/options.h"
#include "shim/base/process_rank.h"
#include "shim/base/thread.h"
#include "shim/hook/guard.h"
#include "shim/hook/handshake.h"
#include "shim/hook/real.h"
#include "shim/hook/recording.h"
#include "shim/hook/resolve.h"
#include "shim/hook/runtime.h"
#include "shim/hook/slots.h"
#include "shim/keep/keep.h"
#include "shim/plan/preset_choice.h"
#include "shim/stats/stats_json.h"
#include "shim/stream/engine.h"
#include "shim/trace/record.h"

/* ON, GATED in mode verify, or RECORDED; set before the state is. Atomic: a thread may call
 * attention meanwhile. */
static uint32_t state_on;

static struct cus_driver driver; /* frozen when the engine has started */
static pid_t owner;              /* the process that started the engine; frozen as well */
static uint64_t graph_launches;  /* atomic */
static const char *defer_reason; /* atomic */
static uint32_t leaving;         /* atomic futex: the exit handler has begun */

static struct cus_lock stats_lock = CUS_LOCK_OF(CUS_RANK_STATS);
static char segment_list[65536]; /* guarded by stats_lock */

/* Guarded by stats_lock. Static, since they are too large for a stack of unknown size. */
static struct cus_counters counters;
static struct cus_report report;

static uint64_t ops_of(const struct cus_counters *of) {
    uint64_t ops = 0;
    for (unsigned type = 0; type < CUS_OP_TYPES; type++)
        ops += of->ops[type];
    return ops;
}

/* `ends`: the process exits. Then the report of why = yes is written if the program issued any
 * op. */
static void write_stats(bool ends) {
    const struct cus_options *options = cus_options();
    bool why = ends && options->why;
    if (!*options->stats && !why)
        return;
    cus_lock_take(&stats_lock);
    memset(&counters, 0, sizeof counters);
    cus_engine_counters(&counters);
    cus_engine_report(&report, &counters, cus_api_name);
    static char text[CUS_REPORT_TEXT];
    if (why && ops_of(&counters)) {
        size_t bytes = cus_report_text(&report, text, sizeof text);
        cus_log_text_in(options->why_file, text, (unsigned)bytes);
        cus_handshake_ran(ops_of(&counters), counters.in_graphs, &report);
    }
    if (!*options->stats) {
        cus_lock_give(&stats_lock);
        return;
    }
    cus_engine_segment_list(segment_list, sizeof segment_list);
    struct cus_stats_step steps[CUS_STATS_STEPS];
    struct cus_stats_facts facts = {
        .mode = cus_mode_name(options->mode),
        .segment_list_json = segment_list,
        .steps = steps,
        .n_steps = cus_engine_steps(steps),
        .report = &report,
    };
    cus_stats_json(options->stats, &counters, cus_api_name, &facts);
    cus_lock_give(&stats_lock);
}

/* A file that a thread of its own writes every so many seconds. */
struct writer {
    uint32_t every;
    void (*write)(bool ends);
    const char *what;
    struct cus_own_thread thread;
};

static void *write_now_and_then(void *context) {
    const struct writer *writer = context;
    uint64_t pause = (uint64_t)writer->every * 1000000000u;
    while (!__atomic_load_n(&leaving, __ATOMIC_ACQUIRE)) {
        cus_futex_wait(&leaving, 0, pause);
        if (!__atomic_load_n(&leaving, __ATOMIC_ACQUIRE))
            writer->write(false);
    }
    return NULL;
}

static void start_writer(struct writer *writer) {
    writer->thread.run = write_now_and_then;
    writer->thread.argument = writer;
    if (cus_thread_start(&writer->thread, NULL) != 0)
        cus_log(CUS_WARN, "hook", "no thread for %s_every; it is written at exit", writer->what);
}

/* Starts the writers that the settings ask for. */
static void start_writers(void) {
    static struct writer stats = {
        .write = write_stats, .what = "stats", .thread.name = "cusplice-stats"};
    static struct writer cache = {
        .write = cus_engine_cache_save, .what = "cache", .thread.name = "cusplice-cache"};
    stats.every = *cus_options()->stats ? cus_options()->stats_every : 0;
    cache.every = cus_engine_asks_code() ? cus_options()->cache_every : 0;
    if (stats.every)
        start_writer(&stats);
    if (cache.every)
        start_writer(&cache);
}

/* The launcher hears of all processes of a run, and says once what none of them met. */
static void say_unmet(const char *text) {
    if (!cus_handshake_unmet(text))
        cus_log(CUS_WARN, "rules", "%s", text);
}

static void say_presets(void) {
    char held[480]; /* a line of the hand-shake has room for it */
    if (cus_preset_held(held, sizeof held))
        cus_handshake_found(CUS_FOUND_PRESETS, held);
}

static void say_missed(void) {
    uint64_t had, from;
    if (cus_record_began_late(&had, &from) && !cus_handshake_steps(had, from) && had <= from)
        cus_log(CUS_WARN, "trace",
                "the trace holds nothing: it was to begin with step %llu, and the program had %llu "
                "steps, counted from 0",
                (unsigned long long)from, (unsigned long long)had);
}

/* The launcher says the result of all processes. Without one, a result that is good is said here,
 * at any level of the log: whoever sets mode = verify asked for it. */
static void say_verified(void) {
    uint64_t verified, different;
    if (cus_engine_verify_end(&verified, &different) &&
        !cus_handshake_verified(verified, different) && verified && !different)
        cus_log_asked("verify",
                      "%llu graph launches verified, all equal to their launches one by one",
                      (unsigned long long)verified);
}

/* While the engine drains, the hooks still act, so that no op of another thread overtakes the
 * ops that the engine issues. */
static void at_exit(void) {
    uint32_t state = __atomic_load_n(&cus_process.hooks, __ATOMIC_ACQUIRE);
    if (state < CUS_STATE_ON || getpid() != owner ||
        __atomic_exchange_n(&leaving, 1, __ATOMIC_ACQ_REL))
        return;
    uint32_t depth = cus_thread_self.depth;
    cus_thread_self.depth = 1;
    cus_futex_wake(&leaving, 2);
    cus_engine_drain();
    say_missed();
    cus_recording_end();
    if (CUS_HAZARD(E10))
        __atomic_store_n(&cus_process.hooks, CUS_STATE_OFF, __ATOMIC_RELEASE);
    cus_engine_cache_save(true);
    static struct cus_counters last;
    memset(&last, 0, sizeof last);
    cus_engine_counters(&last);
    if (last.fallbacks[CUS_FALLBACK_NO_MEMORY])
        cus_log(CUS_WARN, "hook", "%llu allocations failed: what needed them went out one by one",
                (unsigned long long)last.fallbacks[CUS_FALLBACK_NO_MEMORY]);
    write_stats(true);
    if (ops_of(&last))
        cus_engine_unmet(say_unmet);
    say_presets();
    say_verified();
    cus_log_end();
    cus_handshake_exit(ops_of(&last), __atomic_load_n(&graph_launches, __ATOMIC_RELAXED));
    cus_thread_self.depth = depth;
}

/* A forked child has no thread, lock or GPU of the parent's. */
static void in_child(void) {
    __atomic_store_n(&cus_process.hooks, CUS_STATE_OFF, __ATOMIC_RELEASE);
    cus_thread_self.depth = 0;
    cus_record_child();
    cus_engine_child();
}

static void fill_driver(void) {
#define FILL(name, ...)                                                                            \
    if (cus_real_has(CUS_ROW_##name))                                                              \
        driver.name = CUS_REAL(name);
#define CUS_OWN_NEEDED FILL
#define CUS_OWN_OPTIONAL FILL
#define CUS_OWN_VERIFY FILL
#include "shim/api/own.def"
#undef FILL
}

void cus_lifecycle_defer_off(const char *why) {
    static uint32_t told; /* atomic */
    cus_engine_defer_off(why);
    if (!__atomic_exchange_n(&told, 1, __ATOMIC_RELAXED))
        cus_handshake_found(CUS_FOUND_PASSES, why);
}

static void take_reason(void) {
    const char *why = __atomic_exchange_n(&defer_reason, NULL, __ATOMIC_SEQ_CST);
    if (why)
        cus_lifecycle_defer_off(why);
}

void cus_lifecycle_start(void) {
    uint32_t cold = CUS_STATE_COLD;
    if (__atomic_load_n(&cus_process.hooks, __ATOMIC_ACQUIRE) != CUS_STATE_COLD ||
        !__atomic_compare_exchange_n(&cus_process.hooks, &cold, CUS_STATE_STARTING, false,
                                     __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return;
    int error = errno;
    if (cus_resolve_off() || !cus_real_find()) {
        __atomic_store_n(&cus_process.hooks, CUS_STATE_OFF, __ATOMIC_RELEASE);
        cus_handshake_off();
        errno = error;
        return;
    }
    cus_thread_self.depth = 1;
    owner = getpid();
    cus_process_rank(); /* here, on a thread of the program */
    fill_driver();
    pthread_atfork(NULL, NULL, in_child);
    bool defers = cus_engine_start(&driver);
    /* This comes before atexit: the handlers that CUPTI registers then run after at_exit. */
    bool recorded = cus_recording_start();
    /* This comes after the engine's start: an exit meanwhile finds nothing to drain. */
    atexit(at_exit);
    at_quick_exit(at_exit);
    const char *other = cus_others_start();
    if (other)
        cus_lifecycle_defer_off(other);
    uint32_t on = cus_options()->mode == CUS_MODE_VERIFY ? CUS_STATE_GATED
                  : recorded                             ? CUS_STATE_RECORDED
                                                         : CUS_STATE_ON;
    __atomic_store_n(&state_on, on, __ATOMIC_SEQ_CST);
    cus_runtime_start(on == CUS_STATE_ON);
    const char *around = cus_slots_look(false);
    if (around)
        cus_lifecycle_defer_off(around);
    /* Before the reason is taken: see cus_lifecycle_call_attention. */
    __atomic_store_n(&cus_process.hooks, on, __ATOMIC_SEQ_CST);
    cus_log(CUS_INFO, "hook", "on, mode %s%s", cus_mode_name(cus_options()->mode),
            defers ? "" : ", nothing is deferred");
    take_reason();
    cus_cupti_apply();
    cus_handshake_on();
    start_writers();
    cus_thread_self.depth = 0;
    errno = error;
}

/* The caller has written what is to be attended to, sequentially consistent as all this is. If the
 * state asks for attention already, the thread that attends sees what was written. */
void cus_lifecycle_call_attention(void) {
    uint32_t on = __atomic_load_n(&state_on, __ATOMIC_SEQ_CST);
    if (on)
        __atomic_compare_exchange_n(&cus_process.hooks, &on, CUS_STATE_ATTEND, false,
                                    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

void cus_lifecycle_defer_off_later(const char *why) {
    __atomic_store_n(&defer_reason, why, __ATOMIC_SEQ_CST);
    cus_lifecycle_call_attention();
}

static void attend(void) {
    uint32_t attend = CUS_STATE_ATTEND;
    if (!__atomic_compare_exchange_n(&cus_process.hooks, &attend, state_on, false, __ATOMIC_SEQ_CST,
                                     __ATOMIC_RELAXED))
        return;
    take_reason();
    cus_cupti_apply();
}

bool cus_lifecycle_attend(void) {
    bool gated = state_on == CUS_STATE_GATED;
    if (gated)
        cus_gate_enter();
    attend();
    return gated;
}

/* A trace, verify, and what is kept for a later process need every call. */
bool cus_lifecycle_tick(unsigned row) {
    return __atomic_load_n(&cus_process.hooks, __ATOMIC_RELAXED) == CUS_STATE_ON &&
           !cus_keeping() && cus_engine_tick(row);
}

void cus_lifecycle_count_graph_launch(void) {
    __atomic_fetch_add(&graph_launches, 1, __ATOMIC_RELAXED);
}
