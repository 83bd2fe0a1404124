/*
 * Finding pieces of the same kinds, and taking a graph from one of them.
 *
 * Runs under the engine's lock, while the memory for graphs is used up: never in steady replay.
 * Allocates a table once. Never calls the driver.
 */
#include "shim/plan/twins.h"

#include "shim/base/hash.h"
#include "shim/base/mem.h"
#include "shim/base/pays.h"
#include "shim/plan/choose.h"
#include "shim/plan/learn.h"
#include "shim/plan/variants.h"

enum {
    BUCKETS = 1024,
    LOOKS = 64,     /* pieces looked at for one question */
    STALE_TURNS = 4 /* a piece that was not launched while all could have been so often */
};

static uint64_t kinds_hash(const struct cus_piece *piece) {
    uint64_t hash = piece->n;
    for (uint32_t i = 0; i < piece->n; i++) {
        hash = cus_hash(hash ^ piece->places[i].kind->id);
        hash ^= hash >> 32;
    }
    return hash;
}

static struct cus_piece **bucket(const struct cus_plan *plan, const struct cus_piece *piece) {
    return &plan->twins[piece->kinds_hash % BUCKETS];
}

void cus_twins_add(struct cus_plan *plan, struct cus_piece *piece) {
    if (!plan->twins || piece->lends)
        return;
    piece->kinds_hash = kinds_hash(piece);
    struct cus_piece **first = bucket(plan, piece);
    piece->twin_prev = NULL;
    piece->twin_next = *first;
    if (*first)
        (*first)->twin_prev = piece;
    *first = piece;
    piece->lends = true;
}

void cus_twins_remove(struct cus_plan *plan, struct cus_piece *piece) {
    if (!piece->lends)
        return;
    if (piece->twin_prev)
        piece->twin_prev->twin_next = piece->twin_next;
    else
        *bucket(plan, piece) = piece->twin_next;
    if (piece->twin_next)
        piece->twin_next->twin_prev = piece->twin_prev;
    piece->lends = false;
}

void cus_twins_clear(struct cus_plan *plan) {
    cus_mem_shrink(plan->twins);
    plan->twins = NULL;
}

static bool start(struct cus_plan *plan) {
    if (plan->twins)
        return true;
    plan->twins = cus_mem_grow(BUCKETS * sizeof *plan->twins);
    for (struct cus_piece *piece = plan->pieces; plan->twins && piece; piece = piece->next)
        if (piece->n_variants)
            cus_twins_add(plan, piece);
    return plan->twins != NULL;
}

static bool alike(const struct cus_piece *a, const struct cus_piece *b) {
    if (a == b || a->kinds_hash != b->kinds_hash || a->n != b->n)
        return false;
    for (uint32_t i = 0; i < a->n; i++)
        if (a->places[i].kind != b->places[i].kind)
            return false;
    return true;
}

/* The one launched last: of steps that come in turn it is the one wanted last. So of a few graphs
 * for many pieces all but one stay what they are. */
static struct cus_piece *lender(struct cus_plan *plan, struct cus_piece *piece) {
    struct cus_piece *best = NULL;
    if (!CUS_PAYS(TWINS) || !start(plan))
        return NULL;
    piece->kinds_hash = kinds_hash(piece);
    unsigned looks = 0;
    for (struct cus_piece *other = *bucket(plan, piece); other && looks < LOOKS;
         other = other->twin_next, looks++) {
        if (alike(piece, other) && (!best || other->used > best->used))
            best = other;
    }
    return best;
}

bool cus_twins_has(struct cus_plan *plan, struct cus_piece *piece) {
    return lender(plan, piece) != NULL;
}

static bool has_stale(const struct cus_plan *plan) {
    const struct cus_piece *oldest = plan->oldest;
    while (oldest && !oldest->n_variants)
        oldest = oldest->prev;
    return oldest && oldest->used + (uint64_t)STALE_TURNS * plan->n_pieces < plan->clock;
}

bool cus_plan_can_borrow(struct cus_plan *plan) {
    struct cus_piece *piece = cus_plan_next_piece(plan);
    return !piece->n_variants && !has_stale(plan) && lender(plan, piece);
}

struct cus_variant *cus_plan_borrow(struct cus_plan *plan) {
    struct cus_piece *piece = plan->piece;
    struct cus_piece *from = piece->n_variants || has_stale(plan) ? NULL : lender(plan, piece);
    if (!from)
        return NULL;
    struct cus_variant *variant = cus_learn_give(plan, from);
    cus_variants_add(piece, variant);
    cus_twins_add(plan, piece);
    cus_choose_compare(plan, variant);
    return variant;
}
