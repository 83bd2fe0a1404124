/*
 * Deferral is switched off, for good or for a rest: what a thread has deferred by then is issued,
 * on a stream that it has just added too, and nothing is deferred afterwards. start.c switches off,
 * rest.c rests, flush.c flushes, offer.c asks whether it may defer, and registry.c adds the stream.
 */
#include "shim/stream/flush.c"
#include "shim/stream/rest.c"
#include "shim/stream/start.c"
#include "tests/order/engine.h"

static uint32_t ops[3]; /* deferred ops of a stream: its engine's lock */

void cus_deferred_flush(struct cus_engine *engine, unsigned cause, enum cus_break reason,
                        enum cus_cut cut, enum cus_eager counted) {
    (void)cause;
    (void)reason;
    (void)cut;
    (void)counted;
    ops[engine->number] = 0;
    order_nothing_pends(engine);
}

/* Everything else allows to defer, or does nothing. */
bool cus_ticks_on;
void cus_exec_memory_goes(void) {}
void cus_watchdog_stop(void) {}
bool cus_watchdog_ready(void) {
    return true;
}
bool cus_watchdog_kick(void) {
    return false;
}
bool cus_engine_take_in_time(struct cus_engine *engine) {
    cus_lock_take(&engine->lock);
    return true;
}
uint64_t cus_exit_patience_ns(void) {
    return 0;
}
bool cus_submit_wait_for(struct cus_submit *submit, uint64_t ns) {
    (void)submit;
    (void)ns;
    return true;
}
bool cus_program_captures(struct cus_context *context) {
    (void)context;
    return false;
}
bool cus_streams_same(struct cus_engine *engine) {
    (void)engine;
    return true;
}
bool cus_realtime_allows(struct cus_thread *thread) {
    (void)thread;
    return true;
}
const char *cus_trace_cause(unsigned cause) {
    (void)cause;
    return "";
}
void cus_branch_leave_all(struct cus_engine *home) {
    (void)home;
}
void cus_plan_break(struct cus_plan *plan) {
    (void)plan;
}

static void no_stream(void) {
    order_engines(0);
}
static void one_stream(void) {
    order_engines(1);
}

static void defer_on(struct cus_engine *engine) {
    cus_lock_take(&engine->lock);
    if (order_may_defer(engine)) {
        ORDER_CHECK(!__atomic_load_n(&cus_process.resting, __ATOMIC_RELAXED));
        ops[engine->number] = 1;
        order_begin_segment(engine);
    }
    cus_engine_unlock(engine);
}

static void defer(void) {
    defer_on(cus_process.engines[0]);
}
static void defer_on_new(void) {
    defer_on(order_new_engine());
}
static void profile(void) {
    cus_engine_profiling(true);
}
static void end_process(void) {
    cus_engine_drain();
}
static void give_up(void) {
    cus_engine_defer_off("test");
}
static void open_library(void) {
    cus_opening_enter();
    cus_engine_opening();
}
static void nothing_pending(void) {
    for (uint32_t i = 0; i < cus_process.n_engines; i++)
        ORDER_CHECK(!cus_process.engines[i]->pending && !ops[i]);
}

/* A region is deferred, and launched as a graph: the side stream owes a wait for its end. */
static void branch_of_first(void) {
    struct cus_engine *home = cus_process.engines[0];
    cus_lock_take(&home->lock);
    if (order_may_defer(home))
        __atomic_add_fetch(&cus_process.branches, 1, __ATOMIC_RELAXED);
    cus_engine_unlock(home);
}
static void no_branch_in_a_rest(void) {
    ORDER_CHECK(!cus_process.resting || !cus_process.branches);
}
static void rest_begins(void) {
    cus_rest_begin();
}
static void rest_ends(void) {
    cus_rest_end();
}
static void resting(void) {
    one_stream();
    cus_process.state = CUS_RESTING;
    cus_process.resting = 1;
}
/* While calls pass, nothing is deferred. */
static void nothing_pending_in_a_rest(void) {
    if (cus_process.resting)
        nothing_pending();
    ORDER_CHECK(cus_process.resting == (cus_process.state == CUS_RESTING));
}
/* A call that passes, since the process rests, comes behind all ops of calls before. */
static void pass_call(void) {
    if (cus_rests())
        ORDER_CHECK(!ops[0]);
}
static void off_for_good(void) {
    ORDER_CHECK(cus_process.state == CUS_COUNT_ONLY);
    nothing_pending();
}

