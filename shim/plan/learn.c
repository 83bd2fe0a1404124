/*
 * Pieces that come and go.
 *
 * Runs under the engine's lock, on the rare paths: a cut, a drop, the first launch of a piece.
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
    CUTS_BY_WATCHDOG = 3, /* cuts by the watchdog that make a boundary, */
    WATCHDOG_EACH =
        400,           /* where there is one with so many begins: it takes as long as so many ops */
    CUTS_BY_OWNER = 2, /* cuts by the owning thread's calls that do, */
    CUTS_AGAIN = 2,    /* and so many more for each time that it was forgotten and came back, */
    CUTS_EACH = 64,    /* where there is one with so many begins: less than that is chance */
    CUT_PASSES = 16,   /* passes without a break before a boundary is forgotten, twice as many */
    RETURNS = 8,       /* each time that it came back soon, so often at most */
    CUTS_MAX = 512,    /* breaks at a boundary that are remembered: times CUTS_EACH, 16 bits */
    GAP_PASSES = 4096, /* passes before it is forgotten that the host paused there */
    FORKS = 3,         /* divergences at one node that do, */
    FORKS_EACH = 4,    /* where they are at least 1 of 4, */
    FORKS_MORE = 12,   /* and so many more of a piece that is older than LATELY: odd steps may come
                          a few in a row */
    FORK_PASSES = 4096, /* in a row that one way is taken before a fork is forgotten */
    LATELY = 64,        /* begins of a piece by which it is judged, at least */
    GAP_NS = 50000,     /* a pause of the host from which on the GPU had better not wait for it */
    GAP_PART = 4,       /* ... if it is at least this part of the time that the piece took, */
    GAP_OPS = 8,        /* and so many times as long as it was from one to the next of its others */
    GAPS = 8,           /* pauses at one place in a row that make a boundary */
    TIMED_FROM = 4,     /* the begin at which a piece is timed for the first time */
    OTHERWISE = 4,      /* launches in a row that began otherwise than the one before, from which
                           on a piece is not found by that */
    LOST_MIN = 16,      /* begins before a piece is judged */
    LONE = 4096,        /* launches until a piece may have several variants again that saved */
    LONE_TIMES = 8,     /* nothing, and twice as many each time, so often at most */
    ASTRAY = 4096,      /* times that a path left a piece in its first ops for what no piece had,
                           from which on, where these are most, it shall not: it is still learned
                           how the path goes on */
    RETRY_LOST = 256,   /* visits of a head before the next try, after a piece that was lost more
                           often than not */
    REFUSED_MAX = 2,    /* launches or patches refused before a piece is dropped, too, */
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
    for (struct cus_variant *next = piece->newest, *older; next; next = older) {
        older = next->older;
        if (next != variant)
            drop_variant(plan, piece, next);
    }
    piece->moved = 0;
    piece->lone_until = piece->fired + ((uint64_t)LONE << piece->given_up);
    piece->given_up += piece->given_up < LONE_TIMES;
}

static void drop_piece(struct cus_plan *plan, struct cus_piece *piece) {
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

static void drop_and_wait(struct cus_plan *plan, struct cus_piece *piece, uint32_t visits) {
    struct cus_node *head = piece->nodes[piece->lead];
    head->retry_at = head->visits + visits;
    drop_piece(plan, piece);
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
        drop_piece(plan, piece);
    }
}

void cus_learn_call(struct cus_node *at) {
    if (at->boundary || ++at->cuts < CUTS_BY_OWNER)
        return;
    at->boundary = CUS_BOUNDARY_CUT;
    at->passes = 0;
}

/* One more of what takes place at a node, lately: one less for each `each` begins of the piece
 * since it did last, however long the piece was launched before. */
static uint32_t count_lately(uint16_t *n, uint16_t *at, const struct cus_piece *piece,
                             uint32_t each) {
    uint16_t begun = (uint16_t)piece->begun;
    uint16_t since = (uint16_t)(begun - *at); /* large where another piece was begun then */
    uint32_t fewer = since ? (since - 1u) / each : 0;
    *n = (uint16_t)(fewer < *n ? *n - fewer : 0);
    *at = begun;
    *n += *n < UINT16_MAX;
    return *n;
}

/* Of what befell it long ago no more is kept than its share. Returns whether it is most of what
 * befalls it. */
static bool befalls(struct cus_lately *of, const struct cus_piece *piece, uint32_t lately) {
    uint32_t begins = piece->begun - of->from;
    if (begins >= 2 * lately) {
        of->n = (uint32_t)((uint64_t)of->n * lately / begins);
        of->from = piece->begun - lately;
    }
    of->n++;
    return cus_lately_mostly(of, piece);
}

/* A cut costs what is withheld, a boundary the launch of a graph, which is as much as one op: it is
 * worth a cut of so many ops that comes with one of as many begins. */
static uint32_t ops_per_cut(uint32_t ops) {
    return ops < CUTS_EACH ? ops : (uint32_t)CUTS_EACH;
}

