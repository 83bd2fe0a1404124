/*
 * Forms segments from warm paths. The plan calls it under the engine's lock while a path is being
 * learned, never in steady replay. Never calls the driver.
 */
#include "shim/plan/segment.h"

#include <string.h>

#include "shim/base/hazard.h"
#include "shim/base/mem.h"
#include "shim/plan/branches.h"

/* A segment of this size takes in one op that would be left alone behind it. */
enum { TAKES_IN = 8 };

static bool fits(const struct cus_node *node, uint32_t warmup,
                 const struct cus_dispatch *dispatch) {
    const struct cus_kind *kind = node->key.kind;
    return cus_node_warm(node, warmup) && node->visits >= node->retry_at && kind->deferrable &&
           cus_dispatch_allows(dispatch, (enum cus_step_class)node->key.step, kind);
}

static bool qualifies(const struct cus_node *node, uint32_t warmup,
                      const struct cus_dispatch *dispatch) {
    return !node->segment && fits(node, warmup, dispatch);
}

/* Must every segment end at this node, or is the next node unfit for any? `forked`: a branch is
 * not joined. Then a segment between fork and join is in the way of the one that has both. */
static bool is_end(const struct cus_node *node, bool forked, uint32_t warmup,
                   const struct cus_dispatch *dispatch) {
    const struct cus_node *next = node->expect;
    return node->boundary || node->loop_end || !next || next->join || next->key.kind->step ||
           !(forked ? fits : qualifies)(next, warmup, dispatch);
}

bool cus_record_forks(const struct cus_node *node) {
    const struct cus_kind *next = node->expect ? node->expect->key.kind : NULL;
    return next && next->type == CUS_OP_WAIT && next->branch && next->back == 1;
}

/* A record that neither begins a segment nor ends one. */
static bool is_inner(const struct cus_node *node) {
    return node->key.kind->type == CUS_OP_RECORD && !cus_record_forks(node);
}

/* Is there no other op behind this one, but for records, until segments must end? */
static bool is_last(const struct cus_node *node, uint32_t warmup,
                    const struct cus_dispatch *dispatch) {
    while (!is_end(node, false, warmup, dispatch)) {
        node = node->expect;
        if (!is_inner(node))
            return false;
    }
    return true;
}

/* The node behind `node` in the same segment, which has `n` ops so far; NULL where the segment must
 * end. `forked`: a branch is not joined, so the segment goes on beyond `max`. */
static struct cus_node *follower(const struct cus_node *node, uint32_t n, bool forked, uint32_t max,
                                 uint32_t warmup, const struct cus_dispatch *dispatch) {
    struct cus_node *next = node->expect;
    if (is_end(node, forked, warmup, dispatch) || n == CUS_SEGMENT_MAX)
        return NULL;
    /* A launch that overlaps the one before it (PDL) would lose the overlap at the beginning of a
     * segment (HAZARDS A5). So it is taken in beyond `max`. So is an op that would be left alone
     * between segments, and a record with the op behind it. */
    bool alone = is_inner(next) || (n >= TAKES_IN && is_last(next, warmup, dispatch));
    bool takes_in = (CUS_HAZARD(A5) && next->key.kind->pdl) || (n == max && alone) ||
                    (n >= max && is_inner(node));
    return n < max || takes_in || forked ? next : NULL;
}

/* Is the path behind this node still unknown? */
static bool is_open(const struct cus_node *node, uint32_t warmup) {
    const struct cus_node *next = node->expect;
    return !node->boundary && !node->loop_end &&
           (!next || (!next->join && !next->segment && !cus_node_warm(next, warmup)));
}

static uint32_t op_bytes(const struct cus_kind *kind) {
    return (uint32_t)sizeof(struct cus_expected) + cus_values_bytes(kind);
}

const struct cus_expected cus_expect_nothing = {.plain = &cus_expect_nothing};

