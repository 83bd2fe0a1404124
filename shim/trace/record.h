/*
 * What the library's threads write into the trace. Each thread has a ring, which a writer thread
 * empties into the file. No thread of the program waits: a record without room is lost and counted.
 * Definitions (kinds, streams, strings) are never lost, or recording ends. Records of a thread may
 * nest: an unfinished record holds back later ones. Any thread may call any function, under any
 * lock but the innermost ones. No function calls the driver; errno may change, and the hooks
 * restore it.
 */
#ifndef CUSPLICE_TRACE_RECORD_H
#define CUSPLICE_TRACE_RECORD_H

#include <stdbool.h>
#include <stddef.h>

#include "shim/base/mem.h"
#include "shim/trace/format.h"
#include "shim/trace/ticks.h"

extern uint32_t cus_record_on;    /* atomic: records are wanted now */
extern uint32_t cus_record_epoch; /* atomic: moves when streams lose their numbers */

static inline bool cus_recording(void) {
    return __builtin_expect(__atomic_load_n(&cus_record_on, __ATOMIC_RELAXED) != 0, 0);
}

/* Makes the file and starts the writer. `facts` is a JSON object. Steps are counted from 0 over
 * all streams; those from `from` on are recorded, up to but without `until` (0: no end). False:
 * nothing is recorded, and the log says why. */
bool cus_record_start(const char *path, const char *facts, uint64_t from, uint64_t until);
/* True: recording begins, or was to begin, behind the first step: at step `first`, while the
 * program has had so many. */
bool cus_record_began_late(uint64_t *had, uint64_t *first);
/* Writes what is there and closes the file. At exit. Later records of other threads are lost. */
void cus_record_end(void);
/* Called in a forked child, which records nothing. */
void cus_record_child(void);
/* True: recording was on at that moment. For events that are reported later. */
bool cus_record_covers(uint64_t ns);
/* Called by the thread that gives a stream its number (from cus_record_number). */
extern void (*cus_record_on_stream)(uint32_t number, void *context, void *handle, bool per_thread);
/* Called when a step has ended. */
void cus_record_step(void);
/* For a caller that has work to do when recording begins and ends. After cus_record_hold, both
 * wait for cus_record_turn; cus_record_due says which of the two is waiting. */
enum cus_record_due { CUS_RECORD_NOTHING, CUS_RECORD_BEGIN, CUS_RECORD_END };
void cus_record_hold(void);
enum cus_record_due cus_record_due(void);
void cus_record_turn(void);
/* Called for each recorded op with its result, and with the time that the library has spent on a
 * call that is no op. NULL: nobody asks. */
struct cus_call;
extern void (*cus_record_on_op)(const struct cus_call *call, int result);
extern void (*cus_record_on_spent)(uint64_t ns);

/* Room for a record of this type, zeroed except for a head that lacks only its flags; NULL: no
 * room. cus_record_commit ends the record. */
void *cus_record_begin(enum cst_type type, size_t bytes, uint64_t ns);
/* The same for something that began at a moment (ticks.h). The flags already say so; the caller
 * adds to them. Lengths of time in the record (host_ns) are in the unit of cus_ticks_since. */
void *cus_record_event(enum cst_type type, size_t bytes, uint64_t moment);
void cus_record_commit(void);
/* Writes a definition: a whole record, except for its thread and, if it is 0, its time. */
void cus_record_define(struct cst_record *definition);
/* Writes a part of something larger (CST_BLOCK_DATA). Copies the bytes. Waits while much is not
 * on disk yet. */
void cus_record_data(enum cst_data_of of, uint32_t id, uint64_t offset, const void *at,
                     uint64_t bytes);
/* Waits until all data is on disk. */
void cus_record_data_written(void);
/* The id of a string; the first use defines it. 0 for "", and without memory. */
uint32_t cus_record_string(const char *text);
/* The same for a text that never moves or changes; mostly found by its address. */
uint32_t cus_record_literal(const char *text);
/* Ends the recording, and logs why. */
void cus_record_give_up(const char *why);
/* The calling thread's id; 0 without memory. */
uint32_t cus_record_thread(void);
/* A new number, from 1 on: of streams (0) or kinds (1). */
uint32_t cus_record_number(unsigned of);

/*
 * The hot path of a record that neither nests nor waits: the caller finds room in its thread's
 * ring, fills it and publishes it.
 */
enum {
    CUS_RING = 4 << 20,    /* bytes; touched only as they are used */
    CUS_RECORD_TICKS = 128 /* flag in a ring: the record's time is a moment, not nanoseconds */
};

/* The producer's side. Places are counted from the beginning of time and not of the ring. */
struct cus_ring {
    uint8_t *bytes;
    uint64_t next; /* the next room begins here */
    uint64_t upto; /* there is room up to here in one piece without waking the writer; 0: ask */
    uint64_t tail; /* atomic: published */
    uint64_t held; /* the first 8 bytes of a deferred CST_OP's head, without its length */
    uint64_t room; /* how far the writer had left room in one piece when last asked */
    uint64_t woke; /* `tail` when the writer was last woken */
    uint32_t open; /* records begun and not ended; while not 0, `upto` is 0 */
    uint32_t id;
    uint32_t took; /* how long (cus_ticks_since) a deferred op takes; 0: unknown */
    uint32_t told; /* number of such ops */
};

extern __thread struct cus_ring *cus_ring_mine __attribute__((tls_model("initial-exec")));

/* True: there is room for `bytes` bytes, a multiple of 8. False: cus_record_begin must be
 * called. */
static inline __attribute__((always_inline)) bool cus_ring_fits(const struct cus_ring *ring,
                                                                uint32_t bytes) {
    return __builtin_expect(ring && ring->next + bytes <= ring->upto, 1);
}
/* The room itself. The call costs nothing if the room is not used. */
static inline __attribute__((always_inline)) void *cus_ring_room(const struct cus_ring *ring) {
    return ring->bytes + ring->next % CUS_RING;
}
/* How long a deferred op took that began at a moment. Only every eighth op is measured: they all
 * do the same, and measuring is half the cost of recording. An interrupted op hardly changes the
 * stored length. */
static inline __attribute__((always_inline)) uint32_t cus_ring_took(struct cus_ring *ring,
                                                                    uint64_t began) {
    uint32_t usual = ring->took;
    if (__builtin_expect(ring->told++ % 8 && usual, 1))
        return usual;
    uint32_t took = cus_ticks_since(began);
    ring->took = !usual || took / 4 < usual ? took : 2 * usual;
    return took;
}
/* Publishes what the caller has filled in. */
static inline __attribute__((always_inline)) void cus_ring_put(struct cus_ring *ring,
                                                               uint32_t bytes) {
    ring->next += bytes;
    /* The writer has read these lines, so they are fetched for writing long before they are
     * written. */
    const uint8_t *soon = ring->bytes + ring->next % CUS_RING + 512;
    cus_fetch_for_writing(soon);
    cus_fetch_for_writing(soon + 64);
    __atomic_store_n(&ring->tail, ring->next, __ATOMIC_RELEASE);
}

#endif
