/*
 * Follows the path through the launch tree: records eager ops, ends steps and turns of loops, and
 * selects what a demoted stream keeps.
 * Runs under the lock of the engine that owns the plan, on the thread that offers the op or
 * flushes. Never calls the driver; graphs are dropped through the callback.
 */
#include "shim/plan/cursor.h"

#include <stdio.h>

#include "shim/base/hash.h"
#include "shim/plan/advice.h"
#include "shim/plan/choose.h"
#include "shim/plan/learn.h"
#include "shim/plan/loops.h"
#include "shim/plan/sizes.h"

enum {
    /* Ops that found no place in the full tree, for each node, until a sweep. A sweep drops the
     * nodes that did not come meanwhile. A program whose steps do not all fit keeps those that do;
     * a program that does something new now starts again. */
    SWEEP_AFTER = 8,
    SWEEP_LEAST = 4096,
    /* An op counts as warm after more visits than the warm-up and these together. */
    WARM_AFTER = 2,
    /* If a segment was launched this often, it is kept while its stream is demoted. */
    KEEP_FIRED = 16,
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

/* A step begins, or a turn of a loop that counts as one. */
static void begin_step(struct cus_plan *plan) {
    plan->clock_before = plan->clock_now;
    plan->clock_now = plan->clock;
    plan->turns++;
    cus_merges_gap(&plan->merges);
    if (plan->now.graphs)
        cus_segment_list_copy(&plan->last, &plan->now);
    plan->now.n = 0;
    plan->now.dropped = 0;
    plan->now.graphs = false;
}

void cus_cursor_restart(struct cus_plan *plan) {
    plan->cur = &plan->tree.root;
    plan->step = CUS_STEP_UNKNOWN;
    plan->sig = (struct cus_signature){0, 0};
    plan->view.step_ops = plan->advised_ops = 0;
    plan->ramp = (struct cus_ramp){.size = plan->limits.segment_first};
    plan->broken = true;
    plan->called = plan->covered = false;
    begin_step(plan);
}

bool cus_cursor_turn(struct cus_plan *plan) {
    /* Turns are alike, however many came before. */
    plan->sig = (struct cus_signature){0, 0};
    if (!cus_loops_are_steps(plan))
        return false;
    begin_step(plan);
    return true;
}

/* ---- recording ---- */

/* This kernel's policy may be weaker than any before in steps of this class. Segments formed for
 * such steps may then hold more than is allowed now, so they are dropped. */
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

/* The path goes on where it never went. If the same ops came on a known path before, it merges with
 * that path; otherwise it gets a new node. A node that came in this step is not used, so that a
 * path never returns to itself. NULL: no memory. */
static struct cus_node *branch(struct cus_plan *plan, const struct cus_op *op,
                               enum cus_step_class step) {
    struct cus_node *known = cus_merges_known(&plan->merges, op, step);
    if (known &&
        (known->stamp == plan->turns || (known->segment && known->segment->used > plan->clock_now)))
        known = NULL;
    if (known && known->join)
        known = known->join; /* it leads to a loop now */
    struct cus_node *node = cus_tree_grow(&plan->tree, plan->cur, op->kind, step);
    plan->view.new_nodes++;
    if (!node || !known)
        return node;
    node->join = known;
    return known;
}

/* Records an op. `node` is the child that stands for the op, or NULL. Returns where the path is
 * now; NULL: the tree is full, or memory ran out. */
static struct cus_node *record(struct cus_plan *plan, const struct cus_op *op,
                               struct cus_node *node, enum cus_step_class step) {
    bool called = plan->called;
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
        /* The tree is full: later ops of this step are not recorded, and the next step starts at
         * the root. */
        cus_merges_gap(&plan->merges);
        if (++plan->unknown >= SWEEP_AFTER * (uint64_t)plan->tree.n_nodes + SWEEP_LEAST)
            cus_learn_sweep(plan);
        plan->step = step;
        plan->view.step_ops++;
        plan->view.new_nodes++;
        cus_loop_gap(&plan->loop);
        return NULL;
    }
    if (node->segment && node->segment->nodes[0] != node && plan->cur->expect->join == node)
        cus_learn_reached(plan, plan->cur->expect);
    if (++node->visits == 1) {
        cus_loops_new(plan);
        if (plan->advice)
            cus_advice_reached(plan, node);
    }
    plan->view.warm_ops += node->visits > plan->limits.warmup + WARM_AFTER;
    node->stamp = plan->cur->expect->stamp = plan->turns;
    cus_merges_note(&plan->merges, node);
    /* This op could begin a segment, but may not now. The next segment is not the first of the
     * step, so it may be larger. */
    if (node->segment && node->segment->nodes[0] == node)
        cus_sizes_up(plan, node->segment);
    cus_cursor_advance(plan, node, 1);
    if (cus_loops_look(plan))
        cus_loops_feed(plan, node, called);
    return node;
}

