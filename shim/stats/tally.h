/*
 * What is counted of each kernel for the reports: one object per name, process-wide, made when a
 * function is learned and never freed, so that it outlives modules, contexts and streams.
 *
 * Ops that go out one by one, and segments that are cut, are counted here; an op that is matched in
 * the midst of a segment is not: what it was part of is known from how often its segment was
 * launched. Any thread, under any lock: relaxed atomics. Sum over all tallies of `alone` and
 * `cut_ops`, and of cut_ops of the counters, and of what was let pass = ops that were issued one by
 * one.
 */
#ifndef CUSPLICE_STATS_TALLY_H
#define CUSPLICE_STATS_TALLY_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum cus_why {
#define CUS_WHY(id, key, what, advice) CUS_WHY_##id,
#include "shim/stats/why.def"
    CUS_WHYS
};

enum { CUS_TALLIES_MAX = 4096 };

struct cus_tally {
    const char *name;         /* as reports show it; "" where no kernel is meant */
    bool kernel;              /* and no memset or copy */
    uint64_t alone[CUS_WHYS]; /* its ops that went out one by one */
    uint64_t
        cut_ops[CUS_WHYS];   /* deferred ops of any kind that went out one by one since it came */
    uint64_t cuts[CUS_WHYS]; /* runs of graph launches that it ended */
    uint64_t in_graphs;      /* its ops in graphs, as far as their segments are gone */
    uint64_t reshaped;       /* nodes of it that were patched to another shape */
    struct cus_tally *next;  /* in its bucket */
};

/* The tally of this name, made if there is none. Never NULL: where there is no memory, or no room
 * for one more, one that stands for all others. */
struct cus_tally *cus_tally_of(const char *name, bool kernel);
/* Where no kernel is meant, or none is known. */
extern struct cus_tally cus_tally_none;
/* All of them, in no order; NULL behind the last. `at` is 0 at first and belongs to the walk. */
struct cus_tally *cus_tally_next(struct cus_tally *before, unsigned *at);

/* `tally` may be NULL: then cus_tally_none is meant. */
static inline void cus_tally_alone(struct cus_tally *tally, enum cus_why why) {
    tally = tally ? tally : &cus_tally_none;
    __atomic_add_fetch(&tally->alone[why], 1, __ATOMIC_RELAXED);
}
static inline void cus_tally_cut(struct cus_tally *tally, enum cus_why why, uint64_t ops) {
    tally = tally ? tally : &cus_tally_none;
    __atomic_add_fetch(&tally->cut_ops[why], ops, __ATOMIC_RELAXED);
    __atomic_add_fetch(&tally->cuts[why], 1, __ATOMIC_RELAXED);
}
/* A node is patched to another shape. Of a memset or copy (NULL) that is not counted. */
static inline void cus_tally_reshaped(struct cus_tally *tally) {
    if (tally)
        __atomic_add_fetch(&tally->reshaped, 1, __ATOMIC_RELAXED);
}

const char *cus_why_key(enum cus_why why);
const char *cus_why_what(enum cus_why why);
const char *cus_why_advice(enum cus_why why);
/* Of a cause without an API row: index from 0 for the first CUS_CAUSE. */
const char *cus_cause_key(unsigned index);
const char *cus_cause_what(unsigned index);
const char *cus_cause_advice(unsigned index);
/* Of a call, by its name. */
const char *cus_call_what(const char *api);
const char *cus_call_advice(const char *api);

#ifdef __cplusplus
}
#endif

#endif
