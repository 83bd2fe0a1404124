/*
 * How many ops the next segment of a step may have.
 *
 * A step begins with a small segment, so that the GPU starts soon. While it runs that one the host
 * fills the next, and each segment is as large as the host can fill, and bring to the GPU, before
 * the GPU runs out of work: the sizes come from a clock of both sides that knows the host's pace
 * and takes the step's kernels for small ones. Larger kernels leave the host more time than it
 * needs, and segments that are smaller than they might be cost them little.
 *
 * Pure functions of plain data: no lock, no clock, no memory.
 */
#ifndef CUSPLICE_PLAN_RAMP_H
#define CUSPLICE_PLAN_RAMP_H

#include <stdbool.h>
#include <stdint.h>

struct cus_ramp_limits {
    uint32_t first;   /* ops of the first segment of a step, at least 1; none may have less */
    uint32_t max;     /* ops that any segment may have at most */
    uint32_t fill_ns; /* host time that a segment may take to fill; 0: any */
};

/* Where a step has got to. */
struct cus_ramp {
    uint32_t size;    /* ops that the next segment may have, if the step goes on for long */
    uint32_t lead_ns; /* what the GPU then still has to do of what was launched; 0: not known, or
                         nothing was. How long the first kernel of a graph takes to begin on an idle
                         GPU is not in it: each graph takes that long */
};

/* The pace (ns between ops, smoothed; 0: not known) once the host took `ns` for so many intervals
 * (at least one) between the ops of a segment. */
uint32_t cus_ramp_paced(uint32_t pace, uint32_t intervals, uint64_t ns);

/* How far ahead of the next segment the end of its step changes the size: 0: it does not. */
uint32_t cus_ramp_looks(const struct cus_ramp_limits *limits, struct cus_ramp ramp, uint32_t pace);

/* Ops of the next segment with so many ahead of it in the step, itself included, as far as looked.
 */
uint32_t cus_ramp_size(const struct cus_ramp_limits *limits, struct cus_ramp ramp, uint32_t pace,
                       uint32_t ahead);

/* Behind a segment of so many ops, at least one. One that was smaller than it might be (the path
 * has a boundary there) counts as large as that. */
struct cus_ramp cus_ramp_up(const struct cus_ramp_limits *limits, struct cus_ramp ramp,
                            uint32_t ops, uint32_t pace);

/* A step so far: what the host took for it, and what the GPU then still has to do. Begins as 0. */
struct cus_ramp_step {
    uint64_t host_ns, lead_ns;
};
/* A segment of so many ops is filled and launched. */
void cus_ramp_launch(struct cus_ramp_step *step, uint32_t ops, uint32_t pace);
/* A whole one of so many ops, where segments are cut within these limits at the pace `formed`. */
struct cus_ramp_step cus_ramp_cut(const struct cus_ramp_limits *limits, uint32_t formed,
                                  uint32_t pace, uint32_t ops);
/* From when it begins until the GPU has done it. */
static inline uint64_t cus_ramp_step_ns(struct cus_ramp_step step) {
    return step.host_ns + step.lead_ns;
}

/* Is it worth the graphs of a step of so many ops to cut it anew, where segments were cut within
 * the limits `formed_in` at the pace `formed` and these are those of now? */
bool cus_ramp_outgrown(const struct cus_ramp_limits *formed_in, uint32_t formed,
                       const struct cus_ramp_limits *limits, uint32_t pace, uint32_t ops);

#endif
