/*
 * The counters behind the stats file.
 *
 * Each engine (one per stream) owns one `struct cus_counters` that its lock guards; the process
 * owns another for what happens outside any stream. The writer adds them up; a torn read of a
 * counter that is being written costs nothing but a late number. Whenever a stream's
 * lock is free: sum of ops[] = in_graphs + sum of eager_by[] + ops deferred + calls under way
 * (cus_engine_check).
 */
#ifndef CUSPLICE_STATS_STATS_H
#define CUSPLICE_STATS_STATS_H

#include <stddef.h>
#include <stdint.h>

enum cus_op_type { CUS_OP_LAUNCH, CUS_OP_MEMSET, CUS_OP_COPY, CUS_OP_TYPES };

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

/* A flush cause is an API row of cuda_api.def (0 .. CUS_API_ROWS_MAX-1) or one of these, counted
 * from the end of the rows. */
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
    uint64_t runtime;              /* of them, launches that the CUDA runtime was not entered for */
    uint64_t in_graphs;            /* ops issued by a graph launch */
    uint64_t eager_by[CUS_EAGERS]; /* ops issued one by one, by reason */
    uint64_t graph_launches;
    uint64_t segments;  /* segments formed */
    uint64_t built;     /* executable graphs instantiated */
    uint64_t submitted; /* segments submitted over to the library's thread, and launched */
    uint64_t borrowed;  /* segments launched by the graph of another segment, for want of memory */
    uint64_t runs;      /* runs of ops between two breaks */
    uint64_t steps;
    uint64_t sig_exact, sig_patched,
        sig_missed; /* per segment launch: its signature's exec, another one patched, none */
    uint64_t patched_nodes;
    uint64_t flushes[CUS_CAUSES]; /* flushes that found something deferred */
    uint64_t
        cuts[CUS_CAUSES];         /* runs of ops in graphs that it ended: those flushes, and where a
                                     segment had just been launched; what a kernel cut is in its tally */
    uint64_t cut_ops[CUS_CAUSES]; /* ops that those flushes issued one by one */
    uint64_t breaks[CUS_BREAKS];
    uint64_t fallbacks[CUS_FALLBACKS];
    uint64_t
        graph_bytes; /* the most at any time: estimate of device bytes held by executable graphs */
    uint64_t build_ns;
};

/* Steps of one class, where marker kernels say what a step is (plan/step.h). */
struct cus_stats_step {
    const char *name; /* of the class */
    uint64_t steps;
    const char *runs_as; /* full, piecewise or none */
    char kernel[64];     /* that decided so, "" where none did */
    const char *policy;  /* of the rule that it fell under */
    const char *pattern; /* the rule's */
    const char *file;
    int line;
};
enum { CUS_STATS_STEPS = 8 };

/* The signature cache (cache/cache.h): how the file was found, what was in it, what came of that.
 */
struct cus_stats_cache {
    const char *state;
    uint64_t entries; /* read */
    uint64_t met;     /* of those: paths that came */
    uint64_t used;    /* segments formed by them, and */
    uint64_t built;   /* graphs built so */
    uint64_t written; /* times that the file was written */
    uint64_t in_file; /* entries in it then, or when it was read */
};

/* As the stats file names them. */
extern const char *const cus_eager_keys[CUS_EAGERS], *const cus_break_keys[CUS_BREAKS];

/* Adds every counter of `from` to `to`. */
void cus_counters_add(struct cus_counters *to, const struct cus_counters *from);

#endif
