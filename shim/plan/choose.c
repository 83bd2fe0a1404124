/*
 * Choosing among the variants of a segment.
 *
 * Runs under the engine's lock when a segment begins and when it is complete. Allocates the table
 * of signatures once. Never calls the driver; execs that save nothing are dropped by learn.c.
 */
#include "shim/plan/choose.h"

#include "shim/base/hash.h"
#include "shim/base/mem.h"
#include "shim/base/pays.h"
#include "shim/plan/account.h"
#include "shim/plan/learn.h"
#include "shim/plan/variants.h"

enum {
    NEARER_TRIES = 16, /* looks in vain for a variant from which fewer nodes differ, before that is
                          done like PROBES */
    MOVED = 16, /* launches in a row, and this part of the nodes, by which variants of other */
    MOST = 3,   /* shapes are known to save nothing */
    MOST_OF = 4,
    TWINS = 4,      /* variants of a segment from which on none is made for other params alone */
    BORROW_MIN = 4, /* nodes that differ before a second exec for the same shapes is thought of */
    PROBES = 8,     /* ops of a segment that are asked whether they came like this before */
    PROBE_ALWAYS = 64,  /* begins of a segment at which that is asked; later on, */
    PROBE_RUN = 8,      /* at so many in a row */
    PROBE_EVERY = 64,   /* of so many */
    UNBUILT_MAX = 4,    /* further variants of a segment that fail to build in a row, before none is
                           tried for */
    UNBUILT_WAIT = 64,  /* launches, and twice as many with each that fails behind, */
    UNBUILT_TIMES = 10, /* so often at most */
    OFTEN = CUS_COST_BUILT / CUS_COST_PATCH, /* times that shapes came from which on patching has
                                                cost what building would have */
    STALE = 16, /* launches of a segment, for each variant, in which one of them was not */
    SIG_SLOTS_MIN = 4096, /* slots of the set of signatures; a power of two */
    SIG_SLOTS_MAX = 1 << 18,
    SHAPES_MAX = 1 << 16, /* to which shapes alone make it grow */
    GROUP = 4,            /* slots in which a signature may be; a power of two */
    SAME_HEAD = 2,        /* that a variant begins with the very op that came, */
    LIKELY = 7,           /* and all that can be said of it speaks for it */
    LOST_PART = 16,       /* of the slots: so many shapes lost make it twice as large */
    COUNT = 15,           /* the bits of a slot that count; the others are the signature's */
};

_Static_assert(OFTEN <= COUNT, "so often can be counted");

/* What memset and copy nodes hold is not relied upon once memory may have gone. */
void cus_choose_trust(struct cus_plan *plan, struct cus_variant *variant) {
    const struct cus_segment *segment = plan->segment;
    if (!segment->memory || variant->memory_epoch == plan->memory_epoch)
        return;
    variant->memory_epoch = plan->memory_epoch;
    for (uint32_t i = 0; i < segment->n; i++)
        if (segment->places[i].kind->type != CUS_OP_LAUNCH)
            cus_variant_know(variant, segment, i, false);
}

/* How likely `variant` is the one whose nodes hold what the program is about to ask for: the step
 * began as before its last launch; its first op is this one; it came next when the variant launched
 * just now was launched before. Where a params struct has holes the first op says nothing: nobody
 * writes them, and they hold something else each time. What is no likelier `than` that need not be
 * exact. */
static unsigned likeness(const struct cus_plan *plan, const struct cus_segment *segment,
                         struct cus_variant *variant, const struct cus_op *op, unsigned than) {
    const struct cus_values *head = cus_image_op(variant->image, segment, 0);
    bool came_next = variant->used == plan->then;
    unsigned likely = cus_signature_same(variant->in, plan->sig) * 4u + came_next;
    if (likely + SAME_HEAD <= than)
        return likely;
    bool same_head = cus_op_same_dims(op, head) && cus_op_same_params(op, head);
    return likely + same_head * SAME_HEAD;
}

