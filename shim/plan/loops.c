/*
 * Loops inside steps. A loop is a path of its own in the launch tree, below a root of its own
 * (cus_tree_grow_root): one node for each op of a turn. An alias in front of the first turn leads
 * to its first node, and so does an alias behind its last node.
 * Nothing here decides what may be launched: ops are compared as on any path.
 */
#include "shim/plan/loops.h"

#include "shim/plan/advice.h"
#include "shim/plan/learn.h"

enum {
    /* Loops are looked for in a step from its LOOK_FROM-th op on. */
    LOOK_FROM = 32,
    /* And for so many ops behind the last new one: a longer body is not found anyway. */
    LOOK_ON = 2 * CUS_LOOP_WINDOW,
    /* A step of at most WHOLE ops is learned as a whole, in the steps after the one with the loop:
     * its graphs may then be larger than a turn, and need no patches where turns differ. A host
     * that takes SLOW_NS or more from op to op gains nothing by that: its segments are small anyway
     * (ramp.c), and the submit thread patches them. It keeps a loop of at least TURNS turns. */
    WHOLE = 2048,
    SLOW_NS = 2000,
    TURNS = 4,
    /* A loop is believed in a step of more than WHOLE ops, or of LOOP_AFTER and LOOP_LONGER times
     * as many as the longest step so far. At LOOP_SURE ops its turns count as steps. */
    LOOP_AFTER = 384,
    LOOP_LONGER = 8,
    LOOP_SURE = 65536,
    /* Steps without a new op until the finder's memory is given back. */
    IDLE_STEPS = 16,
};

static bool is_longer(const struct cus_plan *plan, uint64_t ops) {
    return ops >= LOOP_AFTER && ops / LOOP_LONGER >= plan->longest;
}

bool cus_loops_are_steps(const struct cus_plan *plan) {
    return plan->view.step_ops >= LOOP_SURE || is_longer(plan, plan->view.step_ops);
}

static bool may_believe(const struct cus_plan *plan) {
    uint64_t ops = plan->view.step_ops;
    return ops >= LOOP_SURE || ((ops > WHOLE || is_longer(plan, ops)) && !cus_advice_goes_on(plan));
}

/* ---- the nodes of a loop ---- */

/* The loop that is made. */
struct made {
    uint32_t period, turn; /* ops of the body; of a turn: as many bodies as reach CUS_LOOP_BODY */
    uint32_t first;        /* the turn's first op came so many ops, modulo `period`, ago */
};

static uint32_t turn_of(uint32_t period) {
    return (CUS_LOOP_BODY + period - 1) / period * period;
}

/* What is remembered of op `i` of a turn. */
static const struct cus_loop_op *op_of(const struct cus_plan *plan, const struct made *made,
                                       uint32_t i) {
    uint32_t back = (made->first + made->period - i % made->period) % made->period;
    return cus_loop_op(&plan->loop, back);
}

/* Came a call in front of op `i` in both turns that are remembered? */
static bool is_called(const struct cus_plan *plan, const struct made *made, uint32_t i) {
    const struct cus_loop_op *op = op_of(plan, made, i);
    uint32_t before = (made->first + made->period - i % made->period) % made->period + made->period;
    return op->called && before < cus_loop_known(&plan->loop) &&
           cus_loop_op(&plan->loop, before)->called;
}

static bool is_op(const struct cus_node *node, const struct cus_loop_op *op) {
    return node->key.kind == op->kind && node->key.step == op->step;
}

/* The nodes from the root to where the path stands: how many of them, counted from the last, are in
 * the loop? `*top` becomes the first of these. */
static uint32_t turns_behind(struct cus_plan *plan, uint32_t period, struct cus_node **top) {
    uint32_t n = 0;
    struct cus_node *node = plan->cur;
    for (; node->key.kind && is_op(node, cus_loop_op(&plan->loop, n % period)); n++) {
        *top = node;
        node = (struct cus_node *)(uintptr_t)node->key.parent;
    }
    return n;
}

/* Makes the nodes of a turn. NULL: no memory. */
static struct cus_node *grow_turn(struct cus_plan *plan, const struct made *made, uint64_t path) {
    struct cus_node *at = cus_tree_grow_root(&plan->tree, path), *first = NULL;
    for (uint32_t i = 0; at && i < made->turn; i++) {
        const struct cus_loop_op *op = op_of(plan, made, i);
        if (first && is_called(plan, made, i))
            cus_learn_called(at);
        at = cus_tree_grow(&plan->tree, at, op->kind, (enum cus_step_class)op->step);
        if (!at)
            return NULL;
        if (!first)
            first = at;
        at->loop = 1;
        at->visits = plan->limits.warmup;
        at->stamp = plan->turns;
        if (plan->advice)
            cus_advice_reached(plan, at);
    }
    if (!at)
        return NULL;
    struct cus_node *again =
        cus_tree_grow(&plan->tree, at, first->key.kind, (enum cus_step_class)first->key.step);
    if (!again)
        return NULL;
    if (is_called(plan, made, 0))
        cus_learn_called(at);
    again->join = first;
    again->stamp = plan->turns;
    at->loop_end = 1;
    return first;
}

