/*
 * How large pieces get, and their forming.
 *
 * Runs under the engine's lock, on the rare paths: a piece is formed, or was launched, or a step
 * ended. Never calls the driver.
 */
#include "shim/plan/sizes.h"

#include "shim/base/mem.h"
#include "shim/plan/account.h"
#include "shim/plan/advice.h"
#include "shim/plan/learn.h"

enum {
    SETTLE_STEPS = 6, /* after which it is looked whether pieces are what the pace allows: soon, as
                         variants are made anew with them; then after twice as many, and so on */
    SETTLE_MAX = 1 << 20,
    SETTLE_FASTER = 4,
    SETTLE_LARGER = 2,      /* times the share that pieces had, */
    SETTLE_LARGER_PART = 4, /* or so much of it more, the first time: builds are cold before */
    SETTLE_SHARED = 2,      /* where it has kept more than one of so many pieces small */
    OUTGROWN = 256,  /* the part of a step's time that makes it worth to form them anew; or else it
                        has to pay */
    PAYS = 2,        /* so many times, until it is looked at again, */
    PAYS_PART = 4,   /* where the host was slower, or the share smaller, by such a part, */
    PAYS_SHARED = 8, /* the share of one of so many pieces: it may be the last one of a step */
    PACED_PART = 4,  /* one of so many pieces has the size that the pace allows; where fewer do,
                        breaks shape them, at any pace */
    RETRY_NO_ROOM = 64, /* visits of a head before a piece is tried again that had no memory */
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
    uint32_t max = limits->piece_max;
    return (struct cus_ramp_limits){
        .first = limits->piece_first < max ? limits->piece_first : max,
        .max = plan->share && plan->share < max ? plan->share : max,
        .fill_ns = limits->piece_ns,
    };
}

static uint32_t piece_size(const struct cus_plan *plan, const struct cus_node *node,
                           struct cus_ramp ramp) {
    struct cus_ramp_limits limits = sizes_of(plan);
    uint32_t far = cus_ramp_looks(&limits, ramp, plan->ns_per_op);
    return cus_ramp_size(&limits, ramp, plan->ns_per_op, ops_ahead(node, far));
}

void cus_sizes_up(struct cus_plan *plan, const struct cus_piece *piece) {
    struct cus_ramp_limits limits = sizes_of(plan);
    plan->ramp = cus_ramp_up(&limits, plan->ramp, piece->n, plan->ns_per_op);
}

void cus_plan_paced(struct cus_plan *plan, uint32_t intervals, uint64_t ns) {
    plan->ns_per_op = cus_ramp_paced(plan->ns_per_op, intervals, ns);
}

struct cus_piece *cus_plan_form(struct cus_plan *plan, struct cus_node *node, uint32_t lead,
                                struct cus_ramp ramp) {
    uint32_t advised = lead ? 0 : cus_advice_cut(plan, node);
    uint32_t size = advised ? advised : piece_size(plan, node, ramp);
    uint64_t refused = cus_mem_refused();
    struct cus_piece *piece =
        cus_piece_form(node, lead, size, plan->limits.warmup, &plan->dispatch);
    if (!piece) {
        node->retry_at = node->visits + (cus_mem_refused() == refused ? 1 : RETRY_NO_ROOM);
        return NULL;
    }
    cus_learn_add(plan, piece);
    if (advised)
        cus_advice_formed(plan, piece);
    /* One that ends for another reason is the same at any pace. */
    bool bounded = piece->nodes[piece->n - 1]->boundary || advised;
    if (!bounded && piece->n >= size)
        piece->formed_ns = plan->ns_per_op;
    uint32_t first = sizes_of(plan).first, bound = plan->share > first ? plan->share : first;
    if (!bounded && plan->share && piece->n >= bound)
        piece->formed_share = bound;
    plan->paces += piece->formed_ns;
    plan->n_paced += piece->formed_ns > 0;
    plan->shares += piece->formed_share;
    plan->n_shared += piece->formed_share > 0;
    return piece;
}

void cus_sizes_gone(struct cus_plan *plan, const struct cus_piece *piece) {
    if (piece->shaping != plan->shaping)
        return;
    plan->paces -= piece->formed_ns;
    plan->n_paced -= piece->formed_ns > 0;
    plan->shares -= piece->formed_share;
    plan->n_shared -= piece->formed_share > 0;
}

