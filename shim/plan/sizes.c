/*
 * Chooses how many ops each segment of a step gets, and forms segments of that size.
 * The plan's files call it under the engine's lock, when a segment is formed or begins, when a pace
 * is reported, and when a step ends. Matching an op never runs it, and it never calls the driver.
 * Measured gain of forming segments anew once (tests/gpu/RESULTS.md; one H100, driver 580.159.04):
 * growth with 8 grids 6.2 %.
 */
#include "shim/plan/sizes.h"

#include "shim/base/mem.h"
#include "shim/base/pays.h"
#include "shim/plan/advice.h"
#include "shim/plan/learn.h"

enum {
    /* Segments are formed again if the build quota has grown by one part in LARGER_PART, since the
     * first builds are slow. */
    LARGER_PART = 4,
    /* The same if an earlier run advised segments: their sizes were not chosen while the host was
     * slow. The pace must be ADVISED_FASTER times as fast, or the quota ADVISED_LARGER times as
     * large. */
    ADVISED_FASTER = 4,
    ADVISED_LARGER = 2,
    /* The pace is compared only if it set the size of one segment in PACED_PART. Otherwise breaks
     * decide where segments end, at any pace. */
    PACED_PART = 4,
    /* Ops of a loop's first segment, before the host's pace is known. */
    UNPACED = 16,
    /* A wait is long if it takes one part in LONG_WAIT of the time in which the host issued the
     * step. The GPU counts as the slower side once long waits lead short ones by WAITS, until there
     * were as many short ones. */
    LONG_WAIT = 2,
    WAITS = 4,
    /* After memory ran out, visits of a head node until a segment is tried there again. */
    RETRY_NO_ROOM = 64,
};

/* Ops from `node` to the end of the expected path, at most `max`. A loop is taken not to end. */
static uint32_t ops_ahead(const struct cus_node *node, uint32_t max) {
    uint32_t n = 0;
    for (; node && n < max; node = node->join ? NULL : node->expect) {
        if (node->loop_end)
            return max;
        n++;
    }
    return n;
}

static struct cus_ramp_limits sizes_of(const struct cus_plan *plan) {
    const struct cus_plan_limits *limits = &plan->limits;
    uint32_t max = limits->segment_max;
    return (struct cus_ramp_limits){
        .first = limits->segment_first < max ? limits->segment_first : max,
        .max =
            plan->view.build_quota && plan->view.build_quota < max ? plan->view.build_quota : max,
        .fill_ns = limits->segment_ns,
        .late = plan->late,
    };
}

static uint32_t segment_size(const struct cus_plan *plan, const struct cus_node *node,
                             struct cus_ramp ramp) {
    struct cus_ramp_limits limits = sizes_of(plan);
    uint32_t ahead = ops_ahead(node, cus_ramp_looks(plan->view.ns_per_op));
    /* Other paths begin with small segments, which tell the pace. */
    if (!plan->view.ns_per_op && node->loop && limits.max > UNPACED)
        limits.max = UNPACED;
    return cus_ramp_size(&limits, ramp, plan->view.ns_per_op, ahead);
}

void cus_sizes_up(struct cus_plan *plan, const struct cus_segment *segment) {
    struct cus_ramp_limits limits = sizes_of(plan);
    plan->ramp = cus_ramp_up(&limits, plan->ramp, segment->n, plan->view.ns_per_op);
}

void cus_plan_paced(struct cus_plan *plan, uint32_t intervals, uint64_t ns) {
    plan->view.ns_per_op = cus_ramp_paced(plan->view.ns_per_op, intervals, ns);
}

struct cus_segment *cus_plan_form(struct cus_plan *plan, struct cus_node *node, uint32_t lead,
                                  struct cus_ramp ramp) {
    uint32_t advised = lead ? 0 : cus_advice_cut(plan, node);
    uint32_t size = advised ? advised : segment_size(plan, node, ramp);
    uint64_t refused = cus_mem_refused();
    struct cus_segment *segment, *in_way;
    while (!(segment = cus_segment_form(node, lead, size, plan->limits.warmup, &plan->dispatch,
                                        &in_way)) &&
           in_way && !lead)
        cus_learn_drop(plan, in_way);
    if (!segment) {
        node->retry_at = node->visits + (cus_mem_refused() == refused ? 1 : RETRY_NO_ROOM);
        return NULL;
    }
    cus_learn_add(plan, segment);
    if (advised)
        cus_advice_formed(plan, segment);
    /* A segment that ends for another reason has the same size at any pace. */
    bool full = segment->n >= size && !advised && !segment->nodes[segment->n - 1]->boundary;
    uint32_t first = sizes_of(plan).first,
             bound = plan->view.build_quota > first ? plan->view.build_quota : first;
    if (full)
        segment->formed_ns = plan->view.ns_per_op;
    if (full && plan->view.build_quota && segment->n >= bound)
        segment->bounded = true;
    return segment;
}

