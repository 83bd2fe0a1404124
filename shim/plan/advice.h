/*
 * Advice of earlier runs: which paths come again, and where they were cut into segments. The plan
 * uses it under the engine's lock, but never for an op that matches. It saves the warm-up and the
 * search for sizes; it never decides what may be in a graph. Wrong advice costs one useless build.
 *
 * An entry (cache/cache.h) is found by the path of a segment's last node, when that node is reached
 * for the first time. The nodes up to it then count as warm, and a segment of that many ops begins
 * at the first of them.
 */
#ifndef CUSPLICE_PLAN_ADVICE_H
#define CUSPLICE_PLAN_ADVICE_H

#include "shim/cache/cache.h"
#include "shim/plan/state.h"

enum { CUS_ADVICE_REACHED = 1, CUS_ADVICE_FORMED = 2, CUS_ADVICE_BAD = 4 };

/* For all plans of the process; several threads use it at once. */
struct cus_advice {
    const struct cus_cache_entry *entries; /* sorted by path */
    uint32_t n;
    /* Atomics, one for each entry: path reached, segment formed, segment did not pay. */
    uint8_t *marks;
    uint32_t reached, formed, bad; /* atomics: entries with that mark */
};

/* `node` was reached for the first time. */
void cus_advice_reached(struct cus_plan *plan, struct cus_node *node);
/* How many ops the segment that begins at `node` had in an earlier run; 0: unknown. */
uint32_t cus_advice_cut(const struct cus_plan *plan, const struct cus_node *node);
/* Is this a step of an earlier run, and does more of it follow? Asked before a loop is believed. If
 * the tree may become full, the answer is no, since a full tree finds nothing. */
bool cus_advice_goes_on(const struct cus_plan *plan);
/* This segment was formed by the advice, which is used up with it: its successor is learned in this
 * run. */
void cus_advice_formed(struct cus_plan *plan, struct cus_segment *segment);
/* The segment is dropped because it could not be launched, or was lost more often than not. */
void cus_advice_bad(struct cus_plan *plan, const struct cus_segment *segment);

/* For the next run: does this segment pay, as far as is known? Fills *entry if so. */
bool cus_advice_of(const struct cus_segment *segment, struct cus_cache_entry *entry);

#endif