static uint32_t passes_until_forgotten(const struct cus_node *at) {
    return at->boundary == CUS_BOUNDARY_GAP ? (uint32_t)GAP_PASSES
                                            : (uint32_t)CUT_PASSES << at->returns;
}

/* It goes when its step has come again; where the host never waits, there is none. */
static void form_anew(struct cus_plan *plan, struct cus_piece *piece) {
    if (!piece || piece->shaping != plan->shaping || !plan->longest)
        return;
    cus_sizes_gone(plan, piece);
    piece->shaping--;
    plan->misshapen++;
}

static void forget(struct cus_plan *plan, struct cus_node *at) {
    at->boundary = CUS_BOUNDARY_NONE;
    at->cuts = 0;
    at->passes = 0;
    form_anew(plan, at->piece);
    if (at->expect)
        form_anew(plan, at->expect->piece);
}

void cus_learn_forked(struct cus_plan *plan, struct cus_node *at) {
    if (at->way != at->expect)
        at->passes = 0;
    at->way = at->expect;
    if (++at->passes > FORK_PASSES)
        forget(plan, at);
}

void cus_learn_passed(struct cus_plan *plan, struct cus_node *at) {
    if (plan->broken || plan->covered) {
        if (++at->cuts >= CUTS_MAX) {
            at->cuts /= 2;
            at->passes /= 2;
        }
        return;
    }
    if (++at->passes <= passes_until_forgotten(at) ||
        at->passes <= ops_per_cut(at->piece ? at->piece->n : 0) * at->cuts)
        return;
    if (at->boundary == CUS_BOUNDARY_GAP) {
        at->boundary = CUS_BOUNDARY_NONE; /* whether the host still makes one is not seen */
        at->cuts = at->passes = 0;
        return;
    }
    at->returns += at->returns < RETURNS;
    forget(plan, at);
}

/* The piece that begins with `node`, or ends with it, if there is one and could go on beyond. */
static struct cus_piece *begins_with(const struct cus_node *node) {
    struct cus_piece *piece = node ? node->piece : NULL;
    return piece && piece->nodes[0] == node ? piece : NULL;
}

static struct cus_piece *ends_with(const struct cus_node *node) {
    struct cus_piece *piece = node->boundary || node->loop_end ? NULL : node->piece;
    return piece && piece->nodes[piece->n - 1] == node ? piece : NULL;
}

/* A piece is about to end at `at`. One op that is left by itself on either side would go out by
 * itself for ever: the neighbour on that side is formed anew, with it. */
static void leave_none_alone(struct cus_plan *plan, const struct cus_node *at,
                             const struct cus_piece *piece) {
    const struct cus_node *first = piece->nodes[0], *last = piece->nodes[piece->n - 1];
    if (first == at && first->key.parent)
        form_anew(plan, ends_with(first->key.parent));
    if (piece->nodes[piece->n - 2] == at && !last->boundary && !last->loop_end)
        form_anew(plan, begins_with(last->expect));
}

/* A piece ends at `at` from now on: all go that go on behind it. Where it is among their first
 * nodes, there may be several. */
static void end_at(struct cus_plan *plan, struct cus_node *at, enum cus_boundary boundary,
                   struct cus_piece *piece) {
    uint32_t i = 0;
    at->boundary = (uint8_t)boundary;
    at->passes = 0;
    at->cuts = CUTS_BY_OWNER;
    if (piece->begun > (uint32_t)CUT_PASSES << at->returns)
        at->returns = 0; /* it was in nobody's way for long */
    while (i < CUS_LEAD_MAX && i < piece->n && piece->nodes[i] != at)
        i++;
    leave_none_alone(plan, at, piece);
    drop_piece(plan, piece);
    if (i == CUS_LEAD_MAX)
        return;
    for (struct cus_piece *other = plan->pieces, *next; other; other = next) {
        next = other->next;
        if (other->n > i + 1 && other->nodes[i] == at)
            drop_piece(plan, other);
    }
}

void cus_learn_outgrown(struct cus_plan *plan, struct cus_piece *piece) {
    drop_piece(plan, piece);
}

bool cus_learn_replaced(struct cus_plan *plan, struct cus_piece *piece,
                        const struct cus_node *node) {
    const struct cus_node *head = piece->nodes[0];
    if (!befalls(&piece->lost, piece, LATELY))
        return false;
    drop_piece(plan, piece);
    for (struct cus_piece *other = plan->pieces, *next; head == node && other; other = next) {
        next = other->next;
        if (other->nodes[0] == head)
            drop_piece(plan, other);
    }
    return true;
}

