/*
 * Pieces that come and go.
 *
 * Runs under the engine's lock, on the rare paths: a drop, the first launch of a piece.
 * Destroys execs through the plan's callback and through nothing else.
 */
#include "shim/plan/learn.h"

#include "shim/base/hazard.h"
#include "shim/base/mem.h"
#include "shim/plan/advice.h"
#include "shim/plan/sizes.h"
#include "shim/plan/twins.h"
#include "shim/plan/variants.h"

enum {
    OTHERWISE = 4,        /* launches in a row that began otherwise than the one before, from which
                             on a piece is not found by that */
    LONE = 512,           /* launches until a piece may have several variants again that saved */
    LONE_TIMES = 8,       /* nothing, and twice as many each time, so often at most */
    REFUSED_MAX = 2,      /* launches or patches refused before a piece is dropped, too, */
    REFUSED_APART = 256,  /* and how many go well in between, at most, */
    REFUSED_EACH = 16,    /* with so many more for each variant */
    RETRY_EVICTED = 64,   /* after one dropped for the budget, and twice as many each time, */
    EVICTIONS = 10,       /* so often at most */
    RETRY_NEVER = 1 << 20 /* after one that cannot be built */
};

void cus_learn_add(struct cus_plan *plan, struct cus_piece *piece) {
    piece->next = plan->pieces;
    if (plan->pieces)
        plan->pieces->prev = piece;
    else
        plan->oldest = piece;
    plan->pieces = piece;
    plan->n_pieces++;
    piece->shaping = plan->shaping;
    piece->id = (uint32_t)++plan->n_formed;
}

static void take_out(struct cus_plan *plan, struct cus_piece *piece) {
    if (piece->prev)
        piece->prev->next = piece->next;
    else
        plan->pieces = piece->next;
    if (piece->next)
        piece->next->prev = piece->prev;
    else
        plan->oldest = piece->prev;
}

void cus_learn_used(struct cus_plan *plan, struct cus_piece *piece) {
    if (!piece->prev)
        return;
    take_out(plan, piece);
    piece->prev = NULL;
    piece->next = plan->pieces;
    plan->pieces->prev = piece;
    plan->pieces = piece;
}

static void unindex(struct cus_plan *plan, struct cus_piece *piece) {
    if (piece->indexed)
        HASH_DELETE(hh, plan->heads, piece);
    piece->indexed = false;
}

static uint64_t hash_of_head(const struct cus_piece *piece) {
    const struct cus_held *held = cus_image_op(piece->newest->image, piece, 0);
    struct cus_op op = {.kind = piece->places[0].kind, .flat = held->params};
    for (int i = 0; i < CUS_DIMS; i++)
        op.dims[i] = held->dims[i];
    return cus_op_hash(&op);
}

void cus_learn_index(struct cus_plan *plan, struct cus_piece *piece, bool otherwise) {
    piece->otherwise = otherwise ? piece->otherwise + 1 : 0;
    if (!otherwise && piece->hashed)
        return;
    if (piece->otherwise > OTHERWISE) {
        unindex(plan, piece);
        piece->hashed = false;
        return;
    }
    uint64_t hash = hash_of_head(piece);
    if (piece->hashed && hash == piece->head_hash)
        return;
    unindex(plan, piece);
    piece->hashed = true;
    piece->head_hash = hash;
    struct cus_piece *other;
    HASH_FIND(hh, plan->heads, &hash, sizeof hash, other);
    if (other)
        return;
    bool added = true;
#undef uthash_nonfatal_oom
#define uthash_nonfatal_oom(element) (added = false)
    HASH_ADD(hh, plan->heads, head_hash, sizeof piece->head_hash, piece);
    piece->indexed = added;
}

static struct cus_variant *take_variant(struct cus_plan *plan, struct cus_piece *piece,
                                        struct cus_variant *variant) {
    cus_variants_remove(plan, piece, variant);
    piece->hashed = false;
    unindex(plan, piece);
    if (!piece->n_variants)
        cus_twins_remove(plan, piece);
    return variant;
}

static void drop_variant(struct cus_plan *plan, struct cus_piece *piece,
                         struct cus_variant *variant) {
    take_variant(plan, piece, variant);
    plan->drop(plan->context, variant->exec);
    cus_variant_free(variant);
}

static void drop_variants(struct cus_plan *plan, struct cus_piece *piece) {
    while (piece->newest)
        drop_variant(plan, piece, piece->newest);
}

