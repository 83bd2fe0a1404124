/*
 * The reports: each is a file that fills a table from a trace, and report.c lists them.
 * verb_report.c, verb_diff.c and html.c call them. No report prints.
 */
#ifndef CUSPLICE_TOOLS_TRACE_REPORT_H
#define CUSPLICE_TOOLS_TRACE_REPORT_H

#include "tools/trace/look.h"
#include "tools/trace/table.h"

struct report {
    const char *name;
    const char *summary;
    /* The table comes zeroed. Where memory does not suffice table->failed is set. */
    void (*fill)(const struct look *look, struct table *table);
};

extern const struct report report_list[]; /* ends with a NULL name */

void report_kernels(const struct look *look, struct table *table);
void report_segments(const struct look *look, struct table *table);
void report_cache(const struct look *look, struct table *table);
void report_breaks(const struct look *look, struct table *table);
void report_coverage(const struct look *look, struct table *table);

/* One row for each trace of a folder; all times on one clock. Begin, then add each, then end. */
void report_processes_begin(struct table *table);
void report_processes_add(const struct look *look, struct table *table);
void report_processes_end(struct table *table);
/* What the facts say of a trace's process: its rank (-1: none) and the program's file name. */
int report_rank(const struct look *look);
void report_program(const struct look *look, char *out, size_t bytes);

/* Two traces against each other: ops by kernel, or steps by signature. */
void diff_kernels(const struct look *a, const struct look *b, struct table *table);
void diff_steps(const struct look *a, const struct look *b, struct table *table);

/* Processes of a run against those of another, or against one of the same run. Begin, then add each
 * pair; NULL: there is none beside it. A row knows ops that went into a graph in B and not in A
 * (gained), or the other way round (lost), and the time on average of steps that are aligned. */
void diff_processes_begin(struct table *table);
void diff_processes_add(const struct look *a, const struct look *b, struct table *table);

/* Rows by a text: their numbers, from 0 on in the order of being added. */
struct report_rows {
    struct report_slot *slots;
    uint32_t n, room;
};
/* The row of a key; CST_NONE without memory. The key is not copied. */
uint32_t report_row(struct report_rows *rows, uint64_t salt, const char *key);
void report_rows_free(struct report_rows *rows);

#endif
