/*
 * Rings and definitions: what the program's threads record. A ring has one producer, its thread,
 * which publishes `tail`, and one consumer, the writer (writer.c), which publishes `head`.
 * Definitions go through a list under a lock, since they may come from any thread and must not be
 * lost. No function calls the driver or touches the file.
 */
#include "shim/trace/record.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shim/base/clock.h"
#include "shim/base/lock.h"
#include "shim/base/mem.h"
#include "shim/base/thread.h"
#include "shim/base/uthash.h"
#include "shim/trace/recorder.h"

#include "shim/base/forbid.h"
#include "shim/base/hash.h"

enum {
    WAKE_AT = RING / 4, /* bytes since the writer was last woken: it is woken again */
    LITERALS = 512,
    DATA_PART = 8 << 20,  /* the most bytes of data in a block */
    DATA_MOST = 128 << 20 /* the most bytes of data that are not on disk yet */
};

struct string {
    uint32_t id;
    UT_hash_handle hh;
    char text[];
};

void (*cus_record_on_stream)(uint32_t number, void *context, void *handle, bool per_thread);
void (*cus_record_on_op)(const struct cus_call *call, int result);
void (*cus_record_on_spent)(uint64_t ns);
uint32_t cus_record_epoch = 1;
__thread struct cus_ring *cus_ring_mine __attribute__((tls_model("initial-exec")));

/* Ids of strings by their addresses. An entry is filled once. */
static struct {
    const char *text; /* atomic: written after `id` */
    uint32_t id;
} literals[LITERALS]; /* guarded by the recorder's lock while it is filled */

struct cus_recorder cus_recorder = {.lock = CUS_LOCK_OF(CUS_RANK_INNERMOST)};
/* Guarded by the recorder's lock, but for numbers: atomic. */
static struct string *strings;
static uint32_t n_strings, n_threads, numbers[2];

static struct chunk *room_for(size_t bytes) {
    if (cus_recorder.last && cus_recorder.last->used + bytes <= CHUNK)
        return cus_recorder.last;
    struct chunk *chunk = cus_mem_alloc(sizeof *chunk);
    if (!chunk)
        return NULL;
    if (cus_recorder.last)
        cus_recorder.last->next = chunk;
    else
        cus_recorder.first = chunk;
    return cus_recorder.last = chunk;
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
    cus_lock_take(&cus_recorder.lock);
    bool defined = define(definition);
    cus_lock_give(&cus_recorder.lock);
    if (!defined)
        cus_record_give_up("no memory");
}

static bool put_data(enum cst_data_of of, uint32_t id, uint64_t offset, const uint8_t *at,
                     size_t bytes) {
    size_t mapped = sizeof(struct data) + bytes;
    uint32_t waiting;
    while ((waiting = __atomic_load_n(&cus_recorder.data_mib, __ATOMIC_ACQUIRE)) >
               cus_recorder_mib(DATA_MOST) &&
           cus_recorder_runs())
        cus_futex_wait(&cus_recorder.data_mib, waiting, IDLE_NS);
    struct data *data =
        mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED)
        return false;
    *data = (struct data){.mapped = mapped,
                          .bytes = sizeof data->head + bytes,
                          .head = {.of = of, .id = id, .offset = offset, .bytes = bytes}};
    memcpy(data->at, at, bytes);
    cus_lock_take(&cus_recorder.lock);
    if (cus_recorder.last_data)
        cus_recorder.last_data->next = data;
    else
        cus_recorder.first_data = data;
    cus_recorder.last_data = data;
    cus_lock_give(&cus_recorder.lock);
    __atomic_add_fetch(&cus_recorder.data_mib, cus_recorder_mib(bytes), __ATOMIC_ACQ_REL);
    cus_recorder_wake();
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
    while ((waiting = __atomic_load_n(&cus_recorder.data_mib, __ATOMIC_ACQUIRE)) &&
           cus_recorder_runs())
        cus_futex_wait(&cus_recorder.data_mib, waiting, IDLE_NS);
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
    cus_lock_take(&cus_recorder.lock);
    HASH_FIND(hh, strings, text, bytes, string);
    uint32_t id = string ? string->id : add_string(text, bytes);
    cus_lock_give(&cus_recorder.lock);
    if (!id)
        cus_record_give_up("no memory");
    return id;
}

uint32_t cus_record_literal(const char *text) {
    unsigned at = (unsigned)(cus_hash_pointer(text) >> 48) % LITERALS;
    if (text && __atomic_load_n(&literals[at].text, __ATOMIC_ACQUIRE) == text)
        return literals[at].id;
    uint32_t id = cus_record_string(text);
    cus_lock_take(&cus_recorder.lock);
    if (id && !literals[at].text) {
        literals[at].id = id;
        __atomic_store_n(&literals[at].text, text, __ATOMIC_RELEASE);
    }
    cus_lock_give(&cus_recorder.lock);
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
    cus_lock_take(&cus_recorder.lock);
    ring->mine.id = thread.head.thread = ++n_threads;
    bool defined = define(&thread.head);
    ring->link = cus_recorder.rings;
    __atomic_store_n(&cus_recorder.rings, ring, __ATOMIC_RELEASE);
    cus_lock_give(&cus_recorder.lock);
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
    if (__builtin_expect(full, 0))
        cus_recorder_wake();
}
