/*
 * The driver's calls by name, for rules that name one: the symbols of shim/api/cuda_api.def and
 * what a rule can do with each. Frozen at build time; any thread.
 */
#ifndef CUSPLICE_PLAN_CALLS_H
#define CUSPLICE_PLAN_CALLS_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

struct cus_call_name {
    const char *symbol;
    const char *row_class; /* "OP", "BARRIER" ... as in the table */
};

/* In the order of the table; NULL behind the last. */
const struct cus_call_name *cus_calls_get(unsigned index);
/* A memset or copy that may become a node, which a rule with api: decides on. Not so launches,
 * which are decided on by kernel, and memsets of two dimensions, which are never nodes. */
bool cus_calls_ruled(const struct cus_call_name *call);
/* The symbol nearest to `word` by edit distance. */
const char *cus_calls_nearest(const char *word);

#ifdef __cplusplus
}
#endif

#endif