/* The likelier one of two. */
static struct cus_variant *likelier(const struct cus_plan *plan, const struct cus_segment *segment,
                                    struct cus_variant *best, struct cus_variant *other,
                                    const struct cus_op *op, unsigned *most) {
    unsigned now = other ? likeness(plan, segment, other, op, *most) : 0;
    if (now <= *most)
        return best;
    *most = now;
    return other;
}

/* Of many: the one that came next before, or else the one that was at such a place last. */
static struct cus_variant *predict_of_many(const struct cus_plan *plan,
                                           const struct cus_segment *segment,
                                           const struct cus_op *op) {
    struct cus_variant *next = plan->launched ? plan->launched->behind : NULL;
    struct cus_variant *best = next && next->segment == segment ? next : segment->newest;
    unsigned most = likeness(plan, segment, best, op, 0);
    if (most >= LIKELY)
        return best;
    return likelier(plan, segment, best, cus_variants_of_place(segment, plan->sig, op->dims), op,
                    &most);
}

/* The likeliest variant; in doubt the one launched last. */
struct cus_variant *cus_choose_predict(const struct cus_plan *plan,
                                       const struct cus_segment *segment, const struct cus_op *op) {
    struct cus_variant *best = segment->newest;
    if (segment->n_variants < 2)
        return best;
    if (segment->n_variants > CUS_VARIANTS_FEW)
        return predict_of_many(plan, segment, op);
    unsigned most = likeness(plan, segment, best, op, 0);
    for (struct cus_variant *other = best->older; other && most < LIKELY; other = other->older)
        best = likelier(plan, segment, best, other, op, &most);
    return best;
}

static struct cus_signature behind(const struct cus_plan *plan, struct cus_signature sig,
                                   uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        sig = cus_signature_add(sig, plan->segment->places[i].kind, cus_plan_values(plan, i)->dims);
    return sig;
}

struct cus_signature cus_choose_signature_behind(const struct cus_plan *plan, uint32_t n) {
    return behind(plan, plan->sig, n);
}

struct cus_signature cus_choose_own(struct cus_plan *plan) {
    const struct cus_variant *predicted = plan->predicted;
    if (predicted && !plan->reshaped)
        return predicted->own;
    if (!plan->has_own)
        plan->own = behind(plan, (struct cus_signature){0, 0}, plan->segment->n);
    plan->has_own = true;
    return plan->own;
}

/* As many slots as the tree has nodes, or a step would take the place of its own signatures before
 * they can come again; and more where shapes take each other's. Asked for with each segment, not
 * with each op: where there is no memory it stays as it is. */
static void make_room(struct cus_plan *plan) {
    uint64_t before = plan->sig_counts ? plan->sig_mask + 1 : 0,
             slots = before ? before : SIG_SLOTS_MIN;
    while (slots < plan->tree.n_nodes && slots < SIG_SLOTS_MAX)
        slots *= 2;
    if (before && plan->sig_evicted > before / LOST_PART && slots < SHAPES_MAX)
        slots *= 2;
    if (slots == before)
        return;
    plan->sig_evicted = 0;
    uint64_t *sig_counts = cus_mem_grow(slots * sizeof *sig_counts);
    if (!sig_counts)
        return;
    /* Which of the slots that one becomes is a signature's is not known: all of them. */
    for (uint64_t at = 0; before && at < slots; at += before)
        memcpy(sig_counts + at, plan->sig_counts, before * sizeof *sig_counts);
    cus_mem_shrink(plan->sig_counts);
    plan->sig_counts = sig_counts;
    plan->sig_mask = slots - 1;
}

static bool is_in(uint64_t slot, struct cus_signature sig) {
    return !((slot ^ sig.lo) & ~(uint64_t)COUNT);
}

/* Each slot of a group may be a signature's: the one that it has, or else the one that was met
 * least often. Another one counts half from then on, or what comes no more would stay. */
static uint64_t *slot_of(const struct cus_plan *plan, struct cus_signature sig) {
    uint64_t *group = &plan->sig_counts[sig.hi & plan->sig_mask & ~(uint64_t)(GROUP - 1)];
    uint64_t *least = group, *stays = &group[1 + sig.lo / GROUP % (GROUP - 1)];
    for (uint64_t *slot = group; slot < group + GROUP; slot++) {
        if (is_in(*slot, sig))
            return slot;
        if ((*slot & COUNT) < (*least & COUNT))
            least = slot;
    }
    if (stays != least)
        *stays -= ((*stays & COUNT) + 1) / 2;
    return least;
}

