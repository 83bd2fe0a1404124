/*
 * Applies the signature cache's advice to a plan, and says what to store for later runs.
 * The plan calls it under the engine's lock, when an op gets a new node or a segment is formed;
 * never in steady replay. Pure except for the marks. Allocates nothing.
 */
#include "shim/plan/advice.h"

enum {
    /* After PAID launches a graph has saved more than its build cost. */
    PAID = 4,
    /* The next advised segment must end within FAR times as many ops as the advised part of the
     * step has so far. */
    FAR = 3
};

/* The first of `ops` nodes that end with `last`; NULL if the path is shorter. */
static struct cus_node *head_of(struct cus_node *last, uint32_t ops) {
    struct cus_node *node = last;
    while (--ops) {
        node = (struct cus_node *)(uintptr_t)node->key.parent;
        if (!node->key.parent)
            return NULL; /* the root */
    }
    return node;
}

static void mark(struct cus_advice *advice, uint32_t at, uint8_t what, uint32_t *count) {
    if (!(__atomic_fetch_or(&advice->marks[at], what, __ATOMIC_RELAXED) & what))
        __atomic_add_fetch(count, 1, __ATOMIC_RELAXED);
}

void cus_advice_reached(struct cus_plan *plan, struct cus_node *node) {
    struct cus_advice *advice = plan->advice;
    uint32_t at = cus_cache_find(advice->entries, advice->n, node->path);
    if (at == advice->n)
        return;
    struct cus_node *head = head_of(node, advice->entries[at].ops);
    if (!head)
        return;
    mark(advice, at, CUS_ADVICE_REACHED, &advice->reached);
    plan->advised_ops = plan->view.step_ops + 1;
    /* If two runs cut the path at different places, the last run's segments fit together. */
    if (!head->advice || advice->entries[head->advice - 1].used <= advice->entries[at].used)
        head->advice = at + 1;
    for (; node != head; node = (struct cus_node *)(uintptr_t)node->key.parent)
        node->advised = 1;
    head->advised = 1;
}

void cus_plan_advise(struct cus_plan *plan, struct cus_advice *advice, uint64_t seed) {
    plan->advice = advice;
    plan->seed = plan->tree.root.path = seed;
}

uint32_t cus_advice_cut(const struct cus_plan *plan, const struct cus_node *node) {
    if (!node->advice)
        return 0;
    uint32_t ops = plan->advice->entries[node->advice - 1].ops;
    return ops < plan->limits.segment_max ? ops : plan->limits.segment_max;
}

bool cus_advice_goes_on(const struct cus_plan *plan) {
    uint32_t max = plan->limits.segment_max;
    uint32_t far = plan->advised_ops < max / FAR ? plan->advised_ops * FAR : max;
    return plan->advised_ops && plan->view.step_ops - plan->advised_ops < far &&
           plan->tree.n_nodes + 2 * CUS_LOOP_WINDOW < plan->limits.nodes_max;
}

void cus_advice_formed(struct cus_plan *plan, struct cus_segment *segment) {
    struct cus_advice *advice = plan->advice;
    uint32_t at = segment->nodes[0]->advice - 1;
    mark(advice, at, CUS_ADVICE_FORMED, &advice->formed);
    segment->formed_ns = advice->entries[at].pace_ns;
    segment->advised = plan->advised = true;
    segment->advice = at + 1;
    segment->nodes[0]->advice = 0;
}

void cus_advice_bad(struct cus_plan *plan, const struct cus_segment *segment) {
    if (segment->advice)
        mark(plan->advice, segment->advice - 1, CUS_ADVICE_BAD, &plan->advice->bad);
}

bool cus_advice_of(const struct cus_segment *segment, struct cus_cache_entry *entry) {
    /* If an earlier run found that the segment pays, that is believed until the opposite is seen.
     * This run may end before it gets there. */
    bool known = segment->nodes[0]->advised;
    if (cus_lately_mostly(&segment->lost, segment) || segment->fired < (known ? 0 : PAID) ||
        (!segment->n_variants && !segment->advised))
        return false;
    *entry = (struct cus_cache_entry){
        .path = segment->nodes[segment->n - 1]->path,
        .ops = segment->n,
        .pace_ns = segment->formed_ns,
        .launches = segment->fired < UINT32_MAX ? (uint32_t)segment->fired : UINT32_MAX,
    };
    return true;
}
