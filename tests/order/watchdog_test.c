/*
 * The watchdog's sleep: a thread that begins to defer on any stream, a new one too, is not left
 * alone. The parts are those of the library: offer.c begins a segment, deferred.c ends it,
 * registry.c adds the stream, thread.c starts the watchdog.
 */
#include "shim/stream/watchdog.c"
#include "tests/order/engine.h"

static uint32_t ops[2];  /* deferred ops of a stream: its engine's lock */
static uint32_t flushes; /* the watchdog's, while it holds its gate */

void cus_flush_locked(struct cus_engine *engine, unsigned cause, enum cus_break reason,
                      enum cus_cut cut) {
    (void)cause;
    (void)reason;
    (void)cut;
    ORDER_CHECK(ops[engine->number] == 1);
    ops[engine->number] = 0;
    flushes++;
    order_nothing_pends(engine);
}
void cus_live_place(void) {}
void cus_live_start(void) {}
void cus_live_look(void) {}
void cus_live_end(void) {}
/* As live.c does where nobody looks. */
void cus_live_wait(uint32_t *word, uint32_t value) {
    cus_futex_wait(word, value, 0);
}
bool cus_realtime_look(void) {
    return false;
}
bool cus_submit_wait_for(struct cus_submit *submit, uint64_t ns) {
    (void)submit;
    (void)ns;
    return true;
}

static void no_streams(void) {
    order_engines(0);
    cus_process.hold_ns = 2;
}

static void defer(struct cus_engine *engine) {
    cus_lock_take(&engine->lock);
    ops[engine->number] = 1;
    order_begin_segment(engine);
    cus_engine_unlock(engine);
}

static void until_issued(struct cus_engine *engine) {
    while (__atomic_load_n(&engine->pending, __ATOMIC_ACQUIRE))
        order_yield();
    ORDER_CHECK(ops[engine->number] ==
                0); /* without the lock: who sees that nothing pends sees why */
}

static void new_stream(void) {
    ORDER_CHECK(cus_watchdog_ready());
    struct cus_engine *engine = order_new_engine();
    defer(engine);
    until_issued(engine);
}

static void stream_again(void) {
    new_stream();
    defer(cus_process.engines[0]);
    until_issued(cus_process.engines[0]);
}

static void end_it(void) {
    ORDER_CHECK(cus_watchdog_ready());
    cus_watchdog_drop();
    ORDER_CHECK(order_threads == 1);
}

static void end_after_use(void) {
    new_stream();
    cus_watchdog_drop();
}

/* A call that keeps the watchdog out of the driver. */
static void hold(void) {
    cus_watchdog_hold();
    flushes++;
    cus_watchdog_release();
}

static void nothing_left(void) {
    for (uint32_t i = 0; i < cus_process.n_engines; i++)
        ORDER_CHECK(!cus_process.engines[i]->pending);
}

static const struct order_test tests[] = {
    {.name = "end", .set_up = no_streams, .threads = {end_it}, .tick_ns = 100},
    {.name = "new stream",
     .set_up = no_streams,
     .threads = {new_stream},
     .check = nothing_left,
     .tick_ns = 100,
     .preemptions = 3},
    {.name = "hold",
     .set_up = no_streams,
     .threads = {new_stream, hold},
     .check = nothing_left,
     .tick_ns = 100,
     .preemptions = 1},
    {.name = "stream again",
     .set_up = no_streams,
     .threads = {stream_again},
     .check = nothing_left,
     .tick_ns = 100,
     .preemptions = 1,
     .once = true},
    {.name = "end after use",
     .set_up = no_streams,
     .threads = {end_after_use},
     .check = nothing_left,
     .tick_ns = 100,
     .preemptions = 1},
    {.name = NULL},
};
static const char *const files[] = {"watchdog.c", "offer.c", "deferred.c",
                                    "registry.c", "state.h", NULL};
static const struct order_weaker weaker[] = {
    {"watchdog.c cus_watchdog_stop WAKE &stopping left out",
     "that wait ends by itself after half of hold_us"},
    {"watchdog.c cus_watchdog_kick STORE &asleep RELAXED", "the futex compares behind the wake-up"},
    {"watchdog.c cus_watchdog_ready LOAD &started RELAXED", "a value with nothing behind it"},
    {"watchdog.c start TAKE &self_lock left out", "gap: no case raises the thread"},
    {"watchdog.c start COMPARE &started RELAXED", "a value with nothing behind it"},
    {"watchdog.c start COMPARE &started fails RELAXED", "a value with nothing behind it"},
    {"watchdog.c run TAKE &self_lock left out", "gap: no case raises the thread"},
    {"watchdog.c run STORE &asleep RELAXED", "an old 1 costs a wake-up for nothing"},
    {"watchdog.c run LOAD &asleep RELAXED", "the futex compares again"},
    {"watchdog.c run LOAD &stopping RELAXED",
     "the futex compares again, and the reads before the long sleep are ordered"},
    {"deferred.c nothing_pends SUB cus_group_pending(engine) RELAXED",
     "a walker that reads 0 skips the group and reads nothing of it"},
    {NULL, NULL},
};

int main(int argc, char **argv) {
    return order_main(argc, argv, tests, files, weaker);
}
