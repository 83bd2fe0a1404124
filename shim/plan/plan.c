/*
 * The plan's cursor: matching ops against the expected path, choosing variants, recording what is
 * new.
 *
 * Runs under the lock of the engine that owns the plan, on the thread that offers the op (or, for
 * flushed, on whoever flushes). The first half is the hot path and allocates nothing. Never calls
 * the driver; execs are dropped through the callback.
 */
#include "shim/plan/plan.h"

#include <stdio.h>
#include <string.h>

#include "shim/base/hazard.h"
#include "shim/base/mem.h"
#include "shim/plan/advice.h"
#include "shim/plan/choose.h"
#include "shim/plan/learn.h"
#include "shim/plan/parting.h"
#include "shim/plan/sizes.h"
#include "shim/plan/twins.h"
#include "shim/plan/variants.h"

enum {
    /* A step is searched for a loop once it has more ops than this, and than LOOP_LONGER times the
     * longest that a synchronisation ever ended; at LOOP_SURE ops in any case. */
    LOOP_AFTER = 256,
    LOOP_LONGER = 8,
    LOOP_SURE = 65536,
    LOOP_STEP = 128,   /* a turn is as many whole periods as reach this many ops */
    CUT_PASSES = 16,   /* times that a path goes on behind a boundary without the break that made
                          it before it is forgotten */
    GAP_PASSES = 4096, /* the same where the host pauses, which is no break */
    SWEEP_AFTER = 8,   /* ops that found no room, for each node there is, before those nodes go that
                          did not come meanwhile: a program whose steps do not all have room keeps
                          those that it has, and one that does other things now begins anew */
    SWEEP_LEAST = 4096,
    RIPE_AFTER = 2,  /* visits beyond the warm-up after which an op might be in a graph */
    KEEP_FIRED = 16, /* launches of a piece that is kept while the stream is left alone */
    FIRST_EXECS = 8, /* steps behind one in which a piece without an exec may not be built, until no
                        other piece has a further one */
};

void cus_plan_init(struct cus_plan *plan, const struct cus_plan_limits *limits,
                   cus_plan_drop_fn *drop, void *context) {
    memset(plan, 0, sizeof *plan);
    plan->limits = *limits;
    plan->drop = drop;
    plan->context = context;
    plan->dispatch.mode = limits->mode;
    cus_tree_init(&plan->tree);
    plan->at = &cus_expect_nothing;
    plan->cur = &plan->tree.root;
    plan->ramp.size = limits->piece_first;
    cus_sizes_begin(plan);
}

void cus_plan_clear(struct cus_plan *plan) {
    cus_plan_drop_handle(plan, NULL);
    cus_twins_clear(plan);
    cus_tree_clear(&plan->tree);
    plan->tree.root.path = plan->seed;
    cus_loop_free(&plan->loop);
    cus_joins_clear(&plan->joins);
    cus_mem_shrink(plan->seen);
    plan->seen = NULL;
    cus_mem_shrink(plan->came);
    plan->came = NULL;
    plan->cur = &plan->tree.root;
    plan->turns++;
    plan->step = CUS_STEP_UNKNOWN;
    plan->dispatch = (struct cus_dispatch){.mode = plan->limits.mode};
    plan->sig = (struct cus_signature){0, 0};
    plan->step_ops = plan->advised_ops = 0;
    plan->ramp = (struct cus_ramp){.size = plan->limits.piece_first};
    plan->loop_ops = 0;
    plan->now.n = 0;
    plan->last.n = 0; /* its names belong to kinds that may be freed */
    plan->now.graphs = plan->last.graphs = false;
}

/* ---- which withheld ops differ ---- */

uint32_t cus_plan_next_dirty(const struct cus_plan *plan, uint32_t from) {
    uint32_t n = plan->piece->n;
    for (uint32_t at = from; at < n; at = (at / 64 + 1) * 64) {
        uint64_t word = plan->dirty[at / 64] >> at % 64;
        if (word)
            return at + (uint32_t)__builtin_ctzll(word);
    }
    return n;
}

