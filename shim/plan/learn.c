/*
 * Adds, indexes, evicts and drops segments, and forgets nodes that do not come any more.
 * The plan's files call it under the engine's lock, when a segment is formed, launched or dropped.
 * It destroys graphs through the plan's callback only, and never calls the driver.
 */
#include "shim/plan/learn.h"

#include "shim/base/hazard.h"
#include "shim/base/mem.h"
#include "shim/plan/advice.h"
#include "shim/plan/variants.h"

enum {
    /* After more launches than this in a row whose first op changed, a segment leaves the index of
     * first ops. */
    OTHERWISE = 4,
    /* Refused launches or patches that drop a segment. */
    REFUSED_MAX = 2,
    /* Two refusals count together if at most REFUSED_APART launches, and REFUSED_EACH more for each
     * variant, lie between them. */
    REFUSED_APART = 256,
    REFUSED_EACH = 16,
    /* Visits of a node without a segment after an eviction. The number doubles each time, EVICTIONS
     * times at most. */
    RETRY_EVICTED = 64,
    EVICTIONS = 10,
    /* The same after a segment that cannot be built. */
    RETRY_NEVER = 1 << 20
};

void cus_learn_add(struct cus_plan *plan, struct cus_segment *segment) {
    segment->next = plan->view.segments;
    if (plan->view.segments)
        plan->view.segments->prev = segment;
    else
        plan->oldest = segment;
    plan->view.segments = segment;
    plan->view.n_segments++;
    segment->id = (uint32_t)++plan->view.n_formed;
}

static void take_out(struct cus_plan *plan, struct cus_segment *segment) {
    if (segment->prev)
        segment->prev->next = segment->next;
    else
        plan->view.segments = segment->next;
    if (segment->next)
        segment->next->prev = segment->prev;
    else
        plan->oldest = segment->prev;
}

void cus_learn_used(struct cus_plan *plan, struct cus_segment *segment) {
    if (!segment->prev)
        return;
    take_out(plan, segment);
    segment->prev = NULL;
    segment->next = plan->view.segments;
    plan->view.segments->prev = segment;
    plan->view.segments = segment;
}

static void unindex(struct cus_plan *plan, struct cus_segment *segment) {
    if (segment->indexed)
        HASH_DELETE(hh, plan->heads, segment);
    segment->indexed = false;
}

static uint64_t hash_of_head(const struct cus_segment *segment) {
    const struct cus_values *values = cus_image_op(segment->newest->image, segment, 0);
    struct cus_op op = {.kind = segment->places[0].kind, .flat = values->params};
    for (int i = 0; i < CUS_DIMS; i++)
        op.dims[i] = values->dims[i];
    return cus_op_hash(&op);
}

void cus_learn_index(struct cus_plan *plan, struct cus_segment *segment, bool otherwise) {
    segment->otherwise = otherwise ? segment->otherwise + 1 : 0;
    if (!otherwise && segment->hashed)
        return;
    if (segment->otherwise > OTHERWISE) {
        unindex(plan, segment);
        segment->hashed = false;
        return;
    }
    uint64_t hash = hash_of_head(segment);
    if (segment->hashed && hash == segment->head_hash)
        return;
    unindex(plan, segment);
    segment->hashed = true;
    segment->head_hash = hash;
    struct cus_segment *other;
    HASH_FIND(hh, plan->heads, &hash, sizeof hash, other);
    if (other)
        return;
    bool added = true;
#undef uthash_nonfatal_oom
#define uthash_nonfatal_oom(element) (added = false)
    HASH_ADD(hh, plan->heads, head_hash, sizeof segment->head_hash, segment);
    segment->indexed = added;
}

static void drop_variant(struct cus_plan *plan, struct cus_segment *segment,
                         struct cus_variant *variant) {
    cus_variants_remove(plan, segment, variant);
    segment->hashed = false;
    unindex(plan, segment);
    plan->drop(plan->context, variant->exec);
    cus_variant_free(variant);
}

void cus_learn_drop(struct cus_plan *plan, struct cus_segment *segment) {
    while (segment->newest)
        drop_variant(plan, segment, segment->newest);
    cus_segment_tally(segment);
    if (plan->history && *cus_plan_history_at(plan, segment->used) == segment)
        *cus_plan_history_at(plan, segment->used) = NULL;
    take_out(plan, segment);
    plan->view.n_segments--;
    plan->n_waiting -= segment->waits;
    plan->n_stale -= segment->stale;
    cus_segment_free(segment);
}

