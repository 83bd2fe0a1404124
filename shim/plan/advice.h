/*
 * What earlier runs have to say about paths: that they come again, and where they were cut into
 * segments. It saves the wait until a path has come `warmup` times, and the search for the right
 * sizes; it never decides what is in a graph. Where it is wrong, a graph is built for nothing,
 * once.
 *
 * An entry (cache/cache.h) is found by the path of the last node of a segment, when that node is
 * reached for the first time: then the nodes up to it are taken to be warm, and a segment of that
 * many begins at the first of them. Nothing here is on the way of an op that is matched.
 */
#ifndef CUSPLICE_PLAN_ADVICE_H
#define CUSPLICE_PLAN_ADVICE_H

#include "shim/cache/cache.h"
#include "shim/plan/plan.h"

enum { CUS_ADVICE_REACHED = 1, CUS_ADVICE_FORMED = 2, CUS_ADVICE_BAD = 4 };

/* For all plans of the process; threads of several use it at once. */
struct cus_advice {
    const struct cus_cache_entry *entries; /* sorted by path */
    uint32_t n;
    uint8_t *marks; /* atomics, one for each entry: its path was met, its segment was formed, did
                       not pay */
    uint32_t reached, formed, bad; /* atomics: entries of which that is true */
};

/* The plan. `node` was reached for the first time. */
void cus_advice_reached(struct cus_plan *plan, struct cus_node *node);
/* How many ops the segment that begins at `node` had in an earlier run; 0: nothing is known of it.
 */
uint32_t cus_advice_cut(const struct cus_plan *plan, const struct cus_node *node);
/* Is this a step of an earlier run, of which more is to come? Not where the tree might be full, in
 * which nothing is looked for, before a loop is believed. */
bool cus_advice_goes_on(const struct cus_plan *plan);
/* This segment was formed by that. The advice is used up: what comes after it is learned here. */
void cus_advice_formed(struct cus_plan *plan, struct cus_segment *segment);
/* The segment is dropped, for it could not be launched, or was cut more often than not. */
void cus_advice_bad(struct cus_plan *plan, const struct cus_segment *segment);

/* For the next run: does this segment pay, as far as is known? Fills *entry. */
bool cus_advice_of(const struct cus_segment *segment, struct cus_cache_entry *entry);

#endif
