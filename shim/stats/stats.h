/*
 * The counters behind the stats file. Each engine (one per stream) has a `struct cus_counters` that
 * its lock guards; the process has one more for what belongs to no stream. The writer of the file
 * adds them up without the locks, so a number may be late. While a stream's lock is free: sum of
 * ops[] = in_graphs + sum of eager_by[] + deferred ops + calls under way (cus_engine_check checks
 * this).
 */
#ifndef CUSPLICE_STATS_STATS_H
#define CUSPLICE_STATS_STATS_H

#include <stddef.h>
#include <stdint.h>

enum cus_op_type {
    CUS_OP_LAUNCH,
    CUS_OP_MEMSET,
    CUS_OP_COPY,
    CUS_OP_RECORD,
    CUS_OP_WAIT,
    CUS_OP_TYPES
};

enum cus_eager {
#define CUS_EAGER(id, key) CUS_EAGER_##id,
#include "shim/stats/reasons.def"
    CUS_EAGERS
};

enum cus_break {
#define CUS_BREAK(id, key) CUS_BREAK_##id,
#include "shim/stats/reasons.def"
    CUS_BREAKS
};

/* The cause of a flush: the row of a call in cuda_api.def (0 .. CUS_API_ROWS_MAX-1), or one of
 * these, which follow the rows. */
enum { CUS_API_ROWS_MAX = 1024 };
enum cus_cause {
    CUS_CAUSE_FIRST_ = CUS_API_ROWS_MAX - 1,
#define CUS_CAUSE(id, key) CUS_CAUSE_##id,
#include "shim/stats/reasons.def"
    CUS_CAUSES
};

enum cus_fallback {
#define CUS_FALLBACK(id, key) CUS_FALLBACK_##id,
#include "shim/stats/reasons.def"
    CUS_FALLBACKS
};

struct cus_counters {
    uint64_t ops[CUS_OP_TYPES];
    uint64_t runtime;              /* launches among them for which the CUDA runtime was not
                                    * entered */
    uint64_t in_graphs;            /* ops issued by a graph launch */
    uint64_t records_in_graphs;    /* records of events and waits for them among these */
    uint64_t eager_by[CUS_EAGERS]; /* ops issued one by one, by reason */
    uint64_t graph_launches;
    uint64_t segments;     /* segments formed */
    uint64_t built;        /* executable graphs instantiated */
    uint64_t submitted;    /* segments that the submit thread launched */
    uint64_t frees;        /* frees of stream-ordered memory that were deferred */
    uint64_t frees_reused; /* of these, whose memory the next allocation got */
    uint64_t runs;         /* runs of ops between two breaks */
    uint64_t steps;
    uint64_t sig_exact, sig_patched,
        sig_missed; /* per segment launch: the graph of its signature existed, another one was
                     * patched, or there was none */
    uint64_t patched_nodes;
    uint64_t flushes[CUS_CAUSES]; /* flushes that found deferred ops */
    uint64_t cuts[CUS_CAUSES];    /* runs of ops in graphs that a call ended: by such a flush, or
                                   * just after a segment was launched. What a kernel cut is in
                                   * its tally */
    uint64_t cut_ops[CUS_CAUSES]; /* ops that those flushes issued one by one */
    uint64_t breaks[CUS_BREAKS];
    uint64_t fallbacks[CUS_FALLBACKS];
    uint64_t graph_bytes; /* the most at any time: device bytes that executable graphs hold, an
                           * estimate */
    uint64_t build_ns;
};

/* Steps of one class, if marker kernels say what a step is (plan/step.h). */
struct cus_stats_step {
    const char *name; /* of the class */
    uint64_t steps;
    const char *runs_as; /* full, piecewise or none */
    char kernel[64];     /* the kernel that decided this; "": none did */
    const char *policy;  /* of the rule that matched the kernel */
    const char *pattern; /* the rule's pattern */
    const char *file;
    int line;
};
enum { CUS_STATS_STEPS = 8 };

/* The signature cache (cache/cache.h): how its file was found, what the file held, and what
 * became of that. */
struct cus_stats_cache {
    const char *state;
    uint64_t entries; /* entries read */
    uint64_t met;     /* of these, paths that the program took */
    uint64_t used;    /* segments formed by these entries */
    uint64_t built;   /* graphs built by these entries */
    uint64_t written; /* how often the file was written */
    uint64_t in_file; /* entries in the file when it was last written, or else read */
};

/* The keys in the stats file. */
extern const char *const cus_op_keys[CUS_OP_TYPES];
extern const char *const cus_eager_keys[CUS_EAGERS], *const cus_break_keys[CUS_BREAKS];

void cus_counters_add(struct cus_counters *to, const struct cus_counters *from);

#endif
