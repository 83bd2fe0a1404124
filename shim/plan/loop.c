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

static const uint64_t base = CUS_HASH_FACTOR;

static uint64_t base_to_the_gram(void) {
    uint64_t power = 1;
    for (int i = 0; i < CUS_LOOP_GRAM; i++)
        power *= base;
    return power;
}

/* Makes room for `window` ops. Where the last ops came before is learned anew. Without memory the
 * finder stays as it was. */
static void enlarge(struct cus_loop *loop, uint32_t window) {
    struct cus_loop_op *ring = cus_mem_grow(window * sizeof *ring);
    uint32_t *last = cus_mem_grow(window * sizeof *last);
    if (!ring || !last) {
        cus_mem_shrink(ring);
        cus_mem_shrink(last);
        return;
    }
    uint32_t known = cus_loop_known(loop);
    for (uint32_t at = loop->at.fed - known; at != loop->at.fed; at++)
        ring[at & (window - 1)] = loop->ring[at & (loop->window - 1)];
    cus_mem_shrink(loop->ring);
    cus_mem_shrink(loop->last);
    loop->ring = ring;
    loop->last = last;
    loop->window = window;
}

static struct cus_loop_op *ring_at(const struct cus_loop *loop, uint32_t at) {
    return &loop->ring[at & (loop->window - 1)];
}

static uint64_t hash_of(const struct cus_loop_op *op) {
    return cus_hash(op->kind->id * (uint64_t)CUS_STEP_CLASSES + op->step) >> 16;
}

static bool same(const struct cus_loop *loop, uint32_t a, uint32_t b) {
    const struct cus_loop_op *one = ring_at(loop, a), *other = ring_at(loop, b);
    return one->kind == other->kind && one->step == other->step;
}

uint32_t cus_loop_known(const struct cus_loop *loop) {
    uint32_t n = loop->at.fed - loop->at.from;
    return n < loop->window ? n : loop->window;
}

const struct cus_loop_op *cus_loop_op(const struct cus_loop *loop, uint32_t back) {
    return ring_at(loop, loop->at.fed - 1 - back);
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
    if (!loop->window)
        enlarge(loop, CUS_LOOP_WINDOW_FIRST);
    else if (loop->window < CUS_LOOP_WINDOW && cus_loop_known(loop) == loop->window &&
             !loop->at.period)
        enlarge(loop, CUS_LOOP_WINDOW);
    if (!loop->window)
        return 0;
    struct cus_loop_at *now = &loop->at;
    uint32_t at = now->fed++;
    /* A rolling hash of the last CUS_LOOP_GRAM ops. */
    now->gram = now->gram * base + hash_of(&op);
    if (at - now->from >= CUS_LOOP_GRAM)
        now->gram -= hash_of(ring_at(loop, at - CUS_LOOP_GRAM)) * base_to_the_gram();
    *ring_at(loop, at) = op;
    bool whole = at - now->from + 1 >= CUS_LOOP_GRAM;
    uint32_t *last = &loop->last[(now->gram >> 17) & (loop->window - 1)];
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
