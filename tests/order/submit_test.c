/*
 * The handed-over slot: each submitted segment is launched once, by the submit thread or by a
 * thread that waits, which sees what the other one wrote. A segment that is queued wakes the submit
 * thread. thread.c starts that thread.
 */
#include "shim/stream/submit.c"
#include "tests/order/engine.h"

static uint32_t launched[2]; /* by stream; a plain variable: one thread at a time */
static struct cus_variant variant;
static struct cus_segment segment;

CUresult cus_exec_launch(const struct cus_driver *driver, struct cus_exec *exec, CUstream stream) {
    (void)driver;
    (void)exec;
    launched[(uintptr_t)stream]++;
    return CUDA_SUCCESS;
}

CUresult cus_exec_patch(const struct cus_driver *driver, CUcontext context, struct cus_exec *exec,
                        uint32_t i, const struct cus_kind *kind, const struct cus_values *values) {
    (void)driver;
    (void)context;
    (void)exec;
    (void)i;
    (void)kind;
    (void)values;
    return CUDA_SUCCESS;
}

static void set_up(void) {
    order_engines(2);
    variant.segment = &segment;
    for (uintptr_t i = 0; i < 2; i++)
        cus_process.engines[i]->handle = (CUstream)i;
}

static bool submit(struct cus_engine *engine) {
    if (!cus_submit_claim(engine))
        return false;
    cus_submit_queue(engine, &variant, 0);
    return true;
}

static void take_back(struct cus_engine *engine) {
    ORDER_CHECK(order_take_back(engine) == CUS_SUBMIT_LAUNCHED);
    ORDER_CHECK(engine->submit.refused == engine->submit.n);
}

static void submit_and_wait(uint32_t number) {
    struct cus_engine *engine = cus_process.engines[number];
    if (!submit(engine)) {
        cus_exec_launch(NULL, NULL, engine->handle);
        return;
    }
    take_back(engine);
}

static void one(void) {
    submit_and_wait(0);
}
static void twice(void) {
    one();
    one();
    ORDER_CHECK(launched[0] == 2);
}
static void other(void) {
    submit_and_wait(1);
}

/* The program waits for what the GPU writes, and calls nothing. */
static void poll(void) {
    struct cus_engine *engine = cus_process.engines[0];
    ORDER_CHECK(submit(engine));
    while (!cus_submit_ended(&engine->submit))
        order_yield();
    take_back(engine);
    ORDER_CHECK(launched[0] == 1);
}

static void poll_twice(void) {
    poll();
    launched[0] = 0;
    poll();
}

static void wait_a_while(void) {
    struct cus_engine *engine = cus_process.engines[0];
    ORDER_CHECK(submit(engine));
    cus_submit_wait_for(&engine->submit, 3);
    take_back(engine);
    ORDER_CHECK(launched[0] == 1);
}

static void end_it(void) {
    one();
    cus_submit_drop();
    ORDER_CHECK(order_threads == 1);
}

static void each_once(void) {
    ORDER_CHECK(launched[0] == 1 && launched[1] == 1);
}

static const struct order_test tests[] = {
    {.name = "submit and wait", .set_up = set_up, .threads = {one}, .tick_ns = 1, .preemptions = 2},
    {.name = "twice",
     .set_up = set_up,
     .threads = {twice},
     .tick_ns = 1,
     .preemptions = 1,
     .deep = true},
    {.name = "poll twice",
     .set_up = set_up,
     .threads = {poll_twice},
     .tick_ns = 1,
     .preemptions = 1},
    {.name = "wait a while",
     .set_up = set_up,
     .threads = {wait_a_while},
     .tick_ns = 1,
     .preemptions = 2},
    {.name = "end", .set_up = set_up, .threads = {end_it}, .tick_ns = 1, .preemptions = 1},
    {.name = "two streams",
     .set_up = set_up,
     .threads = {one, other},
     .check = each_once,
     .tick_ns = 1,
     .preemptions = 1,
     .deep = true},
    {.name = NULL},
};
static const char *const files[] = {"submit.c", "submit.h", "thread.c", NULL};
static const struct order_weaker weaker[] = {
    {"submit.c sleep_on STORE &submit->sleeps RELAXED",
     "the barrier of the futex behind it orders it; the sleep is bounded too"},
    {"submit.c is_busy LOAD &submit->state RELAXED",
     "take_back reads the result again with acquire"},
    {"submit.c cus_submit_queue STORE &submitter.asleep RELAXED",
     "the futex compares behind the wake-up"},
    {"submit.c cus_submit_claim LOAD &submitter.started RELAXED", "a value with nothing behind it"},
    {"submit.c start STORE &submitter.started RELAXED", "a value with nothing behind it"},
    {"submit.c given_late STORE &submitter.asleep RELAXED", "an old 1 costs a wake-up for nothing"},
    {"submit.c take COMPARE &submit->state RELAXED",
     "the look in front of it acquires; gap: a second segment that was queued since that look "
     "(twice, with --deep)"},
    {"submit.c work WAKE &submit->state left out", "the sleep is bounded by WAIT_NS"},
    {"submit.c work LOAD &submit->sleeps RELAXED", "the sleep is bounded by WAIT_NS"},
    {"submit.c work STORE &submit->state RELEASE", "the sleep is bounded by WAIT_NS"},
    {"submit.c work STORE &submitter.has RELAXED",
     "the next claimer reads nothing that the thread wrote for this one"},
    {"submit.h cus_submit_ended LOAD &submit->state RELAXED",
     "take_back reads the result again with acquire"},
    {NULL, NULL},
};

int main(int argc, char **argv) {
    return order_main(argc, argv, tests, files, weaker);
}
