/*
 * Ops that pass by all engines, in counters of several shares until somebody asks for the sum. A
 * program on per-thread streams alone has no other ops, and its threads must not wait for each
 * other's cache lines. Runs on any thread; takes no lock.
 */
#include "shim/stream/passed.h"

enum { SHARES = 16, WHYS = 3 };
static const enum cus_why whys[WHYS] = {CUS_WHY_OFF, CUS_WHY_PER_THREAD, CUS_WHY_STREAM};

static struct share {
    uint64_t ops[CUS_OP_TYPES], by[WHYS]; /* atomic */
} __attribute__((aligned(CUS_LINE))) shares[SHARES];

void cus_passed_by(const struct cus_thread *thread, enum cus_op_type type, enum cus_why why) {
    struct share *share = &shares[(cus_hash_pointer(thread) >> 32) % SHARES];
    unsigned by = 0;
    while (by + 1 < WHYS && whys[by] != why)
        by++;
    __atomic_add_fetch(&share->ops[type], 1, __ATOMIC_RELAXED);
    __atomic_add_fetch(&share->by[by], 1, __ATOMIC_RELAXED);
}

static void move(uint64_t *to, uint64_t *from) {
    __atomic_add_fetch(to, __atomic_exchange_n(from, 0, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
}

void cus_passed_count(void) {
    struct cus_counters *all = &cus_process.counters;
    for (struct share *share = shares; share < shares + SHARES; share++) {
        for (unsigned type = 0; type < CUS_OP_TYPES; type++)
            move(&all->ops[type], &share->ops[type]);
        for (unsigned by = 0; by < WHYS; by++) {
            uint64_t n = __atomic_exchange_n(&share->by[by], 0, __ATOMIC_RELAXED);
            __atomic_add_fetch(&all->eager_by[CUS_EAGER_PASSTHROUGH], n, __ATOMIC_RELAXED);
            __atomic_add_fetch(&cus_tally_none.alone[whys[by]], n, __ATOMIC_RELAXED);
        }
    }
}