/* ---- matching ---- */

static enum cus_offer offer_to_piece(struct cus_plan *plan, const struct cus_op *op) {
    uint32_t i = plan->n;
    if (CUS_HAZARD(A3) && plan->piece->places[i].kind != op->kind) {
        if (!cus_parting_find(plan, op))
            return CUS_OFFER_DIVERGED;
        if (!plan->other->n_variants)
            return CUS_OFFER_OTHER;
        cus_plan_turn(plan);
    }
    struct cus_piece *piece = plan->piece;
    const struct cus_held *held =
        plan->predicted ? cus_image_op(plan->predicted->image, piece, i) : NULL;
    bool same_dims = held && cus_op_same_dims(op, held);
    if (!same_dims) {
        if (CUS_HAZARD(A12) && !cus_kind_allows(op->kind, op->dims))
            return CUS_OFFER_UNSUPPORTED;
        plan->reshaped = true;
    }
    if (!same_dims || held->unknown || !cus_op_same_params(op, held)) {
        cus_op_store(op, cus_image_op(piece->asked, piece, i));
        cus_choose_set_dirty(plan, i, true);
    }
    plan->n = i + 1;
    if (plan->n == piece->n) {
        plan->at = &cus_expect_nothing;
        return CUS_OFFER_FULL;
    }
    if (plan->predicted && !plan->timed)
        plan->at = cus_image_expected(plan->predicted->image, piece, plan->n);
    return CUS_OFFER_HELD;
}

bool cus_plan_others_differ(const struct cus_expected *at, void *const *params) {
    const struct cus_argument *argument = at->kind->layout->arguments + at->words;
    const struct cus_argument *end = argument + at->others;
    const uint8_t *held = cus_expected_held(at)->params;
    for (params += at->words; argument < end; argument++, params++) {
        const void *have = held + argument->offset, *want = *params;
        bool same = argument->size == 4   ? memcmp(want, have, 4) == 0
                    : argument->size == 8 ? cus_word_at(want) == cus_word_at(have)
                                          : memcmp(want, have, argument->size) == 0;
        if (!same)
            return true;
    }
    return false;
}

void cus_plan_ask_others(struct cus_plan *plan, void *const *params) {
    struct cus_piece *piece = plan->piece;
    cus_launch_store(plan->at->kind, cus_plan_before(plan)->dims, params,
                     cus_image_op(piece->asked, piece, plan->n));
    cus_choose_set_dirty(plan, plan->n, true);
}

void cus_plan_ask(struct cus_plan *plan, void *const *params) {
    cus_plan_ask_here(plan, params);
}

/* After a divergence the ops behind it are usually known: the head of a piece whose first op is
 * this very op. */
static struct cus_node *rejoin(struct cus_plan *plan, const struct cus_op *op,
                               enum cus_step_class step) {
    if (!plan->heads || plan->tree.n_nodes >= plan->limits.nodes_max)
        return NULL;
    struct cus_piece *piece;
    uint64_t hash = cus_op_hash(op);
    HASH_FIND(hh, plan->heads, &hash, sizeof hash, piece);
    if (!piece || piece->places[0].kind != op->kind || piece->nodes[0]->key.step != step)
        return NULL;
    struct cus_node *alias = cus_tree_grow(&plan->tree, plan->cur, op->kind, step);
    if (!alias)
        return NULL;
    alias->join = piece->nodes[0];
    return alias->join;
}

/* The path goes on behind the last op. Where that is a boundary and no break came, the boundary
 * loses its reason; where the host pauses, only after a long while. Pieces that are formed from
 * then on may go across it. */