struct cus_variant *cus_learn_give(struct cus_plan *plan, struct cus_piece *piece) {
    return take_variant(plan, piece, piece->oldest);
}

void cus_learn_keep(struct cus_plan *plan, struct cus_piece *piece, struct cus_variant *variant) {
    for (uint32_t n = 0; n < CUS_VARIANTS_FEW && piece->n_variants > 1; n++)
        drop_variant(plan, piece, piece->oldest == variant ? variant->newer : piece->oldest);
    piece->lone_until = piece->fired + ((uint64_t)LONE << piece->given_up);
    if (piece->n_variants > 1)
        return;
    piece->moved = 0;
    piece->given_up += piece->given_up < LONE_TIMES;
}

void cus_learn_drop(struct cus_plan *plan, struct cus_piece *piece) {
    drop_variants(plan, piece);
    cus_piece_tally(piece);
    if (plan->came && *cus_plan_came_at(plan, piece->used) == piece)
        *cus_plan_came_at(plan, piece->used) = NULL;
    take_out(plan, piece);
    cus_sizes_gone(plan, piece);
    plan->n_pieces--;
    plan->n_waiting -= piece->waits;
    plan->misshapen -= piece->shaping != plan->shaping && plan->misshapen;
    cus_piece_free(piece);
}

void cus_learn_drop_for(struct cus_plan *plan, struct cus_piece *piece, uint32_t visits) {
    struct cus_node *head = piece->nodes[piece->lead];
    head->retry_at = head->visits + visits;
    cus_learn_drop(plan, piece);
}

/* Those launched in this step are the first ones of all; the last of these was launched first. As
 * many go as one step may build: the others are launched meanwhile. */
void cus_learn_shaping(struct cus_plan *plan) {
    if (!plan->misshapen)
        return;
    struct cus_piece *piece = NULL;
    for (struct cus_piece *next = plan->pieces; next && next->used > plan->clock_now;
         next = next->next)
        piece = next;
    uint32_t nodes = 0;
    for (struct cus_piece *later; piece; piece = later) {
        later = piece->prev;
        if (piece->shaping == plan->shaping)
            continue;
        for (;; nodes += piece->n) {
            if (plan->share && nodes && nodes + piece->n > plan->share)
                return;
            if (piece->n_variants < 2)
                break;
            drop_variant(plan, piece, piece->oldest);
        }
        nodes += piece->n;
        cus_learn_drop(plan, piece);
    }
}

/* Of many graphs one goes. Where another piece can lend its graph the path stays as it is.
 *
 * What is dropped for the budget and comes again would be built again and again: it waits longer
 * each time, and so do all of its ops, of which another piece could be made otherwise. */
static void evict(struct cus_plan *plan, struct cus_piece *piece) {
    if (piece->n_variants > CUS_VARIANTS_FEW) {
        drop_variant(plan, piece, piece->oldest);
        piece->unbuilt = 0;
        return;
    }
    if (piece->n_variants && cus_twins_has(plan, piece)) {
        drop_variants(plan, piece);
        return;
    }
    for (uint32_t i = piece->lead; i < piece->n; i++) {
        struct cus_node *node = piece->nodes[i];
        node->retry_at = node->visits + ((uint32_t)RETRY_EVICTED << node->evicted);
        node->evicted += node->evicted < EVICTIONS;
    }
    cus_learn_drop(plan, piece);
}

static bool has_further(const struct cus_plan *plan, const struct cus_piece *piece) {
    return piece->n_variants > 1 && piece->oldest->used <= plan->clock_before;
}

/* How many. */
static uint32_t count_further(const struct cus_plan *plan, const struct cus_piece *piece) {
    uint32_t n = 0;
    for (const struct cus_variant *variant = piece->oldest;
         n + 1 < piece->n_variants && variant->used <= plan->clock_before; variant = variant->newer)
        n++;
    return n;
}

/* What pieces have beyond their first graph makes room for the first one of another, where it is
 * enough for that. */
static bool drop_further(struct cus_plan *plan) {
    uint64_t nodes = 0, wanted = plan->piece && !plan->piece->n_variants ? plan->piece->n : 0;
    for (struct cus_piece *piece = plan->oldest; piece && nodes < wanted; piece = piece->prev)
        nodes += (uint64_t)piece->n * count_further(plan, piece);
    if (!wanted || nodes < wanted)
        return false;
    nodes = 0;
    for (struct cus_piece *piece = plan->oldest; piece && nodes < wanted; piece = piece->prev)
        for (; nodes < wanted && has_further(plan, piece); nodes += piece->n) {
            drop_variant(plan, piece, piece->oldest);
            piece->unbuilt = 0;
        }
    return nodes > 0;
}

