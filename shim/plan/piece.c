/*
 * Forming pieces from warm paths. Runs under the engine's lock, while a path is being learned:
 * never in steady replay. Never calls the driver.
 */
#include "shim/plan/piece.h"

#include <string.h>

#include "shim/base/hazard.h"
#include "shim/base/mem.h"

static bool qualifies(const struct cus_node *node, uint32_t warmup,
                      const struct cus_dispatch *dispatch) {
    const struct cus_kind *kind = node->key.kind;
    return !node->piece && cus_node_warm(node, warmup) && node->visits >= node->retry_at &&
           kind->deferrable &&
           cus_dispatch_allows(dispatch, (enum cus_step_class)node->key.step, kind);
}

/* Does the path itself part behind this node? */
static bool parts(const struct cus_node *node) {
    const struct cus_node *next = node->expect;
    return node->boundary || node->loop_end || !next || next->join || next->key.kind->step;
}

/* Can no piece go on behind this node, whoever begins one there? */
static bool is_end(const struct cus_node *node, uint32_t warmup,
                   const struct cus_dispatch *dispatch) {
    return parts(node) || !qualifies(node->expect, warmup, dispatch);
}

struct cus_piece *cus_piece_behind(const struct cus_piece *piece) {
    const struct cus_node *last = piece->nodes[piece->n - 1];
    struct cus_piece *behind = parts(last) ? NULL : last->expect->piece;
    return behind && behind->nodes[0] == last->expect ? behind : NULL;
}

/* The op behind `node` in the same piece, NULL where the piece must end. `n` ops are in it so far.
 */
static struct cus_node *follower(const struct cus_node *node, uint32_t n, uint32_t max,
                                 uint32_t warmup, const struct cus_dispatch *dispatch) {
    struct cus_node *next = node->expect;
    if (is_end(node, warmup, dispatch) || n == CUS_PIECE_MAX)
        return NULL;
    /* A launch that overlaps the one before it (PDL) loses that overlap behind a cut (HAZARDS A5):
     * it is taken in where there is room. So is one that no graph would take. */
    bool takes_in = (CUS_HAZARD(A5) && next->key.kind->pdl) ||
                    (n == max && n >= CUS_TAKES_IN && is_end(next, warmup, dispatch));
    return n < max || takes_in ? next : NULL;
}

/* Is it not known yet how the path goes on behind it? */
static bool is_open(const struct cus_node *node, uint32_t warmup) {
    const struct cus_node *next = node->expect;
    return !node->boundary && !node->loop_end &&
           (!next || (!next->join && !next->piece && !cus_node_warm(next, warmup)));
}

static uint32_t op_bytes(const struct cus_kind *kind) {
    return (uint32_t)sizeof(struct cus_expected) + cus_held_bytes(kind);
}

const struct cus_expected cus_expect_nothing = {.plain = &cus_expect_nothing};

static struct cus_expected expect(const struct cus_kind *kind) {
    struct cus_expected expected = {.plain = &cus_expect_nothing, .kind = kind};
    const struct cus_layout *layout = kind->type == CUS_OP_LAUNCH ? kind->layout : NULL;
    if (layout && !kind->n_attrs && !kind->cooperative)
        expected.plain = kind->handle;
    uint32_t words = 0;
    while (layout && words < layout->n && layout->arguments[words].size == 8 &&
           layout->arguments[words].offset == 8 * words)
        words++;
    expected.words = (uint16_t)words;
    expected.others = layout ? (uint16_t)(layout->n - words) : 0;
    expected.rest = layout ? layout->arguments + words : NULL;
    expected.bytes = op_bytes(kind);
    return expected;
}

/* The last op of a piece never takes the hot path, for the piece is launched with it. */
static void fill_expected(uint8_t *image, const struct cus_piece *piece, uint32_t i, bool known) {
    *cus_image_expected(image, piece, i) =
        known && i + 1 < piece->n ? expect(piece->places[i].kind) : cus_expect_nothing;
}

