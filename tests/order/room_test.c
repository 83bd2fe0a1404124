/*
 * Room: no thread asks a stream while a capture begins; work on streams without an engine is noted,
 * and its note goes when it has ended. registry.c adds the first engine.
 */
#include "shim/stream/room.c"
#include "tests/order/engine.h"

static uint32_t capturing; /* a plain variable: nobody asks while a capture begins */
static uint32_t waits_begun, must_be_noted;
static const CUcontext context = (CUcontext)1;

static CUresult is_capturing(CUstream stream, CUstreamCaptureStatus *status) {
    (void)stream;
    *status = capturing ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
}

static CUresult query(CUstream stream) {
    (void)stream;
    ORDER_CHECK(!capturing);
    return CUDA_SUCCESS;
}

static void no_engine(void) {
    order_engines(0);
    struct cus_driver *driver = (struct cus_driver *)(uintptr_t)cus_process.driver;
    driver->cuStreamIsCapturing = is_capturing;
    driver->cuStreamQuery = query;
}

/* ---- captures ---- */

static void ask(void) {
    says_complete((CUstream)2);
}
static void ask_twice(void) {
    ask();
    ask();
}
static void capture(void) {
    cus_room_capture_begins();
    capturing = 1;
    cus_room_capture_tried();
}
static void capture_again(void) {
    capture();
    capture();
}

/* ---- work before the first engine ---- */

static const struct cus_stream_ref own = {.handle = CU_STREAM_PER_THREAD};
static const struct cus_stream_ref other = {.handle = (CUstream)2};

static void work(void) {
    cus_room_begins(own, context);
}
static void work_and_wait(void) {
    cus_room_begins(own, context);
    cus_room_waited_own(context);
}
static void add_engine(void) {
    cus_room_stream_made(order_new_engine());
}
static void is_noted(void) {
    ORDER_CHECK(untracked()->n >= 1);
}
static void is_not_noted(void) {
    ORDER_CHECK(untracked()->n == 0 && untracked()->before == 0);
}

/* ---- waits for a context ---- */

static void one_engine(void) {
    no_engine();
    cus_process.n_engines = 1;
}
static void work_twice(void) {
    cus_room_begins(other, context);
    bool begun = __atomic_load_n(&waits_begun, __ATOMIC_ACQUIRE);
    cus_room_begins(other, context);
    must_be_noted = begun;
}
static void wait_for_context(void) {
    uint32_t number = cus_engine_wait_begins();
    __atomic_store_n(&waits_begun, 1, __ATOMIC_RELEASE);
    cus_engine_wait_ended(number);
}
static void is_noted_if_it_must(void) {
    ORDER_CHECK(!must_be_noted || untracked()->n == 1);
}

static const struct order_test tests[] = {
    {.name = "ask and capture", .set_up = no_engine, .threads = {ask_twice, capture}},
    {.name = "two ask", .set_up = no_engine, .threads = {ask, ask, capture}, .preemptions = 3},
    {.name = "two captures", .set_up = no_engine, .threads = {ask, capture_again}},
    {.name = "work", .set_up = no_engine, .threads = {work, add_engine}, .check = is_noted},
    {.name = "work that ends",
     .set_up = no_engine,
     .threads = {work_and_wait, add_engine},
     .check = is_not_noted,
     .preemptions = 3},
    {.name = "two threads work",
     .set_up = one_engine,
     .threads = {work_and_wait, work_and_wait},
     .check = is_not_noted,
     .preemptions = 2},
    {.name = "wait for a context",
     .set_up = one_engine,
     .threads = {work_twice, wait_for_context},
     .check = is_noted_if_it_must},
    {.name = NULL},
};
static const char *const files[] = {"room.c", "registry.c", NULL};
static const struct order_weaker weaker[] = {
    {"room.c cus_engine_wait_begins ADD &untracked()->epoch RELEASE",
     "a thread that knows of the wait is ordered by the program; release carries the number of the "
     "wait"},
    {"room.c cus_engine_wait_begins ADD &untracked()->waits RELAXED",
     "the change of the epoch behind it carries it"},
    {"room.c cus_room_begins LOAD &untracked()->epoch ACQUIRE",
     "under the lock: what it misses costs a second look"},
    {"room.c cus_room_begins LOAD &untracked()->epoch RELAXED",
     "a thread that knows of the wait is ordered by the program"},
    {"room.c cus_room_stream_made STORE &engine->askable RELAXED",
     "it publishes the stream's handle and context, which no thread of this test reads"},
    {"room.c is_before LOAD &cus_process.n_engines RELAXED",
     "a hint: the thread looks again once it is counted"},
    {"room.c add_untracked LOAD &all->waits RELAXED", "the epoch, read before, has brought it"},
    {"room.c remove_untracked ADD &untracked()->epoch RELAXED",
     "under the lock; a thread that misses it has its note removed by a wait that saw its work"},
    {"room.c says_complete SUB &asking RELEASE",
     "it publishes that the questions are over, and reads nothing afterwards"},
    {"room.c cus_room_capture_tried SUB &beginning RELEASE",
     "it publishes that the capture has begun, and reads nothing afterwards"},
    {NULL, NULL},
};

int main(int argc, char **argv) {
    return order_main(argc, argv, tests, files, weaker);
}
