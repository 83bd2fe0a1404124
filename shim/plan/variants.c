/*
 * Keeping the variants of a piece in order, and finding them.
 *
 * Runs under the engine's lock, when a piece begins, is complete or was launched. Allocates where a
 * piece gets more than a few. Never calls the driver.
 */
#include "shim/plan/variants.h"

#include "shim/base/hash.h"

static uint64_t key_of_shape(struct cus_signature own) {
    return own.lo;
}

static uint64_t key_of_place(struct cus_signature in, const uint32_t *dims) {
    uint64_t key = in.lo;
    for (int i = 0; i < CUS_DIMS; i++) {
        key = cus_hash(key ^ dims[i]);
        key ^= key >> 32;
    }
    return key;
}

/* ---- found ---- */

/* What there is no memory for is not found: it is not launched any more, and goes in the end. */
#undef uthash_nonfatal_oom
#define uthash_nonfatal_oom(element)

static void find_by_shape(struct cus_piece *piece, struct cus_variant *variant) {
    uint64_t key = key_of_shape(variant->own);
    if (variant->by_shape.tbl && variant->shape_key == key)
        return;
    if (variant->by_shape.tbl)
        HASH_DELETE(by_shape, piece->by_shape, variant);
    variant->shape_key = key;
    HASH_ADD(by_shape, piece->by_shape, shape_key, sizeof key, variant);
}

static void lose_place(struct cus_piece *piece, struct cus_variant *variant) {
    if (variant->by_place.tbl)
        HASH_DELETE(by_place, piece->by_place, variant);
    memset(&variant->by_place, 0, sizeof variant->by_place);
}

/* Of those with the same place the last one is found: thousands may begin alike. */
static void find_by_place(struct cus_piece *piece, struct cus_variant *variant) {
    uint64_t key = key_of_place(variant->in, cus_image_op(variant->image, piece, 0)->dims);
    struct cus_variant *there;
    HASH_FIND(by_place, piece->by_place, &key, sizeof key, there);
    if (there == variant)
        return;
    if (there)
        lose_place(piece, there);
    lose_place(piece, variant);
    variant->place_key = key;
    HASH_ADD(by_place, piece->by_place, place_key, sizeof key, variant);
}

static void index_one(struct cus_piece *piece, struct cus_variant *variant) {
    find_by_shape(piece, variant);
    find_by_place(piece, variant);
}

static void unindex(struct cus_piece *piece, struct cus_variant *variant) {
    if (variant->by_shape.tbl)
        HASH_DELETE(by_shape, piece->by_shape, variant);
    memset(&variant->by_shape, 0, sizeof variant->by_shape);
    lose_place(piece, variant);
}

struct cus_variant *cus_variants_of_shape(const struct cus_piece *piece, struct cus_signature own) {
    struct cus_variant *variant;
    if (piece->n_variants > CUS_VARIANTS_FEW) {
        uint64_t key = key_of_shape(own);
        HASH_FIND(by_shape, piece->by_shape, &key, sizeof key, variant);
        return variant && cus_signature_same(variant->own, own) ? variant : NULL;
    }
    for (variant = piece->newest; variant; variant = variant->older)
        if (cus_signature_same(variant->own, own))
            return variant;
    return NULL;
}

struct cus_variant *cus_variants_of_place(const struct cus_piece *piece, struct cus_signature in,
                                          const uint32_t *dims) {
    uint64_t key = key_of_place(in, dims);
    struct cus_variant *variant;
    HASH_FIND(by_place, piece->by_place, &key, sizeof key, variant);
    return variant;
}

/* ---- in order ---- */

static void take_out(struct cus_piece *piece, struct cus_variant *variant) {
    *(variant->newer ? &variant->newer->older : &piece->newest) = variant->older;
    *(variant->older ? &variant->older->newer : &piece->oldest) = variant->newer;
}

static void put_first(struct cus_piece *piece, struct cus_variant *variant) {
    variant->newer = NULL;
    variant->older = piece->newest;
    *(piece->newest ? &piece->newest->newer : &piece->oldest) = variant;
    piece->newest = variant;
}

void cus_variants_add(struct cus_piece *piece, struct cus_variant *variant) {
    variant->piece = piece;
    variant->number = piece->n_numbered++;
    variant->fired = piece->fired;
    put_first(piece, variant);
    if (++piece->n_variants == CUS_VARIANTS_FEW + 1)
        for (struct cus_variant *each = piece->newest; each; each = each->older)
            index_one(piece, each);
    else if (piece->n_variants > CUS_VARIANTS_FEW)
        index_one(piece, variant);
}

/* Each has one that it was launched directly behind, the last time, and one that was behind it. */
static void unlink_time(struct cus_variant *variant) {
    if (variant->before)
        variant->before->behind = NULL;
    if (variant->behind)
        variant->behind->before = NULL;
    variant->before = variant->behind = NULL;
}

void cus_variants_remove(struct cus_plan *plan, struct cus_piece *piece,
                         struct cus_variant *variant) {
    unindex(piece, variant);
    unlink_time(variant);
    if (plan->launched == variant)
        plan->launched = NULL;
    if (piece->guest == variant)
        piece->guest = NULL;
    take_out(piece, variant);
    piece->n_variants--;
}

static void launched_behind(struct cus_variant *before, struct cus_variant *variant) {
    if (before == variant || before->behind == variant)
        return;
    if (before->behind)
        before->behind->before = NULL;
    if (variant->before)
        variant->before->behind = NULL;
    before->behind = variant;
    variant->before = before;
}

void cus_variants_launched(struct cus_plan *plan, struct cus_piece *piece,
                           struct cus_variant *variant, bool moved) {
    if (plan->launched)
        launched_behind(plan->launched, variant);
    plan->launched = variant;
    if (moved && piece->n_variants > CUS_VARIANTS_FEW)
        index_one(piece, variant);
    if (piece->newest == variant)
        return;
    take_out(piece, variant);
    put_first(piece, variant);
}