bool cus_plan_drop_oldest(struct cus_plan *plan) {
    struct cus_piece *oldest = plan->oldest;
    while (oldest && (oldest == plan->piece || !oldest->n_variants))
        oldest = oldest->prev;
    /* What was launched in this step or the one before will be wanted in the next: where that is
     * too much for the budget, something else has to stay eager, or building would never end. */
    if (!oldest || oldest->used > plan->clock_before)
        return drop_further(plan);
    evict(plan, oldest);
    return true;
}

bool cus_plan_no_room(struct cus_plan *plan) {
    struct cus_piece *piece = plan->piece;
    bool turned = cus_plan_flushed(plan, CUS_CUT_REFUSED);
    if (!piece->n_variants)
        evict(plan, piece);
    return turned;
}

/* ---- forgetting ---- */

static void mark_recent(struct cus_node *node, void *context) {
    struct cus_plan *plan = context;
    if (node->stamp > plan->swept_turn || (node->piece && node->piece->used > plan->swept_clock))
        cus_tree_mark(&plan->tree, node);
}

static void forget_pieces(struct cus_node *node, void *context) {
    if (!node->marked && node->piece)
        cus_learn_drop(context, node->piece);
}

void cus_learn_forget(struct cus_plan *plan) {
    cus_tree_each(&plan->tree, forget_pieces, plan);
    cus_joins_clear(&plan->joins);
    cus_tree_sweep(&plan->tree);
    plan->unknown = 0;
}

void cus_learn_sweep(struct cus_plan *plan) {
    cus_tree_mark(&plan->tree, plan->cur);
    cus_tree_each(&plan->tree, mark_recent, plan);
    cus_learn_forget(plan);
    plan->swept_turn = plan->turns;
    plan->swept_clock = plan->clock;
}

/* The node that refused is left out of pieces for a while, so that the ops around it are not lost;
 * all of them where it was the launch that failed. Nodes are patched in order: it is the first of
 * which nothing is known. */
static void leave_out_refused(struct cus_piece *piece, struct cus_variant *broken) {
    uint32_t first = 0, end = piece->n;
    while (first < piece->n && !cus_image_op(broken->image, piece, first)->unknown)
        first++;
    if (first < piece->n)
        end = first + 1;
    else
        first = 0;
    for (uint32_t i = first; i < end; i++)
        piece->nodes[i]->retry_at = piece->nodes[i]->visits + CUS_RETRY_LOST;
}

void cus_learn_refused(struct cus_plan *plan, struct cus_piece *piece, struct cus_variant *broken) {
    if (!broken) {
        cus_advice_bad(plan, piece);
        cus_learn_drop_for(plan, piece, RETRY_NEVER);
        return;
    }
    /* One that is refused again and again, such as a copy whose node cannot take another address,
     * would be built again and again. */
    uint64_t apart = REFUSED_APART + (uint64_t)REFUSED_EACH * piece->n_variants;
    if (piece->fired - piece->refused_at > apart)
        piece->refused = 0;
    piece->refused_at = piece->fired;
    if (++piece->refused >= REFUSED_MAX) {
        leave_out_refused(piece, broken);
        cus_advice_bad(plan, piece);
        cus_learn_drop(plan, piece);
        return;
    }
    if (CUS_HAZARD(A28))
        drop_variant(plan, piece, broken);
}

static bool holds(const struct cus_piece *piece, const void *handle) {
    for (uint32_t i = 0; i < piece->n; i++)
        if (piece->places[i].kind->handle == handle)
            return true;
    return false;
}

void cus_plan_drop_handle(struct cus_plan *plan, const void *handle) {
    for (struct cus_piece *piece = plan->pieces, *next; piece; piece = next) {
        next = piece->next;
        if (!handle || holds(piece, handle))
            cus_learn_drop(plan, piece);
    }
}

bool cus_plan_shed(struct cus_plan *plan, unsigned n) {
    for (; n && plan->oldest; n--)
        if (plan->oldest->n_variants > CUS_VARIANTS_FEW)
            drop_variant(plan, plan->oldest, plan->oldest->oldest);
        else
            cus_learn_drop(plan, plan->oldest);
    if (plan->oldest)
        return true;
    cus_plan_clear(plan);
    return false;
}
