/*
 * How large segments get, and their forming.
 *
 * Runs under the engine's lock, on the rare paths: a segment is formed, or was launched, or a step
 * ended. Never calls the driver.
 */
#include "shim/plan/sizes.h"

#include "shim/base/mem.h"
#include "shim/base/pays.h"
#include "shim/plan/account.h"
#include "shim/plan/advice.h"
#include "shim/plan/learn.h"

enum {
    SETTLE_STEPS = 6, /* after which it is looked whether segments are what the pace allows: soon,
                         as variants are made anew with them; then after twice as many, and so on */
    SETTLE_MAX = 1 << 20,
    SETTLE_FASTER = 4,
    SETTLE_LARGER = 2,      /* times the share that segments had, */
    SETTLE_LARGER_PART = 4, /* or so much of it more, the first time: builds are cold before */
    PAYS = 2, /* times that building all anew has to be paid back until it is looked at again, */
    PAYS_NS = 700,  /* by so much in each step: the clock of the ramp knows no less */
    PACED_PART = 4, /* one of so many segments has the size that the pace allows; where fewer do,
                       breaks shape them, at any pace */
    RETRY_NO_ROOM = 64, /* visits of a head before a segment is tried again that had no memory */
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

/* Is it of before the last decision? One graph of it goes at most. */
static bool may_go(const struct cus_plan *plan, const struct cus_segment *segment) {
    return segment->sizing != plan->sizing && segment->n_variants < 2;
}

/* One that begins behind it and is to be formed anew goes with it where there is room for all of
 * it: as many go at once as a step may build, and where these end need not be where segments do. */
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
    /* One that ends for another reason is the same at any pace. */
    bool bounded = segment->nodes[segment->n - 1]->boundary || advised;
    const struct cus_segment *behind = cus_segment_behind(segment);
    if (!bounded && (segment->n >= size || behind))
        segment->formed_ns = plan->ns_per_op;
    uint32_t first = sizes_of(plan).first,
             bound = plan->build_quota > first ? plan->build_quota : first;
    bool kept = behind && behind->sizing != plan->sizing && size >= bound; /* no room for that */
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

/* Are they smaller, or were they formed at a slower pace, than is possible now, and is it worth it?
 * What counts is how most were formed: of a thousand steps one always met a host that was busy. */
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

/* A step as it is cut, the one that came last or one that begins like it, by the clock of the ramp
 * at the pace of now, and its ops. False where not all of it is in segments, or one ends for
 * another reason than its size or a segment that was there: they would be the same again. */
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

/* Does forming all anew cost less than that? Each graph is built again, or for the first time where
 * it was put off: such a segment is launched once as it is. */
static bool costs_less(const struct cus_plan *plan, uint64_t most) {
    uint64_t ns = 0;
    for (const struct cus_segment *segment = plan->oldest; segment && ns < most;
         segment = segment->prev) {
        uint64_t graphs = segment->n_variants ? segment->n_variants : 1;
        ns += graphs * (CUS_COST_ANEW + segment->n * CUS_COST_BUILT);
    }
    return ns < most;
}

/* Is it paid back by what steps save until it is looked at again? Then it may be little in each, a
 * graph too many, say, since the host was not quite warm when they were formed: what goes on for so
 * long goes on for as long again. What is longer than a share goes share by share, and none is
 * formed beyond one that is still there: what that saves is not known. */
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

/* The first segments are formed while the host is cold, or while other threads are in its way, and
 * in that of the driver. When it has found its pace, and that is faster, they are formed anew,
 * where that is worth it; later on only where it is much faster, or where that pays, and ever less
 * often. When its step has come again, as many of a step at once as the next one may build. */
void cus_sizes_settle(struct cus_plan *plan) {
    if (!plan->n_segments || --plan->settle_in)
        return;
    bool first = plan->settle_every == SETTLE_STEPS;
    /* What an earlier run has cut it did not cut while it was cold. */
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
