/*
 * The plan: matches ops against the expected path and records what became of a segment.
 * Runs under the lock of the engine that owns the plan, on the thread that offers the op;
 * cus_plan_end runs on any thread that flushes. Matching is the hot path and allocates nothing.
 * Never calls the driver; graphs are dropped through the callback.
 */
#include "shim/plan/state.h"

#include <stddef.h>
#include <string.h>

#include "shim/base/check.h"
#include "shim/base/hazard.h"
#include "shim/plan/choose.h"
#include "shim/plan/cursor.h"
#include "shim/plan/learn.h"
#include "shim/plan/loops.h"
#include "shim/plan/prefix.h"
#include "shim/plan/sizes.h"
#include "shim/plan/variants.h"

/* If one node in SWAP_PART or more differ, the images are swapped and the other nodes copied. */
enum { SWAP_PART = 4 };

_Static_assert(offsetof(struct cus_plan, view) == 0, "cus_engine_plan relies on it");
_Static_assert(_Alignof(struct cus_plan) <= CUS_LINE, "the view of an engine begins a line");

size_t cus_plan_bytes(void) {
    return sizeof(struct cus_plan);
}

void cus_plan_init(struct cus_plan *plan, const struct cus_plan_limits *limits,
                   cus_plan_drop_fn *drop, void *context) {
    memset(plan, 0, sizeof *plan);
    plan->limits = *limits;
    plan->drop = drop;
    plan->context = context;
    plan->dispatch.mode = limits->mode;
    cus_tree_init(&plan->tree);
    plan->view.at = &cus_expect_nothing;
    plan->cur = &plan->tree.root;
    plan->ramp.size = limits->segment_first;
    plan->settle_in = CUS_SETTLE_STEPS;
}

#ifdef CUS_CHECKS
void cus_plan_check(const struct cus_plan *plan) {
    const struct cus_segment *segment = plan->view.segment;
    CUS_CHECK(!segment || plan->view.n <= segment->n);
    for (uint32_t i = plan->view.n; segment && i < segment->n; i++)
        CUS_CHECK(!(plan->view.dirty[i / 64] >> i % 64 & 1));
}
#endif

uint32_t cus_plan_nodes(const struct cus_plan *plan) {
    return plan->tree.n_nodes;
}

uint64_t cus_plan_take_steps(struct cus_plan *plan, enum cus_step_class step) {
    uint64_t came = plan->steps[step];
    plan->steps[step] = 0;
    return came;
}

const struct cus_dispatch *cus_plan_dispatch(const struct cus_plan *plan) {
    return &plan->dispatch;
}

const struct cus_segment_list *cus_plan_last_list(const struct cus_plan *plan) {
    return &plan->last;
}

/* ---- matching ---- */

const struct cus_kind *cus_plan_expected(const struct cus_plan *plan) {
    if (plan->view.segment)
        return plan->view.segment->places[plan->view.n].kind;
    return plan->cur->expect ? plan->cur->expect->key.kind : NULL;
}

static enum cus_offer offer_to_segment(struct cus_plan *plan, const struct cus_op *op,
                                       struct cus_proposal *proposal) {
    uint32_t i = plan->view.n;
    if (CUS_HAZARD(A3) && plan->view.segment->places[i].kind != op->kind) {
        if (!cus_prefix_find(plan, op))
            return CUS_OFFER_DIVERGED;
        if (!plan->other->n_variants) {
            *proposal = (struct cus_proposal){.to_build = plan->other->n};
            return CUS_OFFER_OTHER;
        }
        cus_prefix_turn(plan);
    }
    struct cus_segment *segment = plan->view.segment;
    const struct cus_values *values =
        plan->view.predicted ? cus_image_op(plan->view.predicted->image, segment, i) : NULL;
    bool same_dims = values && cus_op_same_dims(op, values);
    if (!same_dims) {
        if (CUS_HAZARD(A12) && !cus_kind_allows(op->kind, op->dims))
            return CUS_OFFER_UNSUPPORTED;
        plan->view.reshaped = true;
        cus_choose_set_reshapes(&plan->view, i);
    }
    if (!same_dims || values->unknown || !cus_op_same_params(op, values)) {
        cus_op_store(op, cus_image_op(segment->requested, segment, i));
        cus_choose_set_dirty(&plan->view, i, true);
    }
    plan->view.n = i + 1;
    if (plan->view.n == segment->n) {
        plan->view.at = &cus_expect_nothing;
        return CUS_OFFER_FULL;
    }
    if (plan->view.predicted && !plan->view.timed)
        plan->view.at = cus_image_expected(plan->view.predicted->image, segment, plan->view.n);
    return CUS_OFFER_DEFERRED;
}

