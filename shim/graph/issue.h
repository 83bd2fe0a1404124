/*
 * Issues one stored op by the stream call that the program made: to flush deferred ops, and to
 * capture a segment.
 */
#ifndef CUSPLICE_GRAPH_ISSUE_H
#define CUSPLICE_GRAPH_ISSUE_H

#include "shim/api/driver.h"
#include "shim/plan/op.h"

/* The most kernel parameters of a deferrable kind, as the pointer array is on the stack. */
enum { CUS_ISSUE_PARAMS_MAX = 256 };

/* Fills `pointers` with the addresses of the arguments in `values`. Returns NULL for a kernel
 * without parameters. */
void **cus_issue_params(const struct cus_kind *kind, const struct cus_values *values,
                        void *pointers[CUS_ISSUE_PARAMS_MAX]);

/* The event of a record or a wait. */
CUevent cus_issue_event(const struct cus_values *values);

/* Issues the op on `stream` (a legacy-ABI handle). The op's context is current. */
CUresult cus_issue(const struct cus_driver *driver, const struct cus_kind *kind,
                   const struct cus_values *values, CUstream stream);
/* The same on a stream that captures: a record becomes a node that records its event at each launch
 * of the graph. */
CUresult cus_issue_into_capture(const struct cus_driver *driver, const struct cus_kind *kind,
                                const struct cus_values *values, CUstream stream);

#endif
