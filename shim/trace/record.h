/*
 * What the library's threads leave for the trace: each thread a ring of its own, which a writer
 * thread empties into the file. No thread of the program ever waits: what finds no room is lost and
 * counted. Definitions (kinds, streams, strings) are never lost, or recording ends.
 *
 * Records of one thread may nest: what is begun and not ended yet keeps back what comes behind it.
 * All functions may be called by any thread, with any lock held but the innermost ones; none
 * touches the driver or errno's meaning for the caller (hooks put errno back).
 */
#ifndef CUSPLICE_TRACE_RECORD_H
#define CUSPLICE_TRACE_RECORD_H

#include <stdbool.h>
#include <stddef.h>

#include "shim/trace/format.h"
#include "shim/trace/ticks.h"

extern uint32_t cus_record_on;    /* atomic: records are wanted now */
extern uint32_t cus_record_epoch; /* atomic: moves when streams lose their numbers */

static inline bool cus_recording(void) {
    return __builtin_expect(__atomic_load_n(&cus_record_on, __ATOMIC_RELAXED) != 0, 0);
}

/* Makes the file and starts the writer. `facts` is a JSON object. Of the steps that the program
 * ends, those from `from` on are recorded, counted from 0 over all streams, up to `until`, which is
 * not; 0: all. False, having said why: nothing is recorded. */
bool cus_record_start(const char *path, const char *facts, uint64_t from, uint64_t until);
/* Writes what is there and closes the file. At exit; other threads may still record, in vain. */
void cus_record_end(void);
/* In a forked child, which records nothing. */
void cus_record_child(void);
/* Was that moment recorded? For what is heard of later. */
bool cus_record_covers(uint64_t ns);
/* A stream was given its number (as of cus_record_number); called by the thread that defines it. */
extern void (*cus_record_on_stream)(uint32_t number, void *context, void *handle, bool per_thread);
/* A step ended. */
void cus_record_step(void);
/* For who has something to do where recording begins and ends with a step: these wait for
 * cus_record_turn from now on, and cus_record_due says what is waited for. */
enum cus_record_due { CUS_RECORD_NOTHING, CUS_RECORD_BEGIN, CUS_RECORD_END };
void cus_record_hold(void);
enum cus_record_due cus_record_due(void);
void cus_record_turn(void);
/* An op that is told was answered so; the library has spent so long on a call that is none. NULL:
 * nobody asks. */
struct cus_call;
extern void (*cus_record_on_op)(const struct cus_call *call, int result);
extern void (*cus_record_on_spent)(uint64_t ns);

/* Room for a record of this type, zeroed but for its head, which is complete but for the flags;
 * NULL where there is none. cus_record_commit ends it. */
void *cus_record_begin(enum cst_type type, size_t bytes, uint64_t ns);
/* The same of something that began at a moment (ticks.h), which its flags say: they are added to.
 * Lengths of time in it (host_ns) are such as cus_ticks_since says. */
void *cus_record_event(enum cst_type type, size_t bytes, uint64_t moment);
void cus_record_commit(void);
/* Writes down a definition, a whole record but for its thread and, where that is 0, its time. */
void cus_record_define(struct cst_record *definition);
/* Writes down part of something larger (CST_BLOCK_DATA). Copied; waits while much is not on disk
 * yet. */
void cus_record_data(enum cst_data_of of, uint32_t id, uint64_t offset, const void *at,
                     uint64_t bytes);
/* Waits until all of it is on disk. */
void cus_record_data_written(void);
/* The id of a string, which is defined at its first use; 0 for "" and without memory. */
uint32_t cus_record_string(const char *text);
/* The same of a text that stays where it is and as it is for ever: found by its address, mostly. */
uint32_t cus_record_literal(const char *text);
/* Nothing more is recorded, for a reason that is said. */
void cus_record_give_up(const char *why);
/* The calling thread's id; 0 without memory. */
uint32_t cus_record_thread(void);
/* A number that no other definition has: of streams (0), kinds (1). From 1 on. */
uint32_t cus_record_number(unsigned of);

/*
 * The short way of a record that neither nests nor waits, for the hot path: room in the ring of the
 * calling thread, which the caller fills and ends.
 */
enum {
    CUS_RING = 4 << 20,    /* bytes; touched as they are used */
    CUS_RECORD_TICKS = 128 /* flag in a ring: the record's time is a moment, not nanoseconds */
};

/* The producer's side. Places are counted from the beginning, not from that of the ring. */
struct cus_ring {
    uint8_t *bytes;
    uint64_t next; /* room is given from here on */
    uint64_t upto; /* there is room up to here, as one block, and nobody need be woken; 0: ask */
    uint64_t tail; /* atomic: published */
    uint64_t
        held; /* the head of a CST_OP that was deferred, but for its length: its first 8 bytes */
    uint64_t room; /* the writer had left this much, as one block, when it was asked last */
    uint64_t woke; /* `tail` when the writer was woken last */
    uint32_t open; /* records begun and not ended: `upto` is 0 */
    uint32_t id;
    uint32_t took; /* how long (cus_ticks_since) such an op takes; 0: not known */
    uint32_t told; /* of such ops */
};

extern __thread struct cus_ring *cus_ring_mine __attribute__((tls_model("initial-exec")));

/* Is there room for so many bytes, a multiple of 8? False: it takes more to find some. */
static inline __attribute__((always_inline)) bool cus_ring_fits(const struct cus_ring *ring,
                                                                uint32_t bytes) {
    return __builtin_expect(ring && ring->next + bytes <= ring->upto, 1);
}
/* It is here, and costs nothing where it is not used. */
static inline __attribute__((always_inline)) void *cus_ring_room(const struct cus_ring *ring) {
    return ring->bytes + ring->next % CUS_RING;
}
/* How long an op took that began at a moment: of every eighth it is looked, which is enough for an
 * op that does the same each time, and half of what telling it costs. One that was interrupted
 * speaks for itself alone. */
static inline __attribute__((always_inline)) uint32_t cus_ring_took(struct cus_ring *ring,
                                                                    uint64_t began) {
    uint32_t usual = ring->took;
    if (__builtin_expect(ring->told++ % 8 && usual, 1))
        return usual;
    uint32_t took = cus_ticks_since(began);
    ring->took = !usual || took / 4 < usual ? took : 2 * usual;
    return took;
}
/* It is filled. */
static inline __attribute__((always_inline)) void cus_ring_put(struct cus_ring *ring,
                                                               uint32_t bytes) {
    ring->next += bytes;
#ifdef __x86_64__
    /* The writer has read what stands there: it is fetched to be written long before it is. */
    const uint8_t *soon = ring->bytes + ring->next % CUS_RING + 512;
    __asm__("prefetchw %0" : : "m"(*soon));
    __asm__("prefetchw %0" : : "m"(*(soon + 64)));
#endif
    __atomic_store_n(&ring->tail, ring->next, __ATOMIC_RELEASE);
}

#endif