bool cus_plan_others_differ(const struct cus_expected *at, void *const *params) {
    const struct cus_argument *argument = at->tail, *end = argument + at->others;
    const uint8_t *values = cus_expected_values(at)->params;
    for (params += at->words; argument < end; argument++, params++)
        if (!cus_bytes_same(*params, values + argument->offset, argument->size))
            return true;
    return false;
}

/* Where the request for the expected op is stored. */
static struct cus_values *next_requested(const struct cus_plan_view *view) {
    const struct cus_segment *segment = view->segment;
    struct cus_values *requested = cus_image_op(segment->requested, segment, view->n);
    cus_plan_fetch_requested((const uint8_t *)requested + view->at->bytes);
    return requested;
}

void cus_plan_request_others(struct cus_plan_view *view, void *const *params) {
    struct cus_values *requested = next_requested(view);
    cus_launch_store(view->at->kind, cus_plan_before(view)->dims, params, requested);
    cus_choose_set_dirty(view, view->n, true);
}

void cus_plan_request(struct cus_plan_view *view, void *const *params) {
    cus_plan_request_here(view, params);
}

void cus_plan_request_flat(struct cus_plan_view *view, const uint8_t *flat) {
    const struct cus_kind *kind = view->at->kind;
    const struct cus_values *values = cus_plan_before(view);
    if (cus_flat_same(kind, flat, values))
        return;
    struct cus_values *requested = next_requested(view);
    *requested = *values;
    memcpy(requested->params, flat, kind->param_bytes);
    cus_choose_set_dirty(view, view->n, true);
}

bool cus_plan_request_shape(struct cus_plan_view *view, struct cus_dims dims, void *const *params,
                            const uint8_t *flat) {
    const struct cus_kind *kind = view->at->kind;
    if (CUS_HAZARD(A12) && !cus_kind_allows(kind, dims.d))
        return false;
    struct cus_op op = {.kind = kind, .params = (void **)(uintptr_t)params, .flat = flat};
    memcpy(op.dims, dims.d, sizeof op.dims);
    cus_op_store(&op, next_requested(view));
    view->reshaped = true;
    cus_choose_set_reshapes(view, view->n);
    cus_choose_set_dirty(view, view->n, true);
    return true;
}

/* The ops behind a divergence are usually known. If the op equals the first op of a segment, the
 * path goes on with that segment, through an alias. */
static struct cus_node *rejoin(struct cus_plan *plan, const struct cus_op *op,
                               enum cus_step_class step) {
    if (!plan->heads || plan->tree.n_nodes >= plan->limits.nodes_max)
        return NULL;
    struct cus_segment *segment;
    uint64_t hash = cus_op_hash(op);
    HASH_FIND(hh, plan->heads, &hash, sizeof hash, segment);
    if (!segment || segment->places[0].kind != op->kind || segment->nodes[0]->key.step != step)
        return NULL;
    struct cus_node *alias = cus_tree_grow(&plan->tree, plan->cur, op->kind, step);
    if (!alias)
        return NULL;
    alias->join = segment->nodes[0];
    return alias->join;
}

