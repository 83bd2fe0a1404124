/*
 * The loop finder: keeps one candidate period and counts how many ops have fitted it.
 * loops.c calls it under the engine's lock. A candidate is the distance to where the last
 * CUS_LOOP_GRAM ops came before.
 */
#include "shim/plan/loop.h"

#include "shim/base/hash.h"
#include "shim/base/mem.h"
#include "shim/plan/op.h"
#include "shim/plan/step.h"

enum { MASK = CUS_LOOP_WINDOW - 1 };
static const uint64_t base = CUS_HASH_FACTOR;

static uint64_t base_to_the_gram(void) {
    uint64_t power = 1;
    for (int i = 0; i < CUS_LOOP_GRAM; i++)
        power *= base;
    return power;
}

static bool allocate(struct cus_loop *loop) {
    loop->ring = cus_mem_grow(CUS_LOOP_WINDOW * sizeof *loop->ring);
    loop->last = cus_mem_grow(CUS_LOOP_WINDOW * sizeof *loop->last);
    if (loop->ring && loop->last)
        return true;
    cus_loop_free(loop);
    return false;
}

static uint64_t hash_of(const struct cus_loop_op *op) {
    return cus_hash(op->kind->id * (uint64_t)CUS_STEP_CLASSES + op->step) >> 16;
}

static bool same(const struct cus_loop *loop, uint32_t a, uint32_t b) {
    const struct cus_loop_op *one = &loop->ring[a & MASK], *other = &loop->ring[b & MASK];
    return one->kind == other->kind && one->step == other->step;
}

uint32_t cus_loop_known(const struct cus_loop *loop) {
    uint32_t n = loop->ring ? loop->at.fed - loop->at.from : 0;
    return n < CUS_LOOP_WINDOW ? n : (uint32_t)CUS_LOOP_WINDOW;
}

const struct cus_loop_op *cus_loop_op(const struct cus_loop *loop, uint32_t back) {
    return &loop->ring[(loop->at.fed - 1 - back) & MASK];
}

static uint32_t run_wanted(uint32_t period) {
    return period < CUS_LOOP_BODY ? (uint32_t)CUS_LOOP_RUN : period;
}

/* The new candidate: the distance from op `at` to where the same ops came before, `*last` counted
 * from 1. So many ops up to here fit it already. */
static void consider(struct cus_loop *loop, uint32_t at, const uint32_t *last) {
    struct cus_loop_at *now = &loop->at;
    uint32_t known = cus_loop_known(loop), distance = *last > now->from ? at - (*last - 1) : 0;
    now->period = now->run = 0;
    now->told = false;
    if (!distance || distance >= known)
        return;
    uint32_t most = run_wanted(distance), run = 0;
    while (run < most && run + distance < known && same(loop, at - run, at - run - distance))
        run++;
    if (run < CUS_LOOP_GRAM)
        return;
    now->period = distance;
    now->run = run;
}

uint32_t cus_loop_feed(struct cus_loop *loop, struct cus_loop_op op) {
    if (!loop->ring && !allocate(loop))
        return 0;
    struct cus_loop_at *now = &loop->at;
    uint32_t at = now->fed++;
    /* A rolling hash of the last CUS_LOOP_GRAM ops. */
    now->gram = now->gram * base + hash_of(&op);
    if (at - now->from >= CUS_LOOP_GRAM)
        now->gram -= hash_of(&loop->ring[(at - CUS_LOOP_GRAM) & MASK]) * base_to_the_gram();
    loop->ring[at & MASK] = op;
    bool whole = at - now->from + 1 >= CUS_LOOP_GRAM;
    uint32_t *last = &loop->last[(now->gram >> 17) & MASK];
    if (now->period && same(loop, at, at - now->period))
        now->run += now->run < UINT32_MAX;
    else if (whole)
        consider(loop, at, last);
    else
        now->period = 0;
    if (whole)
        *last = at + 1;
    return now->period && !now->told && now->run >= run_wanted(now->period) ? now->period : 0;
}

void cus_loop_gap(struct cus_loop *loop) {
    loop->at.from = loop->at.fed;
    loop->at.gram = 0;
    loop->at.period = loop->at.run = 0;
    loop->at.told = false;
}

void cus_loop_free(struct cus_loop *loop) {
    cus_mem_shrink(loop->ring);
    cus_mem_shrink(loop->last);
    *loop = (struct cus_loop){0};
}
