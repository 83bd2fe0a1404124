/*
 * The trace's rings: the writer finds each published record whole and in order, behind what it
 * refers to; room is used again once it is empty; a wake-up is not lost. record.c is the producers'
 * side, writer.c the writer's.
 */
#include "shim/trace/writer.c"
#include "tests/order/order.h"

enum { BYTES = 64, PAD_WORDS = 65535 };

static struct ring ring;
static uint8_t *bytes_of_ring; /* set back by the test itself */
static uint8_t arena[2 * sizeof(struct chunk)];
static size_t used_of_arena;
static uint32_t written; /* records that came into the file, atomic */
static uint32_t defined; /* definitions that did */
static uint32_t lost_one;

bool cus_ticks_on;

/* ---- the file ---- */

void cst_sink_put(struct cst_sink *to, const void *record, size_t bytes) {
    const struct cst_record *one = record;
    (void)to;
    (void)bytes;
    if (one->type == CST_STRING) {
        defined++;
        return;
    }
    ORDER_CHECK(one->type == CST_CALL && one->words == BYTES / 8);
    uint32_t n = __atomic_load_n(&written, __ATOMIC_RELAXED);
    ORDER_CHECK(one->ns == n + 1);
    ORDER_CHECK(((const uint64_t *)record)[BYTES / 8 - 1] == n + 1);
    ORDER_CHECK(one->thread == 0 || defined);
    __atomic_store_n(&written, n + 1, __ATOMIC_RELEASE);
}
void *cst_sink_add(struct cst_sink *to, enum cst_type type, size_t bytes) {
    static uint64_t room[16];
    (void)to;
    (void)type;
    (void)bytes;
    lost_one++;
    return room;
}
void cst_sink_flush(struct cst_sink *to) {
    (void)to;
}
int cst_out_open(struct cst_out *to, const char *path) {
    (void)to;
    (void)path;
    return 0;
}
void cst_out_block(struct cst_out *to, uint32_t type, uint32_t number, const void *at, size_t bytes,
                   size_t plain) {
    (void)to;
    (void)type;
    (void)number;
    (void)at;
    (void)bytes;
    (void)plain;
}
int cst_out_close(struct cst_out *to) {
    (void)to;
    return 0;
}
void *cus_mem_alloc(size_t bytes) {
    if (bytes == CST_SINK) /* nobody writes there */
        return arena;
    void *at = arena + used_of_arena;
    used_of_arena += (bytes + 15) & ~(size_t)15;
    return used_of_arena <= sizeof arena ? at : NULL;
}
void cus_mem_free(void *at) {
    (void)at;
}
void cus_log(enum cus_level level, const char *domain, const char *fmt, ...) {
    (void)level;
    (void)domain;
    (void)fmt;
}
const struct cus_options *cus_options(void) {
    static const struct cus_options options = {.record_replayable = true};
    return &options;
}
void cus_ticks_use(bool on) {
    (void)on;
}

/* ---- cases ---- */

static void empty_ring(void) {
    ring.mine.bytes = bytes_of_ring;
    cus_recorder.rings = &ring;
}

static void set_pad(uint64_t at, uint16_t words) {
    struct cst_record *pad = (struct cst_record *)(void *)(bytes_of_ring + at);
    pad->type = PAD;
    pad->words = words;
}

/* Full but for one record; the writer has not yet seen what fills it. */
static void full_ring(void) {
    uint64_t at = 0, end = RING - BYTES;
    empty_ring();
    for (; end - at > PAD_WORDS * 8; at += PAD_WORDS * 8)
        set_pad(at, PAD_WORDS);
    set_pad(at, (uint16_t)((end - at) / 8));
    ring.mine.next = ring.mine.tail = end;
}

static bool record_as(uint32_t number, uint32_t thread) {
    uint64_t *record = cus_record_begin(CST_CALL, BYTES, number);
    if (!record)
        return false;
    ((struct cst_record *)(void *)record)->thread = thread;
    record[BYTES / 8 - 1] = number;
    cus_record_commit();
    return true;
}

