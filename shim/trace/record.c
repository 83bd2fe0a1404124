/*
 * Rings, definitions, and the writer thread. A ring has one producer, its thread, which publishes
 * `tail`, and one consumer, the writer, which publishes `head`. Definitions go through a list under
 * a lock, since they may come from any thread and must not be lost. The writer calls no driver.
 * Once it runs, only the writer touches the file.
 */
#include "shim/trace/record.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shim/base/clock.h"
#include "shim/base/lock.h"
#include "shim/base/log.h"
#include "shim/base/mem.h"
#include "shim/base/options.h"
#include "shim/base/thread.h"
#include "shim/base/uthash.h"
#include "shim/trace/file.h"

#include "shim/base/forbid.h"
#include "shim/base/hash.h"

enum {
    RING = CUS_RING,
    WAKE_AT = RING / 4,    /* bytes since the writer was last woken: it is woken again */
    HAND_BACK = 64 << 10,  /* bytes that the writer empties before it publishes `head` */
    CHUNK = 64 << 10,      /* bytes of definitions */
    IDLE_NS = 20000000,    /* how often the writer looks if nobody wakes it */
    BLOCK_NS = 1000000000, /* records are on disk after this time, in case the program is killed */
    END_NS = 1000000000,
    ENDS = 20, /* how often the end waits END_NS for the writer */
    PAD = 0,   /* type of a record that only fills the ring's end */
    LITERALS = 512,
    DATA_PART = 8 << 20,  /* the most bytes of data in a block */
    DATA_MOST = 128 << 20 /* the most bytes of data that are not on disk yet */
};

struct ring {
    struct cus_ring mine; /* the producer's */
    uint8_t apart[64];    /* keeps what producer and writer write in different cache lines */
    uint64_t head;        /* atomic: published by the writer */
    uint32_t tid;
    uint64_t lost_records, lost_ops; /* atomic */
    uint64_t told_records, told_ops; /* the writer's: how much of these is in the file */
    uint64_t end;                    /* the writer's: `tail` before it took the definitions */
    struct ring *link;
};

struct chunk {
    struct chunk *next;
    size_t used;
    uint8_t bytes[CHUNK];
};

/* Data for the file, in a mapping of its own. */
struct data {
    struct data *next;
    size_t mapped, bytes; /* bytes: of `head` and what follows */
    struct cst_data head;
    uint8_t at[];
};

struct string {
    uint32_t id;
    UT_hash_handle hh;
    char text[];
};

/* What the writer begins with; gone once it has tried to open the file. */
struct file {
    const char *path, *facts;
    int error;
    uint32_t tried; /* atomic futex */
};

uint32_t cus_record_on;
void (*cus_record_on_stream)(uint32_t number, void *context, void *handle, bool per_thread);
void (*cus_record_on_op)(const struct cus_call *call, int result);
void (*cus_record_on_spent)(uint64_t ns);
static uint64_t since, upto; /* atomic: when recording began and ended; 0: not yet */
uint32_t cus_record_epoch = 1;
__thread struct cus_ring *cus_ring_mine __attribute__((tls_model("initial-exec")));

/* Ids of strings by their addresses. An entry is filled once. */
static struct {
    const char *text; /* atomic: written after `id` */
    uint32_t id;
} literals[LITERALS]; /* guarded by lock while it is filled */

static struct cus_lock lock = CUS_LOCK_OF(CUS_RANK_INNERMOST);
static struct ring *rings;                  /* lock to add; only the writer removes */
static struct chunk *first, *last;          /* guarded by lock: definitions that the writer has
                                             * not taken */
static struct data *first_data, *last_data; /* guarded by lock */
static uint32_t data_mib;      /* atomic futex: size of the data in the list, in MiB, rounded up */
static struct string *strings; /* guarded by lock */
static uint32_t n_strings, n_threads, numbers[2]; /* guarded by lock; numbers: atomic */

static uint64_t steps, from, until; /* steps: atomic */
static uint32_t wake, stop, done;   /* atomic futexes */
static bool running;                /* the writer was started in this process */
static bool held;                   /* set once, before the program's first call */
static uint32_t due;                /* atomic: enum cus_record_due */
static struct cst_out out;          /* the writer's */
static struct cus_ticks ticks;      /* the writer's */
static struct cst_sink sink = {.out = &out};