/* How often was this signature met before, at most COUNT times? Once more from now on. `*lost`:
 * another one's place was taken for it. */
static unsigned meet(struct cus_plan *plan, struct cus_signature sig, bool *lost) {
    *lost = false;
    if (!plan->sig_counts)
        return 0;
    uint64_t *slot = slot_of(plan, sig);
    bool known = is_in(*slot, sig);
    unsigned times = known ? *slot & COUNT : 0;
    *lost = *slot && !known;
    *slot = (sig.lo & ~(uint64_t)COUNT) | (times < COUNT ? times + 1 : COUNT);
    return times;
}

void cus_choose_note(struct cus_plan *plan, struct cus_signature sig) {
    bool lost;
    if (!plan->sig_counts)
        make_room(plan);
    meet(plan, sig, &lost);
}

static unsigned meet_shapes(struct cus_plan *plan, struct cus_signature sig) {
    bool lost;
    make_room(plan);
    unsigned times = meet(plan, sig, &lost);
    plan->sig_evicted += lost;
    return times;
}

void cus_choose_compare(struct cus_plan *plan, struct cus_variant *variant) {
    struct cus_segment *segment = plan->segment;
    if (variant == plan->predicted)
        return;
    uint64_t differs[CUS_SEGMENT_MAX / 64] = {0};
    cus_choose_trust(plan, variant);
    memset(plan->reshapes, 0, sizeof plan->reshapes);
    for (uint32_t i = 0; i < segment->n; i++) {
        uint32_t bytes = cus_values_bytes(segment->places[i].kind);
        struct cus_values *requested = cus_image_op(segment->requested, segment, i);
        if (!cus_choose_is_dirty(plan, i)) {
            memcpy(requested, cus_image_op(plan->predicted->image, segment, i), bytes);
            requested->unknown = 0;
        }
        const struct cus_values *has = cus_image_op(variant->image, segment, i);
        if (memcmp(requested, has, bytes) != 0)
            differs[i / 64] |= (uint64_t)1 << i % 64;
        if (!cus_dims_same(requested->dims, has->dims))
            cus_choose_set_reshapes(plan, i);
    }
    memcpy(plan->dirty, differs, sizeof differs);
    plan->predicted = variant;
}

static bool many_dirty(const struct cus_plan *plan) {
    uint32_t dirty = cus_plan_n_dirty(plan);
    return dirty >= BORROW_MIN && dirty * 4 >= plan->segment->n;
}

/* How many nodes of `variant` hold something else than what was asked; `enough` ends the count. */
static uint32_t count_differing(const struct cus_plan *plan, struct cus_variant *variant,
                                uint32_t enough) {
    const struct cus_segment *segment = plan->segment;
    uint32_t n = 0;
    for (uint32_t i = 0; i < segment->n && n < enough; i++) {
        const struct cus_values *values = cus_plan_values(plan, i);
        const struct cus_values *other = cus_image_op(variant->image, segment, i);
        n += memcmp(values->dims, other->dims, sizeof values->dims) != 0 ||
             memcmp(values->params, other->params, segment->places[i].kind->param_bytes) != 0;
    }
    return n;
}

static bool probes_now(const struct cus_segment *segment) {
    return segment->begun % PROBE_EVERY < PROBE_RUN;
}

/* Most nodes differ from the predicted variant: is there one, of those launched last, from which
 * fewer do? Where there was none so often, that is asked at times only. */
static void find_nearer(struct cus_plan *plan) {
    struct cus_segment *segment = plan->segment;
    if (!CUS_PAYS(VARIANTS_NEAREST) || segment->n_variants < 2 ||
        (segment->in_vain >= NEARER_TRIES && !probes_now(segment)))
        return;
    struct cus_variant *nearest = plan->predicted;
    uint32_t least = cus_plan_n_dirty(plan), looks = CUS_VARIANTS_FEW;
    for (struct cus_variant *variant = segment->newest; variant && looks--;
         variant = variant->older) {
        uint32_t differ =
            variant == plan->predicted ? least : count_differing(plan, variant, least);
        if (differ < least) {
            least = differ;
            nearest = variant;
        }
    }
    if (nearest == plan->predicted) {
        segment->in_vain++;
        return;
    }
    segment->in_vain = 0;
    plan->own = plan->predicted->own;
    plan->has_own = true;
    cus_choose_compare(plan, nearest);
    plan->reshaped = true; /* its shapes may have been others */
}