void cus_learn_cut(struct cus_plan *plan, struct cus_piece *piece, uint32_t n, enum cus_cut cut) {
    if (!n || cut == CUS_CUT_REFUSED)
        return;
    struct cus_node *at = piece->nodes[n - 1];
    if (cut == CUS_CUT_DIVERGED && plan->may_turn) {
        if (befalls(&piece->astray, piece, ASTRAY) && piece->astray.n >= ASTRAY)
            end_at(plan, at, CUS_BOUNDARY_FORK, piece);
        return;
    }
    bool lost = befalls(&piece->lost, piece, LATELY) && piece->begun >= LOST_MIN;
    enum cus_boundary boundary = CUS_BOUNDARY_NONE;
    if (cut == CUS_CUT_WATCHDOG) {
        if (count_lately(&at->cuts, &at->cut_at, piece, WATCHDOG_EACH) >= CUTS_BY_WATCHDOG)
            boundary = CUS_BOUNDARY_GAP; /* the host made a pause */
    } else if (cut == CUS_CUT_OWNER || !CUS_HAZARD(F3)) {
        uint32_t least = CUTS_BY_OWNER + CUTS_AGAIN * at->returns;
        if (count_lately(&at->cuts, &at->cut_at, piece, ops_per_cut(n)) >= least)
            boundary = CUS_BOUNDARY_CUT;
    }
    uint32_t forks = FORKS + (piece->begun > LATELY ? FORKS_MORE : 0);
    if (cut == CUS_CUT_DIVERGED &&
        count_lately(&at->forks, &at->fork_at, piece, FORKS_EACH) >= forks)
        boundary = CUS_BOUNDARY_FORK;
    if (boundary) {
        end_at(plan, at, boundary, piece);
    } else if (lost) {
        cus_advice_bad(plan, piece);
        drop_and_wait(plan, piece, RETRY_LOST);
    }
}

/* It is no alias any more: a node that came as often as it did. The piece in front of it is formed
 * anew, with it. */
static void part_again(struct cus_plan *plan, struct cus_node *alias) {
    const struct cus_node *before = alias->key.parent;
    alias->join = NULL;
    alias->visits = plan->limits.warmup;
    if (before->piece)
        drop_piece(plan, before->piece);
}

/* Up to the end of that piece all of its ops go out by themselves. Where that is one op, or where
 * one would be left in front, these would never be in a graph again: the path joins the other one
 * later, with a node of its own here. */
void cus_learn_met(struct cus_plan *plan, struct cus_node *alias) {
    struct cus_node *node = alias->join;
    struct cus_piece *piece = node->piece;
    struct cus_node *before = (struct cus_node *)(uintptr_t)node->key.parent;
    if (node == piece->nodes[1] || node == piece->nodes[piece->n - 1]) {
        part_again(plan, alias);
        return;
    }
    if (++before->forks >= FORKS)
        end_at(plan, before, CUS_BOUNDARY_FORK, piece);
}

/* Seldom, and less and less: while ops are timed they take the long way. A pause that was seen is
 * looked for again at once. */
bool cus_learn_wants_time(const struct cus_piece *piece) {
    bool now = piece->begun >= TIMED_FROM && (piece->begun & (piece->begun - 1)) == 0;
    return CUS_HAZARD(F6) && (now || piece->gaps);
}

/* Did much of the time of the `n` ops that were timed go into one pause? Where the host takes long
 * from op to op it is none that only lasts as long as a few of these do: the GPU waits for the host
 * there anyway, and each end of a piece that is too many costs the host a graph. */
static bool paused(const struct cus_plan *plan, uint32_t n) {
    uint64_t longest = plan->gap.longest, all = plan->gap.last - plan->gap.first;
    return longest >= GAP_NS && longest * GAP_PART >= all &&
           longest * (n - 2) >= GAP_OPS * (all - longest);
}

/* A pause that much of the piece's time goes into, at the same place each time. */
void cus_learn_gap(struct cus_plan *plan, struct cus_piece *piece) {
    if (!plan->timed)
        return;
    if (!paused(plan, piece->n) || (piece->gaps && piece->gap != plan->gap.behind)) {
        piece->gaps = 0;
        return;
    }
    piece->gap = plan->gap.behind;
    if (++piece->gaps < GAPS)
        return;
    end_at(plan, piece->nodes[piece->gap], CUS_BOUNDARY_GAP, piece);
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
    drop_piece(plan, piece);
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
        drop_piece(context, node->piece);
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
        piece->nodes[i]->retry_at = piece->nodes[i]->visits + RETRY_LOST;
}

void cus_learn_refused(struct cus_plan *plan, struct cus_piece *piece, struct cus_variant *broken) {
    if (!broken) {
        cus_advice_bad(plan, piece);
        drop_and_wait(plan, piece, RETRY_NEVER);
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
        drop_piece(plan, piece);
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
            drop_piece(plan, piece);
    }
}

bool cus_plan_shed(struct cus_plan *plan, unsigned n) {
    for (; n && plan->oldest; n--)
        if (plan->oldest->n_variants > CUS_VARIANTS_FEW)
            drop_variant(plan, plan->oldest, plan->oldest->oldest);
        else
            drop_piece(plan, plan->oldest);
    if (plan->oldest)
        return true;
    cus_plan_clear(plan);
    return false;
}