static void record_two(void) {
    cus_ring_mine = &ring.mine;
    ORDER_CHECK(record_as(1, 0) && record_as(2, 0));
}
static void record_in_full(void) {
    cus_ring_mine = &ring.mine;
    ORDER_CHECK(record_as(1, 0));
    if (!record_as(2, 0))
        ORDER_CHECK(__atomic_load_n(&ring.lost_records, __ATOMIC_RELAXED) == 1);
}
/* As the hot path does. */
static void record_hot(void) {
    cus_ring_mine = &ring.mine;
    ORDER_CHECK(record_as(1, 0));
    ORDER_CHECK(cus_ring_fits(&ring.mine, BYTES));
    uint64_t *record = cus_ring_room(&ring.mine);
    *(struct cst_record *)(void *)record =
        (struct cst_record){.type = CST_CALL, .words = BYTES / 8, .ns = 2};
    record[BYTES / 8 - 1] = 2;
    cus_ring_put(&ring.mine, BYTES);
}
static void define_and_record(void) {
    cus_ring_mine = &ring.mine;
    struct cst_string name = {.head = {.type = CST_STRING, .words = sizeof name / 8, .ns = 1}};
    cus_record_define(&name.head);
    ORDER_CHECK(record_as(1, 1));
}
static void write_twice(void) {
    collect();
    collect();
}
static void rest_is_there(void) {
    collect();
    ORDER_CHECK(written + ring.lost_records >= 1);
}

/* The writer itself: whoever wakes it need not wait for its look. */
static void begun(void) {
    empty_ring();
    cus_record_start("", "", 0, 0);
}
static void until_written(uint32_t n) {
    while (__atomic_load_n(&written, __ATOMIC_ACQUIRE) < n)
        order_yield();
}
static void wake_writer(void) {
    cus_ring_mine = &ring.mine;
    begun();
    ring.mine.woke = ring.mine.next - RING / 4;
    ORDER_CHECK(record_as(1, 0));
    until_written(1);
    ring.mine.woke = ring.mine.next - RING / 4;
    ORDER_CHECK(record_as(2, 0));
    until_written(2);
}
static void end_writer(void) {
    cus_ring_mine = &ring.mine;
    begun();
    ORDER_CHECK(record_as(1, 0));
    cus_record_end();
    ORDER_CHECK(__atomic_load_n(&written, __ATOMIC_RELAXED) == 1);
}

static const struct order_test tests[] = {
    {.name = "records",
     .set_up = empty_ring,
     .threads = {record_two, write_twice},
     .check = rest_is_there},
    {.name = "hot records",
     .set_up = empty_ring,
     .threads = {record_hot, write_twice},
     .check = rest_is_there},
    {.name = "definitions",
     .set_up = empty_ring,
     .threads = {define_and_record, write_twice},
     .check = rest_is_there,
     .preemptions = 1},
    {.name = "full ring",
     .set_up = full_ring,
     .threads = {record_in_full, write_twice},
     .check = rest_is_there},
    {.name = "end", .threads = {end_writer}, .promised = {&cus_recorder.wake, &done}},
    {.name = "wake-ups",
     .threads = {wake_writer},
     .promised = {&cus_recorder.wake},
     .preemptions = 2},
    {.name = NULL},
};
static const char *const files[] = {"record.c", "record.h", "recorder.h", "writer.c", NULL};
static const struct order_weaker weaker[] = {
    {"writer.c cus_record_end STORE &cus_record_on RELAXED", "a thread may write one record more"},
    {"writer.c cus_record_end EXCHANGE &cus_recorder.running RELAXED",
     "gap: one thread ends the recording in these cases"},
    {"writer.c cus_record_start STORE &cus_recorder.running RELAXED",
     "gap: the thread that starts is the one that records in these cases"},
    {"writer.c bury LOAD &cus_recorder.rings RELAXED",
     "gap: the ring is there from the start in these cases"},
    {"writer.c collect LOAD &cus_recorder.rings RELAXED",
     "gap: the ring is there from the start in these cases"},
    {"writer.c write_data TAKE &cus_recorder.lock left out", "gap: no data in these cases"},
    {"writer.c switch_on STORE &cus_record_on RELAXED",
     "read without order: a thread may begin a record later"},
    {"writer.c switch_on STORE &since RELAXED", "gap: nobody asks for times in these cases"},
    {NULL, NULL},
};

int main(int argc, char **argv) {
    bytes_of_ring = mmap(NULL, RING, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return order_main(argc, argv, tests, files, weaker);
}
