/*
 * What `cusplice whatif` found, and how it is shown. verb_whatif.c calls it, and verb_calibrate.c
 * reads times of its recordings by it. One thread. No function here plays a trace.
 */
#ifndef CUSPLICE_TOOLS_CLI_WHATIF_H
#define CUSPLICE_TOOLS_CLI_WHATIF_H

#include "tools/trace/table.h"
#include "tools/whatif/cost.h"
#include "tools/whatif/kernels.h"
#include "tools/whatif/player.h"

/* What the recording says became of its ops. */
struct whatif_recorded {
    uint64_t ops[CUS_OP_TYPES], in_graphs, eager, graph_launches, exact, patched, missed,
        patched_nodes, host_ns;
};

/* How long launches took on the host when they were recorded, on average, and the difference of the
 * quartiles; below 0: too few. And the program itself behind them: see whatif_timing. */
struct whatif_recording {
    double eager, matched, eager_apart, matched_apart;
    double behind_eager, behind_graph; /* 0: too few */
};

struct whatif_known {
    struct whatif_measured measured;
    struct whatif_recording recording;
    struct whatif_timing timing;
    uint32_t *gpu_ns; /* what timing refers to; the caller's to free */
};

struct whatif_try {
    const struct whatif_kernel *kernel;
    struct whatif_played played;
};

struct whatif_found {
    const struct cst_trace *trace;
    const struct whatif_cost *cost;
    struct whatif_recorded recorded;
    struct whatif_known known;
    struct whatif_played baseline, hypothesis;
    struct whatif_played plain; /* by the driver alone; zeroed where the trace has no steps */
    bool asked;                 /* there is a hypothesis */
    struct whatif_try *tries;   /* of a sweep, cheapest first */
    uint32_t n_tries, kernels;
    bool no_options, guessed_rules, imported;
    uint64_t from; /* the first step that was recorded */
};

/* GPU times are those of `gpu_times`, a trace of the same program, if that is not NULL. False: no
 * memory. */
bool cli_whatif_times(const struct cst_trace *trace, const struct cst_trace *gpu_times,
                      const struct whatif_cost *cost, struct whatif_known *out);
/* What launches took. `program`: of a program, which begins slowly; otherwise of a loop that did
 * nothing else, all of it. */
bool cli_whatif_host(const struct cst_trace *trace, bool program, struct whatif_recording *out);

/* `all`: every row of a table for people, not only what is most important or differs. */
void cli_whatif_show(const struct whatif_found *found, enum table_format format, bool all);

#endif