/* What shaped the segments. */
struct shaped {
    uint64_t paces, n_paced;    /* sum and number of the paces that set a segment's size */
    uint64_t quotas, n_bounded; /* the same for build quotas that kept a segment small */
};

static struct shaped shaped_by(const struct cus_plan *plan) {
    struct shaped by = {0, 0, 0, 0};
    for (const struct cus_segment *segment = plan->view.segments; segment;
         segment = segment->next) {
        if (segment->stale)
            continue; /* it goes in any case */
        by.paces += segment->formed_ns;
        by.n_paced += segment->formed_ns > 0;
        by.quotas += segment->bounded ? segment->n : 0;
        by.n_bounded += segment->bounded;
    }
    return by;
}

/* Could segments be larger now than they are, and is that worth their graphs? Segments count as
 * formed at their average pace, because a few of a thousand steps always meet a busy host. */
static bool outgrown(const struct cus_plan *plan) {
    struct cus_ramp_limits now = sizes_of(plan), before = now;
    struct shaped by = shaped_by(plan);
    uint64_t pace = plan->view.ns_per_op, formed = pace, quota = now.max;
    if (by.n_paced * PACED_PART >= plan->view.n_segments)
        formed = by.paces / by.n_paced;
    if (formed <= (plan->advised ? pace * ADVISED_FASTER : pace / 2 * 3))
        formed = pace;
    if (by.n_bounded * 2 > by.n_paced)
        quota = by.quotas / by.n_bounded;
    if ((plan->advised ? quota * ADVISED_LARGER : quota + quota / LARGER_PART) <= now.max)
        before.max = (uint32_t)quota;
    return cus_ramp_outgrown(&before, (uint32_t)formed, &now, plan->view.ns_per_op, plan->longest);
}

/* The first segments are formed while the host is slow, or while other threads delay it or the
 * driver. If larger sizes are now worth their graphs, all segments become stale, once until the
 * paths are forgotten. When a step has come again, as many of its stale segments go as the next
 * step may build. */
void cus_sizes_settle(struct cus_plan *plan) {
    if (!plan->view.n_segments || !plan->settle_in || --plan->settle_in || !CUS_PAYS(REFORM) ||
        !outgrown(plan))
        return;
    for (struct cus_segment *segment = plan->view.segments; segment; segment = segment->next)
        segment->stale = true;
    plan->n_stale = plan->view.n_segments;
}

/* Segments that take the host at least twice as long to fill as they may now become stale. Those
 * that are a little larger may be so because nobody cuts them there. */
static void shrink(struct cus_plan *plan) {
    struct cus_ramp_limits now = sizes_of(plan);
    now.max = plan->limits.segment_max; /* what one step may build is no reason */
    struct cus_ramp largest = {.size = now.max};
    uint32_t most = cus_ramp_size(&now, largest, plan->view.ns_per_op, UINT32_MAX);
    for (struct cus_segment *segment = plan->view.segments; segment; segment = segment->next)
        if (segment->n >= 2 * most && !segment->stale) {
            segment->stale = true;
            plan->n_stale++;
        }
}

void cus_plan_waited(struct cus_plan *plan, uint64_t ns) {
    uint64_t issuing = (uint64_t)plan->ended * plan->view.ns_per_op;
    plan->ended = 0;
    if (!issuing)
        return;
    bool is_long = ns >= issuing / LONG_WAIT;
    if (is_long && plan->waits < 2 * WAITS)
        plan->waits++;
    else if (!is_long && plan->waits)
        plan->waits--;
    if (!plan->waits || !CUS_PAYS(LATE))
        plan->late = false;
    else if (plan->waits >= WAITS)
        plan->late = true;
    if (plan->late && !plan->was_late && plan->view.n_segments) {
        plan->was_late = true;
        shrink(plan);
    }
}