void cus_learn_drop_for(struct cus_plan *plan, struct cus_segment *segment, uint32_t visits) {
    struct cus_node *head = segment->nodes[segment->lead];
    head->retry_at = head->visits + visits;
    cus_learn_drop(plan, segment);
}

/* The list has the segment launched last at its front. Its first entries were launched in this
 * step, and the last of these was launched first. The loop goes from there to the front. At most as
 * many nodes are dropped as one step may build; the remaining segments are launched meanwhile. */
void cus_learn_sizing(struct cus_plan *plan) {
    if (!plan->n_stale)
        return;
    struct cus_segment *segment = NULL;
    for (struct cus_segment *next = plan->view.segments; next && next->used > plan->clock_now;
         next = next->next)
        segment = next;
    uint32_t nodes = 0;
    for (struct cus_segment *later; segment; segment = later) {
        later = segment->prev;
        if (!segment->stale)
            continue;
        for (;; nodes += segment->n) {
            if (plan->view.build_quota && nodes && nodes + segment->n > plan->view.build_quota)
                return;
            if (segment->n_variants < 2)
                break;
            drop_variant(plan, segment, segment->oldest);
        }
        nodes += segment->n;
        cus_learn_drop(plan, segment);
    }
}

/* Evicts something of this segment. Of many graphs only one goes. Otherwise the segment is dropped.
 * Its nodes then wait longer each time before they may be in a segment again. Without that wait the
 * same graphs would be evicted and built again and again, also as parts of other segments. */
static void evict(struct cus_plan *plan, struct cus_segment *segment) {
    if (segment->n_variants > CUS_VARIANTS_FEW) {
        drop_variant(plan, segment, segment->oldest);
        segment->unbuilt = 0;
        return;
    }
    for (uint32_t i = segment->lead; i < segment->n; i++) {
        struct cus_node *node = segment->nodes[i];
        node->retry_at = node->visits + ((uint32_t)RETRY_EVICTED << node->evicted);
        node->evicted += node->evicted < EVICTIONS;
    }
    cus_learn_drop(plan, segment);
}

static bool has_further(const struct cus_plan *plan, const struct cus_segment *segment) {
    return segment->n_variants > 1 && segment->oldest->used <= plan->clock_before;
}

/* Counts the graphs of a segment beyond its first that were not launched in this step or the one
 * before. */
static uint32_t count_further(const struct cus_plan *plan, const struct cus_segment *segment) {
    uint32_t n = 0;
    for (const struct cus_variant *variant = segment->oldest;
         n + 1 < segment->n_variants && variant->used <= plan->clock_before;
         variant = variant->newer)
        n++;
    return n;
}

/* Frees memory for the first graph of plan->view.segment: drops graphs that other segments have
 * beyond their first. If that would not be enough, nothing is dropped. */
static bool drop_further(struct cus_plan *plan) {
    uint64_t nodes = 0, wanted = plan->view.segment && !plan->view.segment->n_variants
                                     ? plan->view.segment->n
                                     : 0;
    for (struct cus_segment *segment = plan->oldest; segment && nodes < wanted;
         segment = segment->prev)
        nodes += (uint64_t)segment->n * count_further(plan, segment);
    if (!wanted || nodes < wanted)
        return false;
    nodes = 0;
    for (struct cus_segment *segment = plan->oldest; segment && nodes < wanted;
         segment = segment->prev)
        for (; nodes < wanted && has_further(plan, segment); nodes += segment->n) {
            drop_variant(plan, segment, segment->oldest);
            segment->unbuilt = 0;
        }
    return true;
}

bool cus_plan_drop_oldest(struct cus_plan *plan) {
    struct cus_segment *oldest = plan->oldest;
    while (oldest && (oldest == plan->view.segment || !oldest->n_variants))
        oldest = oldest->prev;
    /* What was launched in this step or the one before is needed in the next. If that exceeds the
     * budget, other ops must stay eager, or building would never end. */
    if (!oldest || oldest->used > plan->clock_before)
        return drop_further(plan);
    evict(plan, oldest);
    return true;
}

