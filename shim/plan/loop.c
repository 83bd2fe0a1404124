/*
 * The loop finder: keeps one candidate period and how long it has held.
 *
 * Runs under the lock of the engine whose ops it is fed. The candidate is the distance to the last
 * op with the same hash; a body that holds an op twice offers wrong candidates, which the next
 * differing op kills, until an op that is unique in the body offers the right one.
 */
#include "shim/plan/loop.h"

#include "shim/base/mem.h"

enum { MASK = CUS_LOOP_WINDOW - 1 };

uint32_t cus_loop_feed(struct cus_loop *loop, uint64_t hash) {
    if (!loop->ring) {
        loop->ring = cus_mem_alloc(CUS_LOOP_WINDOW * sizeof *loop->ring);
        loop->last = cus_mem_alloc(CUS_LOOP_WINDOW * sizeof *loop->last);
        if (!loop->ring || !loop->last) {
            cus_loop_free(loop);
            return 0;
        }
    }
    uint32_t at = loop->fed++;
    uint32_t *last = &loop->last[hash & MASK];
    if (loop->period && loop->ring[(at - loop->period) & MASK] == hash) {
        loop->run++;
    } else {
        /* `last` holds positions counted from 1, so that 0 means never. */
        uint32_t distance = *last ? at - (*last - 1) : 0;
        bool known = distance > 0 && distance < CUS_LOOP_WINDOW &&
                     loop->ring[(at - distance) & MASK] == hash;
        loop->period = known ? distance : 0;
        loop->run = known ? 1 : 0;
    }
    loop->ring[at & MASK] = hash;
    *last = at + 1;
    return loop->period && loop->run >= loop->period && loop->run >= CUS_LOOP_RUN ? loop->period
                                                                                  : 0;
}

void cus_loop_reset(struct cus_loop *loop) {
    loop->period = 0;
    loop->run = 0;
    loop->fed = 0;
    for (uint32_t i = 0; loop->last && i < CUS_LOOP_WINDOW; i++)
        loop->last[i] = 0;
}

void cus_loop_free(struct cus_loop *loop) {
    cus_mem_free(loop->ring);
    cus_mem_free(loop->last);
    *loop = (struct cus_loop){0};
}