/* May the op begin a segment? One begins on its own stream. */
static bool may_begin(const struct cus_plan *plan, const struct cus_node *node,
                      const struct cus_op *op) {
    const struct cus_kind *kind = op->kind;
    if (!kind->deferrable || kind->branch || kind->type == CUS_OP_WAIT ||
        (kind->type == CUS_OP_RECORD && !cus_record_forks(node)) ||
        !cus_dispatch_allows(&plan->dispatch, (enum cus_step_class)node->key.step, kind))
        return false;
    if (node->segment)
        return node->segment->nodes[0] == node;
    return cus_node_warm(node, plan->limits.warmup) && node->visits >= node->retry_at &&
           node->expect;
}

/* The segment of the last BEGIN: the offer made its first node the expected one. */
static struct cus_segment *next_segment(const struct cus_plan *plan) {
    const struct cus_node *next = plan->cur->expect;
    return (next->join ? next->join : next)->segment;
}

enum cus_offer cus_plan_offer(struct cus_plan *plan, const struct cus_op *op,
                              struct cus_proposal *proposal) {
    if (plan->view.segment)
        return offer_to_segment(plan, op, proposal);
    if (plan->limits.count_only)
        return CUS_OFFER_EAGER;
    enum cus_step_class step = cus_plan_step(plan, op);
    struct cus_node *node = cus_tree_child(&plan->tree, plan->cur, op->kind, step);
    if (!node)
        node = rejoin(plan, op, step);
    plan->offered = node;
    plan->offered_step = step;
    if (!node || !may_begin(plan, node, op) || !cus_kind_allows(op->kind, op->dims))
        return CUS_OFFER_EAGER;
    if (!node->segment && !cus_prefix_led(node, node) &&
        (cus_prefix_goes_on(plan, node) || !cus_plan_form(plan, node, 0, plan->ramp)))
        return CUS_OFFER_EAGER;
    if (plan->history)
        cus_prefix_foresee(plan, node);
    const struct cus_segment *segment = next_segment(plan);
    *proposal = (struct cus_proposal){
        .to_build = segment->n_variants ? 0 : segment->n,
        .advised = segment->advised,
    };
    return CUS_OFFER_BEGIN;
}

enum cus_why cus_plan_why(const struct cus_plan *plan, const struct cus_op *op) {
    const struct cus_node *node = plan->cur->expect; /* set by the offer */
    if (!node || node->key.kind != op->kind)
        return plan->tree.n_nodes >= plan->limits.nodes_max ? CUS_WHY_FULL_TREE : CUS_WHY_WARMUP;
    if (node->join)
        node = node->join;
    if (node->segment && node->segment->nodes[0] != node)
        return CUS_WHY_REST;
    if (!cus_node_warm(node, plan->limits.warmup))
        return CUS_WHY_WARMUP;
    /* A segment with fewer than two ops sets retry_at one visit ahead. */
    return node->retry_at > node->visits + 1 ? CUS_WHY_BACKOFF : CUS_WHY_SHORT;
}

void cus_plan_put_off(struct cus_plan *plan) {
    struct cus_segment *segment = next_segment(plan);
    plan->put_off = plan->turns;
    plan->n_waiting += !segment->waits;
    segment->waits = true;
}

static void begin(struct cus_plan *plan, const struct cus_op *op) {
    cus_cursor_leave(plan);
    plan->cur->expect->stamp = plan->turns; /* an alias that is taken stays */
    plan->view.segment = next_segment(plan);
    plan->view.n = 0;
    plan->then++;
    cus_choose_set_clean(&plan->view);
    /* Of a segment without records too: its ops may go over to one that has some. */
    memset(plan->view.superseded, 0, sizeof plan->view.superseded);
    plan->view.reshaped = plan->has_own = plan->head_patched = false;
    plan->n_waiting -= plan->view.segment->waits;
    plan->view.segment->waits = false;
    plan->view.predicted = cus_choose_predict(plan, plan->view.segment, op);
    if (plan->view.predicted)
        cus_choose_trust(plan, plan->view.predicted);
    plan->view.segment->begun++;
    plan->view.timed = plan->view.predicted && cus_learn_wants_time(plan->view.segment);
    plan->view.at = &cus_expect_nothing;
    plan->ramped = plan->ramp;
    cus_sizes_up(plan, plan->view.segment);
    plan->clock++;
}