void cus_record_give_up(const char *why) {
    if (__atomic_exchange_n(&cus_record_on, 0, __ATOMIC_ACQ_REL))
        cus_log(CUS_WARN, "trace", "recording ends here: %s", why);
}

/* ---- what the program's threads call ---- */

static struct chunk *room_for(size_t bytes) {
    if (last && last->used + bytes <= CHUNK)
        return last;
    struct chunk *chunk = cus_mem_alloc(sizeof *chunk);
    if (!chunk)
        return NULL;
    if (last)
        last->next = chunk;
    else
        first = chunk;
    return last = chunk;
}

/* Lock held. */
static bool define(struct cst_record *definition) {
    size_t bytes = (size_t)definition->words * 8;
    struct chunk *chunk = room_for(bytes);
    if (!chunk)
        return false;
    if (!definition->ns)
        definition->ns = cus_clock_ns();
    memcpy(chunk->bytes + chunk->used, definition, bytes);
    chunk->used += bytes;
    return true;
}

void cus_record_define(struct cst_record *definition) {
    cus_lock_take(&lock);
    bool defined = define(definition);
    cus_lock_give(&lock);
    if (!defined)
        cus_record_give_up("no memory");
}

static uint32_t mib(size_t bytes) {
    return (uint32_t)(bytes >> 20) + 1;
}

static bool put_data(enum cst_data_of of, uint32_t id, uint64_t offset, const uint8_t *at,
                     size_t bytes) {
    size_t mapped = sizeof(struct data) + bytes;
    uint32_t waiting;
    while ((waiting = __atomic_load_n(&data_mib, __ATOMIC_ACQUIRE)) > mib(DATA_MOST) && running)
        cus_futex_wait(&data_mib, waiting, IDLE_NS);
    struct data *data =
        mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED)
        return false;
    *data = (struct data){.mapped = mapped,
                          .bytes = sizeof data->head + bytes,
                          .head = {.of = of, .id = id, .offset = offset, .bytes = bytes}};
    memcpy(data->at, at, bytes);
    cus_lock_take(&lock);
    if (last_data)
        last_data->next = data;
    else
        first_data = data;
    last_data = data;
    cus_lock_give(&lock);
    __atomic_add_fetch(&data_mib, mib(bytes), __ATOMIC_ACQ_REL);
    __atomic_store_n(&wake, 1, __ATOMIC_RELEASE);
    cus_futex_wake(&wake, 1);
    return true;
}

void cus_record_data(enum cst_data_of of, uint32_t id, uint64_t offset, const void *at,
                     uint64_t bytes) {
    for (uint64_t put = 0; put < bytes; put += DATA_PART) {
        size_t n = bytes - put < DATA_PART ? (size_t)(bytes - put) : DATA_PART;
        if (!put_data(of, id, offset + put, (const uint8_t *)at + put, n)) {
            cus_record_give_up("no memory");
            return;
        }
    }
}

void cus_record_data_written(void) {
    uint32_t waiting;
    while ((waiting = __atomic_load_n(&data_mib, __ATOMIC_ACQUIRE)) && running)
        cus_futex_wait(&data_mib, waiting, IDLE_NS);
}

uint32_t cus_record_number(unsigned of) {
    return __atomic_add_fetch(&numbers[of], 1, __ATOMIC_RELAXED);
}

/* Lock held. */
static uint32_t add_string(const char *text, size_t bytes) {
    struct string *string = cus_mem_alloc(sizeof *string + bytes + 1);
    size_t record_bytes = (sizeof(struct cst_string) + bytes + 7) & ~(size_t)7;
    struct chunk *chunk = room_for(record_bytes);
    if (!string || !chunk) {
        cus_mem_free(string);
        return 0;
    }
    memcpy(string->text, text, bytes);
    bool added = true;
#undef uthash_nonfatal_oom
#define uthash_nonfatal_oom(element) (added = false)
    HASH_ADD_KEYPTR(hh, strings, string->text, bytes, string);
    if (!added) {
        cus_mem_free(string);
        return 0;
    }
    string->id = ++n_strings;
    struct cst_string *record = (struct cst_string *)(void *)(chunk->bytes + chunk->used);
    record->head = (struct cst_record){
        .type = CST_STRING, .words = (uint16_t)(record_bytes / 8), .ns = cus_clock_ns()};
    record->id = string->id;
    record->bytes = (uint32_t)bytes;
    memcpy(record + 1, text, bytes);
    chunk->used += record_bytes;
    return string->id;
}