/* What counts as a change since pieces were formed: a pace slower than that, a share no larger than
 * that, where it has kept one of so many of them from being larger. */
struct change {
    uint64_t slow, small;
    uint32_t shared;
};

/* The pace at which pieces were formed, and the share that kept them from being larger. What counts
 * is how most were formed: of a thousand steps one always met a host that was busy. */
static uint64_t pace_formed(const struct cus_plan *plan) {
    bool most = plan->n_paced * PACED_PART >= plan->n_pieces;
    return most ? plan->paces / plan->n_paced : plan->ns_per_op;
}
static uint64_t share_formed(const struct cus_plan *plan, uint32_t part) {
    bool enough = plan->n_shared * part > plan->n_paced;
    return enough ? plan->shares / plan->n_shared : sizes_of(plan).max;
}

/* Of the longest step, as it is and with pieces formed anew. */
static struct cus_ramp_times times_anew(const struct cus_plan *plan, struct change change) {
    struct cus_ramp_limits now = sizes_of(plan), before = now;
    uint64_t formed = pace_formed(plan), share = share_formed(plan, change.shared);
    if (share <= change.small)
        before.max = (uint32_t)share;
    return cus_ramp_anew(&before, formed > change.slow ? (uint32_t)formed : plan->ns_per_op, &now,
                         plan->ns_per_op, plan->longest);
}

/* Are they smaller, or were they formed at a slower pace, than is possible now, by enough? */
static bool outgrown(const struct cus_plan *plan, bool first) {
    uint64_t pace = plan->ns_per_op, most = sizes_of(plan).max;
    const struct change early = {pace / 2 * 3, most - most / (SETTLE_LARGER_PART + 1),
                                 SETTLE_SHARED},
                        later = {pace * SETTLE_FASTER, most / SETTLE_LARGER, SETTLE_SHARED};
    struct cus_ramp_times times = times_anew(plan, first ? early : later);
    return times.formed_ns > times.anew_ns + times.anew_ns / OUTGROWN;
}

/* What forming them anew costs, all of them: each graph is built again. */
static uint64_t cost_anew(const struct cus_plan *plan) {
    uint64_t ns = 0;
    for (const struct cus_piece *piece = plan->oldest; piece; piece = piece->prev)
        ns += (uint64_t)piece->n_variants * (CUS_COST_ANEW + piece->n * CUS_COST_BUILT);
    return ns;
}

/* Is that less than what steps save until it is looked at again? Then it may be by little, as with
 * a host that was not quite warm, or builds that were not: what goes on for so long goes on for as
 * long again. */
static bool pays(const struct cus_plan *plan) {
    uint64_t pace = plan->ns_per_op, most = sizes_of(plan).max;
    const struct change any = {pace + pace / PAYS_PART, most - most / PAYS_PART, PAYS_SHARED};
    struct cus_ramp_times times = times_anew(plan, any);
    uint64_t steps = 2 * (uint64_t)plan->settle_every;
    return times.formed_ns > times.anew_ns &&
           (times.formed_ns - times.anew_ns) * steps > PAYS * cost_anew(plan);
}

/* The first pieces are formed while the host is cold, or while other threads are in its way, and in
 * that of the driver. When it has found its pace, and that is faster, they are formed anew, where
 * that is worth it; later on only where it is much faster, or where that pays, and ever less often.
 * When its step has come again, as many of a step at once as the next one may build. */
void cus_sizes_settle(struct cus_plan *plan) {
    if (!plan->n_pieces || --plan->settle_in)
        return;
    /* What an earlier run has cut it did not cut while it was cold. */
    if (outgrown(plan, plan->settle_every == SETTLE_STEPS && !plan->advised) || pays(plan)) {
        plan->shaping++;
        plan->misshapen = plan->n_pieces;
        plan->paces = plan->n_paced = 0;
        plan->shares = plan->n_shared = 0;
    }
    if (plan->settle_every < SETTLE_MAX)
        plan->settle_every *= 2;
    plan->settle_in = plan->settle_every;
}