static struct cus_expected expect(const struct cus_kind *kind) {
    struct cus_expected expected = {.plain = &cus_expect_nothing, .kind = kind};
    const struct cus_layout *layout = kind->type == CUS_OP_LAUNCH ? kind->layout : NULL;
    if (layout && !kind->n_attrs && !kind->cooperative && !kind->branch)
        expected.plain = kind->handle;
    uint32_t words = 0;
    while (layout && words < layout->n && layout->arguments[words].size == 8 &&
           layout->arguments[words].offset == 8 * words)
        words++;
    expected.words = (uint16_t)words;
    expected.others = layout ? (uint16_t)(layout->n - words) : 0;
    expected.tail = layout ? layout->arguments + words : NULL;
    expected.bytes = op_bytes(kind);
    return expected;
}

/* The last op of a segment never takes the hot path, since the segment is launched with it. */
static void fill_expected(uint8_t *image, const struct cus_segment *segment, uint32_t i,
                          bool known) {
    *cus_image_expected(image, segment, i) =
        known && i + 1 < segment->n ? expect(segment->places[i].kind) : cus_expect_nothing;
}

/* The hot path writes to such a block, so the block shares no cache line with other data. */
static uint8_t *image_new(const struct cus_segment *segment) {
    uint8_t *image = cus_mem_grow_lines(segment->image_bytes);
    for (uint32_t i = 0; image && i < segment->n; i++)
        fill_expected(image, segment, i, true);
    return image;
}

/* What the ops of a segment amount to. */
struct extent {
    uint32_t n, bytes, records;
    bool cold, recorded; /* recorded: nothing but bare waits is behind the last record */
    struct cus_branches branches;
};

/* Is a wait with which a branch begins the last that the branch does before it waits again? So do
 * libraries that make their stream wait at the end of a call already. One that waits for another
 * branch is behind more than a later fork from branch 0 would be. */
static bool is_bare(const struct cus_node *wait) {
    const struct cus_kind *kind = wait->key.kind;
    const struct cus_node *node = wait->expect;
    if (kind->type != CUS_OP_WAIT || !kind->branch || kind->goes_on || kind->from)
        return false;
    for (uint32_t i = 0; node && i < CUS_SEGMENT_MAX; i++, node = node->expect)
        if (node->key.kind->branch == kind->branch)
            return node->key.kind->type == CUS_OP_WAIT && !node->key.kind->goes_on;
    return false;
}

/* False: no graph can have the op here. */
static bool take(struct extent *extent, const struct cus_node *node) {
    const struct cus_kind *kind = node->key.kind;
    if (!cus_branches_take(&extent->branches, kind, extent->n))
        return false;
    bool bare = is_bare(node);
    if (bare)
        cus_branches_bare(&extent->branches, kind->branch);
    else
        extent->recorded = kind->type == CUS_OP_RECORD;
    extent->n++;
    extent->bytes += op_bytes(kind);
    extent->records += kind->type == CUS_OP_RECORD || kind->type == CUS_OP_WAIT;
    return true;
}

/* May a segment end with this op? A graph is complete some time after its last node: the host would
 * hear of a record there while the stream is still busy. So a record is no segment's last op, nor
 * the last but for waits behind which nothing is. */
static bool may_end(const struct extent *extent) {
    return !extent->recorded && (!CUS_HAZARD(B18) || cus_branches_joined(&extent->branches));
}

/* The first segment that has one of the nodes. */
static struct cus_segment *taken_by(const struct cus_node *node, uint32_t n) {
    while (n && !node->segment) {
        node = node->expect;
        n--;
    }
    return n ? node->segment : NULL;
}

struct cus_segment *cus_segment_form(struct cus_node *first, uint32_t lead, uint32_t max,
                                     uint32_t warmup, const struct cus_dispatch *dispatch,
                                     struct cus_segment **in_way) {
    struct cus_node *leads[CUS_PREFIX_MAX], *node = first;
    struct extent now = {.n = 0}, end = now;
    *in_way = NULL;
    if (!qualifies(first, warmup, dispatch))
        return NULL;
    for (uint32_t i = lead; i--;)
        leads[i] = node = (struct cus_node *)(uintptr_t)node->key.parent;
    for (uint32_t i = 0; i < lead; i++)
        if (!take(&now, leads[i]))
            return NULL;
    for (node = first; node && take(&now, node);
         node = follower(node, now.n, !cus_branches_joined(&now.branches), max, warmup, dispatch)) {
        now.cold = is_open(node, warmup);
        if (may_end(&now))
            end = now;
    }
    /* A node of a record takes as long as a record. */
    uint32_t n = end.n;
    if (n - end.records < 2)
        return NULL;
    *in_way = taken_by(first, n - lead);
    if (*in_way)
        return NULL;
    struct cus_segment *segment =
        cus_mem_grow(sizeof *segment + n * (sizeof segment->nodes[0] + sizeof segment->places[0]));
    if (!segment)
        return NULL;
    segment->n = n;
    segment->image_bytes = end.bytes;
    segment->power = cus_signature_power(n);
    segment->places = (struct cus_place *)(void *)(segment->nodes + n);
    segment->lead = lead;
    segment->cold = end.cold;
    segment->records = end.records;
    segment->branches = (uint8_t)(end.branches.used & ~1u);
    node = first;
    for (uint32_t i = 0; i < n; i++) {
        segment->nodes[i] = i < lead ? leads[i] : node;
        if (i >= lead)
            node = node->expect;
    }
    for (uint32_t i = 0, at = 0; i < n; i++) {
        node = segment->nodes[i];
        segment->places[i] =
            (struct cus_place){node->key.kind, at + (uint32_t)sizeof(struct cus_expected)};
        segment->memory |= cus_kind_names_memory(node->key.kind);
        at += op_bytes(node->key.kind);
    }
    segment->requested = image_new(segment);
    if (!segment->requested) {
        cus_mem_shrink(segment);
        return NULL;
    }
    for (uint32_t i = lead; i < n; i++)
        segment->nodes[i]->segment = segment;
    return segment;
}

bool cus_segment_open(const struct cus_segment *segment, uint32_t n) {
    struct cus_branches branches = {.open = 0};
    for (uint32_t i = 0; i < n && segment->branches; i++) {
        const struct cus_kind *kind = segment->places[i].kind;
        cus_branches_take(&branches, kind, i);
        if (is_bare(segment->nodes[i]))
            cus_branches_bare(&branches, kind->branch);
    }
    return !cus_branches_joined(&branches);
}

void cus_segment_free(struct cus_segment *segment) {
    for (uint32_t i = 0; i < segment->n; i++)
        if (segment->nodes[i]->segment == segment)
            segment->nodes[i]->segment = NULL;
    cus_mem_shrink_lines(segment->requested);
    cus_mem_shrink(segment);
}

void cus_segment_tally(struct cus_segment *segment) {
    uint64_t more = segment->fired - segment->tallied;
    segment->tallied = segment->fired;
    for (uint32_t i = 0; more && i < segment->n; i++)
        if (segment->places[i].kind->tally)
            __atomic_add_fetch(&segment->places[i].kind->tally->in_graphs, more, __ATOMIC_RELAXED);
}

struct cus_variant *cus_variant_new(const struct cus_segment *segment) {
    struct cus_variant *variant = cus_mem_grow(sizeof *variant);
    uint8_t *image = image_new(segment);
    if (!variant || !image) {
        cus_mem_shrink(variant);
        cus_mem_shrink_lines(image);
        return NULL;
    }
    variant->image = image;
    return variant;
}

void cus_variant_free(struct cus_variant *variant) {
    if (variant)
        cus_mem_shrink_lines(variant->image);
    if (variant)
        cus_mem_shrink(variant->absent);
    cus_mem_shrink(variant);
}

void cus_variant_know(struct cus_variant *variant, const struct cus_segment *segment, uint32_t i,
                      bool known) {
    struct cus_values *values = cus_image_op(variant->image, segment, i);
    variant->doubted |= !known;
    if (values->unknown == !known)
        return;
    values->unknown = !known;
    fill_expected(variant->image, segment, i, known);
}

void cus_variant_swap(struct cus_variant *variant, struct cus_segment *segment,
                      const uint64_t *dirty) {
    uint8_t *requested = segment->requested;
    for (uint32_t i = 0; i < segment->n; i++)
        if (!(dirty[i / 64] >> i % 64 & 1))
            memcpy(cus_image_op(requested, segment, i), cus_image_op(variant->image, segment, i),
                   cus_values_bytes(segment->places[i].kind));
    segment->requested = variant->image;
    variant->image = requested;
}
