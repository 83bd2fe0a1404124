/*
 * Pieces that begin alike: several may have the same first nodes, and what is withheld goes over to
 * the one whose op comes.
 *
 * Runs under the lock of the engine that owns the plan, where a piece begins and where another op
 * came than the expected one. May form and drop pieces, never the one that is withheld.
 */
#include "shim/plan/parting.h"

#include <string.h>

#include "shim/base/mem.h"
#include "shim/plan/choose.h"
#include "shim/plan/learn.h"

struct cus_piece *cus_parting_led(struct cus_node *node, const struct cus_node *head) {
    const struct cus_node *next = node;
    for (uint32_t i = 0; i < CUS_LEAD_MAX; i++) {
        next = next->join ? NULL : next->expect;
        if (!next)
            return NULL;
        if (next->piece)
            return next->piece->nodes[0] == head ? (node->piece = next->piece) : NULL;
    }
    return NULL;
}

bool cus_parting_find(struct cus_plan *plan, const struct cus_op *op) {
    struct cus_piece *piece = plan->piece;
    plan->may_turn = plan->n && plan->n <= CUS_LEAD_MAX;
    if (!plan->may_turn)
        return false;
    struct cus_node *at = piece->nodes[plan->n - 1], *head = piece->nodes[0];
    enum cus_step_class step = (enum cus_step_class)at->key.step;
    plan->may_turn = !op->kind->step && op->kind->deferrable && !at->boundary && !at->loop_end &&
                     cus_dispatch_allows(&plan->dispatch, step, op->kind);
    if (!plan->may_turn)
        return false;
    struct cus_node *node = cus_tree_child(&plan->tree, at, op->kind, step);
    if (!node)
        return false; /* it is new */
    plan->may_turn = node->key.parent == at;
    if (!plan->may_turn)
        return false; /* another path goes on there */
    struct cus_piece *other = node->piece ? node->piece : cus_parting_led(node, head);
    if (other && other->nodes[0] != head && cus_learn_replaced(plan, other, node))
        other = NULL;
    if (!other)
        other = cus_plan_form(plan, node, plan->n, plan->ramped);
    plan->other = other;
    return other && other->nodes[0] == head;
}

void cus_plan_turn(struct cus_plan *plan) {
    struct cus_piece *piece = plan->other;
    const struct cus_held *held[CUS_LEAD_MAX];
    for (uint32_t i = 0; i < plan->n; i++)
        held[i] = cus_plan_held(plan, i);
    struct cus_op first = {.kind = piece->places[0].kind, .flat = held[0]->params};
    memcpy(first.dims, held[0]->dims, sizeof first.dims);
    plan->piece = piece;
    plan->at = &cus_expect_nothing;
    plan->timed = plan->reshaped = plan->head_patched = false;
    cus_choose_set_clean(plan);
    plan->predicted = cus_choose_predict(plan, piece, &first);
    if (plan->predicted)
        cus_choose_trust(plan, plan->predicted);
    for (uint32_t i = 0; i < plan->n; i++) {
        const struct cus_kind *kind = piece->places[i].kind;
        struct cus_held *has =
            plan->predicted ? cus_image_op(plan->predicted->image, piece, i) : NULL;
        bool same = has && cus_dims_same(held[i]->dims, has->dims);
        plan->reshaped |= !same;
        if (!same)
            cus_choose_set_reshapes(plan, i);
        if (!same || has->unknown || memcmp(held[i]->params, has->params, kind->param_bytes) != 0) {
            struct cus_held *asked = cus_image_op(piece->asked, piece, i);
            memcpy(asked, held[i], cus_held_bytes(kind));
            asked->unknown = 0;
            cus_choose_set_dirty(plan, i, true);
        }
        piece->nodes[i]->stamp = plan->turns;
    }
    piece->nodes[0]->piece = piece;
    piece->begun++;
    if (!plan->came)
        plan->came = cus_mem_grow(CUS_CAME * sizeof *plan->came);
}

void cus_parting_foresee(const struct cus_plan *plan, struct cus_node *node) {
    struct cus_piece *piece = *cus_plan_came_at(plan, plan->then + 1);
    if (piece && piece->nodes[0] == node && piece->used == plan->then + 1 && piece->n_variants)
        node->piece = piece;
}

bool cus_parting_goes_on(struct cus_plan *plan, const struct cus_node *node) {
    struct cus_piece *before = plan->cur->piece;
    if (plan->broken || !before || !before->cold || before->n > CUS_LEAD_MAX ||
        before->nodes[before->n - 1] != plan->cur || node->key.parent != plan->cur ||
        plan->cur->boundary || node->key.kind->step)
        return false;
    cus_learn_outgrown(plan, before);
    return true;
}