enum cus_step_class cus_plan_step(const struct cus_plan *plan, const struct cus_op *op) {
    uint64_t tokens;
    return op->kind->step ? cus_step_classify(op->kind->step, op->dims, &tokens) : plan->step;
}

bool cus_plan_allows(const struct cus_plan *plan, const struct cus_op *op) {
    return cus_dispatch_allows(&plan->dispatch, cus_plan_step(plan, op), op->kind);
}

static void count_only(struct cus_plan *plan) {
    plan->view.step_ops++;
}

void cus_plan_record(struct cus_plan *plan, const struct cus_op *op) {
    if (plan->limits.count_only) {
        count_only(plan);
        return;
    }
    enum cus_step_class step = cus_plan_step(plan, op);
    record(plan, op, cus_tree_child(&plan->tree, plan->cur, op->kind, step), step);
}

void cus_plan_record_offered(struct cus_plan *plan, const struct cus_op *op,
                             struct cus_plan_mark *mark) {
    if (plan->limits.count_only) {
        mark->turns = plan->turns;
        count_only(plan);
        return;
    }
    mark->cur = plan->cur;
    mark->sig = plan->sig;
    mark->step_ops = plan->view.step_ops;
    mark->turns = plan->turns;
    mark->step = plan->step;
    mark->looking = cus_loops_look(plan);
    if (mark->looking)
        mark->loop = plan->loop.at;
    mark->node = record(plan, op, plan->offered, plan->offered_step);
    mark->turns_after = plan->turns;
}

void cus_plan_take_back(struct cus_plan *plan, const struct cus_plan_mark *mark) {
    if (plan->limits.count_only) {
        plan->view.step_ops -= plan->turns == mark->turns;
        return;
    }
    /* If a turn ended, or other ops were recorded since, the nodes may be gone. */
    if (plan->turns != mark->turns_after || plan->view.step_ops != mark->step_ops + 1)
        return;
    if (mark->node)
        mark->node->visits--;
    if (plan->turns != mark->turns)
        return;
    cus_merges_gap(&plan->merges);
    plan->cur = mark->cur;
    plan->sig = mark->sig;
    plan->view.step_ops = mark->step_ops;
    plan->step = mark->step;
    if (mark->looking)
        plan->loop.at = mark->loop;
    else
        cus_loop_gap(&plan->loop);
}

void cus_plan_step_end(struct cus_plan *plan) {
    uint64_t ops = plan->view.step_ops;
    plan->broken = true;
    plan->ended = ops < UINT32_MAX ? (uint32_t)ops : UINT32_MAX;
    if (plan->cur->boundary == CUS_BOUNDARY_CUT)
        cus_learn_passed(plan, plan->cur);
    cus_learn_sizing(plan);
    cus_cursor_restart(plan);
    plan->view.again = cus_loops_step_end(plan, ops);
    cus_sizes_settle(plan);
    if (plan->view.again)
        cus_plan_clear(plan);
}

/* ---- demotion ---- */

static bool is_good(const struct cus_segment *segment) {
    return segment->n_variants && segment->fired >= KEEP_FIRED;
}

bool cus_plan_demote(struct cus_plan *plan) {
    const struct cus_segment *segment = plan->view.segments;
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
    plan->looped = 0;
    plan->look_until = 0;
    return true;
}

/* The word by which a demoted stream knows the op (plan/repeat.h). */
static uint64_t word_of(const struct cus_kind *kind) {
    return kind->type == CUS_OP_LAUNCH ? (uintptr_t)kind->handle : kind->type;
}

unsigned cus_plan_heads(const struct cus_plan *plan, uint64_t *heads, unsigned max) {
    unsigned n = 0;
    for (const struct cus_segment *segment = plan->view.segments; segment && n < max;
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