void cus_learn_no_room(struct cus_plan *plan, struct cus_segment *segment) {
    if (!segment->n_variants)
        evict(plan, segment);
}

/* ---- forgetting ---- */

static void mark_recent(struct cus_node *node, void *context) {
    struct cus_plan *plan = context;
    if (node->stamp > plan->swept_turn ||
        (node->segment && node->segment->used > plan->swept_clock))
        cus_tree_mark(&plan->tree, node);
}

static void forget_segments(struct cus_node *node, void *context) {
    if (!node->marked && node->segment)
        cus_learn_drop(context, node->segment);
}

void cus_learn_forget(struct cus_plan *plan) {
    cus_tree_each(&plan->tree, forget_segments, plan);
    cus_merges_clear(&plan->merges);
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

/* Keeps the refused node out of segments for a while, so that the ops around it can be in graphs.
 * Nodes are patched in order, so the first node with unknown content was refused. If the content of
 * all is known, the launch failed, and all nodes are kept out. */
static void leave_out_refused(struct cus_segment *segment, struct cus_variant *broken) {
    uint32_t first = 0, end = segment->n;
    while (first < segment->n && !cus_image_op(broken->image, segment, first)->unknown)
        first++;
    if (first < segment->n)
        end = first + 1;
    else
        first = 0;
    for (uint32_t i = first; i < end; i++)
        segment->nodes[i]->retry_at = segment->nodes[i]->visits + CUS_RETRY_LOST;
}

void cus_learn_refused(struct cus_plan *plan, struct cus_segment *segment,
                       struct cus_variant *broken) {
    if (!broken) {
        cus_advice_bad(plan, segment);
        cus_learn_drop_for(plan, segment, RETRY_NEVER);
        return;
    }
    /* If a graph is refused again and again, its segment would be built again and again. An example
     * is a copy node that cannot take another address. */
    uint64_t apart = REFUSED_APART + (uint64_t)REFUSED_EACH * segment->n_variants;
    if (segment->fired - segment->refused_at > apart)
        segment->refused = 0;
    segment->refused_at = segment->fired;
    if (++segment->refused >= REFUSED_MAX) {
        leave_out_refused(segment, broken);
        cus_advice_bad(plan, segment);
        cus_learn_drop(plan, segment);
        return;
    }
    if (CUS_HAZARD(A28))
        drop_variant(plan, segment, broken);
}

static bool holds(const struct cus_segment *segment, const void *handle) {
    for (uint32_t i = 0; i < segment->n; i++)
        if (segment->places[i].kind->handle == handle)
            return true;
    return false;
}

void cus_plan_drop_handle(struct cus_plan *plan, const void *handle) {
    for (struct cus_segment *segment = plan->view.segments, *next; segment; segment = next) {
        next = segment->next;
        if (!handle || holds(segment, handle))
            cus_learn_drop(plan, segment);
    }
}

void cus_plan_clear(struct cus_plan *plan) {
    cus_plan_drop_handle(plan, NULL);
    cus_tree_clear(&plan->tree);
    plan->tree.root.path = plan->seed;
    cus_loop_free(&plan->loop);
    cus_merges_clear(&plan->merges);
    cus_mem_shrink(plan->sig_counts);
    plan->sig_counts = NULL;
    cus_mem_shrink(plan->history);
    plan->history = NULL;
    plan->cur = &plan->tree.root;
    plan->turns++;
    plan->step = CUS_STEP_UNKNOWN;
    plan->dispatch = (struct cus_dispatch){.mode = plan->limits.mode};
    plan->sig = (struct cus_signature){0, 0};
    plan->view.step_ops = plan->advised_ops = 0;
    plan->ramp = (struct cus_ramp){.size = plan->limits.segment_first};
    plan->settle_in = CUS_SETTLE_STEPS;
    plan->was_late = false;
    plan->advised = false;
    plan->looped = 0;
    plan->slow_loop = false;
    plan->look_until = 0;
    plan->now.n = 0;
    plan->last.n = 0; /* its names belong to kinds that may be freed */
    plan->now.graphs = plan->last.graphs = false;
}

bool cus_plan_evict(struct cus_plan *plan, unsigned n) {
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