/* The path led through `top` so far, and leads to the loop from now on. Segments of the old path
 * end in front of it. */
static void lead_to(struct cus_plan *plan, struct cus_node *top, struct cus_node *first) {
    for (struct cus_node *node = plan->cur; node != top->key.parent;
         node = (struct cus_node *)(uintptr_t)node->key.parent)
        if (node->segment)
            cus_learn_drop(plan, node->segment);
    top->join = first;
    top->stamp = plan->turns;
}

/* The first two turns are nodes of their own, `n` of them, the first one `top`: the loop begins
 * with `top`, and the path goes on in it. */
static bool begin_at(struct cus_plan *plan, struct made *made, struct cus_node *top, uint32_t n) {
    made->first = (n - 1) % made->period;
    struct cus_node *first = grow_turn(plan, made, top->key.parent->path);
    if (!first)
        return false;
    lead_to(plan, top, first);
    plan->cur = first;
    for (uint32_t i = (n - 1) % made->turn; i; i--)
        plan->cur = plan->cur->expect;
    return true;
}

/* The path came here through other loops: this one begins with the next op. */
static bool begin_behind(struct cus_plan *plan, struct made *made) {
    made->first = made->period - 1;
    const struct cus_loop_op *next = op_of(plan, made, 0);
    enum cus_step_class step = (enum cus_step_class)next->step;
    if (cus_tree_child(&plan->tree, plan->cur, next->kind, step))
        return false; /* the path behind is known */
    struct cus_node *first = grow_turn(plan, made, plan->cur->path);
    struct cus_node *alias = first ? cus_tree_grow(&plan->tree, plan->cur, next->kind, step) : NULL;
    if (!alias)
        return false;
    alias->join = first;
    alias->stamp = plan->turns;
    return true;
}

/* A period was found. True: there is a loop now. */
static bool take(struct cus_plan *plan, uint32_t period) {
    struct made made = {.period = period, .turn = turn_of(period)};
    struct cus_node *top = NULL;
    if (plan->tree.n_nodes + made.turn + 3 > plan->limits.nodes_max)
        return false;
    uint32_t n = turns_behind(plan, period, &top);
    if (n < 2 * period)
        return begin_behind(plan, &made);
    return !top->loop && begin_at(plan, &made, top, n);
}

/* ---- looking ---- */

void cus_loops_new(struct cus_plan *plan) {
    if (!cus_loops_look(plan))
        cus_loop_gap(&plan->loop);
    plan->look_until = plan->view.step_ops + LOOK_ON;
    plan->looked = plan->turns;
}

static uint32_t feed(struct cus_plan *plan, const struct cus_node *node, bool called) {
    struct cus_loop_op op = {node->key.kind, (uint8_t)node->key.step, called};
    return cus_loop_feed(&plan->loop, op);
}

void cus_loops_found(struct cus_plan *plan, uint32_t period) {
    if (!period || !may_believe(plan))
        return;
    cus_loop_told(&plan->loop);
    if (!take(plan, period))
        return;
    plan->turns++; /* what was recorded so far is another turn (cus_plan_take_back) */
    plan->sig = (struct cus_signature){0, 0};
    cus_merges_gap(&plan->merges);
    plan->looped = turn_of(period);
    plan->ramp.size = plan->limits.segment_max; /* the GPU is busy: segments need not start small */
}

void cus_loops_feed(struct cus_plan *plan, const struct cus_node *node, bool called) {
    if (plan->view.step_ops >= LOOK_FROM)
        cus_loops_found(plan, feed(plan, node, called));
}

uint32_t cus_loops_feed_segment(struct cus_plan *plan, const struct cus_segment *segment,
                                uint32_t n) {
    uint32_t period = 0;
    for (uint32_t i = 0; i < n; i++)
        period = feed(plan, segment->nodes[i], false);
    return period;
}

bool cus_loops_step_end(struct cus_plan *plan, uint64_t ops) {
    bool slow = plan->view.ns_per_op >= SLOW_NS && ops >= (uint64_t)TURNS * plan->looped;
    bool again = false;
    if (ops <= WHOLE && (plan->looped || plan->slow_loop)) {
        again = !slow;
        plan->slow_loop = slow;
    }
    plan->looped = 0;
    plan->look_until = 0;
    if (plan->loop.window && plan->turns - plan->looked > IDLE_STEPS)
        cus_loop_free(&plan->loop);
    if (ops > plan->longest)
        plan->longest = ops < LOOP_SURE ? (uint32_t)ops : LOOP_SURE;
    return again;
}
