/*
 * What `cusplice report TRACE` says without the name of a report: one page. verb_report.c calls it,
 * on one thread. It counts nothing that no report counts.
 */
#ifndef CUSPLICE_TOOLS_TRACE_SUMMARY_H
#define CUSPLICE_TOOLS_TRACE_SUMMARY_H

#include "tools/trace/look.h"
#include "tools/trace/table.h"

enum { SUMMARY_ROWS = 5 }; /* of each of its tables, unless more are asked for */

/* `kernels` is the report of that name. `breaks`: the reasons that kept the most ops out of graphs,
 * with the kernel that each met most, and what to do. Both come zeroed; `failed` is set in either
 * where memory does not suffice. */
void summary_fill(const struct look *look, struct table *kernels, struct table *breaks);
/* The page, with both tables, and what to try next. */
void summary_print(const struct look *look, struct table *kernels, struct table *breaks,
                   const struct table_view *view, FILE *to);

#endif
