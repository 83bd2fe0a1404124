/*
 * The plan's cursor: how the path goes on, behind a segment and with ops that go out by themselves,
 * which are recorded; where steps and the turns of loops end; what is kept of a stream that rests.
 *
 * Runs under the lock of the engine that owns the plan, on the thread that offers the op (or on
 * whoever flushes). Never calls the driver; execs are dropped through the callback.
 */
#include "shim/plan/cursor.h"

#include <stdio.h>

#include "shim/base/hash.h"
#include "shim/plan/advice.h"
#include "shim/plan/choose.h"
#include "shim/plan/learn.h"
#include "shim/plan/sizes.h"

enum {
    /* A step is searched for a loop once it has more ops than this, and than LOOP_LONGER times the
     * longest that a synchronisation ever ended; at LOOP_SURE ops in any case. */
    LOOP_AFTER = 256,
    LOOP_LONGER = 8,
    LOOP_SURE = 65536,
    LOOP_STEP = 128, /* a turn is as many whole periods as reach this many ops */
    SWEEP_AFTER = 8, /* ops that found no room, for each node there is, before those nodes go that
                        did not come meanwhile: a program whose steps do not all have room keeps
                        those that it has, and one that does other things now begins anew */
    SWEEP_LEAST = 4096,
    WARM_AFTER = 2,  /* visits beyond the warm-up after which an op might be in a graph */
    KEEP_FIRED = 16, /* launches of a segment that is kept while the stream is demoted */
};

/* ---- going on ---- */

void cus_cursor_leave(struct cus_plan *plan) {
    struct cus_node *at = plan->cur;
    if (plan->called)
        cus_learn_call(at);
    if (at->boundary == CUS_BOUNDARY_CUT || at->boundary == CUS_BOUNDARY_GAP)
        cus_learn_passed(plan, at);
    else if (at->boundary == CUS_BOUNDARY_FORK)
        cus_learn_forked(plan, at);
    plan->broken = plan->called = plan->covered = false;
}

void cus_cursor_restart(struct cus_plan *plan) {
    plan->cur = &plan->tree.root;
    plan->step = CUS_STEP_UNKNOWN;
    plan->sig = (struct cus_signature){0, 0};
    plan->clock_before = plan->clock_now;
    plan->clock_now = plan->clock;
    plan->step_ops = plan->advised_ops = 0;
    plan->ramp = (struct cus_ramp){.size = plan->limits.segment_first};
    plan->loop_ops = 0;
    plan->looking = false;
    plan->broken = true;
    plan->called = plan->covered = false;
    plan->turns++;
    cus_merges_gap(&plan->merges);
    if (plan->now.graphs)
        cus_segment_list_copy(&plan->last, &plan->now);
    plan->now.n = 0;
    plan->now.dropped = 0;
    plan->now.graphs = false;
}

/* ---- recording ---- */

static bool suspiciously_long(const struct cus_plan *plan) {
    if (plan->step_ops < LOOP_AFTER)
        return false;
    return plan->step_ops >= LOOP_SURE || plan->step_ops / LOOP_LONGER >= plan->longest;
}

/* By kind alone: params may differ from turn to turn. */
static void look_for_loop(struct cus_plan *plan, const struct cus_op *op) {
    if (plan->loop_ops || !suspiciously_long(plan))
        return;
    if (!plan->looking)
        cus_loop_reset(&plan->loop);
    plan->looking = true;
    uint32_t period = cus_loop_feed(&plan->loop, cus_hash(op->kind->id) >> 16);
    if (!period || (plan->step_ops < LOOP_SURE && cus_advice_goes_on(plan)))
        return;
    cus_cursor_restart(plan);
    plan->looped = true;
    plan->ramp.size = plan->limits.segment_max; /* the GPU is busy: no need to start small */
    plan->loop_ops = (LOOP_STEP + period - 1) / period * period;
}

/* A weaker kernel than any before in steps of this class: what was formed there may be more than
 * is allowed now. */
static void meet(struct cus_plan *plan, const struct cus_kind *kind, enum cus_step_class step) {
    struct cus_dispatch *dispatch = &plan->dispatch;
    enum cus_policy policy = (enum cus_policy)kind->policy;
    if (policy <= dispatch->weakest[step] || policy == CUS_POLICY_NEVER_DEFER)
        return;
    dispatch->weakest[step] = policy;
    dispatch->rule[step] = kind->rule;
    snprintf(dispatch->kernel[step], CUS_STEP_KERNEL, "%s", kind->name);
    if (dispatch->mode == CUS_MODE_FULL_DECODE_ONLY ||
        dispatch->mode == CUS_MODE_FULL_AND_PIECEWISE)
        cus_plan_drop_handle(plan, NULL);
}

/* The path goes on where it never went: to a new node, or to a known one at which the same ops as
 * these were met before, though not in this very step, so that a path never comes back to itself.
 * NULL: no memory. */
static struct cus_node *branch(struct cus_plan *plan, const struct cus_op *op,
                               enum cus_step_class step) {
    struct cus_node *known = cus_merges_known(&plan->merges, op, step);
    if (known &&
        (known->stamp == plan->turns || (known->segment && known->segment->used > plan->clock_now)))
        known = NULL;
    struct cus_node *node = cus_tree_grow(&plan->tree, plan->cur, op->kind, step);
    plan->new_nodes++;
    if (!node || !known)
        return node;
    node->join = known;
    return known;
}

