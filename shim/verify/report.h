/*
 * What verifying has found so far, for the summary at exit and the report file.
 *
 * Written by the thread for which the gate is shut, read by the thread that ends the process: a
 * lock of its own, innermost. All texts are kept as copies.
 */
#ifndef CUSPLICE_VERIFY_REPORT_H
#define CUSPLICE_VERIFY_REPORT_H

#include "shim/verify/memory.h"

/* Why a launch of a graph was not verified. */
enum cus_unverified {
#define CUS_UNVERIFIED(id, key, text) CUS_UNVERIFIED_##id,
#include "shim/verify/unverified.def"
    CUS_UNVERIFIEDS
};

struct cus_verify_counts {
    uint64_t launches; /* of graphs, while mode is verify */
    uint64_t checked, same, unstable, differing;
    uint64_t unjudged; /* launched, but then disturbed: what the graph did stands */
    uint64_t skipped[CUS_UNVERIFIEDS];
    uint64_t ops;                     /* of those checked */
    uint64_t all_memory, by_pointers; /* checked with all memory of the context, or some, saved */
    uint64_t bytes, ns;               /* saved; spent */
    uint64_t planted;                 /* graphs that a fault was put into */
};

/* Adds to the counts; only what is not 0 needs to be set. */
void cus_report_count(const struct cus_verify_counts *more);
void cus_report_skip(enum cus_unverified why);
void cus_report_get(struct cus_verify_counts *counts);

struct cus_difference {
    uint64_t stream;
    uint32_t ops;              /* of the graph */
    int op;                    /* the first whose result differs; -1: could not be told */
    struct cus_verify_op what; /* that op, if it could */
    const char *made;          /* how the graph was made ready: "built", "patched" or "as it was" */
    struct cus_range range;    /* of memory that differs, the first one */
};
/* Logged when it is the first; kept where there is room. */
void cus_report_difference(const struct cus_difference *difference);
/* A kernel that does not do the same twice. */
void cus_report_unstable(const char *kernel);
/* Is one of these known to be? */
bool cus_report_is_unstable(const char *kernel);

/* The summary, as lines of the log; the report file, where one is wanted. Once. */
void cus_report_end(const char *path);

#endif