void cus_plan_accept(struct cus_plan *plan, const struct cus_op *op, uint32_t memory_epoch) {
    if (plan->view.segment) {
        cus_prefix_turn(plan);
        return;
    }
    plan->view.memory_epoch = memory_epoch;
    begin(plan, op);
}

void cus_plan_note_time(struct cus_plan *plan, uint64_t ns) {
    if (plan->view.n == 1) {
        plan->gap.first = plan->gap.last = ns;
        plan->gap.longest = 0;
        return;
    }
    /* Of two pauses of about the same length, always the first one is noted. */
    if (ns - plan->gap.last > 2 * plan->gap.longest) {
        plan->gap.longest = ns - plan->gap.last;
        plan->gap.behind = plan->view.n - 2;
    }
    plan->gap.last = ns;
}

void cus_plan_patched(struct cus_plan *plan, struct cus_variant *variant, uint32_t i, bool known) {
    struct cus_segment *segment = plan->view.segment;
    cus_variant_know(variant, segment, i, !CUS_HAZARD(A28) || known);
    if (known)
        memcpy(cus_image_op(variant->image, segment, i),
               cus_image_op(segment->requested, segment, i),
               cus_values_bytes(segment->places[i].kind));
    plan->head_patched |= i == 0;
    if (known)
        cus_choose_set_dirty(&plan->view, i, false);
}

uint32_t cus_plan_patched_all(struct cus_plan *plan, struct cus_variant *variant,
                              uint64_t nodes[CUS_SEGMENT_MAX / 64]) {
    struct cus_segment *segment = plan->view.segment;
    uint32_t n = cus_plan_n_dirty(plan), patched = cus_choose_dirty_nodes(plan, variant);
    memcpy(nodes, plan->view.dirty, (segment->n + 63) / 64 * sizeof *nodes);
    if (!variant->doubted && n * SWAP_PART >= segment->n) {
        plan->head_patched |= cus_choose_is_dirty(&plan->view, 0);
        cus_variant_swap(variant, segment, plan->view.dirty);
        cus_choose_set_clean(&plan->view);
        return patched;
    }
    for (uint32_t i = 0; (i = cus_plan_next_dirty(plan, i)) < segment->n; i++)
        cus_plan_patched(plan, variant, i, true);
    variant->doubted = false; /* an unknown node differs from any request */
    return patched;
}

struct cus_variant *cus_plan_built(struct cus_plan *plan, struct cus_exec *exec) {
    struct cus_segment *segment = plan->view.segment;
    struct cus_variant *variant = cus_variant_new(segment);
    if (!variant || !cus_choose_note_absent(plan, variant)) {
        cus_variant_free(variant);
        return NULL;
    }
    for (uint32_t i = 0; i < segment->n; i++) {
        struct cus_values *values = cus_image_op(variant->image, segment, i);
        memcpy(values, cus_plan_values(plan, i), cus_values_bytes(segment->places[i].kind));
        values->unknown = 0;
    }
    variant->exec = exec;
    variant->memory_epoch = plan->view.memory_epoch;
    plan->view.reshaped = true; /* so that cus_choose_own computes the signature */
    variant->own = cus_choose_own(plan);
    plan->view.reshaped = false;
    variant->in = plan->sig;
    variant->out = cus_signature_append(plan->sig, variant->own, segment->power);
    cus_choose_note(plan, variant->out);
    variant->values_key = plan->values_key;
    segment->unbuilt = 0;
    plan->view.built_anew += !segment->n_variants && segment->nodes[segment->lead]->built;
    for (uint32_t i = segment->lead; i < segment->n; i++)
        segment->nodes[i]->built = true;
    cus_variants_add(segment, variant);
    plan->view.predicted = variant;
    segment->hashed = false;
    cus_choose_set_clean(&plan->view);
    return variant;
}

void cus_plan_break(struct cus_plan *plan) {
    plan->called |= !plan->broken; /* a segment that was cut has counted the call */
    plan->broken = true;
}

void cus_plan_covered(struct cus_plan *plan) {
    plan->covered = true;
}

/* ---- what became of a segment ---- */

static bool launched(struct cus_plan *plan, struct cus_variant *variant) {
    struct cus_segment *segment = plan->view.segment;
    cus_cursor_marker(plan, segment->places[0].kind,
                      (enum cus_step_class)segment->nodes[0]->key.step);
    struct cus_signature own = cus_choose_own(plan);
    bool moved =
        !cus_signature_same(variant->own, own) || !cus_signature_same(variant->in, plan->sig);
    variant->own = own;
    variant->out = cus_signature_append(plan->sig, own, segment->power);
    variant->in = plan->sig;
    plan->then = variant->used;
    segment->fired++;
    if (plan->history) {
        if (*cus_plan_history_at(plan, segment->used) == segment)
            *cus_plan_history_at(plan, segment->used) = NULL;
        *cus_plan_history_at(plan, plan->clock) = segment;
    }
    variant->used = segment->used = plan->clock;
    variant->fired = segment->fired;
    plan->head_patched |= segment->newest != variant && segment->n_variants <= CUS_VARIANTS_FEW;
    cus_variants_launched(plan, segment, variant, moved);
    cus_learn_index(plan, segment, plan->head_patched);
    plan->sig = variant->out;
    plan->view.segment = NULL;
    plan->view.at = &cus_expect_nothing;
    uint32_t n = segment->n;
    struct cus_node *end = segment->nodes[n - 1];
    cus_segment_list_add(&plan->now, NULL, n);
    cus_merges_gap(&plan->merges);
    cus_learn_used(plan, segment);
    uint32_t period = cus_loops_look(plan) ? cus_loops_feed_segment(plan, segment, n) : 0;
    cus_learn_gap(plan, segment);
    bool turned = cus_cursor_advance(plan, end, n);
    cus_loops_found(plan, period);
    return turned;
}

static bool cut_off(struct cus_plan *plan, enum cus_cut cut) {
    struct cus_segment *segment = plan->view.segment;
    uint32_t n = plan->view.n;
    struct cus_node *at = n ? segment->nodes[n - 1] : plan->cur;
    plan->sig = cus_choose_signature_behind(plan, n);
    plan->view.segment = NULL;
    plan->view.at = &cus_expect_nothing;
    plan->broken = true;
    if (n)
        cus_cursor_marker(plan, segment->places[0].kind,
                          (enum cus_step_class)segment->nodes[0]->key.step);
    for (uint32_t i = 0; i < n; i++)
        cus_segment_list_add(&plan->now, segment->places[i].kind->name, 1);
    if (n)
        cus_merges_gap(&plan->merges);
    if (cus_loops_look(plan))
        cus_loops_feed_segment(plan, segment, n);
    cus_learn_cut(plan, segment, n, cut);
    return cus_cursor_advance(plan, at, n);
}

bool cus_plan_end(struct cus_plan *plan, struct cus_outcome outcome) {
    if (outcome.ended == CUS_ENDED_LAUNCHED)
        return launched(plan, outcome.variant);
    if (outcome.ended == CUS_ENDED_CUT)
        return cut_off(plan, outcome.cut);
    struct cus_segment *segment = plan->view.segment;
    bool turned = cut_off(plan, CUS_CUT_REFUSED);
    if (outcome.ended == CUS_ENDED_NO_ROOM)
        cus_learn_no_room(plan, segment);
    else
        cus_learn_refused(plan, segment, outcome.variant);
    return turned;
}

static struct cus_segment *segment_of(const struct cus_variant *variant) {
    return (struct cus_segment *)(uintptr_t)variant->segment;
}

/* If the tallies contain this launch already, the next cus_segment_tally subtracts it. */
void cus_plan_unlaunched(struct cus_variant *variant) {
    segment_of(variant)->fired--;
}

void cus_plan_failed(struct cus_plan *plan, struct cus_variant *broken) {
    cus_learn_refused(plan, segment_of(broken), broken);
}
