/*
 * Sizes of segments, by a clock of host and GPU.
 *
 * Runs under the lock of the engine that owns the plan. Never calls the driver.
 */
#include "shim/plan/ramp.h"

#include <stddef.h>

#include "shim/base/hazard.h"
#include "shim/base/pays.h"

enum {
    /* On an H200 with driver 580 (tests/gpu/RESULTS.md): GPU time of a small kernel in a graph,
     * from one graph to the next one that waits already, host time of launching one, and what each
     * op adds to that. */
    NODE_NS = 700,
    GAP_NS = 1300,
    GRAPH_NS = 2000,
    OP_NS = 5,
    SPARE = 7,     /* of the time that the host has to fill a segment this part is left over, for a
                      pace that wobbles: a GPU that waits costs more than one more graph */
    MOST = 8,      /* growth from segment to segment, at most */
    DOUBLE = 16,   /* up to this size a segment has twice as many ops as the one before, at least */
    SURE_NS = 200, /* gain by which a size is preferred to a smaller one */
    OUTGROWN = 256,   /* the part of a step's time that makes it worth to cut it anew */
    AHEAD = 2048,     /* a step that goes on for longer is as good as one without an end */
    SLOW_NS = 1000,   /* host time between ops from which the GPU is taken to wait for the host */
    SLOW_MAX = 64,    /* ops of a segment there */
    PACE_WEIGHT = 64, /* intervals between ops that what is known of the pace counts for: the first
                         and the last op of a segment cost more than those between */
    PACE_WEIGHT_DOWN = 16, /* where the host was faster: nothing but being fast makes it so */
    PACE_MAX = 1000000000,
    PACE_RISE = 2, /* what one segment can make of the pace at most */
};

_Static_assert(NODE_NS + GAP_NS >= GRAPH_NS, "one kernel at least is the host's time for a graph");

uint32_t cus_ramp_paced(uint32_t pace, uint32_t intervals, uint64_t ns) {
    uint64_t each = ns / intervals;
    uint64_t most = pace && pace < PACE_MAX / PACE_RISE ? (uint64_t)pace * PACE_RISE : PACE_MAX;
    each = each < most ? each + 1 : most; /* a thread that waited for a processor has no pace */
    uint64_t before = pace ? pace : each;
    uint64_t weight = each < before ? PACE_WEIGHT_DOWN : PACE_WEIGHT;
    uint64_t sum = before * weight + each * intervals;
    weight += intervals;
    return (uint32_t)((sum + weight - 1) / weight); /* up, or a small one never rises */
}

static uint64_t filling(uint64_t ops, uint32_t pace) {
    return ops * ((uint64_t)pace + OP_NS);
}

/* The most ops that the host fills in time (HAZARDS F4). */
static uint32_t filled_in_time(const struct cus_ramp_limits *limits, uint32_t pace) {
    bool bound = CUS_HAZARD(F4) && pace && limits->fill_ns;
    return bound && limits->max > limits->fill_ns / pace ? limits->fill_ns / pace : limits->max;
}

/* What the GPU has to do when so many more ops are launched. */
static uint64_t lead_behind(uint64_t lead, uint32_t ops, uint32_t pace) {
    uint64_t took = filling(ops, pace) + GRAPH_NS, queued = lead + GAP_NS;
    return (queued > took ? queued - took : 0) + (uint64_t)ops * NODE_NS;
}

/* The least size behind a segment of so many ops. Where the host is not fast enough to keep the GPU
 * busy segments get larger all the same, since each costs the host a launch, but slowly, as the GPU
 * waits for each of them. */
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
        /* At least nothing: the segment itself counts. */
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

/* A segment of so many ops, or of all that are left, where waiting for the rest takes less than a
 * graph more. */
static uint32_t with_rest(uint32_t size, uint32_t max, uint32_t left, uint32_t pace) {
    if (size >= left)
        return left;
    return CUS_PAYS(EVENED_REST) && left <= max && filling(left - size, pace) < GAP_NS ? left
                                                                                       : size;
}

/* From now until the GPU is done, where the next segment has so many ops and those behind it,
 * `left` ops in all, grow as far as they may. */
