/*
 * The facts behind `why = yes`, the lists of the stats file and `cusplice top`: what broke the runs
 * of launches, which rules named nothing, whose shape changes, what graphs hold.
 *
 * A break is measured by what it cost in ops, which is counted, and not in time, which would be
 * guessed: `launches`, the ops that went out one by one because of it, and `runs`, the runs of
 * graph launches that it ended, each of which is a graph that could have been longer. Breaks are
 * ranked by the sum. Sum of `launches` over all breaks = ops issued one by one.
 *
 * Pure but for the tallies that are read; the caller owns the struct, and no two threads fill one.
 */
#ifndef CUSPLICE_STATS_REPORT_H
#define CUSPLICE_STATS_REPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "shim/stats/stats.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    CUS_REPORT_NAME = 96,
    CUS_REPORT_BREAKS = 64, /* kept; the text shows CUS_REPORT_SHOWN */
    CUS_REPORT_SHOWN = 10,
    CUS_REPORT_RULES = 32,
    CUS_REPORT_SHAPES = 10,
    CUS_REPORT_SEGMENTS = 10,
    CUS_REPORT_TEXT = 32768, /* bytes that the text fits into */
};

struct cus_report_break {
    char name[CUS_REPORT_NAME]; /* of the kernel or the call; "" where neither is meant */
    const char *by;             /* "kernel", "memory", "call" or "other" */
    const char *reason;         /* the key of why.def or reasons.def; "api" for calls */
    const char *what, *advice;
    uint64_t launches, runs;
};
struct cus_report_rule {
    const char *policy, *pattern, *file;
    int line;
    char nearest[CUS_REPORT_NAME]; /* the kernel met whose name is nearest, "" where none was */
};
struct cus_report_shape {
    char name[CUS_REPORT_NAME];
    uint64_t launches; /* of the kernel */
    uint64_t changed;  /* in which its node was patched to another shape, or none could be */
};
struct cus_report_segment {
    uint32_t ops, variants;
    uint64_t bytes;    /* estimate for all variants */
    uint64_t launches; /* as a graph */
    bool gone;         /* its stream or its code went before the end */
    char first[CUS_REPORT_NAME], last[CUS_REPORT_NAME];
};

struct cus_report {
    const struct cus_counters *counters;
    const char *mode;
    const char *off;                   /* why nothing is deferred any more; NULL: it is */
    unsigned n_breaks, more_breaks;    /* kept, and beyond that */
    uint64_t more_launches, more_runs; /* of those beyond */
    struct cus_report_break breaks[CUS_REPORT_BREAKS];
    unsigned n_rules, more_rules;
    struct cus_report_rule rules[CUS_REPORT_RULES]; /* that matched no kernel */
    unsigned n_shapes;
    struct cus_report_shape shapes[CUS_REPORT_SHAPES];
    /* Segments with graphs, their ops, and the bytes: now, and of all those that went with their
     * stream or code before. */
    uint64_t segments, segment_ops, segment_bytes;
    uint64_t gone, gone_ops, gone_bytes;
    /* Ops remembered; host bytes for them and for graphs, now and at most; how often the budget did
     * not allow more. */
    uint64_t nodes, host_bytes, host_bytes_most, host_refused;
    /* Of the stream with the most ops the first step of which 95 of 100 ops went out in graphs,
     * from 1 on; steps less than half as long as the longest are not counted. 0: none did. */
    uint64_t first_step_in_graphs;
    struct cus_stats_cache cache; /* `state` is NULL where there is none */
    unsigned n_segments;
    struct cus_report_segment largest[CUS_REPORT_SEGMENTS]; /* gone ones included */
};

/* Fills `breaks` from the tallies and from `counters`, costliest first; `let_pass` are the ops of
 * streams that were left alone or suspended. `api_name` as in cus_stats_json. */
void cus_report_breaks(struct cus_report *report, const struct cus_counters *counters,
                       uint64_t let_pass, const char *(*api_name)(unsigned row));
/* Fills `shapes` from the tallies: kernels at least half of whose launches, and at least 8, came in
 * another shape than their node had. */
void cus_report_shapes(struct cus_report *report);
/* The name of the kernel met that is nearest to a rule's pattern; "" where none was met. */
void cus_report_nearest(const char *pattern, char nearest[CUS_REPORT_NAME]);
/* Puts a segment among the largest, or adds to the one that has the same ops. */
void cus_report_add_segment(struct cus_report_segment *largest, unsigned *n,
                            const struct cus_report_segment *segment);

/* The report as plain text with a final NUL, cut at whole lines where it does not fit. Returns its
 * length. No allocation. */
size_t cus_report_text(const struct cus_report *report, char *text, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif
