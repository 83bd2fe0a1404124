/*
 * Chooses among the variants of a segment: which one is predicted, launched, patched, or to be
 * built.
 * The plan's files call it under the engine's lock, when a segment begins, is complete, or an op is
 * recorded. It allocates the table of signature counts, and never calls the driver.
 * Time without a mechanism divided by time with it (tests/gpu/RESULTS.md, H100): a second graph for
 * the same shapes, phases "shapes" 1.28, Llama with dynamic cache 1.038; one graph that is patched
 * to all rare shapes, growth with 200 grids 1.07.
 */
#include "shim/plan/choose.h"

#include "shim/base/hash.h"
#include "shim/base/mem.h"
#include "shim/base/pays.h"
#include "shim/plan/account.h"
#include "shim/plan/variants.h"

enum {
    /* If a segment has FEW_SHAPES variants, it gets no further one for other params of the same
     * shapes. One in a loop may get a variant for each turn. */
    FEW_SHAPES = 4,
    /* If fewer nodes differ, no second graph for the same shapes is considered. */
    SECOND_MIN = 4,
    /* Ops of a segment that are checked for params that came before. */
    PROBES = 8,
    /* Ops by which a variant is found that holds what they request. */
    SAMPLES = 16,
    /* Up to this begin of a segment the check is made each time. Later it is made at PROBE_RUN
     * begins in a row out of PROBE_EVERY. */
    PROBE_ALWAYS = 64,
    PROBE_RUN = 8,
    PROBE_EVERY = 64,
    /* Builds of further variants that fail in a row before the segment pauses trying. */
    UNBUILT_MAX = 4,
    /* Launches that such a pause lasts. It doubles with each further failure, UNBUILT_TIMES times
     * at most. */
    UNBUILT_WAIT = 64,
    UNBUILT_TIMES = 10,
    /* After shapes came OFTEN times, patching has cost what building a graph would have. */
    OFTEN = CUS_COST_BUILT / CUS_COST_PATCH,
    /* After STALE launches of the segment for each of its variants without a launch of the oldest
     * one, the oldest one is patched to rare shapes. */
    STALE = 16,
    /* Slots of the table of signature counts; a power of two, as is SIG_SLOTS_MAX. */
    SIG_SLOTS_MIN = 4096,
    SIG_SLOTS_MAX = 1 << 18,
    /* Lost shapes alone let the table grow to this size at most. */
    SHAPES_MAX = 1 << 16,
    /* Slots of which a signature may take any; a power of two. */
    GROUP = 4,
    /* Points for a variant whose first op is the very op that came. */
    SAME_HEAD = 2,
    /* All points that a variant can have. */
    LIKELY = 7,
    /* If more than one slot in LOST_PART was taken from other shapes, the table doubles. */
    LOST_PART = 16,
    /* For FIRST_EXECS steps after a first graph was put off, and while a segment waits for one, no
     * segment gets a further graph. After these steps the waiting segment may never come again. */
    FIRST_EXECS = 8,
    /* The bits of a slot that count. The other bits are the signature's. */
    COUNT = 15,
};

_Static_assert(OFTEN <= COUNT, "so often can be counted");

/* ---- the deferred ops ---- */

uint32_t cus_plan_next_dirty(const struct cus_plan *plan, uint32_t from) {
    uint32_t n = plan->view.segment->n;
    for (uint32_t at = from; at < n; at = (at / 64 + 1) * 64) {
        uint64_t word = plan->view.dirty[at / 64] >> at % 64;
        if (word)
            return at + (uint32_t)__builtin_ctzll(word);
    }
    return n;
}

bool cus_plan_reshapes(const struct cus_plan *plan, uint32_t i) {
    return plan->view.reshapes[i / 64] >> i % 64 & 1;
}

uint32_t cus_plan_n_dirty(const struct cus_plan *plan) {
    uint32_t n = 0;
    for (uint32_t word = 0; word < (plan->view.segment->n + 63) / 64; word++)
        n += (uint32_t)__builtin_popcountll(plan->view.dirty[word]);
    return n;
}

const struct cus_values *cus_plan_values(const struct cus_plan *plan, uint32_t i) {
    return cus_image_op(cus_choose_is_dirty(&plan->view, i) ? plan->view.segment->requested
                                                            : plan->view.predicted->image,
                        plan->view.segment, i);
}

/* Once memory may have been freed, the content of memset and copy nodes counts as unknown. */
void cus_choose_trust(struct cus_plan *plan, struct cus_variant *variant) {
    const struct cus_segment *segment = plan->view.segment;
    if (!segment->memory || variant->memory_epoch == plan->view.memory_epoch)
        return;
    variant->memory_epoch = plan->view.memory_epoch;
    for (uint32_t i = 0; i < segment->n; i++)
        if (cus_kind_names_memory(segment->places[i].kind))
            cus_variant_know(variant, segment, i, false);
}

/* Points for how likely the nodes of `variant` hold what the program is about to request. Four
 * points: the step began as before the variant's last launch. Two: the variant begins with this
 * very op. One: the variant followed the one that was just launched, as it did before. Padding
 * inside a struct argument is compared with the first op, too. The program does not write it, so it
 * differs each time, and these two points are lost. If the result cannot exceed `than`, the first
 * op is not compared. */
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

/* Returns the likelier of two variants. */
static struct cus_variant *likelier(const struct cus_plan *plan, const struct cus_segment *segment,
                                    struct cus_variant *best, struct cus_variant *other,
                                    const struct cus_op *op, unsigned *most) {
    unsigned now = other ? likeness(plan, segment, other, op, *most) : 0;
    if (now <= *most)
        return best;
    *most = now;
    return other;
}

/* Predicts for a segment with many variants. The candidates are the variant that followed the one
 * just launched, and the last variant launched at such a place (variants.h). */
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

/* Has the variant's graph no node for op `i`? */
static bool lacks(const struct cus_variant *variant, uint32_t i) {
    return variant->absent && variant->absent[i / 64] >> i % 64 & 1;
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
        sig = cus_signature_add(sig, plan->view.segment->places[i].kind,
                                cus_plan_values(plan, i)->dims);
    return sig;
}

struct cus_signature cus_choose_signature_behind(const struct cus_plan *plan, uint32_t n) {
    return behind(plan, plan->sig, n);
}

struct cus_signature cus_choose_own(struct cus_plan *plan) {
    const struct cus_variant *predicted = plan->view.predicted;
    if (predicted && !plan->view.reshaped)
        return predicted->own;
    if (!plan->has_own)
        plan->own = behind(plan, (struct cus_signature){0, 0}, plan->view.segment->n);
    plan->has_own = true;
    return plan->own;
}

/* Makes the table as large as the tree has nodes and a step has ops; otherwise the signatures of
 * one long step would evict each other before they come again. If many shapes evict others, the
 * table grows, too. Called once a segment, not once an op. Without memory the table keeps its size.
 */
static void make_room(struct cus_plan *plan) {
    uint64_t before = plan->sig_counts ? plan->sig_mask + 1 : 0,
             slots = before ? before : SIG_SLOTS_MIN;
    uint64_t wanted = plan->tree.n_nodes > plan->longest ? plan->tree.n_nodes : plan->longest;
    while (slots < wanted && slots < SIG_SLOTS_MAX)
        slots *= 2;
    if (before && plan->sig_evicted > before / LOST_PART && slots < SHAPES_MAX)
        slots *= 2;
    if (slots == before)
        return;
    plan->sig_evicted = 0;
    uint64_t *sig_counts = cus_mem_grow(slots * sizeof *sig_counts);
    if (!sig_counts)
        return;
    /* Which of its two possible places a signature now has is not known: copy it to both. */
    for (uint64_t at = 0; before && at < slots; at += before)
        memcpy(sig_counts + at, plan->sig_counts, before * sizeof *sig_counts);
    cus_mem_shrink(plan->sig_counts);
    plan->sig_counts = sig_counts;
    plan->sig_mask = slots - 1;
}

static bool is_in(uint64_t slot, struct cus_signature sig) {
    return !((slot ^ sig.lo) & ~(uint64_t)COUNT);
}

/* Returns the slot of a group that holds the signature. If there is none, returns the slot with the
 * lowest count, and halves the count of another one. Without that, signatures that do not come any
 * more would stay for ever. */
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

/* Returns how often this signature came before, COUNT times at most, and counts it once more.
 * `*lost`: another signature lost its slot to it. */
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
    struct cus_segment *segment = plan->view.segment;
    if (variant == plan->view.predicted)
        return;
    uint64_t differs[CUS_SEGMENT_MAX / 64] = {0};
    cus_choose_trust(plan, variant);
    memset(plan->view.reshapes, 0, sizeof plan->view.reshapes);
    for (uint32_t i = 0; i < segment->n; i++) {
        uint32_t bytes = cus_values_bytes(segment->places[i].kind);
        struct cus_values *requested = cus_image_op(segment->requested, segment, i);
        if (!cus_choose_is_dirty(&plan->view, i)) {
            memcpy(requested, cus_image_op(plan->view.predicted->image, segment, i), bytes);
            requested->unknown = 0;
        }
        const struct cus_values *has = cus_image_op(variant->image, segment, i);
        if (memcmp(requested, has, bytes) != 0)
            differs[i / 64] |= (uint64_t)1 << i % 64;
        if (!cus_dims_same(requested->dims, has->dims))
            cus_choose_set_reshapes(&plan->view, i);
    }
    memcpy(plan->view.dirty, differs, sizeof differs);
    plan->view.predicted = variant;
}

uint32_t cus_choose_dirty_nodes(const struct cus_plan *plan, const struct cus_variant *variant) {
    const struct cus_segment *segment = plan->view.segment;
    uint32_t n = cus_plan_n_dirty(plan);
    for (uint32_t i = 0; segment->records && (i = cus_plan_next_dirty(plan, i)) < segment->n; i++)
        n -= segment->places[i].kind->type == CUS_OP_WAIT || lacks(variant, i);
    return n;
}

static bool many_dirty(const struct cus_plan *plan) {
    uint32_t dirty = cus_choose_dirty_nodes(plan, plan->view.predicted);
    return dirty >= SECOND_MIN && dirty * 4 >= plan->view.segment->n;
}

/* Did op `i` have these very params before, with the same ops in front of the segment? */
static bool came_before(struct cus_plan *plan, uint32_t i) {
    uint64_t hash = cus_values_hash(plan->view.segment->places[i].kind, cus_plan_values(plan, i));
    struct cus_signature params = {plan->sig.lo ^ cus_hash(hash),
                                   plan->sig.hi + cus_hash_second(hash ^ i)};
    params.hi ^= params.hi >> 32;
    bool lost;
    return meet(plan, params, &lost) > 0;
}

bool cus_plan_put_off_lately(const struct cus_plan *plan) {
    return plan->n_waiting && plan->turns - plan->put_off < FIRST_EXECS;
}

static bool may_have_more(const struct cus_plan *plan) {
    const struct cus_segment *segment = plan->view.segment;
    bool first_ones_wait = cus_plan_put_off_lately(plan);
    bool enough = !CUS_PAYS(VARIANTS_MANY) && segment->n_variants >= CUS_VARIANTS_FEW;
    return !first_ones_wait && !segment->stale && !enough &&
           segment->n_variants < plan->limits.variants &&
           (segment->unbuilt < UNBUILT_MAX || segment->fired >= segment->unbuilt_until);
}

/* Picks one of the dirty ops in [from, end): number `which`, counted in a circle. Returns `end` if
 * no op is dirty. */
static uint32_t pick_dirty(const struct cus_plan *plan, uint32_t from, uint32_t end,
                           uint32_t which) {
    uint32_t n = 0, i = from;
    for (uint32_t at = from; at < end; at++)
        n += cus_choose_is_dirty(&plan->view, at);
    if (!n)
        return end;
    for (which %= n; which || !cus_choose_is_dirty(&plan->view, i); i++)
        which -= cus_choose_is_dirty(&plan->view, i);
    return i;
}

/* Some allocators return two sets of addresses in turn. Then most nodes differ at each launch, and
 * each set of params comes again. A second graph for the same shapes is then cheaper than patching.
 * A few dirty ops are sampled, one from each part of the segment, and each time at another place in
 * its part. If layers are alike, ops at even distances could all be the same op of a layer. Some
 * params may be new each time. */
static bool earns_variant_again(struct cus_plan *plan) {
    struct cus_segment *segment = plan->view.segment;
    if (!CUS_PAYS(SECOND_EXEC) || segment->n_variants >= FEW_SHAPES || !may_have_more(plan))
        return false;
    if (segment->begun > PROBE_ALWAYS && segment->begun % PROBE_EVERY >= PROBE_RUN)
        return false;
    make_room(plan);
    uint32_t requested = 0, again = 0;
    uint32_t dirty = cus_choose_dirty_nodes(plan, plan->view.predicted);
    uint32_t probes = segment->n < PROBES ? segment->n : PROBES;
    for (uint32_t probe = 0; probe < probes; probe++) {
        uint32_t end = (probe + 1) * segment->n / probes;
        uint32_t i = pick_dirty(plan, probe * segment->n / probes, end, probe);
        if (i < end) {
            requested++;
            again += came_before(plan, i);
        }
    }
    return again * dirty >= requested * SECOND_MIN && again * dirty * 4 >= requested * segment->n;
}

/* Identifies what the deferred ops request, by some of them. Never 0. */
static uint64_t key_of_values(const struct cus_plan *plan) {
    const struct cus_segment *segment = plan->view.segment;
    uint32_t n = segment->n < SAMPLES ? segment->n : SAMPLES;
    uint64_t key = 1;
    for (uint32_t sample = 0; sample < n; sample++) {
        uint32_t i = (uint32_t)((uint64_t)sample * segment->n / n);
        key = cus_hash(key ^ cus_values_hash(segment->places[i].kind, cus_plan_values(plan, i)));
        key ^= key >> 32;
    }
    return key | 1;
}

/* The turns of a loop may have params of their own, which come again in the next step, or which
 * allocators mix anew each time. A graph for one turn pays where all that it requests came often.
 */
static bool earns_variant_of_turn(struct cus_plan *plan, bool aside) {
    struct cus_signature values = {plan->values_key, cus_hash_second(plan->values_key)};
    bool lost;
    make_room(plan);
    return meet(plan, values, &lost) >= OFTEN && !aside && may_have_more(plan);
}

/* Many nodes of the predicted variant differ, in a loop. Does another turn's variant hold what is
 * requested? Otherwise a new one may be built, or the predicted one is patched. */
static enum cus_choice choose_turn(struct cus_plan *plan, bool aside,
                                   struct cus_variant **variant) {
    struct cus_segment *segment = plan->view.segment;
    plan->values_key = key_of_values(plan);
    struct cus_variant *other = cus_variants_of_values(segment, plan->values_key);
    if (other && other != plan->view.predicted) {
        cus_choose_compare(plan, other);
        if (!many_dirty(plan)) {
            *variant = other;
            return CUS_CHOICE_EXACT;
        }
    }
    if (earns_variant_of_turn(plan, aside))
        return CUS_CHOICE_BUILD;
    *variant = plan->view.predicted;
    cus_variants_give(segment, *variant, plan->values_key);
    return CUS_CHOICE_EXACT;
}

/* Picks the variant that is patched to new shapes. If the segment has few variants and may have
 * more, it is the one launched least recently. Otherwise it is always the same one, so that the
 * others keep their shapes. If another one was not launched for long (STALE), it is taken
 * instead. */
static struct cus_variant *guest_of(const struct cus_plan *plan) {
    struct cus_segment *segment = plan->view.segment;
    if (!CUS_PAYS(VARIANTS_GUEST) ||
        (segment->n_variants < CUS_VARIANTS_FEW && may_have_more(plan)))
        return segment->oldest;
    uint64_t unused = segment->fired - segment->oldest->fired;
    if (!segment->guest || unused > STALE * (uint64_t)segment->n_variants)
        segment->guest = segment->oldest;
    return segment->guest;
}

/* Does the segment get a variant for these shapes? The first few are built for shapes that come a
 * second time, since shapes often take turns. Further ones are built only for shapes that come
 * often, and not if the submit thread patches. Patching on that thread costs the program nothing.
 * When one of many graphs is launched, it is in no cache. */
static bool earns_variant(struct cus_plan *plan, bool aside, struct cus_signature out) {
    unsigned times = meet_shapes(plan, out);
    bool few = plan->view.segment->n_variants < CUS_VARIANTS_FEW;
    return times >= (few ? 1 : OFTEN) && (few || !aside) && may_have_more(plan);
}

/* ---- ops without a node ----
 *
 * Libraries record one event behind each of their calls, and look at it only when they change
 * streams. Of such records of a segment, the last one alone needs a node. A graph without nodes for
 * the others is launched only where these are superseded again. */

void cus_plan_supersede(struct cus_plan *plan, uint32_t i) {
    plan->view.superseded[i / 64] |= (uint64_t)1 << i % 64;
}

bool cus_plan_superseded(const struct cus_plan *plan, uint32_t i) {
    return plan->view.segment->records && plan->view.superseded[i / 64] >> i % 64 & 1;
}

bool cus_plan_is_absent(const struct cus_plan *plan, uint32_t i) {
    return !plan->view.segment->all_nodes && cus_plan_superseded(plan, i);
}

bool cus_choose_note_absent(const struct cus_plan *plan, struct cus_variant *variant) {
    const struct cus_segment *segment = plan->view.segment;
    uint32_t words = (segment->n + 63) / 64;
    uint64_t any = 0;
    for (uint32_t word = 0; segment->records && !segment->all_nodes && word < words; word++)
        any |= plan->view.superseded[word];
    if (!any)
        return true;
    variant->absent = cus_mem_grow(words * sizeof *variant->absent);
    if (variant->absent)
        memcpy(variant->absent, plan->view.superseded, words * sizeof *variant->absent);
    return variant->absent != NULL;
}

/* Has the graph a node for each deferred op that needs one? */
static bool has_nodes(const struct cus_plan *plan, const struct cus_variant *variant) {
    uint64_t missing = 0;
    for (uint32_t word = 0; variant->absent && word < (plan->view.segment->n + 63) / 64; word++)
        missing |= variant->absent[word] & ~plan->view.superseded[word];
    return !missing;
}

/* `variant`, or another one that has the nodes; NULL: none has. */
static struct cus_variant *with_nodes(struct cus_plan *plan, struct cus_variant *variant) {
    struct cus_segment *segment = plan->view.segment;
    if (has_nodes(plan, variant))
        return variant;
    segment->all_nodes = true;
    for (variant = segment->newest; variant && !has_nodes(plan, variant);)
        variant = variant->older;
    if (variant)
        cus_choose_compare(plan, variant);
    return variant;
}

static enum cus_choice choose(struct cus_plan *plan, bool aside, struct cus_variant **variant) {
    struct cus_segment *segment = plan->view.segment;
    *variant = NULL;
    plan->values_key = 0;
    if (!segment->n_variants)
        return CUS_CHOICE_BUILD;
    if (!plan->view.reshaped) {
        bool many = many_dirty(plan);
        if (many && segment->nodes[0]->loop)
            return choose_turn(plan, aside, variant);
        if (many && earns_variant_again(plan))
            return CUS_CHOICE_BUILD;
        *variant = plan->view.predicted;
        return CUS_CHOICE_EXACT;
    }
    struct cus_signature own = cus_choose_own(plan);
    struct cus_signature out = cus_signature_append(plan->sig, own, segment->power);
    *variant = cus_variants_of_shape(segment, own);
    if (*variant) {
        cus_choose_compare(plan, *variant);
        return CUS_CHOICE_EXACT;
    }
    if (earns_variant(plan, aside, out))
        return CUS_CHOICE_BUILD;
    *variant = guest_of(plan);
    cus_choose_compare(plan, *variant);
    return CUS_CHOICE_PATCH;
}

enum cus_choice cus_plan_choose(struct cus_plan *plan, bool aside, struct cus_variant **variant) {
    enum cus_choice choice = choose(plan, aside, variant);
    struct cus_variant *chosen = *variant;
    if (!chosen || (*variant = with_nodes(plan, chosen)) == chosen)
        return choice;
    return *variant ? CUS_CHOICE_PATCH : CUS_CHOICE_BUILD;
}

/* The failure may have been temporary: building is tried again, more and more rarely. */
static void could_not_build(struct cus_segment *segment) {
    segment->unbuilt += segment->unbuilt < UNBUILT_MAX + UNBUILT_TIMES;
    if (segment->unbuilt >= UNBUILT_MAX)
        segment->unbuilt_until =
            segment->fired + ((uint64_t)UNBUILT_WAIT << (segment->unbuilt - UNBUILT_MAX));
}

struct cus_variant *cus_plan_fall_back(struct cus_plan *plan, bool later) {
    if (!plan->view.segment->n_variants)
        return NULL;
    if (!later)
        could_not_build(plan->view.segment);
    /* The build was to be a second graph of these shapes: patch the predicted one. */
    if (!plan->view.reshaped)
        return with_nodes(plan, plan->view.predicted);
    struct cus_variant *variant = guest_of(plan);
    cus_choose_compare(plan, variant);
    return with_nodes(plan, variant);
}
