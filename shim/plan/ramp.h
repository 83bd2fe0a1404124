/*
 * Computes how many ops the next segment of a step may have. sizes.c calls it; pure functions of
 * plain data, without a lock, clock or allocation.
 * A step begins with a small segment, so that the GPU starts soon. While the GPU runs one segment,
 * the host fills the next one. Each is as large as the host can launch before the GPU runs out of
 * work. The model takes the step's kernels for small ones; with larger kernels, segments that are
 * too small cost little.
 */
#ifndef CUSPLICE_PLAN_RAMP_H
#define CUSPLICE_PLAN_RAMP_H

#include <stdbool.h>
#include <stdint.h>

struct cus_ramp_limits {
    uint32_t first;   /* ops of a step's first segment, at least 1; the least of any */
    uint32_t max;     /* most ops of any segment */
    uint32_t fill_ns; /* most host time to fill a segment; 0: any */
    bool late;        /* the host waits for the GPU for long: see LATE_PART */
};

/* The state of the model within a step. */
struct cus_ramp {
    /* Ops that the next segment may have, if the step is long enough. */
    uint32_t size;
    /* Work that the GPU still has when the last graph was launched; 0: not known, or no graph was
     * launched. The time that an idle GPU needs to begin a graph is left out, since it is the same
     * for each graph. */
    uint32_t lead_ns;
};

/* Returns the new pace (ns between ops, smoothed; 0: not known) after the host took `ns` for
 * `intervals` (at least one) between the ops of a segment. */
uint32_t cus_ramp_paced(uint32_t pace, uint32_t intervals, uint64_t ns);

/* How many ops before its end a step's end begins to change the size; 0: never. */
uint32_t cus_ramp_looks(uint32_t pace);

/* Ops of the next segment, where the step has `ahead` more ops, those of that segment included.
 * `ahead` may stop at cus_ramp_looks. */
uint32_t cus_ramp_size(const struct cus_ramp_limits *limits, struct cus_ramp ramp, uint32_t pace,
                       uint32_t ahead);

/* The state behind a segment of `ops` ops, at least one. A segment that a boundary made smaller
 * than it might be counts as `ramp.size` ops. */
struct cus_ramp cus_ramp_up(const struct cus_ramp_limits *limits, struct cus_ramp ramp,
                            uint32_t ops, uint32_t pace);

/* Does a step of `ops` ops gain enough from new sizes to pay for its new graphs? Its segments were
 * formed within `formed_in` at the pace `formed`; `limits` and `pace` are those of now. */
bool cus_ramp_outgrown(const struct cus_ramp_limits *formed_in, uint32_t formed,
                       const struct cus_ramp_limits *limits, uint32_t pace, uint32_t ops);

#endif
