/*
 * The facts behind `why = yes`, the stats file's lists and `cusplice top`: what broke runs of
 * launches, which rules matched no kernel, whose shape changes, what graphs hold. Reads the
 * tallies, and changes only the caller's struct. No two threads fill one struct.
 */
#ifndef CUSPLICE_STATS_REPORT_H
#define CUSPLICE_STATS_REPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "shim/stats/learning.h"
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
    CUS_REPORT_TEXT = 32768, /* enough bytes for the text */
};

/*
 * A break is measured by its cost in ops, which is counted, and not in time, which would be a
 * guess:
 *
 *   launches  the ops that were issued one by one because of the break
 *   runs      the runs of graph launches that it ended; each is a graph that could have been longer
 *
 * Breaks are ranked by launches + runs. The sum of `launches` over all breaks is the number of ops
 * that were issued one by one.
 */
struct cus_report_break {
    char name[CUS_REPORT_NAME]; /* of the kernel or the call; "": neither */
    const char *by;             /* "kernel", "memory", "call" or "other" */
    const char *reason;         /* the key in why.def or reasons.def; "api" for calls */
    const char *what, *advice;
    uint64_t launches, runs;
};
struct cus_report_rule {
    const char *policy, *pattern, *file;
    int line;
    char nearest[CUS_REPORT_NAME]; /* the seen kernel with the nearest name; "": no kernel was
                                    * seen */
};
struct cus_report_shape {
    char name[CUS_REPORT_NAME];
    uint64_t launches; /* of the kernel */
    uint64_t changed;  /* launches with another shape: the node was patched, or could not be */
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
    const char *off;                   /* why nothing is deferred any more; NULL: ops are
                                        * deferred */
    unsigned n_breaks, more_breaks;    /* kept here, and left out */
    uint64_t more_launches, more_runs; /* of those left out */
    struct cus_report_break breaks[CUS_REPORT_BREAKS];
    unsigned n_rules, more_rules;
    struct cus_report_rule rules[CUS_REPORT_RULES]; /* that matched no kernel */
    unsigned n_shapes;
    struct cus_report_shape shapes[CUS_REPORT_SHAPES];
    /* Segments with graphs, their ops and bytes: those of now, and those that went earlier with
     * their stream or code. */
    uint64_t segments, segment_ops, segment_bytes;
    uint64_t gone, gone_ops, gone_bytes;
    /* Nodes of launch trees; host bytes for them and for graphs, now and at most; how often the
     * budget refused memory. */
    uint64_t nodes, host_bytes, host_bytes_most, host_refused;
    /* Of the stream with the most ops: the first step that issued 95 of 100 ops in graphs,
     * counted from 1. Steps less than half as long as the longest do not count. 0: there was no
     * such step. */
    uint64_t first_step_in_graphs;
    struct cus_learned learned;   /* of the same stream */
    struct cus_stats_cache cache; /* `state` is NULL if there is no cache */
    unsigned n_segments;
    struct cus_report_segment largest[CUS_REPORT_SEGMENTS]; /* also those that went */
};

/* Fills `breaks` from the tallies and `counters`, costliest first. `let_pass` counts the ops of
 * streams that were demoted or suspended. `api_name` as in cus_stats_json. */
void cus_report_breaks(struct cus_report *report, const struct cus_counters *counters,
                       uint64_t let_pass, const char *(*api_name)(unsigned row));
/* Fills `shapes` from the tallies: kernels of which at least 8 launches, and at least half, had
 * another shape than their node. */
void cus_report_shapes(struct cus_report *report);
/* The seen kernel whose name is nearest to a rule's pattern; "": no kernel was seen. */
void cus_report_nearest(const char *pattern, char nearest[CUS_REPORT_NAME]);
/* Adds a segment to the largest ones, or its launches to a segment with the same ops. */
void cus_report_add_segment(struct cus_report_segment *largest, unsigned *n,
                            const struct cus_report_segment *segment);

/* The report as plain text with a final NUL. If it does not fit, whole lines are left out at the
 * end. Returns its length. Allocates nothing. */
size_t cus_report_text(const struct cus_report *report, char *text, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif
