/*
 * What is compared of two traces: steps beside steps, and their ops. diff.c pairs them, and
 * diff_processes.c compares whole processes by it.
 */
#ifndef CUSPLICE_TOOLS_TRACE_DIFF_H
#define CUSPLICE_TOOLS_TRACE_DIFF_H

#include "tools/trace/look.h"

/* Steps of both traces side by side; CST_NONE: the other has none. */
struct diff_pair {
    uint64_t signature; /* A's, if A has one */
    uint32_t a, b;
};

struct diff_pairs {
    struct diff_pair *at; /* the caller frees it */
    size_t n, aligned, by_names;
};

/* Pairs all steps of both. False without memory. */
bool diff_align(const struct look *a, const struct look *b, struct diff_pairs *pairs);

/* Zeroed: before the first two ops of a pair of steps. */
struct diff_place {
    uint32_t i, j; /* behind a and b in their steps */
    const struct model_op *a, *b;
};

/* Goes on to the next two ops that stand side by side. False: there are none. */
bool diff_next(const struct look *a, const struct look *b, const struct diff_pair *pair,
               struct diff_place *place);

#endif
