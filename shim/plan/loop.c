/*
 * The loop finder: keeps one candidate period and counts how many ops have fitted it.
 * cursor.c calls it under the engine's lock. A candidate is the distance to where the last
 * CUS_LOOP_GRAM ops came before. A loop's body may repeat a few kernels inside of itself; such an
 * inner period fails where the body goes on. So a candidate must hold for CUS_LOOP_RUN ops before
 * it is believed.
 */
#include "shim/plan/loop.h"

#include "shim/base/hash.h"
#include "shim/base/mem.h"

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

uint32_t cus_loop_feed(struct cus_loop *loop, uint64_t hash) {
    if (!loop->ring && !allocate(loop))
        return 0;
    uint32_t at = loop->at.fed++;
    /* A rolling hash of the last CUS_LOOP_GRAM ops. */
    loop->at.gram = loop->at.gram * base + hash;
    if (at >= CUS_LOOP_GRAM)
        loop->at.gram -= loop->ring[(at - CUS_LOOP_GRAM) & MASK] * base_to_the_gram();
    bool holds = loop->at.period && loop->ring[(at - loop->at.period) & MASK] == hash;
    loop->ring[at & MASK] = hash;
    uint32_t *last = &loop->last[(loop->at.gram >> 17) & MASK];
    if (holds) {
        loop->at.run++;
    } else {
        /* `last` holds positions counted from 1; 0 means never. */
        uint32_t distance = *last ? at - (*last - 1) : 0;
        bool known = at >= CUS_LOOP_GRAM && distance > 0 &&
                     distance < CUS_LOOP_WINDOW - CUS_LOOP_GRAM &&
                     loop->ring[(at - distance) & MASK] == hash;
        loop->at.period = known ? distance : 0;
        loop->at.run = known ? 1 : 0;
    }
    if (at >= CUS_LOOP_GRAM)
        *last = at + 1;
    bool believed =
        loop->at.period && loop->at.run >= loop->at.period && loop->at.run >= CUS_LOOP_RUN;
    return believed ? loop->at.period : 0;
}

void cus_loop_reset(struct cus_loop *loop) {
    loop->at.period = 0;
    loop->at.run = 0;
    loop->at.fed = 0;
    loop->at.gram = 0;
    for (uint32_t i = 0; loop->last && i < CUS_LOOP_WINDOW; i++)
        loop->last[i] = 0;
}

void cus_loop_free(struct cus_loop *loop) {
    cus_mem_shrink(loop->ring);
    cus_mem_shrink(loop->last);
    *loop = (struct cus_loop){0};
}