static void leave(struct cus_plan *plan) {
    struct cus_node *at = plan->cur;
    if (plan->called)
        cus_learn_call(at);
    uint32_t enough = at->boundary == CUS_BOUNDARY_GAP ? GAP_PASSES : CUT_PASSES;
    if (at->boundary != CUS_BOUNDARY_NONE && at->boundary != CUS_BOUNDARY_FORK && !plan->broken &&
        ++at->passes > enough && at->passes > 8 * at->cuts) {
        at->boundary = CUS_BOUNDARY_NONE;
        at->cuts = 0;
        at->passes = 0;
    }
    plan->broken = plan->called = false;
}

static bool may_begin(const struct cus_plan *plan, const struct cus_node *node,
                      const struct cus_op *op) {
    const struct cus_kind *kind = op->kind;
    if (!kind->deferrable ||
        !cus_dispatch_allows(&plan->dispatch, (enum cus_step_class)node->key.step, kind))
        return false;
    if (node->piece)
        return node->piece->nodes[0] == node;
    return cus_node_warm(node, plan->limits.warmup) && node->visits >= node->retry_at &&
           node->expect;
}

enum cus_offer cus_plan_offer(struct cus_plan *plan, const struct cus_op *op) {
    if (plan->piece)
        return offer_to_piece(plan, op);
    enum cus_step_class step = cus_plan_step(plan, op);
    struct cus_node *node = cus_tree_child(&plan->tree, plan->cur, op->kind, step);
    if (!node)
        node = rejoin(plan, op, step);
    plan->met = node;
    plan->met_step = step;
    if (!node || !may_begin(plan, node, op) || !cus_kind_allows(op->kind, op->dims))
        return CUS_OFFER_EAGER;
    if (!node->piece && !cus_parting_led(node, node) &&
        (cus_parting_goes_on(plan, node) || !cus_plan_form(plan, node, 0, plan->ramp)))
        return CUS_OFFER_EAGER;
    if (plan->came)
        cus_parting_foresee(plan, node);
    return CUS_OFFER_BEGIN;
}

enum cus_why cus_plan_why(const struct cus_plan *plan, const struct cus_op *op) {
    const struct cus_node *node = plan->cur->expect; /* the offer made it so, if there is one */
    if (!node || node->key.kind != op->kind)
        return plan->tree.n_nodes >= plan->limits.nodes_max ? CUS_WHY_FULL_TREE : CUS_WHY_WARMUP;
    if (node->join)
        node = node->join;
    if (node->piece && node->piece->nodes[0] != node)
        return CUS_WHY_REST;
    if (!cus_node_warm(node, plan->limits.warmup))
        return CUS_WHY_WARMUP;
    /* A piece that had less than two ops makes it one visit. */
    return node->retry_at > node->visits + 1 ? CUS_WHY_BACKOFF : CUS_WHY_SHORT;
}

/* The node that BEGIN spoke of: the offer made it the expected one. */
static struct cus_node *next_node(const struct cus_plan *plan) {
    struct cus_node *next = plan->cur->expect;
    return next->join ? next->join : next;
}

struct cus_piece *cus_plan_next_piece(const struct cus_plan *plan) {
    return next_node(plan)->piece;
}

uint32_t cus_plan_to_build(const struct cus_plan *plan, bool *advised) {
    const struct cus_piece *piece = cus_plan_next_piece(plan);
    *advised = piece->advised;
    return piece->n_variants ? 0 : piece->n;
}

void cus_plan_put_off(struct cus_plan *plan) {
    plan->put_off = plan->turns + FIRST_EXECS;
}

void cus_plan_begin(struct cus_plan *plan, const struct cus_op *op) {
    leave(plan);
    plan->piece = cus_plan_next_piece(plan);
    plan->n = 0;
    plan->then++;
    cus_choose_set_clean(plan);
    plan->reshaped = false;
    plan->head_patched = false;
    plan->predicted = cus_choose_predict(plan, plan->piece, op);
    if (plan->predicted)
        cus_choose_trust(plan, plan->predicted);
    plan->piece->begun++;
    plan->timed = plan->predicted && cus_learn_wants_time(plan->piece);
    plan->at = &cus_expect_nothing;
    plan->ramped = plan->ramp;
    cus_sizes_up(plan, plan->piece);
    plan->clock++;
}

