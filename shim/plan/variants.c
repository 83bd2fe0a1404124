/*
 * Keeps the variants of a segment in order and finds them.
 * The plan calls it under the engine's lock, when a segment begins, is complete or was launched.
 * Allocates if a segment gets more than CUS_VARIANTS_FEW variants. Never calls the driver.
 * Growth with 200 grids takes 1.58 times as long with at most eight variants a segment
 * (tests/gpu/RESULTS.md, H100).
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

/* ---- indexes ---- */

/* A variant that found no memory for its index entry is not found. It is not launched any more, and
 * evicted in the end. */
#undef uthash_nonfatal_oom
#define uthash_nonfatal_oom(element)

static void find_by_shape(struct cus_segment *segment, struct cus_variant *variant) {
    uint64_t key = key_of_shape(variant->own);
    if (variant->by_shape.tbl && variant->shape_key == key)
        return;
    if (variant->by_shape.tbl)
        HASH_DELETE(by_shape, segment->by_shape, variant);
    variant->shape_key = key;
    HASH_ADD(by_shape, segment->by_shape, shape_key, sizeof key, variant);
}

static void lose_place(struct cus_segment *segment, struct cus_variant *variant) {
    if (variant->by_place.tbl)
        HASH_DELETE(by_place, segment->by_place, variant);
    memset(&variant->by_place, 0, sizeof variant->by_place);
}

static void find_by_values(struct cus_segment *segment, struct cus_variant *variant) {
    if (variant->values_key)
        HASH_ADD(by_values, segment->by_values, values_key, sizeof variant->values_key, variant);
}

static void lose_values(struct cus_segment *segment, struct cus_variant *variant) {
    if (variant->by_values.tbl)
        HASH_DELETE(by_values, segment->by_values, variant);
    memset(&variant->by_values, 0, sizeof variant->by_values);
}

/* Of several variants at one place the last one is found: thousands may begin alike. */
static void find_by_place(struct cus_segment *segment, struct cus_variant *variant) {
    uint64_t key = key_of_place(variant->in, cus_image_op(variant->image, segment, 0)->dims);
    struct cus_variant *there;
    HASH_FIND(by_place, segment->by_place, &key, sizeof key, there);
    if (there == variant)
        return;
    if (there)
        lose_place(segment, there);
    lose_place(segment, variant);
    variant->place_key = key;
    HASH_ADD(by_place, segment->by_place, place_key, sizeof key, variant);
}

static void index_one(struct cus_segment *segment, struct cus_variant *variant) {
    find_by_shape(segment, variant);
    find_by_place(segment, variant);
    if (!variant->by_values.tbl)
        find_by_values(segment, variant);
}

static void unindex(struct cus_segment *segment, struct cus_variant *variant) {
    if (variant->by_shape.tbl)
        HASH_DELETE(by_shape, segment->by_shape, variant);
    memset(&variant->by_shape, 0, sizeof variant->by_shape);
    lose_place(segment, variant);
    lose_values(segment, variant);
}

struct cus_variant *cus_variants_of_shape(const struct cus_segment *segment,
                                          struct cus_signature own) {
    struct cus_variant *variant;
    if (segment->n_variants > CUS_VARIANTS_FEW) {
        uint64_t key = key_of_shape(own);
        HASH_FIND(by_shape, segment->by_shape, &key, sizeof key, variant);
        return variant && cus_signature_same(variant->own, own) ? variant : NULL;
    }
    for (variant = segment->newest; variant; variant = variant->older)
        if (cus_signature_same(variant->own, own))
            return variant;
    return NULL;
}

struct cus_variant *cus_variants_of_values(const struct cus_segment *segment, uint64_t values_key) {
    struct cus_variant *variant;
    if (segment->n_variants > CUS_VARIANTS_FEW) {
        HASH_FIND(by_values, segment->by_values, &values_key, sizeof values_key, variant);
        return variant;
    }
    for (variant = segment->newest; variant; variant = variant->older)
        if (variant->values_key == values_key)
            return variant;
    return NULL;
}

void cus_variants_give(struct cus_segment *segment, struct cus_variant *variant,
                       uint64_t values_key) {
    lose_values(segment, variant);
    variant->values_key = values_key;
    if (segment->n_variants > CUS_VARIANTS_FEW)
        find_by_values(segment, variant);
}

struct cus_variant *cus_variants_of_place(const struct cus_segment *segment,
                                          struct cus_signature in, const uint32_t *dims) {
    uint64_t key = key_of_place(in, dims);
    struct cus_variant *variant;
    HASH_FIND(by_place, segment->by_place, &key, sizeof key, variant);
    return variant;
}

/* ---- order ---- */

static void take_out(struct cus_segment *segment, struct cus_variant *variant) {
    *(variant->newer ? &variant->newer->older : &segment->newest) = variant->older;
    *(variant->older ? &variant->older->newer : &segment->oldest) = variant->newer;
}

static void put_first(struct cus_segment *segment, struct cus_variant *variant) {
    variant->newer = NULL;
    variant->older = segment->newest;
    *(segment->newest ? &segment->newest->newer : &segment->oldest) = variant;
    segment->newest = variant;
}

void cus_variants_add(struct cus_segment *segment, struct cus_variant *variant) {
    variant->segment = segment;
    variant->number = segment->n_numbered++;
    variant->fired = segment->fired;
    put_first(segment, variant);
    if (++segment->n_variants == CUS_VARIANTS_FEW + 1)
        for (struct cus_variant *each = segment->newest; each; each = each->older)
            index_one(segment, each);
    else if (segment->n_variants > CUS_VARIANTS_FEW)
        index_one(segment, variant);
}

/* Unlinks the variant from the one launched just before it and the one launched just behind it. */
static void unlink_time(struct cus_variant *variant) {
    if (variant->before)
        variant->before->behind = NULL;
    if (variant->behind)
        variant->behind->before = NULL;
    variant->before = variant->behind = NULL;
}

void cus_variants_remove(struct cus_plan *plan, struct cus_segment *segment,
                         struct cus_variant *variant) {
    unindex(segment, variant);
    unlink_time(variant);
    if (plan->launched == variant)
        plan->launched = NULL;
    if (segment->guest == variant)
        segment->guest = NULL;
    take_out(segment, variant);
    segment->n_variants--;
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

void cus_variants_launched(struct cus_plan *plan, struct cus_segment *segment,
                           struct cus_variant *variant, bool moved) {
    if (plan->launched)
        launched_behind(plan->launched, variant);
    plan->launched = variant;
    if (moved && segment->n_variants > CUS_VARIANTS_FEW)
        index_one(segment, variant);
    if (segment->newest == variant)
        return;
    take_out(segment, variant);
    put_first(segment, variant);
}
