/*
 * When recording begins and ends, and the writer thread, which moves what is in cus_recorder into
 * the file. shim/hook starts and ends it, and any thread may call the other functions of record.h.
 * write_out and what it calls run on the writer thread, and take the recorder's lock only to unlink
 * something. Once the thread runs, only it touches the file. It calls no driver.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shim/base/clock.h"
#include "shim/base/log.h"
#include "shim/base/mem.h"
#include "shim/base/options.h"
#include "shim/base/thread.h"
#include "shim/trace/file.h"
#include "shim/trace/recorder.h"

#include "shim/base/forbid.h"

enum {
    HAND_BACK = 64 << 10, /* bytes that the writer empties before it publishes `head` */
    /* A block is written when it has so many bytes, and after this time: so much of a trace is
     * lost where the program is killed, the disk gets full, or a byte is damaged later. */
    BLOCK_BYTES = 64 << 10,
    BLOCK_NS = 1000000000,
    END_NS = 1000000000,
    ENDS = 20 /* how often the end waits END_NS for the writer */
};

/* What the writer begins with; gone once it has tried to open the file. */
struct file {
    const char *path, *facts;
    int error;
    uint32_t tried; /* atomic futex */
};

uint32_t cus_record_on;
static uint64_t since, upto;        /* atomic: when recording began and ended; 0: not yet */
static uint64_t steps, from, until; /* steps: atomic */
static uint32_t stop, done;         /* atomic futexes */
static bool held;                   /* set once, before the program's first call */
static uint32_t due;                /* atomic: enum cus_record_due */
static struct cst_out out;          /* the writer's */
static uint32_t failed;             /* atomic: nothing more can be written */
static struct cus_ticks ticks;      /* the writer's */
static struct cst_sink sink = {.out = &out, .full = BLOCK_BYTES};

/* ---- when it records ---- */

void cus_record_give_up(const char *why) {
    if (__atomic_exchange_n(&cus_record_on, 0, __ATOMIC_ACQ_REL))
        cus_log(CUS_WARN, "trace", "recording ends here: %s", why);
}

static void switch_on(void) {
    __atomic_store_n(&since, cus_clock_ns(), __ATOMIC_RELEASE);
    __atomic_store_n(&cus_record_on, 1, __ATOMIC_RELEASE);
}

static void switch_off(void) {
    if (__atomic_exchange_n(&cus_record_on, 0, __ATOMIC_ACQ_REL))
        __atomic_store_n(&upto, cus_clock_ns(), __ATOMIC_RELEASE);
}

bool cus_record_covers(uint64_t ns) {
    uint64_t begin = __atomic_load_n(&since, __ATOMIC_ACQUIRE);
    uint64_t end = __atomic_load_n(&upto, __ATOMIC_ACQUIRE);
    return cus_recorder_runs() && begin && ns >= begin && (!end || ns <= end);
}

static void turn(enum cus_record_due what) {
    if (held)
        __atomic_store_n(&due, what, __ATOMIC_RELEASE);
    else if (what == CUS_RECORD_BEGIN)
        switch_on();
    else
        switch_off();
}

void cus_record_step(void) {
    if (!cus_recorder_runs())
        return;
    uint64_t now = __atomic_add_fetch(&steps, 1, __ATOMIC_RELAXED);
    if (until && now >= until)
        turn(CUS_RECORD_END);
    else if (now == from && !__atomic_load_n(&failed, __ATOMIC_RELAXED))
        turn(CUS_RECORD_BEGIN);
}

bool cus_record_began_late(uint64_t *had, uint64_t *first) {
    *had = __atomic_load_n(&steps, __ATOMIC_RELAXED);
    *first = from;
    return cus_recorder_runs() && from;
}

enum cus_record_due cus_record_due(void) {
    return (enum cus_record_due)__atomic_load_n(&due, __ATOMIC_ACQUIRE);
}

void cus_record_hold(void) {
    held = true;
}

void cus_record_turn(void) {
    switch ((enum cus_record_due)__atomic_exchange_n(&due, CUS_RECORD_NOTHING, __ATOMIC_ACQ_REL)) {
    case CUS_RECORD_BEGIN:
        switch_on();
        break;
    case CUS_RECORD_END:
        switch_off();
        break;
    default:
        break;
    }
}

/* ---- what the writer does ---- */

static void write_definitions(void) {
    cus_lock_take(&cus_recorder.lock);
    struct chunk *chunk = cus_recorder.first;
    cus_recorder.first = cus_recorder.last = NULL;
    cus_lock_give(&cus_recorder.lock);
    while (chunk) {
        struct chunk *next = chunk->next;
        cst_sink_put(&sink, chunk->bytes, chunk->used);
        cus_mem_free(chunk);
        chunk = next;
    }
}

