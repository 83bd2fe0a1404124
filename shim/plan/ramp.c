/*
 * Computes segment sizes from a model of when the host launches and when the GPU runs out of work.
 * sizes.c calls these pure functions under the lock of the engine that owns the plan. They never
 * call the driver.
 */
#include "shim/plan/ramp.h"

#include "shim/base/hazard.h"

enum {
    /* Measured on an H200 with driver 580 (tests/gpu/RESULTS.md). NODE_NS: GPU time of a small
     * kernel in a graph. GAP_NS: GPU time from one graph to the next that already waits. GRAPH_NS:
     * host time of one graph launch. OP_NS: what each op adds to that. */
    NODE_NS = 700,
    GAP_NS = 1300,
    GRAPH_NS = 2000,
    OP_NS = 5,
    /* One part in SPARE + 1 of the time to fill a segment stays unused, as the pace varies. A GPU
     * that waits costs more than one more graph. */
    SPARE = 7,
    /* A segment has at most MOST times as many ops as the one before. */
    MOST = 8,
    /* Below this size each segment has at least twice as many ops as the one before. */
    DOUBLE = 16,
    /* If new sizes save one part in OUTGROWN of a step's time, they are worth their graphs. */
    OUTGROWN = 256,
    /* If the host takes longer than this between ops, the GPU is taken to wait for the host. */
    SLOW_NS = 1000,
    /* Largest segment in that case, in ops. */
    SLOW_MAX = 64,
    /* If the GPU is the slower side, a graph saves nothing of the time that a slow host needs, and
     * an idle GPU costs all the time that a segment takes to fill. So that is at most one part in
     * LATE_PART of what it may be otherwise. */
    LATE_PART = 8,
    /* The smoothed pace counts as much as PACE_WEIGHT measured intervals. The first and the last op
     * of a segment cost more than those between. */
    PACE_WEIGHT = 64,
    /* The same where the host was faster: only a fast host can cause that. */
    PACE_WEIGHT_DOWN = 16,
    PACE_MAX = 1000000000,
    /* One segment raises the pace at most by this factor. */
    PACE_RISE = 2,
};

_Static_assert(NODE_NS + GAP_NS >= GRAPH_NS, "one kernel at least is the host's time for a graph");

uint32_t cus_ramp_paced(uint32_t pace, uint32_t intervals, uint64_t ns) {
    uint64_t each = ns / intervals;
    uint64_t most = pace && pace < PACE_MAX / PACE_RISE ? (uint64_t)pace * PACE_RISE : PACE_MAX;
    each = each < most ? each + 1 : most; /* a thread that waited for a CPU shows no pace */
    uint64_t before = pace ? pace : each;
    uint64_t weight = each < before ? PACE_WEIGHT_DOWN : PACE_WEIGHT;
    uint64_t sum = before * weight + each * intervals;
    weight += intervals;
    return (uint32_t)((sum + weight - 1) / weight); /* rounded up: else a small pace never rises */
}

static uint64_t filling(uint64_t ops, uint32_t pace) {
    return ops * ((uint64_t)pace + OP_NS);
}

/* The most ops that the host can issue within fill_ns (HAZARDS F4). */
static uint32_t filled_in_time(const struct cus_ramp_limits *limits, uint32_t pace) {
    bool bound = CUS_HAZARD(F4) && pace && limits->fill_ns;
    uint32_t fill_ns = limits->fill_ns / (limits->late && pace > SLOW_NS ? LATE_PART : 1);
    return bound && limits->max > fill_ns / pace ? fill_ns / pace : limits->max;
}

/* GPU work left after `ops` more ops are launched, where `lead` was left before. */
static uint64_t lead_behind(uint64_t lead, uint32_t ops, uint32_t pace) {
    uint64_t took = filling(ops, pace) + GRAPH_NS, queued = lead + GAP_NS;
    return (queued > took ? queued - took : 0) + (uint64_t)ops * NODE_NS;
}

/* The least size of the segment behind one of `ops` ops. It is a quarter larger, since each launch
 * costs host time. If the host cannot keep the GPU busy, the GPU waits for each segment, so the
 * growth is no faster. Segments below DOUBLE ops double, and so do all whose pace is unknown or
 * slow (SLOW_NS). */
static uint32_t least_behind(uint32_t ops, uint32_t pace) {
    return !pace || pace > SLOW_NS || ops < DOUBLE ? 2 * ops : ops + ops / 4;
}

struct cus_ramp cus_ramp_up(const struct cus_ramp_limits *limits, struct cus_ramp ramp,
                            uint32_t ops, uint32_t pace) {
    if (ops < ramp.size)
        ops = ramp.size;
    if (ops > limits->max)
        ops = limits->max;
    uint64_t size = least_behind(ops, pace), lead = 0;
    if (pace) {
        lead = lead_behind(ramp.lead_ns, ops, pace);
        /* Never negative: `lead` contains at least one op of the segment (see the assertion
         * above). */
        uint64_t time = lead + GAP_NS - GRAPH_NS;
        time -= time / (SPARE + 1);
        uint64_t fits = time / ((uint64_t)pace + OP_NS);
        if (fits > (uint64_t)ops * MOST)
            fits = (uint64_t)ops * MOST;
        if (size < fits)
            size = fits;
    }
    return (struct cus_ramp){
        .size = size < limits->max ? (uint32_t)size : limits->max,
        .lead_ns = lead < UINT32_MAX ? (uint32_t)lead : UINT32_MAX,
    };
}

uint32_t cus_ramp_looks(uint32_t pace) {
    return pace > SLOW_NS ? 2 * SLOW_MAX : 0;
}

uint32_t cus_ramp_size(const struct cus_ramp_limits *limits, struct cus_ramp ramp, uint32_t pace,
                       uint32_t ahead) {
    uint32_t max = filled_in_time(limits, pace);
    uint32_t size = ramp.size < max ? ramp.size : max;
    /* The host waits for what it launches last, so the last segments of a step are small. */
    if (CUS_HAZARD(F5) && pace > SLOW_NS) {
        if (size > SLOW_MAX)
            size = SLOW_MAX;
        if (ahead < 2 * size)
            size = (ahead + 1) / 2;
    }
    return size > limits->first ? size : limits->first;
}

/* Time from a step's begin until the GPU has finished its `ops` ops. Segments have the sizes that
 * these limits give at the pace `formed`, and the host keeps the pace `pace`. */
static uint64_t step_ns(const struct cus_ramp_limits *limits, uint32_t formed, uint32_t pace,
                        uint32_t ops) {
    struct cus_ramp ramp = {.size = limits->first};
    uint64_t host = 0, lead = 0;
    for (uint32_t left = ops; left;) {
        uint32_t n = cus_ramp_size(limits, ramp, formed, left);
        n = n < left ? n : left;
        host += filling(n, pace) + GRAPH_NS;
        lead = lead_behind(lead, n, pace);
        ramp = cus_ramp_up(limits, ramp, n, formed);
        left -= n;
    }
    return host + lead;
}

bool cus_ramp_outgrown(const struct cus_ramp_limits *formed_in, uint32_t formed,
                       const struct cus_ramp_limits *limits, uint32_t pace, uint32_t ops) {
    uint64_t now = step_ns(limits, pace, pace, ops);
    return step_ns(formed_in, formed, pace, ops) > now + now / OUTGROWN;
}