/* The hot path writes to what was asked: no line of it is anybody else's. */
static uint8_t *image_new(const struct cus_piece *piece) {
    uint8_t *image = cus_mem_grow_lines(piece->image_bytes);
    for (uint32_t i = 0; image && i < piece->n; i++)
        fill_expected(image, piece, i, true);
    return image;
}

struct cus_piece *cus_piece_form(struct cus_node *first, uint32_t lead, uint32_t max,
                                 uint32_t warmup, const struct cus_dispatch *dispatch) {
    uint32_t n = lead, bytes = 0;
    struct cus_node *leads[CUS_LEAD_MAX], *node = first;
    if (!qualifies(first, warmup, dispatch))
        return NULL;
    for (uint32_t i = lead; i--; bytes += op_bytes(node->key.kind))
        leads[i] = node = (struct cus_node *)(uintptr_t)node->key.parent;
    bool cold = false;
    for (node = first; node; node = follower(node, n, max, warmup, dispatch)) {
        cold = is_open(node, warmup);
        n++;
        bytes += op_bytes(node->key.kind);
    }
    if (n < 2)
        return NULL;
    struct cus_piece *piece =
        cus_mem_grow(sizeof *piece + n * (sizeof piece->nodes[0] + sizeof piece->places[0]));
    if (!piece)
        return NULL;
    piece->n = n;
    piece->image_bytes = bytes;
    piece->power = cus_signature_power(n);
    piece->places = (struct cus_place *)(void *)(piece->nodes + n);
    piece->lead = lead;
    piece->cold = cold;
    node = first;
    for (uint32_t i = 0; i < n; i++) {
        piece->nodes[i] = i < lead ? leads[i] : node;
        if (i >= lead)
            node = node->expect;
    }
    for (uint32_t i = 0, at = 0; i < n; i++) {
        node = piece->nodes[i];
        piece->places[i] =
            (struct cus_place){node->key.kind, at + (uint32_t)sizeof(struct cus_expected)};
        piece->memory |= node->key.kind->type != CUS_OP_LAUNCH;
        at += op_bytes(node->key.kind);
    }
    piece->asked = image_new(piece);
    if (!piece->asked) {
        cus_mem_shrink(piece);
        return NULL;
    }
    for (uint32_t i = lead; i < n; i++)
        piece->nodes[i]->piece = piece;
    return piece;
}

void cus_piece_free(struct cus_piece *piece) {
    for (uint32_t i = 0; i < piece->n; i++)
        if (piece->nodes[i]->piece == piece)
            piece->nodes[i]->piece = NULL;
    cus_mem_shrink_lines(piece->asked);
    cus_mem_shrink(piece);
}

void cus_piece_tally(struct cus_piece *piece) {
    uint64_t more = piece->fired - piece->tallied;
    piece->tallied = piece->fired;
    for (uint32_t i = 0; more && i < piece->n; i++)
        if (piece->places[i].kind->tally)
            __atomic_add_fetch(&piece->places[i].kind->tally->in_graphs, more, __ATOMIC_RELAXED);
}

struct cus_variant *cus_variant_new(const struct cus_piece *piece) {
    struct cus_variant *variant = cus_mem_grow(sizeof *variant);
    uint8_t *image = image_new(piece);
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
    cus_mem_shrink(variant);
}

void cus_variant_know(struct cus_variant *variant, const struct cus_piece *piece, uint32_t i,
                      bool known) {
    struct cus_held *held = cus_image_op(variant->image, piece, i);
    variant->doubted |= !known;
    if (held->unknown == !known)
        return;
    held->unknown = !known;
    fill_expected(variant->image, piece, i, known);
}

void cus_variant_swap(struct cus_variant *variant, struct cus_piece *piece, const uint64_t *dirty) {
    uint8_t *asked = piece->asked;
    for (uint32_t i = 0; i < piece->n; i++)
        if (!(dirty[i / 64] >> i % 64 & 1))
            memcpy(cus_image_op(asked, piece, i), cus_image_op(variant->image, piece, i),
                   cus_held_bytes(piece->places[i].kind));
    piece->asked = variant->image;
    variant->image = asked;
}