/* Frees each block as soon as it is written. */
static bool write_data(void) {
    cus_lock_take(&cus_recorder.lock);
    struct data *data = cus_recorder.first_data;
    cus_recorder.first_data = cus_recorder.last_data = NULL;
    cus_lock_give(&cus_recorder.lock);
    bool some = data != NULL;
    while (data) {
        struct data *next = data->next;
        uint32_t taken = cus_recorder_mib(data->head.bytes);
        cst_out_block(&out, CST_BLOCK_DATA, 0, &data->head, data->bytes, data->bytes);
        munmap(data, data->mapped);
        __atomic_sub_fetch(&cus_recorder.data_mib, taken, __ATOMIC_ACQ_REL);
        cus_futex_wake(&cus_recorder.data_mib, INT32_MAX);
        data = next;
    }
    return some;
}

static void write_lost(struct ring *ring) {
    uint64_t records = __atomic_load_n(&ring->lost_records, __ATOMIC_RELAXED);
    uint64_t ops = __atomic_load_n(&ring->lost_ops, __ATOMIC_RELAXED);
    /* A thread that loses an op counts the record first, so a report between the two counts
     * lacks the op. */
    if (records == ring->told_records && ops == ring->told_ops)
        return;
    struct cst_lost *lost = cst_sink_add(&sink, CST_LOST, sizeof *lost);
    lost->head.thread = ring->mine.id;
    lost->head.ns = cus_clock_ns();
    lost->records = records - ring->told_records;
    lost->ops = ops - ring->told_ops;
    ring->told_records = records;
    ring->told_ops = ops;
}

/* Moves a record from a ring into the file, and turns its time into nanoseconds. */
static void put(const struct cst_record *in_ring) {
    size_t bytes = (size_t)in_ring->words * 8;
    cst_sink_put(&sink, in_ring, bytes);
    if (!(in_ring->flags & CUS_RECORD_TICKS))
        return;
    /* A record is always shorter than the sink, so it was copied there. */
    struct cst_record *record = (struct cst_record *)(void *)(sink.buffer + sink.used - bytes);
    uint64_t moment = record->ns;
    uint32_t *length = NULL;
    record->flags &= (uint8_t)~CUS_RECORD_TICKS;
    record->ns = cus_ticks_ns(&ticks, moment);
    if (record->type == CST_OP)
        length = &((struct cst_op *)(void *)record)->host_ns;
    else if (record->type == CST_CALL)
        length = &((struct cst_call *)(void *)record)->host_ns;
    else if (record->type == CST_LAUNCH)
        length = &((struct cst_launch *)(void *)record)->host_ns;
    if (length)
        *length = cus_ticks_length(&ticks, moment, *length);
}

/* Moves what was published up to `end` into the file. False: there was nothing. */
static bool drain(struct ring *ring) {
    uint64_t head = ring->head;
    if (head == ring->end)
        return false;
    while (head != ring->end) {
        const struct cst_record *record =
            (const struct cst_record *)(const void *)(ring->mine.bytes + head % RING);
        if (record->type != PAD)
            put(record);
        head += (uint64_t)record->words * 8;
        if (head - ring->head >= HAND_BACK || head == ring->end)
            __atomic_store_n(&ring->head, head, __ATOMIC_RELEASE);
    }
    return true;
}

static bool ended(const struct ring *ring) {
    return syscall(SYS_tgkill, getpid(), ring->tid, 0) != 0 && errno == ESRCH;
}

/* What a record refers to was defined before the record was published. The definitions are
 * therefore in the file before the record, wherever the file ends. */
static bool collect(void) {
    struct ring *all = __atomic_load_n(&cus_recorder.rings, __ATOMIC_ACQUIRE);
    bool some = false;
    for (struct ring *ring = all; ring; ring = ring->link)
        ring->end = __atomic_load_n(&ring->mine.tail, __ATOMIC_ACQUIRE);
    /* This pair is later than every moment in what is taken. */
    if (cus_ticks_on)
        cus_ticks_pair(&ticks);
    write_definitions();
    some |= write_data();
    for (struct ring *ring = all; ring; ring = ring->link) {
        some |= drain(ring);
        write_lost(ring);
    }
    return some;
}

