/*
 * Chooses how many ops each segment of a step gets, and forms segments of that size.
 * The plan's files call it under the engine's lock, when a segment is formed, launched or dropped,
 * and when a step ends. Matching an op never runs it, and it never calls the driver.
 * Measured gain of forming segments again (tests/gpu/RESULTS.md, one H100): hostloop of 240
 * launches 1.4 %, of 1000 launches 0.8 %; "phases shapes" is slower by it (0.785).
 */
#include "shim/plan/sizes.h"

#include "shim/base/mem.h"
#include "shim/base/pays.h"
#include "shim/plan/account.h"
#include "shim/plan/advice.h"
#include "shim/plan/learn.h"

enum {
    /* Steps until cus_sizes_settle first compares the segments with what the pace allows. The first
     * look is early, since forming segments again loses all their variants. Each later look comes
     * after twice as many steps. */
    SETTLE_STEPS = 6,
    SETTLE_MAX = 1 << 20,
    SETTLE_FASTER = 4,
    /* At a later look, segments are formed again if the build quota has grown by the factor
     * SETTLE_LARGER. SETTLE_FASTER: the same for the pace. */
    SETTLE_LARGER = 2,
    /* At the first look, growth by one part in SETTLE_LARGER_PART is enough, since the first builds
     * are slow. */
    SETTLE_LARGER_PART = 4,
    /* The time saved until the next look must be PAYS times the cost of building all graphs
     * again. */
    PAYS = 2,
    /* The least gain in each step, in ns. The model in ramp.c is no more exact than this. */
    PAYS_NS = 700,
    /* The pace is compared only if it set the size of one segment in PACED_PART. Otherwise breaks
     * decide where segments end, at any pace. */
    PACED_PART = 4,
    /* After memory ran out, visits of a head node until a segment is tried there again. */
    RETRY_NO_ROOM = 64,
};

void cus_sizes_begin(struct cus_plan *plan) {
    plan->settle_in = plan->settle_every = SETTLE_STEPS;
}

/* Ops from `node` to the end of the expected path, at most `max`. */
static uint32_t ops_ahead(const struct cus_node *node, uint32_t max) {
    uint32_t n = 0;
    for (; node && n < max; node = node->loop_end || node->join ? NULL : node->expect)
        n++;
    return n;
}

static struct cus_ramp_limits sizes_of(const struct cus_plan *plan) {
    const struct cus_plan_limits *limits = &plan->limits;
    uint32_t max = limits->segment_max;
    return (struct cus_ramp_limits){
        .first = limits->segment_first < max ? limits->segment_first : max,
        .max = plan->build_quota && plan->build_quota < max ? plan->build_quota : max,
        .fill_ns = limits->segment_ns,
    };
}

static uint32_t segment_size(const struct cus_plan *plan, const struct cus_node *node,
                             struct cus_ramp ramp) {
    struct cus_ramp_limits limits = sizes_of(plan);
    uint32_t far = cus_ramp_looks(&limits, ramp, plan->ns_per_op);
    return cus_ramp_size(&limits, ramp, plan->ns_per_op, ops_ahead(node, far));
}

void cus_sizes_up(struct cus_plan *plan, const struct cus_segment *segment) {
    struct cus_ramp_limits limits = sizes_of(plan);
    plan->ramp = cus_ramp_up(&limits, plan->ramp, segment->n, plan->ns_per_op);
}

void cus_plan_paced(struct cus_plan *plan, uint32_t intervals, uint64_t ns) {
    plan->ns_per_op = cus_ramp_paced(plan->ns_per_op, intervals, ns);
}

/* Is the segment stale, and has it at most one graph, so that little is lost with it? */
static bool may_go(const struct cus_plan *plan, const struct cus_segment *segment) {
    return segment->sizing != plan->sizing && segment->n_variants < 2;
}

/* Forms a segment. If a stale segment begins directly behind it and both together fit into `size`,
 * the stale one is dropped and becomes part of the new one. A step may build as many ops as its
 * quota allows, and stale segments need not end where new ones do. */
static struct cus_segment *form(struct cus_plan *plan, struct cus_node *node, uint32_t lead,
                                uint32_t size) {
    struct cus_segment *segment, *behind;
    while ((segment = cus_segment_form(node, lead, size, plan->limits.warmup, &plan->dispatch)) &&
           CUS_PAYS(REFORM_MERGE) && (behind = cus_segment_behind(segment)) &&
           may_go(plan, behind) && segment->n + behind->n <= size) {
        cus_segment_free(segment);
        cus_learn_drop(plan, behind);
    }
    return segment;
}

struct cus_segment *cus_plan_form(struct cus_plan *plan, struct cus_node *node, uint32_t lead,
                                  struct cus_ramp ramp) {
    uint32_t advised = lead ? 0 : cus_advice_cut(plan, node);
    uint32_t size = advised ? advised : segment_size(plan, node, ramp);
    uint64_t refused = cus_mem_refused();
    struct cus_segment *segment = form(plan, node, lead, size);
    if (!segment) {
        node->retry_at = node->visits + (cus_mem_refused() == refused ? 1 : RETRY_NO_ROOM);
        return NULL;
    }
    cus_learn_add(plan, segment);
    if (advised)
        cus_advice_formed(plan, segment);
    /* A segment that ends for another reason has the same size at any pace. */
    bool bounded = segment->nodes[segment->n - 1]->boundary || advised;
    const struct cus_segment *behind = cus_segment_behind(segment);
    if (!bounded && (segment->n >= size || behind))
        segment->formed_ns = plan->ns_per_op;
    uint32_t first = sizes_of(plan).first,
             bound = plan->build_quota > first ? plan->build_quota : first;
    /* The quota is too small to take in the stale segment behind, too. */
    bool kept = behind && behind->sizing != plan->sizing && size >= bound;
    if (!bounded && plan->build_quota && (segment->n >= bound || kept))
        segment->formed_quota = segment->n;
    plan->paces += segment->formed_ns;
    plan->n_paced += segment->formed_ns > 0;
    plan->quotas += segment->formed_quota;
    plan->n_bounded += segment->formed_quota > 0;
    return segment;
}