/* `node`: the child that stands for it, or NULL. Returns where the path is now; NULL: nowhere. */
static struct cus_node *record(struct cus_plan *plan, const struct cus_op *op,
                               struct cus_node *node, enum cus_step_class step) {
    meet(plan, op->kind, step);
    cus_cursor_leave(plan);
    if (cus_merges_wanted(&plan->merges, &plan->tree))
        cus_merges_feed(&plan->merges, op);
    if (!node && plan->tree.n_nodes < plan->limits.nodes_max)
        node = branch(plan, op, step);
    plan->sig = cus_signature_add(plan->sig, op->kind, op->dims);
    cus_choose_note(plan, plan->sig);
    cus_segment_list_add(&plan->now, op->kind->name, 1);
    cus_cursor_marker(plan, op->kind, step);
    if (!node) {
        /* The tree is full: this step goes on unknown, the next one starts at the root. */
        cus_merges_gap(&plan->merges);
        if (++plan->unknown >= SWEEP_AFTER * (uint64_t)plan->tree.n_nodes + SWEEP_LEAST)
            cus_learn_sweep(plan);
        plan->step = step;
        plan->step_ops++;
        plan->unsynced++;
        plan->new_nodes++;
        return NULL;
    }
    if (node->segment && node->segment->nodes[0] != node && plan->cur->expect->join == node)
        cus_learn_met(plan, plan->cur->expect);
    if (++node->visits == 1 && plan->advice)
        cus_advice_reached(plan, node);
    plan->warm_ops += node->visits > plan->limits.warmup + WARM_AFTER;
    node->stamp = plan->turns;
    cus_merges_note(&plan->merges, node);
    /* A segment that may not begin now: the one behind it is not the first of the step. */
    if (node->segment && node->segment->nodes[0] == node)
        cus_sizes_up(plan, node->segment);
    if (!cus_cursor_advance(plan, node, 1))
        look_for_loop(plan, op);
    return node;
}

void cus_plan_record(struct cus_plan *plan, const struct cus_op *op) {
    enum cus_step_class step = cus_plan_step(plan, op);
    record(plan, op, cus_tree_child(&plan->tree, plan->cur, op->kind, step), step);
}

void cus_plan_record_offered(struct cus_plan *plan, const struct cus_op *op,
                             struct cus_plan_mark *mark) {
    mark->cur = plan->cur;
    mark->sig = plan->sig;
    mark->unsynced = plan->unsynced;
    mark->step_ops = plan->step_ops;
    mark->turns = plan->turns;
    mark->step = plan->step;
    mark->looking = plan->looking;
    if (plan->looking)
        mark->loop = plan->loop.at;
    mark->node = record(plan, op, plan->offered, plan->offered_step);
    mark->turns_after = plan->turns;
}

void cus_plan_take_back(struct cus_plan *plan, const struct cus_plan_mark *mark) {
    /* Nodes go with a turn, or after ops that were recorded later. */
    if (plan->turns != mark->turns_after || plan->unsynced != mark->unsynced + 1)
        return;
    if (mark->node)
        mark->node->visits--;
    if (plan->turns != mark->turns)
        return;
    cus_merges_gap(&plan->merges);
    plan->cur = mark->cur;
    plan->sig = mark->sig;
    plan->unsynced = mark->unsynced;
    plan->step_ops = mark->step_ops;
    plan->step = mark->step;
    plan->looking = mark->looking;
    if (mark->looking)
        plan->loop.at = mark->loop;
}

void cus_plan_step_end(struct cus_plan *plan) {
    uint64_t ops = plan->unsynced;
    bool looped = plan->looped;
    plan->unsynced = 0;
    plan->looped = false;
    plan->broken = true;
    if (plan->cur->boundary == CUS_BOUNDARY_CUT)
        cus_learn_passed(plan, plan->cur);
    cus_learn_sizing(plan);
    cus_cursor_restart(plan);
    if (ops > plan->longest)
        plan->longest = ops < LOOP_SURE ? (uint32_t)ops : LOOP_SURE;
    cus_sizes_settle(plan);
    /* What looked like a loop was one step, only longer than those before: it is learned as such.
     */
    plan->again = looped && ops < LOOP_SURE;
    if (plan->again)
        cus_plan_clear(plan);
}

/* ---- resting ---- */

static bool is_good(const struct cus_segment *segment) {
    return segment->n_variants && segment->fired >= KEEP_FIRED;
}

bool cus_plan_demote(struct cus_plan *plan) {
    const struct cus_segment *segment = plan->segments;
    while (segment && !is_good(segment))
        segment = segment->next;
    if (!segment) {
        cus_plan_clear(plan);
        return false;
    }
    cus_cursor_restart(plan);
    for (; segment; segment = segment->next)
        if (is_good(segment))
            cus_tree_mark(&plan->tree, segment->nodes[segment->n - 1]);
    cus_learn_forget(plan);
    cus_loop_free(&plan->loop);
    plan->unsynced = 0;
    plan->looped = false;
    return true;
}

/* As a stream that is demoted sees the op. */
static uint64_t word_of(const struct cus_kind *kind) {
    return kind->type == CUS_OP_LAUNCH ? (uintptr_t)kind->handle : kind->type;
}

unsigned cus_plan_heads(const struct cus_plan *plan, uint64_t *heads, unsigned max) {
    unsigned n = 0;
    for (const struct cus_segment *segment = plan->segments; segment && n < max;
         segment = segment->next) {
        if (segment->nodes[0]->key.parent != &plan->tree.root || segment->n < CUS_HEAD_OPS)
            continue;
        uint64_t head = 0;
        for (unsigned i = 0; i < CUS_HEAD_OPS; i++)
            head = cus_head_add(head, word_of(segment->places[i].kind));
        heads[n++] = head;
    }
    return n;
}
