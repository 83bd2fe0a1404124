/*
 * Does a sequence of ops come round again? For a stream that is demoted: a few instructions an
 * op, in fixed memory, however long it takes until it does.
 *
 * A hash over the last 16 ops is kept. Where it falls into a fixed part of its range, which is once
 * in CUS_REPEAT_SAMPLE ops and at the same ops in each turn, it is looked up among those met
 * before. So a sequence is recognised up to about CUS_REPEAT_SLOTS * CUS_REPEAT_SAMPLE ops later,
 * and by what stands there it is known how many ops later that is: a slot has the window in which
 * the hash was met last, and a part of the hash.
 *
 * What comes round within a window is told from what else does by the least of its hashes.
 *
 * Threads may feed one object at once: then some ops are not counted, or twice.
 */
#ifndef CUSPLICE_PLAN_REPEAT_H
#define CUSPLICE_PLAN_REPEAT_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/base/hash.h"

enum { CUS_REPEAT_SAMPLE = 256, CUS_REPEAT_SLOTS = 8192, CUS_REPEAT_WINDOW = 4096 };

/* What is looked at seldom. */
struct cus_repeat_samples {
    uint64_t least, as, as_before; /* the least hash of this window, of the one before, and of the
                                      one before that */
    uint32_t slots[CUS_REPEAT_SLOTS];
};

struct cus_repeat {
    struct cus_repeat_samples
        *history;            /* atomic, as all that is in it; NULL until the first start */
    uint64_t gram;           /* atomics: the hash; */
    uint64_t bar;            /* hashes below it are looked at; */
    uint32_t ops;            /* ops of this window, */
    uint32_t samples, again; /* hashes looked up, and found, */
    uint32_t apart;          /* so many windows later, summed up */
    uint32_t windows;        /* so far: of which the lower half is in a slot */
    uint32_t turn;           /* of the last window that repeated what came before: ops in between */
};

/* How a step begins: a hash over its first ops, each by one word. */
enum { CUS_HEAD_OPS = 4, CUS_HEADS = 8 };
static inline uint64_t cus_head_add(uint64_t head, uint64_t op) {
    head = cus_hash(head ^ op);
    return head ^ head >> 29;
}

/* Begins anew. One caller at a time. False: no memory. What it allocates stays. */
bool cus_repeat_start(struct cus_repeat *repeat);
/* Do the ops of the last two windows that ended come round within a window, and are they the same?
 * Then which, by a hash; else 0. */
static inline uint64_t cus_repeat_as(const struct cus_repeat *repeat) {
    struct cus_repeat_samples *history = __atomic_load_n(&repeat->history, __ATOMIC_ACQUIRE);
    uint64_t as = history ? __atomic_load_n(&history->as, __ATOMIC_RELAXED) : 0;
    return as && as == __atomic_load_n(&history->as_before, __ATOMIC_RELAXED) ? as : 0;
}
/* So many ops came that it was not fed with. */
void cus_repeat_passed(struct cus_repeat *repeat, uint64_t ops);
/* Of a window that has ended: do its ops come again? Begins the next one. */
bool cus_repeat_decide(struct cus_repeat *repeat);
void cus_repeat_look(struct cus_repeat *repeat, uint64_t gram);
/* One more op. True where the window that ends with it repeats what came before. */
static inline __attribute__((always_inline)) bool cus_repeat_feed(struct cus_repeat *repeat,
                                                                  uint64_t op) {
    uint64_t hash = cus_hash(op);
    uint64_t gram = (__atomic_load_n(&repeat->gram, __ATOMIC_RELAXED) << 4) + (hash ^ hash >> 32);
    uint32_t ops = __atomic_load_n(&repeat->ops, __ATOMIC_RELAXED) + 1;
    __atomic_store_n(&repeat->gram, gram, __ATOMIC_RELAXED);
    __atomic_store_n(&repeat->ops, ops, __ATOMIC_RELAXED);
    if (gram < __atomic_load_n(&repeat->bar, __ATOMIC_RELAXED))
        cus_repeat_look(repeat, gram);
    return ops >= CUS_REPEAT_WINDOW && cus_repeat_decide(repeat);
}
/* The same without a call. False: it would need one, and nothing was done. */
static inline __attribute__((always_inline)) bool cus_repeat_feed_only(struct cus_repeat *repeat,
                                                                       uint64_t op) {
    uint64_t hash = cus_hash(op);
    uint64_t gram = (__atomic_load_n(&repeat->gram, __ATOMIC_RELAXED) << 4) + (hash ^ hash >> 32);
    uint32_t ops = __atomic_load_n(&repeat->ops, __ATOMIC_RELAXED) + 1;
    uint64_t bar = __atomic_load_n(&repeat->bar, __ATOMIC_RELAXED);
    if (__builtin_expect(gram < bar || ops >= CUS_REPEAT_WINDOW, 0))
        return false;
    __atomic_store_n(&repeat->gram, gram, __ATOMIC_RELAXED);
    __atomic_store_n(&repeat->ops, ops, __ATOMIC_RELAXED);
    return true;
}
#endif