void cus_sizes_gone(struct cus_plan *plan, const struct cus_segment *segment) {
    if (segment->sizing != plan->sizing)
        return;
    plan->paces -= segment->formed_ns;
    plan->n_paced -= segment->formed_ns > 0;
    plan->quotas -= segment->formed_quota;
    plan->n_bounded -= segment->formed_quota > 0;
}

/* Could segments be larger now than they are, and is that worth their graphs? Segments count as
 * formed at their average pace, because a few of a thousand steps always meet a busy host. */
static bool outgrown(const struct cus_plan *plan, bool first) {
    struct cus_ramp_limits now = sizes_of(plan), before = now;
    uint64_t pace = plan->ns_per_op, formed = pace;
    if (plan->n_paced * PACED_PART >= plan->n_segments)
        formed = plan->paces / plan->n_paced;
    if (formed <= (first ? pace / 2 * 3 : pace * SETTLE_FASTER))
        formed = pace;
    uint64_t build_quota =
        plan->n_bounded * 2 > plan->n_paced ? plan->quotas / plan->n_bounded : now.max;
    if (build_quota +
            (first ? build_quota / SETTLE_LARGER_PART : build_quota * (SETTLE_LARGER - 1)) <=
        now.max)
        before.max = (uint32_t)build_quota;
    return cus_ramp_outgrown(&before, (uint32_t)formed, &now, plan->ns_per_op, plan->longest);
}

/* Computes what the expected step costs at the present pace, with the segments that it has, and
 * counts its ops. False where an op of it is in no segment. False, too, where a segment ends for
 * another reason than its size or a segment behind it: it would be formed the same. */
static bool as_cut(const struct cus_plan *plan, struct cus_ramp_step *step, uint32_t *ops) {
    const struct cus_node *node = plan->tree.root.expect;
    *step = (struct cus_ramp_step){0, 0};
    *ops = 0;
    while (node) {
        const struct cus_segment *segment = node->segment;
        if (!segment || segment->nodes[0] != node)
            return false;
        const struct cus_node *last = segment->nodes[segment->n - 1];
        node = last->loop_end ? NULL : last->expect;
        if (node && !segment->formed_ns)
            return false;
        cus_ramp_launch(step, segment->n, plan->ns_per_op);
        *ops += segment->n;
    }
    return *ops > 0;
}

/* Does it cost less than `most` to form all segments again? Each graph is built again. A segment
 * whose first graph was put off counts as one graph. */
static bool costs_less(const struct cus_plan *plan, uint64_t most) {
    uint64_t ns = 0;
    for (const struct cus_segment *segment = plan->oldest; segment && ns < most;
         segment = segment->prev) {
        uint64_t graphs = segment->n_variants ? segment->n_variants : 1;
        ns += graphs * (CUS_COST_ANEW + segment->n * CUS_COST_BUILT);
    }
    return ns < most;
}

/* Do the steps until the next look save more than forming all segments again costs? If the host was
 * slow when they were formed, a small gain in each step is enough, for instance one graph less.
 * What lasted until now is taken to last as long again. A step with more ops than the build quota
 * is formed again in parts, and no part extends beyond a segment that is still there. What that
 * saves is not known, so the answer is no. */
static bool pays(const struct cus_plan *plan) {
    struct cus_ramp_limits limits = sizes_of(plan);
    struct cus_ramp_step as_it_is;
    uint32_t ops, pace = plan->ns_per_op;
    if (!as_cut(plan, &as_it_is, &ops) || (plan->build_quota && ops > plan->build_quota))
        return false;
    uint64_t now = cus_ramp_step_ns(as_it_is);
    uint64_t anew = cus_ramp_step_ns(cus_ramp_cut(&limits, pace, pace, ops));
    uint64_t steps = 2 * (uint64_t)plan->settle_every;
    return now >= anew + PAYS_NS && costs_less(plan, (now - anew) * steps / PAYS);
}

/* The first segments are formed while the host is slow, or while other threads delay it or the
 * driver. If the host's pace later proves faster and new sizes are worth their graphs, all segments
 * become stale. Later looks need a much faster pace, or a gain that is paid back, and become rarer.
 * When a step has come again, as many of its stale segments go as the next step may build. */
void cus_sizes_settle(struct cus_plan *plan) {
    if (!plan->n_segments || --plan->settle_in)
        return;
    bool first = plan->settle_every == SETTLE_STEPS;
    /* The sizes that an earlier run advises were not chosen while the host was slow. */
    if ((first ? CUS_PAYS(REFORM_FIRST) : CUS_PAYS(REFORM_LATER)) &&
        (outgrown(plan, first && !plan->advised) || (CUS_PAYS(REFORM_PAYS) && pays(plan)))) {
        plan->sizing++;
        plan->n_stale = plan->n_segments;
        plan->paces = plan->n_paced = 0;
        plan->quotas = plan->n_bounded = 0;
    }
    if (plan->settle_every < SETTLE_MAX)
        plan->settle_every *= 2;
    plan->settle_in = plan->settle_every;
}
