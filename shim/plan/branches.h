/*
 * Branches of a segment: ops of other streams between a fork and a join. Pure functions of kinds.
 *
 * A segment belongs to one stream, its branch 0. Ops on another stream have that stream's branch,
 * from 1 on. A wait (CUS_OP_WAIT) makes its branch wait for a record on branch `from`, which came
 * `back` ops before. A branch is forked by a wait for a record on branch 0, and joined by a wait of
 * branch 0 for a record behind its last op.
 */
#ifndef CUSPLICE_PLAN_BRANCHES_H
#define CUSPLICE_PLAN_BRANCHES_H

#include "shim/plan/op.h"

struct cus_branches {
    uint32_t at[CUS_BRANCHES + 1]; /* the last op of each branch */
    uint8_t used, open;            /* a bit for each branch */
    bool waits, overlaps; /* some op is a wait; some launch overlaps the one before (PDL) */
};

/* Takes op `i` of a segment. False: no graph can have it here, because it is of a branch that is
 * not forked within the segment, or waits for a record in front of the segment. */
bool cus_branches_take(struct cus_branches *branches, const struct cus_kind *kind, uint32_t i);

/* The branch has no op behind its last wait, until it waits again: nothing is there to be joined.
 */
static inline void cus_branches_bare(struct cus_branches *branches, unsigned branch) {
    branches->open &= (uint8_t) ~(1u << branch);
}

/* Is every branch joined? Only here a segment may end. */
static inline bool cus_branches_joined(const struct cus_branches *branches) {
    return !branches->open;
}

/* The op for whose record the wait at place `i` waits; CUS_NO_OP: the record came before the
 * segment. */
#define CUS_NO_OP UINT32_MAX
static inline uint32_t cus_branches_record(const struct cus_kind *kind, uint32_t i) {
    return kind->back && kind->back <= i ? i - kind->back : CUS_NO_OP;
}

#endif
