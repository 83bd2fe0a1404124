/*
 * What graphs save a stream and what they cost it, counted: ops by what became of them, times what
 * each costs the host. The costs are those of one machine (an H200 with driver 580, in ns); what is
 * decided by them are ratios, which differ less from machine to machine. They are no measurements
 * of the running program: the same ops are judged alike, however noisy the moment.
 *
 * Pure; what is counted belongs to the lock of the engine that counts.
 */
#ifndef CUSPLICE_PLAN_ACCOUNT_H
#define CUSPLICE_PLAN_ACCOUNT_H

#include <stdint.h>

enum cus_cost {
    CUS_COST_LAUNCH = 2500,  /* of an op that the program issues by itself */
    CUS_COST_MATCHED = 100,  /* of one that is deferred and found as expected, */
    CUS_COST_GRAPH = 2000,   /* of the launch of a graph, */
    CUS_COST_PATCH = 200,    /* of a node that is given other params */
    CUS_COST_BUILT = 2500,   /* of a node that is built, */
    CUS_COST_ANEW = 30000,   /* and of a graph beside, of ops that had one before: the first one is
                                a venture, which costs no more than the ops by themselves do */
    CUS_COST_OBSERVED = 300, /* of an op issued by itself that is looked at, more than the op: */
    CUS_COST_NEW = 700,      /* of one that was not expected and is new */
    CUS_COST_CUT = 300,      /* of one that was deferred before */
};

/* Counts since some moment. */
struct cus_account {
    uint64_t ops;
    uint64_t in_graphs;
    uint64_t launches; /* of graphs */
    uint64_t patched;
    uint64_t built;    /* nodes */
    uint64_t anew;     /* graphs of ops that had one before */
    uint64_t new_ops;  /* ops that came where none was known */
    uint64_t warm_ops; /* that were known well enough to be in graphs, and were issued one by one:
                      those that are known less are being learned, which counts for nothing */
    uint64_t cut;      /* that were deferred, and issued one by one after all */
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

/* What the program has of it, in ns of host time; less than 0 where it would be faster alone. */
static inline int64_t cus_account_balance(const struct cus_account *a) {
    uint64_t saved = a->in_graphs * (CUS_COST_LAUNCH - CUS_COST_MATCHED);
    uint64_t spent = a->launches * CUS_COST_GRAPH + a->patched * CUS_COST_PATCH +
                     a->built * CUS_COST_BUILT + a->anew * CUS_COST_ANEW +
                     a->warm_ops * CUS_COST_OBSERVED + a->new_ops * CUS_COST_NEW +
                     a->cut * CUS_COST_CUT;
    return (int64_t)(saved - spent);
}

#endif
