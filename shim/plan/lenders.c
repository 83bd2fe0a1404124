/*
 * Finds segments of the same kinds and takes a graph from one of them.
 * The plan and shim/stream call it under the engine's lock while the memory for graphs is used up,
 * never in steady replay. Allocates a table once. Never calls the driver.
 */
#include "shim/plan/lenders.h"

#include "shim/base/hash.h"
#include "shim/base/mem.h"
#include "shim/base/pays.h"
#include "shim/plan/choose.h"
#include "shim/plan/learn.h"
#include "shim/plan/variants.h"

enum {
    BUCKETS = 1024,
    LOOKS = 64, /* segments compared per search */
    /* If a segment was not launched while all segments could have been launched so often, its
     * memory is to be freed and nothing is lent. */
    STALE_TURNS = 4
};

static uint64_t kinds_hash(const struct cus_segment *segment) {
    uint64_t hash = segment->n;
    for (uint32_t i = 0; i < segment->n; i++) {
        hash = cus_hash(hash ^ segment->places[i].kind->id);
        hash ^= hash >> 32;
    }
    return hash;
}

static struct cus_segment **bucket(const struct cus_plan *plan, const struct cus_segment *segment) {
    return &plan->lenders[segment->kinds_hash % BUCKETS];
}

void cus_lenders_add(struct cus_plan *plan, struct cus_segment *segment) {
    if (!plan->lenders || segment->in_lenders)
        return;
    segment->kinds_hash = kinds_hash(segment);
    struct cus_segment **first = bucket(plan, segment);
    segment->lender_prev = NULL;
    segment->lender_next = *first;
    if (*first)
        (*first)->lender_prev = segment;
    *first = segment;
    segment->in_lenders = true;
}

void cus_lenders_remove(struct cus_plan *plan, struct cus_segment *segment) {
    if (!segment->in_lenders)
        return;
    if (segment->lender_prev)
        segment->lender_prev->lender_next = segment->lender_next;
    else
        *bucket(plan, segment) = segment->lender_next;
    if (segment->lender_next)
        segment->lender_next->lender_prev = segment->lender_prev;
    segment->in_lenders = false;
}

void cus_lenders_clear(struct cus_plan *plan) {
    cus_mem_shrink(plan->lenders);
    plan->lenders = NULL;
}

static bool start(struct cus_plan *plan) {
    if (plan->lenders)
        return true;
    plan->lenders = cus_mem_grow(BUCKETS * sizeof *plan->lenders);
    for (struct cus_segment *segment = plan->segments; plan->lenders && segment;
         segment = segment->next)
        if (segment->n_variants)
            cus_lenders_add(plan, segment);
    return plan->lenders != NULL;
}

static bool alike(const struct cus_segment *a, const struct cus_segment *b) {
    if (a == b || a->kinds_hash != b->kinds_hash || a->n != b->n)
        return false;
    for (uint32_t i = 0; i < a->n; i++)
        if (a->places[i].kind != b->places[i].kind)
            return false;
    return true;
}

/* Picks the segment launched last: if steps take turns, this segment is needed last. When many
 * segments use a few graphs in turn, all graphs but one keep their content. */
static struct cus_segment *lender(struct cus_plan *plan, struct cus_segment *segment) {
    struct cus_segment *best = NULL;
    if (!CUS_PAYS(BORROW) || !start(plan))
        return NULL;
    segment->kinds_hash = kinds_hash(segment);
    unsigned looks = 0;
    for (struct cus_segment *other = *bucket(plan, segment); other && looks < LOOKS;
         other = other->lender_next, looks++) {
        if (alike(segment, other) && (!best || other->used > best->used))
            best = other;
    }
    return best;
}

bool cus_lenders_have(struct cus_plan *plan, struct cus_segment *segment) {
    return lender(plan, segment) != NULL;
}

static bool has_stale(const struct cus_plan *plan) {
    const struct cus_segment *oldest = plan->oldest;
    while (oldest && !oldest->n_variants)
        oldest = oldest->prev;
    return oldest && oldest->used + (uint64_t)STALE_TURNS * plan->n_segments < plan->clock;
}

bool cus_plan_can_borrow(struct cus_plan *plan) {
    struct cus_segment *segment =
        (plan->cur->expect->join ? plan->cur->expect->join : plan->cur->expect)->segment;
    return !segment->n_variants && !has_stale(plan) && lender(plan, segment);
}

struct cus_variant *cus_plan_borrow(struct cus_plan *plan) {
    struct cus_segment *segment = plan->segment;
    struct cus_segment *from =
        segment->n_variants || has_stale(plan) ? NULL : lender(plan, segment);
    if (!from)
        return NULL;
    struct cus_variant *variant = cus_learn_give(plan, from);
    cus_variants_add(segment, variant);
    cus_lenders_add(plan, segment);
    cus_choose_compare(plan, variant);
    return variant;
}