void cus_plan_came(struct cus_plan *plan, uint64_t ns) {
    if (plan->n == 1) {
        plan->gap.first = plan->gap.last = ns;
        plan->gap.longest = 0;
        return;
    }
    /* Of two pauses that are much alike the first one is meant, each time. */
    if (ns - plan->gap.last > 2 * plan->gap.longest) {
        plan->gap.longest = ns - plan->gap.last;
        plan->gap.behind = plan->n - 2;
    }
    plan->gap.last = ns;
}

const struct cus_held *cus_plan_held(const struct cus_plan *plan, uint32_t i) {
    return cus_image_op(cus_choose_is_dirty(plan, i) ? plan->piece->asked : plan->predicted->image,
                        plan->piece, i);
}

void cus_plan_patched(struct cus_plan *plan, struct cus_variant *variant, uint32_t i, bool known) {
    struct cus_piece *piece = plan->piece;
    cus_variant_know(variant, piece, i, !CUS_HAZARD(A28) || known);
    if (known)
        memcpy(cus_image_op(variant->image, piece, i), cus_image_op(piece->asked, piece, i),
               cus_held_bytes(piece->places[i].kind));
    plan->head_patched |= i == 0;
    if (known)
        cus_choose_set_dirty(plan, i, false);
}

struct cus_variant *cus_plan_built(struct cus_plan *plan, struct cus_exec *exec) {
    struct cus_piece *piece = plan->piece;
    struct cus_variant *variant = cus_variant_new(piece);
    if (!variant)
        return NULL;
    for (uint32_t i = 0; i < piece->n; i++) {
        struct cus_held *held = cus_image_op(variant->image, piece, i);
        memcpy(held, cus_plan_held(plan, i), cus_held_bytes(piece->places[i].kind));
        held->unknown = 0;
    }
    variant->exec = exec;
    variant->memory_epoch = plan->memory_epoch;
    plan->reshaped = true; /* nothing is known of the ops as a whole yet */
    variant->own = cus_choose_own(plan);
    plan->reshaped = false;
    variant->in = plan->sig;
    variant->out = cus_signature_append(plan->sig, variant->own, piece->power);
    cus_choose_note(plan, variant->out);
    cus_variants_add(piece, variant);
    cus_twins_add(plan, piece);
    plan->predicted = variant;
    plan->head_patched = true;
    cus_choose_set_clean(plan);
    return variant;
}

/* ---- going on ---- */

/* The path starts at the root again. */
static void restart(struct cus_plan *plan) {
    plan->cur = &plan->tree.root;
    plan->step = CUS_STEP_UNKNOWN;
    plan->sig = (struct cus_signature){0, 0};
    plan->clock_before = plan->clock_now;
    plan->clock_now = plan->clock;
    plan->step_ops = plan->advised_ops = 0;
    plan->ramp = (struct cus_ramp){.size = plan->limits.piece_first};
    plan->loop_ops = 0;
    plan->looking = false;
    plan->broken = true;
    plan->called = false;
    plan->turns++;
    cus_joins_gap(&plan->joins);
    if (plan->now.graphs)
        cus_segments_copy(&plan->last, &plan->now);
    plan->now.n = 0;
    plan->now.dropped = 0;
    plan->now.graphs = false;
}

/* `ops` ops were issued up to `at`. Returns true where a turn of a loop ended there. */
static bool advance(struct cus_plan *plan, struct cus_node *at, uint32_t ops) {
    plan->cur = at;
    if (ops)
        plan->step = (enum cus_step_class)at->key.step;
    plan->step_ops += ops;
    plan->unsynced += ops;
    if (plan->loop_ops && plan->step_ops >= plan->loop_ops) {
        at->loop_end = plan->step_ops == plan->loop_ops;
        plan->loop_ops = 0;
    }
    if (!at->loop_end)
        return false;
    struct cus_ramp ramp = plan->ramp;
    restart(plan);
    plan->ramp = ramp; /* the GPU is busy: no need to start small again */
    return true;
}