static uint64_t until_done(const struct cus_ramp_limits *limits, struct cus_ramp ramp,
                           uint32_t next, uint32_t pace, uint32_t left) {
    uint32_t max = filled_in_time(limits, pace);
    uint64_t time = 0;
    ramp.size = next;
    while (left) {
        uint32_t ops = with_rest(ramp.size < max ? ramp.size : max, max, left, pace);
        ops = ops ? ops : 1;
        time += filling(ops, pace) + GRAPH_NS;
        ramp = cus_ramp_up(limits, (struct cus_ramp){ops, ramp.lead_ns}, ops, pace);
        left -= ops;
    }
    return time + ramp.lead_ns;
}

/* A segment may have somewhat more ops than the host can fill in time, where that makes one segment
 * less, or sizes that fit the rest of the step better. */
static uint32_t evened(const struct cus_ramp_limits *limits, struct cus_ramp ramp, uint32_t size,
                       uint32_t max, uint32_t pace, uint32_t ahead) {
    static const uint32_t eighths[] = {8, 9, 10, 11, 12};
    uint32_t best = size;
    uint64_t least = 0;
    size_t n = CUS_PAYS(EVENED_SIZES) ? sizeof eighths / sizeof *eighths : 1;
    for (size_t i = 0; i < n; i++) {
        uint32_t ops = size * eighths[i] / 8;
        ops = with_rest(ops < max ? ops : max, max, ahead, pace);
        uint64_t ns = until_done(limits, ramp, ops, pace, ahead);
        if (i && ns + SURE_NS >= least)
            continue;
        best = ops;
        least = ns;
    }
    return best;
}

uint32_t cus_ramp_looks(const struct cus_ramp_limits *limits, struct cus_ramp ramp, uint32_t pace) {
    if (pace > SLOW_NS)
        return 2 * SLOW_MAX;
    bool looks = CUS_PAYS(EVENED_SIZES) || CUS_PAYS(EVENED_REST);
    return looks && ramp.lead_ns && ramp.size < filled_in_time(limits, pace) ? AHEAD : 0;
}

uint32_t cus_ramp_size(const struct cus_ramp_limits *limits, struct cus_ramp ramp, uint32_t pace,
                       uint32_t ahead) {
    uint32_t max = filled_in_time(limits, pace);
    uint32_t size = ramp.size < max ? ramp.size : max;
    /* What is deferred last before the host waits is what the host then waits for. */
    if (CUS_HAZARD(F5) && pace > SLOW_NS) {
        if (size > SLOW_MAX)
            size = SLOW_MAX;
        if (ahead < 2 * size)
            size = (ahead + 1) / 2;
    } else if (size < ahead && ahead < cus_ramp_looks(limits, ramp, pace)) {
        size = evened(limits, ramp, size, max, pace, ahead);
    }
    return size > limits->first ? size : limits->first;
}

void cus_ramp_launch(struct cus_ramp_step *step, uint32_t ops, uint32_t pace) {
    step->host_ns += filling(ops, pace) + GRAPH_NS;
    step->lead_ns = lead_behind(step->lead_ns, ops, pace);
}

struct cus_ramp_step cus_ramp_cut(const struct cus_ramp_limits *limits, uint32_t formed,
                                  uint32_t pace, uint32_t ops) {
    struct cus_ramp cut = {.size = limits->first};
    struct cus_ramp_step step = {0, 0};
    for (uint32_t left = ops; left;) {
        uint32_t n = cus_ramp_size(limits, cut, formed, left);
        n = n < left ? n : left;
        cus_ramp_launch(&step, n, pace);
        cut = cus_ramp_up(limits, cut, n, formed);
        left -= n;
    }
    return step;
}

bool cus_ramp_outgrown(const struct cus_ramp_limits *formed_in, uint32_t formed,
                       const struct cus_ramp_limits *limits, uint32_t pace, uint32_t ops) {
    uint64_t now = cus_ramp_step_ns(cus_ramp_cut(limits, pace, pace, ops));
    return cus_ramp_step_ns(cus_ramp_cut(formed_in, formed, pace, ops)) > now + now / OUTGROWN;
}
