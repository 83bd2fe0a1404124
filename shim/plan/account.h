/*
 * Counts what graphs save a stream and what they cost it: ops and graphs, times what each costs the
 * host. The costs (ns) come from one machine, an H200 with driver 580. Decisions use only ratios,
 * which differ less between machines. Costs are not measured in the running program, so noise does
 * not change a decision.
 * Pure functions; the lock of the engine that counts guards the counts.
 */
#ifndef CUSPLICE_PLAN_ACCOUNT_H
#define CUSPLICE_PLAN_ACCOUNT_H

#include <stdint.h>

enum cus_cost {
    CUS_COST_LAUNCH = 2500, /* an op that the program issues eagerly */
    CUS_COST_MATCHED = 100, /* a deferred op that was the expected one */
    CUS_COST_GRAPH = 2000,  /* the launch of a graph */
    CUS_COST_PATCH = 200,   /* a node that gets other params */
    CUS_COST_BUILT = 2500,  /* a node that is built */
    /* A graph built of ops that had a graph before, beside its nodes. The first graph of ops costs
     * no more than issuing these ops eagerly. */
    CUS_COST_ANEW = 30000,
    CUS_COST_OBSERVED = 300, /* looking at an eager op, beside the op */
    CUS_COST_NEW = 700,      /* an op that came there for the first time */
    CUS_COST_CUT = 300,      /* a deferred op that was issued eagerly */
};

/* Counts since some moment. */
struct cus_account {
    uint64_t ops;
    uint64_t in_graphs;
    uint64_t launches; /* graphs */
    uint64_t patched;
    uint64_t built;   /* nodes */
    uint64_t anew;    /* graphs of ops that had a graph before */
    uint64_t new_ops; /* ops that came where none was known */
    /* Eager ops that were known well enough to be in graphs. Ops known less are being learned and
     * cost nothing here. */
    uint64_t warm_ops;
    uint64_t cut; /* deferred ops that were issued one by one */
};

static inline struct cus_account cus_account_since(struct cus_account now,
                                                   struct cus_account before) {
    return (struct cus_account){now.ops - before.ops,
                                now.in_graphs - before.in_graphs,
                                now.launches - before.launches,
                                now.patched - before.patched,
                                now.built - before.built,
                                now.anew - before.anew,
                                now.new_ops - before.new_ops,
                                now.warm_ops - before.warm_ops,
                                now.cut - before.cut};
}

/* What the program gains, in ns of host time; negative if it would be faster without the
 * library. */
static inline int64_t cus_account_balance(const struct cus_account *a) {
    uint64_t saved = a->in_graphs * (CUS_COST_LAUNCH - CUS_COST_MATCHED);
    uint64_t spent = a->launches * CUS_COST_GRAPH + a->patched * CUS_COST_PATCH +
                     a->built * CUS_COST_BUILT + a->anew * CUS_COST_ANEW +
                     a->warm_ops * CUS_COST_OBSERVED + a->new_ops * CUS_COST_NEW +
                     a->cut * CUS_COST_CUT;
    return (int64_t)(saved - spent);
}

#endif