#define CASES(name_, threads_)                                                                     \
    {.name = name_, .set_up = one_stream, .threads = {defer, threads_}, .check = nothing_pending}, \
    {                                                                                              \
        .name = name_ ", new stream", .set_up = no_stream, .threads = {defer_on_new, threads_},    \
        .check = nothing_pending                                                                   \
    }

static const struct order_test tests[] = {
    CASES("profiler", profile),
    CASES("exit", end_process),
    CASES("given up", give_up),
    CASES("dlopen", open_library),
    {.name = "rest",
     .set_up = one_stream,
     .threads = {defer, rest_begins},
     .check = nothing_pending_in_a_rest},
    {.name = "rest, new stream",
     .set_up = no_stream,
     .threads = {defer_on_new, rest_begins},
     .check = nothing_pending_in_a_rest},
    {.name = "rest, a call passes",
     .set_up = one_stream,
     .threads = {defer, rest_begins, pass_call},
     .check = nothing_pending_in_a_rest},
    {.name = "rest, a branch",
     .set_up = one_stream,
     .threads = {branch_of_first, rest_begins},
     .check = no_branch_in_a_rest},
    {.name = "rest ends",
     .set_up = resting,
     .threads = {defer, rest_ends},
     .check = nothing_pending_in_a_rest},
    {.name = "rest and given up",
     .set_up = one_stream,
     .threads = {rest_begins, give_up},
     .check = off_for_good},
    {.name = "rest ends and given up",
     .set_up = resting,
     .threads = {rest_ends, give_up},
     .check = off_for_good},
    {.name = NULL},
};
static const char *const files[] = {"start.c",    "rest.c",  "flush.c",    "offer.c",
                                    "registry.c", "state.h", "deferred.c", NULL};
static const struct order_weaker weaker[] = {
    {"start.c cus_engine_profiling LOAD &cus_process.state RELAXED",
     "an old DEFER flushes once for nothing"},
    {"start.c cus_engine_opening LOAD &cus_process.state RELAXED",
     "an old DEFER flushes once for nothing; once off, it stays off"},
    {"start.c cus_engine_defer_off STORE &cus_process.off_why RELAXED", "the texts are constants"},
    {"start.c cus_engine_defer_off COMPARE (int *)&cus_process.state fails RELAXED",
     "then there is nothing to do"},
    {"start.c cus_engine_drain LOAD &cus_process.state RELAXED",
     "OFF is only written in a forked child"},
    {"rest.c cus_rest_begin STORE &cus_process.resting RELAXED",
     "it publishes nothing: the program orders its own calls"},
    {"state.h cus_rests LOAD &cus_process.resting RELAXED",
     "it publishes nothing: the program orders its own calls"},
    {"rest.c is_busy LOAD &cus_process.n_engines RELAXED", "a hint"},
    {"state.h cus_walk_pending LOAD &engine->pending RELAXED", "asked as a hint here"},
    {"state.h cus_walk_pending LOAD &cus_process.groups[walk->group].pending RELAXED",
     "asked as a hint here"},
    {"rest.c cus_rest_end ADD &cus_process.engines[i]->calls RELAXED",
     "gap: nobody looks at positions in these cases"},
    {"rest.c cus_rest_end LOAD &cus_process.n_engines RELAXED",
     "the cases make their engines before"},
    {"flush.c cus_flush_branches LOAD &cus_process.branches RELAXED",
     "gap: no stream is a branch in these cases"},
    {"flush.c cus_flush_branches LOAD &cus_process.n_engines RELAXED",
     "gap: no stream is a branch in these cases"},
    {"deferred.c nothing_pends SUB cus_group_pending(engine) RELAXED",
     "the lock orders here; watchdog_test has readers without the lock"},
    {"deferred.c nothing_pends STORE &engine->pending RELAXED",
     "the lock orders here; watchdog_test needs it"},
    {"offer.c begin STORE &engine->pending RELAXED",
     "the lock orders here; watchdog_test needs it"},
    {"offer.c begin ADD cus_group_pending(engine) RELAXED",
     "the lock orders here; watchdog_test needs it"},
    {NULL, NULL},
};

int main(int argc, char **argv) {
    return order_main(argc, argv, tests, files, weaker);
}