static void count_marker(struct cus_plan *plan, const struct cus_kind *kind,
                         enum cus_step_class step) {
    plan->steps[step] += kind->step != NULL;
}

bool cus_plan_fired(struct cus_plan *plan, struct cus_variant *variant) {
    struct cus_piece *piece = plan->piece;
    count_marker(plan, piece->places[0].kind, (enum cus_step_class)piece->nodes[0]->key.step);
    struct cus_signature own = cus_choose_own(plan);
    bool moved =
        !cus_signature_same(variant->own, own) || !cus_signature_same(variant->in, plan->sig);
    variant->own = own;
    variant->out = cus_signature_append(plan->sig, own, piece->power);
    variant->in = plan->sig;
    plan->then = variant->used;
    piece->fired++;
    if (plan->came) {
        if (*cus_plan_came_at(plan, piece->used) == piece)
            *cus_plan_came_at(plan, piece->used) = NULL;
        *cus_plan_came_at(plan, plan->clock) = piece;
    }
    variant->used = piece->used = plan->clock;
    variant->fired = piece->fired;
    plan->head_patched |= piece->newest != variant && piece->n_variants <= CUS_VARIANTS_FEW;
    cus_variants_launched(plan, piece, variant, moved);
    if (plan->head_patched || !piece->hashed)
        cus_learn_index(plan, piece);
    plan->sig = variant->out;
    plan->piece = NULL;
    plan->at = &cus_expect_nothing;
    uint32_t n = piece->n;
    struct cus_node *end = piece->nodes[n - 1];
    cus_segments_add(&plan->now, NULL, n);
    cus_joins_gap(&plan->joins);
    cus_learn_used(plan, piece);
    cus_learn_gap(plan, piece);
    return advance(plan, end, n);
}

bool cus_plan_flushed(struct cus_plan *plan, enum cus_cut cut) {
    struct cus_piece *piece = plan->piece;
    uint32_t n = plan->n;
    struct cus_node *at = n ? piece->nodes[n - 1] : plan->cur;
    plan->sig = cus_choose_signature_behind(plan, n);
    plan->piece = NULL;
    plan->n = 0;
    plan->at = &cus_expect_nothing;
    plan->broken = true;
    if (n)
        count_marker(plan, piece->places[0].kind, (enum cus_step_class)piece->nodes[0]->key.step);
    for (uint32_t i = 0; i < n; i++)
        cus_segments_add(&plan->now, piece->places[i].kind->name, 1);
    if (n)
        cus_joins_gap(&plan->joins);
    cus_learn_cut(plan, piece, n, cut);
    return advance(plan, at, n);
}

bool cus_plan_refused(struct cus_plan *plan, struct cus_variant *broken) {
    struct cus_piece *piece = plan->piece;
    bool turned = cus_plan_flushed(plan, CUS_CUT_REFUSED);
    cus_learn_refused(plan, piece, broken);
    return turned;
}

/* ---- resting ---- */

static bool is_good(const struct cus_piece *piece) {
    return piece->n_variants && piece->fired >= KEEP_FIRED;
}

bool cus_plan_rest(struct cus_plan *plan) {
    const struct cus_piece *piece = plan->pieces;
    while (piece && !is_good(piece))
        piece = piece->next;
    if (!piece) {
        cus_plan_clear(plan);
        return false;
    }
    restart(plan);
    for (; piece; piece = piece->next)
        if (is_good(piece))
            cus_tree_mark(&plan->tree, piece->nodes[piece->n - 1]);
    cus_learn_forget(plan);
    cus_loop_free(&plan->loop);
    plan->unsynced = 0;
    plan->looped = false;
    return true;
}