/* Was deferred op `i` asked for with these very params before, behind the same beginning of the
 * step? */
static bool came_before(struct cus_plan *plan, uint32_t i) {
    uint64_t hash = cus_values_hash(plan->segment->places[i].kind, cus_plan_values(plan, i));
    struct cus_signature params = {plan->sig.lo ^ cus_hash(hash),
                                   plan->sig.hi + cus_hash_second(hash ^ i)};
    params.hi ^= params.hi >> 32;
    bool lost;
    return meet(plan, params, &lost) > 0;
}

static bool most_differ(const struct cus_plan *plan) {
    return cus_plan_n_dirty(plan) * MOST_OF >= plan->segment->n * MOST;
}

/* There are to be several again. */
static void note_settled(struct cus_segment *segment) {
    segment->moved = segment->given_up = 0;
    segment->lone_until = 0;
}

/* The variant of the shapes that were asked for is to be launched. Those of other shapes save
 * nothing where most nodes differ all the same, each time, for addresses move: a node that is
 * patched anyway may as well be given its shape. */
static void note_moved(struct cus_plan *plan, struct cus_variant *chosen) {
    struct cus_segment *segment = plan->segment;
    if (!CUS_PAYS(VARIANTS_MOVED))
        return;
    const struct cus_variant *other = segment->newest == chosen ? chosen->older : segment->newest;
    bool most = most_differ(plan), apart = other && !cus_signature_same(other->own, chosen->own);
    if (!most)
        note_settled(segment);
    else if (apart)
        segment->moved += chosen->moved;
    else
        segment->moved = 0;
    chosen->moved = most;
    if (segment->moved >= MOVED)
        cus_learn_keep(plan, segment, chosen);
}

/* For other shapes; a twin is made where it is known that its params come again. */
static bool may_have_others(const struct cus_segment *segment) {
    return segment->fired >= segment->lone_until;
}

static bool may_have_more(const struct cus_plan *plan) {
    const struct cus_segment *segment = plan->segment;
    bool first_ones_wait = cus_plan_put_off_lately(plan);
    bool formed_anew_soon = segment->sizing != plan->sizing;
    bool enough = !CUS_PAYS(VARIANTS_MANY) && segment->n_variants >= CUS_VARIANTS_FEW;
    return !first_ones_wait && !formed_anew_soon && !enough &&
           segment->n_variants < plan->limits.variants &&
           (segment->unbuilt < UNBUILT_MAX || segment->fired >= segment->unbuilt_until);
}

/* One of the ops of [from, end) that differ, the `which`-th of them in a circle; `end`: none does.
 */
static uint32_t pick_dirty(const struct cus_plan *plan, uint32_t from, uint32_t end,
                           uint32_t which) {
    uint32_t n = 0, i = from;
    for (uint32_t at = from; at < end; at++)
        n += cus_choose_is_dirty(plan, at);
    if (!n)
        return end;
    for (which %= n; which || !cus_choose_is_dirty(plan, i); i++)
        which -= cus_choose_is_dirty(plan, i);
    return i;
}

/* An allocator that hands out two sets of addresses in turn makes most nodes differ at each launch,
 * and each set come again: then a second exec for the same shapes is cheaper than patching. A few
 * of the ops that differ stand for all, from each part of the segment another: where layers are
 * alike, ops at even distances could all be the same one of a layer. Some of those that differ may
 * do so each time anew. */
