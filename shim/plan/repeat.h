/*
 * Finds out whether the ops of a demoted stream repeat, with a few instructions an op and in fixed
 * memory. Threads may feed one object at once; then some ops are not counted, or counted twice.
 * Time without it divided by time with it (tests/gpu/RESULTS.md, H100): phases "none" 1.30, growth
 * of 100 orders 2.56; GPT-2 of CTranslate2 0.795, where it costs.
 *
 * The hash covers the last 16 ops. One hash in CUS_REPEAT_SAMPLE falls into a fixed part of the
 * range, at the same ops in each turn. That sample is looked up among earlier ones. A slot holds
 * part of the hash and the window in which it came last; from this follows how many ops lie
 * between. So turns of up to about CUS_REPEAT_SLOTS * CUS_REPEAT_SAMPLE ops are recognised.
 * Sequences that repeat within a window are told apart by the least of their hashes.
 */
#ifndef CUSPLICE_PLAN_REPEAT_H
#define CUSPLICE_PLAN_REPEAT_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/base/hash.h"

enum { CUS_REPEAT_SAMPLE = 256, CUS_REPEAT_SLOTS = 8192, CUS_REPEAT_WINDOW = 4096 };

/* What is read seldom. */
struct cus_repeat_samples {
    /* The least hash of this window, of the window before, and of the one before that. */
    uint64_t least, as, as_before;
    uint32_t slots[CUS_REPEAT_SLOTS];
};

struct cus_repeat {
    /* Atomic, as is all in it; NULL until the first start. */
    struct cus_repeat_samples *history;
    uint64_t gram;           /* atomic, as all below: the hash of the last 16 ops */
    uint64_t bar;            /* hashes below it are looked at */
    uint32_t ops;            /* ops of this window */
    uint32_t samples, again; /* samples of this window, and those that came before */
    uint32_t apart;          /* sum of the windows between the two times */
    uint32_t windows;        /* so far; a slot holds the lower half of it */
    uint32_t turn;           /* ops between repetitions, by the last window; 0: none */
};

/* A step's head: a hash over its first CUS_HEAD_OPS ops, one word for each op. */
enum { CUS_HEAD_OPS = 4, CUS_HEADS = 8 };
static inline uint64_t cus_head_add(uint64_t head, uint64_t op) {
    head = cus_hash(head ^ op);
    return head ^ head >> 29;
}

/* Starts again from nothing. One caller at a time. False: no memory. The memory is kept for later
 * starts. */
bool cus_repeat_start(struct cus_repeat *repeat);
/* Frees the memory. Nobody feeds the object. */
void cus_repeat_free(struct cus_repeat *repeat);
/* Identifies what repeats, by a hash: if the last two complete windows had the same least hash,
 * returns it. Otherwise 0. */
static inline uint64_t cus_repeat_as(const struct cus_repeat *repeat) {
    struct cus_repeat_samples *history = __atomic_load_n(&repeat->history, __ATOMIC_ACQUIRE);
    uint64_t as = history ? __atomic_load_n(&history->as, __ATOMIC_RELAXED) : 0;
    return as && as == __atomic_load_n(&history->as_before, __ATOMIC_RELAXED) ? as : 0;
}
/* So many ops came that were not fed. */
void cus_repeat_passed(struct cus_repeat *repeat, uint64_t ops);
/* A window has ended: do its ops repeat earlier ones? Starts the next window. */
bool cus_repeat_decide(struct cus_repeat *repeat);
void cus_repeat_look(struct cus_repeat *repeat, uint64_t gram);
/* Feeds one op. True if the window ends with it and repeats earlier ops. */
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
/* The same without a function call. False: a call is needed, and nothing was done. */
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
