/*
 * What the program's threads leave for the writer thread. Private to record.c and writer.c.
 */
#ifndef CUSPLICE_TRACE_RECORDER_H
#define CUSPLICE_TRACE_RECORDER_H

#include "shim/base/lock.h"
#include "shim/trace/record.h"

enum {
    RING = CUS_RING,
    CHUNK = 64 << 10,   /* bytes of definitions */
    IDLE_NS = 20000000, /* how often the writer looks if nobody wakes it */
    PAD = 0             /* type of a record that only fills the ring's end */
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

extern struct cus_recorder {
    struct cus_lock lock;
    struct ring *rings;                  /* lock to add; only the writer removes */
    struct chunk *first, *last;          /* guarded by lock: definitions that the writer has
                                          * not taken */
    struct data *first_data, *last_data; /* guarded by lock */
    uint32_t data_mib; /* atomic futex: size of the data in the list, in MiB, rounded up */
    uint32_t wake;     /* atomic futex */
    bool running;      /* atomic: the writer was started in this process */
} cus_recorder;

static inline bool cus_recorder_runs(void) {
    return __atomic_load_n(&cus_recorder.running, __ATOMIC_ACQUIRE);
}

/* The writer sees what was done before, as it sets `wake` back by an exchange too. A plain store of
 * either side could be lost: the writer would sleep for IDLE_NS beside a ring that is filling. */
static inline void cus_recorder_wake(void) {
    __atomic_exchange_n(&cus_recorder.wake, 1, __ATOMIC_RELEASE);
    cus_futex_wake(&cus_recorder.wake, 1);
}

/* A size in MiB, rounded up. */
static inline uint32_t cus_recorder_mib(size_t bytes) {
    return (uint32_t)(bytes >> 20) + 1;
}

#endif
