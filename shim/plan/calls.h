/*
 * The driver's calls by name, for rules that name one: the symbols of shim/api/cuda_api.def, and
 * what a rule can do with each. rules.c uses it. Frozen at build time; any thread.
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

/* In the table's order; NULL behind the last. */
const struct cus_call_name *cus_calls_get(unsigned index);
/* Is it a memset, copy or record of an event that may become a node, so that a rule with api:
 * decides on it? Rules decide on launches by kernel, and on all records as on cuEventRecord. */
bool cus_calls_ruled(const struct cus_call_name *call);
/* The symbol nearest to `word` by edit distance. */
const char *cus_calls_nearest(const char *word);

#ifdef __cplusplus
}
#endif

#endif