uint32_t cus_record_string(const char *text) {
    size_t bytes = text ? strnlen(text, CHUNK / 2) : 0;
    if (!bytes)
        return 0;
    struct string *string;
    cus_lock_take(&lock);
    HASH_FIND(hh, strings, text, bytes, string);
    uint32_t id = string ? string->id : add_string(text, bytes);
    cus_lock_give(&lock);
    if (!id)
        cus_record_give_up("no memory");
    return id;
}

uint32_t cus_record_literal(const char *text) {
    unsigned at = (unsigned)(cus_hash_pointer(text) >> 48) % LITERALS;
    if (text && __atomic_load_n(&literals[at].text, __ATOMIC_ACQUIRE) == text)
        return literals[at].id;
    uint32_t id = cus_record_string(text);
    cus_lock_take(&lock);
    if (id && !literals[at].text) {
        literals[at].id = id;
        __atomic_store_n(&literals[at].text, text, __ATOMIC_RELEASE);
    }
    cus_lock_give(&lock);
    return id;
}

static struct ring *new_ring(void) {
    char name[16] = "";
    prctl(PR_GET_NAME, name);
    struct ring *ring = cus_mem_lines(sizeof *ring);
    void *bytes = mmap(NULL, RING, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    struct cst_thread thread = {.head = {.type = CST_THREAD, .words = sizeof thread / 8},
                                .tid = (uint32_t)syscall(SYS_gettid),
                                .name = cus_record_string(name)};
    if (!ring || bytes == MAP_FAILED) {
        cus_mem_free_lines(ring);
        if (bytes != MAP_FAILED)
            munmap(bytes, RING);
        return NULL;
    }
    ring->mine.bytes = bytes;
    ring->tid = thread.tid;
    cus_lock_take(&lock);
    ring->mine.id = thread.head.thread = ++n_threads;
    bool defined = define(&thread.head);
    ring->link = rings;
    __atomic_store_n(&rings, ring, __ATOMIC_RELEASE);
    cus_lock_give(&lock);
    if (!defined)
        cus_record_give_up("no memory");
    uint8_t flags = CST_DEFERRED | (cus_ticks_on ? CUS_RECORD_TICKS : 0);
    ring->mine.held = CST_OP | (uint64_t)flags << 8 | (uint64_t)ring->mine.id << 32;
    return ring;
}

/* The calling thread's ring; NULL: no memory. */
static struct ring *my_ring(void) {
    if (__builtin_expect(!cus_ring_mine, 0))
        cus_ring_mine = (struct cus_ring *)new_ring();
    return (struct ring *)cus_ring_mine;
}

/* Room for `bytes` bytes in one piece. If the ring's end comes before, a PAD record fills it. */
static struct cst_record *room(struct ring *ring, size_t bytes) {
    struct cus_ring *mine = &ring->mine;
    uint64_t at = mine->next % RING, pad = at + bytes > RING ? RING - at : 0;
    uint64_t limit = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE) + RING;
    if (mine->next + pad + bytes > limit)
        return NULL;
    if (pad) {
        struct cst_record *none = (struct cst_record *)(void *)(mine->bytes + at);
        /* There may be only eight bytes left, so no other field is written. */
        none->type = PAD;
        none->words = (uint16_t)(pad / 8);
        mine->next += pad;
        at = 0;
    }
    uint64_t lap = mine->next - at + RING;
    mine->room = lap < limit ? lap : limit;
    mine->next += bytes;
    return (struct cst_record *)(void *)(mine->bytes + at);
}

uint32_t cus_record_thread(void) {
    struct ring *ring = my_ring();
    return ring ? ring->mine.id : 0;
}

void *cus_record_begin(enum cst_type type, size_t bytes, uint64_t ns) {
    struct ring *ring = my_ring();
    if (__builtin_expect(!ring, 0))
        return NULL;
    bytes = (bytes + 7) & ~(size_t)7;
    struct cst_record *record = room(ring, bytes);
    if (__builtin_expect(!record, 0)) {
        __atomic_add_fetch(&ring->lost_records, 1, __ATOMIC_RELAXED);
        __atomic_add_fetch(&ring->lost_ops, type == CST_OP, __ATOMIC_RELAXED);
        return NULL;
    }
    ring->mine.open++;
    ring->mine.upto = 0;
    memset(record, 0, bytes);
    record->type = (uint8_t)type;
    record->words = (uint16_t)(bytes / 8);
    record->thread = ring->mine.id;
    record->ns = ns;
    return record;
}

