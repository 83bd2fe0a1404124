/*
 * Segments that begin with the same nodes: deferred ops move to the segment whose op comes.
 * plan.c calls it under the lock of the engine that owns the plan, when a segment begins and when
 * an op diverges. It may form and drop segments, but never drops the deferred one.
 */
#include "shim/plan/prefix.h"

#include <string.h>

#include "shim/base/mem.h"
#include "shim/plan/choose.h"
#include "shim/plan/learn.h"

struct cus_segment *cus_prefix_led(struct cus_node *node, const struct cus_node *head) {
    const struct cus_node *next = node;
    for (uint32_t i = 0; i < CUS_PREFIX_MAX; i++) {
        next = next->join ? NULL : next->expect;
        if (!next)
            return NULL;
        if (next->segment)
            return next->segment->nodes[0] == head ? (node->segment = next->segment) : NULL;
    }
    return NULL;
}

bool cus_prefix_find(struct cus_plan *plan, const struct cus_op *op) {
    struct cus_segment *segment = plan->view.segment;
    plan->may_turn = plan->view.n && plan->view.n <= CUS_PREFIX_MAX;
    if (!plan->may_turn)
        return false;
    struct cus_node *at = segment->nodes[plan->view.n - 1], *head = segment->nodes[0];
    enum cus_step_class step = (enum cus_step_class)at->key.step;
    plan->may_turn = !op->kind->step && op->kind->deferrable && !at->boundary && !at->loop_end &&
                     cus_dispatch_allows(&plan->dispatch, step, op->kind);
    if (!plan->may_turn)
        return false;
    struct cus_node *node = cus_tree_child(&plan->tree, at, op->kind, step);
    if (!node)
        return false; /* the op is new here */
    plan->may_turn = node->key.parent == at;
    if (!plan->may_turn)
        return false; /* the op is an alias: its path goes on elsewhere */
    struct cus_segment *other = node->segment ? node->segment : cus_prefix_led(node, head);
    if (other && other->nodes[0] != head && cus_learn_replaced(plan, other, node))
        other = NULL;
    if (!other)
        other = cus_plan_form(plan, node, plan->view.n, plan->ramped);
    plan->other = other;
    return other && other->nodes[0] == head;
}

void cus_prefix_turn(struct cus_plan *plan) {
    struct cus_segment *segment = plan->other;
    const struct cus_values *values[CUS_PREFIX_MAX];
    for (uint32_t i = 0; i < plan->view.n; i++)
        values[i] = cus_plan_values(plan, i);
    struct cus_op first = {.kind = segment->places[0].kind, .flat = values[0]->params};
    memcpy(first.dims, values[0]->dims, sizeof first.dims);
    plan->view.segment = segment;
    plan->view.at = &cus_expect_nothing;
    plan->view.timed = plan->view.reshaped = plan->head_patched = false;
    cus_choose_set_clean(&plan->view);
    plan->view.predicted = cus_choose_predict(plan, segment, &first);
    if (plan->view.predicted)
        cus_choose_trust(plan, plan->view.predicted);
    for (uint32_t i = 0; i < plan->view.n; i++) {
        const struct cus_kind *kind = segment->places[i].kind;
        struct cus_values *has =
            plan->view.predicted ? cus_image_op(plan->view.predicted->image, segment, i) : NULL;
        bool same = has && cus_dims_same(values[i]->dims, has->dims);
        plan->view.reshaped |= !same;
        if (!same)
            cus_choose_set_reshapes(&plan->view, i);
        if (!same || has->unknown ||
            memcmp(values[i]->params, has->params, kind->param_bytes) != 0) {
            struct cus_values *requested = cus_image_op(segment->requested, segment, i);
            memcpy(requested, values[i], cus_values_bytes(kind));
            requested->unknown = 0;
            cus_choose_set_dirty(&plan->view, i, true);
        }
        segment->nodes[i]->stamp = plan->turns;
    }
    segment->nodes[0]->segment = segment;
    segment->begun++;
    if (!plan->history)
        plan->history = cus_mem_grow(CUS_HISTORY * sizeof *plan->history);
}

void cus_prefix_foresee(const struct cus_plan *plan, struct cus_node *node) {
    struct cus_segment *segment = *cus_plan_history_at(plan, plan->then + 1);
    if (segment && segment->nodes[0] == node && segment->used == plan->then + 1 &&
        segment->n_variants)
        node->segment = segment;
}

bool cus_prefix_goes_on(struct cus_plan *plan, const struct cus_node *node) {
    struct cus_segment *before = plan->cur->segment;
    if (plan->broken || !before || !before->cold || before->n > CUS_PREFIX_MAX ||
        before->nodes[before->n - 1] != plan->cur || node->key.parent != plan->cur ||
        plan->cur->boundary || node->key.kind->step)
        return false;
    cus_learn_outgrown(plan, before);
    return true;
}
