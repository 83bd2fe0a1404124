/*
 * What verifying has found so far, for the summary at exit and the report file.
 *
 * The thread that has shut the gate writes it, and the thread that ends the process reads it. An
 * innermost lock guards it. All texts are copies.
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
    uint64_t launches; /* of graphs, while the mode is verify */
    uint64_t checked, same, unstable, differing;
    uint64_t unjudged; /* launched and then disturbed: the graph's result stands */
    uint64_t skipped[CUS_UNVERIFIEDS];
    uint64_t ops;                     /* of the checked launches */
    uint64_t all_memory, by_pointers; /* checked with all memory of the context saved, or with a
                                       * part */
    uint64_t bytes, ns;               /* bytes saved; time spent */
    uint64_t planted;                 /* graphs with a planted fault */
};

/* Adds to the counts; fields that are 0 add nothing. */
void cus_report_count(const struct cus_verify_counts *more);
void cus_report_skip(enum cus_unverified why);
void cus_report_get(struct cus_verify_counts *counts);

struct cus_difference {
    uint64_t stream;
    uint32_t ops;              /* of the graph */
    int op;                    /* the first op whose result differs; -1: unknown */
    struct cus_verify_op what; /* that op, if it is known */
    const char *made;          /* how the graph was made ready: "built", "patched" or "as it was" */
    struct cus_range range;    /* the first range of memory that differs */
};
/* Logs the first difference; keeps each while there is room. */
void cus_report_difference(const struct cus_difference *difference);
/* A context that was lost while a launch of a graph was verified. */
struct cus_loss {
    CUresult error;
    uint64_t stream;
    uint32_t ops; /* of the graph */
    int op;       /* the op that was issued by itself; -1: the graph was launched */
    const struct cus_kind *first, *last; /* of the graph; with an op, `first` is that op's */
};
/* Logs it; keeps the first. */
void cus_report_lost(const struct cus_loss *loss);
/* True: cus_report_lost was called. */
bool cus_report_has_lost(void);
/* Adds a kernel that does not give the same result twice. */
void cus_report_unstable(const char *kernel);
/* True: the kernel is one of these. */
bool cus_report_is_unstable(const char *kernel);

/* Logs the summary, and writes the report file if the settings name one. Called once. */
void cus_report_end(const char *path);
/* Forgets all that was found. For cus_engine_end. */
void cus_report_drop(void);

#endif