void *cus_record_event(enum cst_type type, size_t bytes, uint64_t moment) {
    struct cst_record *record = cus_record_begin(type, bytes, moment);
    if (record && cus_ticks_on)
        record->flags = CUS_RECORD_TICKS;
    return record;
}

void cus_record_commit(void) {
    struct cus_ring *ring = cus_ring_mine;
    if (--ring->open)
        return;
    bool full = ring->next - ring->woke >= WAKE_AT;
    if (full)
        ring->woke = ring->next;
    uint64_t wakes = ring->woke + WAKE_AT;
    ring->upto = wakes < ring->room ? wakes : ring->room;
    /* The last access: after it, the writer may free the ring if its thread has ended. */
    __atomic_store_n(&ring->tail, ring->next, __ATOMIC_RELEASE);
    if (__builtin_expect(full, 0)) {
        __atomic_store_n(&wake, 1, __ATOMIC_RELEASE);
        cus_futex_wake(&wake, 1);
    }
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
    return running && begin && ns >= begin && (!end || ns <= end);
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
    if (!running)
        return;
    uint64_t now = __atomic_add_fetch(&steps, 1, __ATOMIC_RELAXED);
    if (until && now >= until)
        turn(CUS_RECORD_END);
    else if (now == from && !out.error)
        turn(CUS_RECORD_BEGIN);
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
    cus_lock_take(&lock);
    struct chunk *chunk = first;
    first = last = NULL;
    cus_lock_give(&lock);
    while (chunk) {
        struct chunk *next = chunk->next;
        cst_sink_put(&sink, chunk->bytes, chunk->used);
        cus_mem_free(chunk);
        chunk = next;
    }
}

/* Frees each block as soon as it is written. */
static bool write_data(void) {
    cus_lock_take(&lock);
    struct data *data = first_data;
    first_data = last_data = NULL;
    cus_lock_give(&lock);
    bool some = data != NULL;
    while (data) {
        struct data *next = data->next;
        uint32_t taken = mib(data->head.bytes);
        cst_out_block(&out, CST_BLOCK_DATA, 0, &data->head, data->bytes, data->bytes);
        munmap(data, data->mapped);
        __atomic_sub_fetch(&data_mib, taken, __ATOMIC_ACQ_REL);
        cus_futex_wake(&data_mib, INT32_MAX);
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
    struct ring *all = __atomic_load_n(&rings, __ATOMIC_ACQUIRE);
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
    for (struct ring *ring = __atomic_load_n(&rings, __ATOMIC_ACQUIRE), *next; ring; ring = next) {
        next = ring->link;
        if (!ended(ring) || __atomic_load_n(&ring->mine.tail, __ATOMIC_ACQUIRE) != ring->head)
            continue;
        write_lost(ring);
        cus_lock_take(&lock);
        struct ring **at = &rings;
        while (*at != ring)
            at = &(*at)->link;
        *at = ring->link;
        cus_lock_give(&lock);
        munmap(ring->mine.bytes, RING);
        cus_mem_free_lines(ring);
    }
}

static void check_disk(void) {
    if (!out.error)
        return;
    char why[128];
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
        bool last_time = __atomic_load_n(&stop, __ATOMIC_ACQUIRE);
        __atomic_store_n(&wake, 0, __ATOMIC_RELEASE);
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
            cus_futex_wait(&wake, 0, IDLE_NS);
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
    running = true;
    if (from == 0)
        switch_on();
    return true;
}

void cus_record_end(void) {
    if (!running)
        return;
    running = false;
    __atomic_store_n(&cus_record_on, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
    __atomic_store_n(&wake, 1, __ATOMIC_RELEASE);
    cus_futex_wake(&wake, 1);
    for (int i = 0; i < ENDS && !__atomic_load_n(&done, __ATOMIC_ACQUIRE); i++)
        cus_futex_wait(&done, 0, END_NS);
}

void cus_record_child(void) {
    running = false;
    __atomic_store_n(&cus_record_on, 0, __ATOMIC_RELEASE);
}