/* Frees the rings of threads that have ended, once they are empty. */
static void bury(void) {
    for (struct ring *ring = __atomic_load_n(&cus_recorder.rings, __ATOMIC_ACQUIRE), *next; ring;
         ring = next) {
        next = ring->link;
        if (!ended(ring) || __atomic_load_n(&ring->mine.tail, __ATOMIC_ACQUIRE) != ring->head)
            continue;
        write_lost(ring);
        cus_lock_take(&cus_recorder.lock);
        struct ring **at = &cus_recorder.rings;
        while (*at != ring)
            at = &(*at)->link;
        *at = ring->link;
        cus_lock_give(&cus_recorder.lock);
        munmap(ring->mine.bytes, RING);
        cus_mem_free_lines(ring);
    }
}

static void check_disk(void) {
    if (!out.error)
        return;
    char why[128];
    __atomic_store_n(&failed, 1, __ATOMIC_RELAXED);
    cus_record_give_up(strerror_r(out.error, why, sizeof why));
}

/* Runs on the writer's thread, which blocks all signals: a write beyond the process's size limit
 * raises one. */
static int open_file(const struct file *file) {
    int error = cst_out_open(&out, file->path);
    if (!error && !(sink.buffer = cus_mem_alloc(CST_SINK)))
        error = ENOMEM;
    if (!error)
        cst_out_block(&out, CST_BLOCK_FACTS, 0, file->facts, strlen(file->facts),
                      strlen(file->facts));
    error = error ? error : out.error;
    if (error)
        cst_out_abandon(&out);
    return error;
}

static void *write_out(void *argument) {
    struct file *file = argument;
    file->error = open_file(file);
    bool opened = !file->error;
    /* Whoever hears of each op (cus_record_on_op) compares its times with the clock. */
    cus_ticks_use(opened && !cus_options()->record_replayable && cus_ticks_usable());
    if (cus_ticks_on)
        cus_ticks_pair(&ticks);
    __atomic_store_n(&file->tried, 1, __ATOMIC_RELEASE);
    cus_futex_wake(&file->tried, 1);
    if (!opened)
        return NULL;
    uint64_t block = cus_clock_ns();
    for (;;) {
        /* First, so that what was done before a wake-up is seen from here on: this exchange reads
         * what the waking threads have exchanged. */
        __atomic_exchange_n(&cus_recorder.wake, 0, __ATOMIC_ACQUIRE);
        bool last_time = __atomic_load_n(&stop, __ATOMIC_ACQUIRE);
        bool some = collect();
        uint64_t now = cus_clock_ns();
        if (now - block >= BLOCK_NS || last_time) {
            cst_sink_flush(&sink);
            bury();
            block = now;
        }
        check_disk();
        if (last_time)
            break;
        if (!some)
            cus_futex_wait(&cus_recorder.wake, 0, IDLE_NS);
    }
    if (cst_out_close(&out) != 0) {
        char why[128];
        cus_log(CUS_WARN, "trace", "%s was not finished: %s; what there is of it is in %s",
                out.path, strerror_r(out.error, why, sizeof why), out.partial);
    }
    __atomic_store_n(&done, 1, __ATOMIC_RELEASE);
    cus_futex_wake(&done, 1);
    return NULL;
}

/* ---- its life ---- */

bool cus_record_start(const char *path, const char *facts, uint64_t from_step,
                      uint64_t until_step) {
    char why[128];
    struct file file = {.path = path, .facts = facts};
    static struct cus_own_thread writer = {.name = "cusplice-trace", .run = write_out};
    writer.argument = &file; /* the writer does not use it after it has tried */
    int error = cus_thread_start(&writer, NULL);
    if (!error) {
        while (!__atomic_load_n(&file.tried, __ATOMIC_ACQUIRE))
            cus_futex_wait(&file.tried, 0, END_NS);
        error = file.error;
    }
    if (error) {
        cus_log(CUS_WARN, "trace", "nothing is recorded: %s: %s", path,
                strerror_r(error, why, sizeof why));
        return false;
    }
    from = from_step;
    until = until_step;
    __atomic_store_n(&cus_recorder.running, true, __ATOMIC_RELEASE);
    if (from == 0)
        switch_on();
    return true;
}

void cus_record_end(void) {
    if (!__atomic_exchange_n(&cus_recorder.running, false, __ATOMIC_ACQ_REL))
        return;
    __atomic_store_n(&cus_record_on, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
    cus_recorder_wake();
    for (int i = 0; i < ENDS && !__atomic_load_n(&done, __ATOMIC_ACQUIRE); i++)
        cus_futex_wait(&done, 0, END_NS);
}

void cus_record_child(void) {
    __atomic_store_n(&cus_recorder.running, false, __ATOMIC_RELAXED);
    __atomic_store_n(&cus_record_on, 0, __ATOMIC_RELEASE);
}
