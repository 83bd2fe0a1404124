/*
 * What the reports count per kernel: one object per name and process. It is made when a function is
 * first seen and never freed, so it outlives modules, contexts and streams. Ops issued one by one
 * and cut segments are counted here; an op matched in the midst of a segment is not, since its
 * segment counts its launches. Any thread, under any lock: relaxed atomics. The sum of `alone` and
 * `cut_ops` over all tallies, of the counters' cut_ops and of the ops let pass is the number of ops
 * issued one by one.
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
    const char *name;           /* as in reports; "": no kernel */
    bool kernel;                /* false: another op */
    uint64_t alone[CUS_WHYS];   /* its ops that were issued one by one */
    uint64_t cut_ops[CUS_WHYS]; /* deferred ops of any kind that were issued one by one because it
                                 * came */
    uint64_t cuts[CUS_WHYS];    /* runs of graph launches that it ended */
    uint64_t in_graphs;         /* its ops in graphs of segments that are gone */
    uint64_t reshaped;          /* nodes of it that were patched to another shape */
    struct cus_tally *next;     /* in its bucket */
};

/* The tally of this name; makes one if there is none. Never NULL: without memory, or with
 * CUS_TALLIES_MAX tallies, one tally stands for all others. */
struct cus_tally *cus_tally_of(const char *name, bool kernel);
/* For ops that belong to no kernel, or to an unknown one. */
extern struct cus_tally cus_tally_none;
/* Frees all tallies. Nothing that has one is left. For cus_engine_end. */
void cus_tally_drop(void);
/* Walks all tallies in no order; NULL after the last. `at` is 0 at first and belongs to the
 * walk. */
struct cus_tally *cus_tally_next(struct cus_tally *before, unsigned *at);

/* `tally` may be NULL, which means cus_tally_none. */
static inline void cus_tally_alone(struct cus_tally *tally, enum cus_why why) {
    tally = tally ? tally : &cus_tally_none;
    __atomic_add_fetch(&tally->alone[why], 1, __ATOMIC_RELAXED);
}
static inline void cus_tally_cut(struct cus_tally *tally, enum cus_why why, uint64_t ops) {
    tally = tally ? tally : &cus_tally_none;
    __atomic_add_fetch(&tally->cut_ops[why], ops, __ATOMIC_RELAXED);
    __atomic_add_fetch(&tally->cuts[why], 1, __ATOMIC_RELAXED);
}
/* Counts a node that is patched to another shape. NULL (another op) is not counted. */
static inline void cus_tally_reshaped(struct cus_tally *tally) {
    if (tally)
        __atomic_add_fetch(&tally->reshaped, 1, __ATOMIC_RELAXED);
}

const char *cus_why_key(enum cus_why why);
const char *cus_why_what(enum cus_why why);
const char *cus_why_advice(enum cus_why why);
/* The texts of a cause without an API row; index 0 is the first CUS_CAUSE. */
const char *cus_cause_key(unsigned index);
const char *cus_cause_what(unsigned index);
const char *cus_cause_advice(unsigned index);
/* The texts of a call, by its name. */
const char *cus_call_what(const char *api);
const char *cus_call_advice(const char *api);

#ifdef __cplusplus
}
#endif

#endif