static bool earns_variant_again(struct cus_plan *plan) {
    struct cus_segment *segment = plan->segment;
    if (!CUS_PAYS(SECOND_EXEC) || segment->n_variants >= TWINS || !may_have_more(plan))
        return false;
    if (segment->begun > PROBE_ALWAYS && !probes_now(segment))
        return false;
    make_room(plan);
    uint32_t requested = 0, again = 0, dirty = cus_plan_n_dirty(plan);
    uint32_t probes = segment->n < PROBES ? segment->n : PROBES;
    for (uint32_t probe = 0; probe < probes; probe++) {
        uint32_t end = (probe + 1) * segment->n / probes;
        uint32_t i = pick_dirty(plan, probe * segment->n / probes, end, probe);
        if (i < end) {
            requested++;
            again += came_before(plan, i);
        }
    }
    return requested && again * dirty >= requested * BORROW_MIN &&
           again * dirty * 4 >= requested * segment->n;
}

/* Which one is to become one of other shapes. Of a few, to which more may come, the one that was
 * launched least recently. Else always the same one, so that the others stay what they are, unless
 * one of these does not come any more. */
static struct cus_variant *guest_of(const struct cus_plan *plan) {
    struct cus_segment *segment = plan->segment;
    if (!CUS_PAYS(VARIANTS_GUEST) ||
        (segment->n_variants < CUS_VARIANTS_FEW && may_have_more(plan)))
        return segment->oldest;
    uint64_t unused = segment->fired - segment->oldest->fired;
    if (!segment->guest || unused > STALE * (uint64_t)segment->n_variants)
        segment->guest = segment->oldest;
    return segment->guest;
}

/* A few are made for shapes that come again, since such often take turns; further ones for those
 * that come often, where it is the program's thread that would patch instead: beside it that costs
 * the program nothing, and one of many graphs is out of all caches when its turn comes. */
static bool earns_variant(struct cus_plan *plan, struct cus_signature out) {
    unsigned times = meet_shapes(plan, out);
    bool few = plan->segment->n_variants < CUS_VARIANTS_FEW;
    return times >= (few ? 1 : OFTEN) && (few || !plan->aside) && may_have_others(plan->segment) &&
           may_have_more(plan);
}

enum cus_choice cus_plan_choose(struct cus_plan *plan, struct cus_variant **variant) {
    struct cus_segment *segment = plan->segment;
    *variant = NULL;
    if (!segment->n_variants)
        return CUS_CHOICE_BUILD;
    if (!plan->reshaped) {
        if (many_dirty(plan))
            find_nearer(plan);
        if (many_dirty(plan) && earns_variant_again(plan))
            return CUS_CHOICE_BUILD;
        *variant = plan->predicted;
        note_moved(plan, *variant);
        return CUS_CHOICE_EXACT;
    }
    struct cus_signature own = cus_choose_own(plan);
    struct cus_signature out = cus_signature_append(plan->sig, own, segment->power);
    *variant = cus_variants_of_shape(segment, own);
    if (*variant) {
        cus_choose_compare(plan, *variant);
        note_moved(plan, *variant);
        return CUS_CHOICE_EXACT;
    }
    if (earns_variant(plan, out))
        return CUS_CHOICE_BUILD;
    *variant = guest_of(plan);
    cus_choose_compare(plan, *variant);
    if (!most_differ(plan))
        note_settled(segment);
    return CUS_CHOICE_PATCH;
}

/* The moment may have been a bad one: it is tried again, less and less often. */
static void could_not_build(struct cus_segment *segment) {
    segment->unbuilt += segment->unbuilt < UNBUILT_MAX + UNBUILT_TIMES;
    if (segment->unbuilt >= UNBUILT_MAX)
        segment->unbuilt_until =
            segment->fired + ((uint64_t)UNBUILT_WAIT << (segment->unbuilt - UNBUILT_MAX));
}

struct cus_variant *cus_plan_fall_back(struct cus_plan *plan, bool later) {
    if (!plan->segment->n_variants)
        return NULL;
    if (!later)
        could_not_build(plan->segment);
    /* It was to be a second one of these shapes: they stay what they are. */
    if (!plan->reshaped || cus_signature_same(plan->predicted->own, cus_choose_own(plan)))
        return plan->predicted;
    struct cus_variant *variant = guest_of(plan);
    cus_choose_compare(plan, variant);
    return variant;
}