/* As a stream that is left alone sees the op. */
static uint64_t word_of(const struct cus_kind *kind) {
    return kind->type == CUS_OP_LAUNCH ? (uintptr_t)kind->handle : kind->type;
}

unsigned cus_plan_heads(const struct cus_plan *plan, uint64_t *heads, unsigned max) {
    unsigned n = 0;
    for (const struct cus_piece *piece = plan->pieces; piece && n < max; piece = piece->next) {
        if (piece->nodes[0]->key.parent != &plan->tree.root || piece->n < CUS_HEAD_OPS)
            continue;
        uint64_t head = 0;
        for (unsigned i = 0; i < CUS_HEAD_OPS; i++)
            head = cus_head_add(head, word_of(piece->places[i].kind));
        heads[n++] = head;
    }
    return n;
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
    uint32_t period =
        cus_loop_feed(&plan->loop, (uint64_t)op->kind->id * 0x9e3779b97f4a7c15u >> 16);
    if (!period || (plan->step_ops < LOOP_SURE && cus_advice_goes_on(plan)))
        return;
    restart(plan);
    plan->looped = true;
    plan->ramp.size = plan->limits.piece_max; /* the GPU is busy: no need to start small */
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
    struct cus_node *known = cus_joins_known(&plan->joins, op, step);
    if (known &&
        (known->stamp == plan->turns || (known->piece && known->piece->used > plan->clock_now)))
        known = NULL;
    struct cus_node *node = cus_tree_grow(&plan->tree, plan->cur, op->kind, step);
    plan->fresh_nodes++;
    if (!node || !known)
        return node;
    node->join = known;
    return known;
}

/* `node`: the child that stands for it, or NULL. Returns where the path is now; NULL: nowhere. */
static struct cus_node *record(struct cus_plan *plan, const struct cus_op *op,
                               struct cus_node *node, enum cus_step_class step) {
    meet(plan, op->kind, step);
    leave(plan);
    if (cus_joins_wanted(&plan->joins, &plan->tree))
        cus_joins_feed(&plan->joins, op);
    if (!node && plan->tree.n_nodes < plan->limits.nodes_max)
        node = branch(plan, op, step);
    plan->sig = cus_signature_add(plan->sig, op->kind, op->dims);
    cus_choose_note(plan, plan->sig);
    cus_segments_add(&plan->now, op->kind->name, 1);
    count_marker(plan, op->kind, step);
    if (!node) {
        /* The tree is full: this step goes on unknown, the next one starts at the root. */
        cus_joins_gap(&plan->joins);
        if (++plan->unknown >= SWEEP_AFTER * (uint64_t)plan->tree.n_nodes + SWEEP_LEAST)
            cus_learn_sweep(plan);
        plan->step = step;
        plan->step_ops++;
        plan->unsynced++;
        plan->fresh_nodes++;
        return NULL;
    }
    if (node->piece && node->piece->nodes[0] != node && plan->cur->expect->join == node)
        cus_learn_met(plan, plan->cur->expect);
    if (++node->visits == 1 && plan->advice)
        cus_advice_met(plan, node);
    plan->ripe += node->visits > plan->limits.warmup + RIPE_AFTER;
    node->stamp = plan->turns;
    cus_joins_note(&plan->joins, node);
    /* A piece that may not begin now: the one behind it is not the first of the step. */
    if (node->piece && node->piece->nodes[0] == node)
        cus_sizes_up(plan, node->piece);
    if (!advance(plan, node, 1))
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
    mark->node = record(plan, op, plan->met, plan->met_step);
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
    cus_joins_gap(&plan->joins);
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
    cus_learn_shaping(plan);
    restart(plan);
    if (ops > plan->longest)
        plan->longest = ops < LOOP_SURE ? (uint32_t)ops : LOOP_SURE;
    cus_sizes_settle(plan);
    /* What looked like a loop was one step, only longer than those before: it is learned as such.
     */
    plan->again = looped && ops < LOOP_SURE;
    if (plan->again)
        cus_plan_clear(plan);
}
