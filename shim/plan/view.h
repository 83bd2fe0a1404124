/*
 * What the engine reads of a plan, and the hot path: the deferred ops of one stream, and figures.
 * shim/plan writes it; shim/stream reads it, and sets `build_quota`, `left_ns` and `came_ns`, under
 * the engine's lock. It leads to segments and variants (segment.h), which shim/stream reads as
 * well. The functions that match the expected op are inlined into the hooks and allocate nothing.
 *
 * Invariant: deferred ops are always the first `n` ops of one segment, `segment`. If bit i of
 * `dirty` is set, op i is stored in `segment->requested`; otherwise it equals the predicted
 * variant's image.
 */
#ifndef CUSPLICE_PLAN_VIEW_H
#define CUSPLICE_PLAN_VIEW_H

#include "shim/base/mem.h"
#include "shim/plan/segment.h"

struct cus_plan_view {
    /* Deferred ops. The fields that the hot path reads come first. */
    const struct cus_expected *at; /* the op expected next, in the image of `predicted` */
    uint32_t n;
    struct cus_segment *segment; /* NULL: no op is deferred */
    bool timed;                  /* the caller reports when each op of this segment came */
    bool reshaped;               /* a deferred op has another shape than the predicted variant */
    uint32_t memory_epoch;       /* given to cus_plan_accept when the segment began */
    /* A bit for each deferred op that differs from the image, and for each whose shape does. */
    uint64_t dirty[CUS_SEGMENT_MAX / 64];
    uint64_t reshapes[CUS_SEGMENT_MAX / 64];
    struct cus_variant *predicted; /* NULL: the segment has no graph yet */

    /* The segments. */
    struct cus_segment *segments; /* all, the one launched or formed last first */
    uint32_t n_segments;
    uint64_t n_formed;    /* segments formed so far */
    uint32_t build_quota; /* ops that may be built in one step; 0: any. The engine sets it. */

    /* The path. */
    uint64_t step_ops;  /* ops since the host waited last, without deferred ones */
    bool again;         /* the last step was forgotten; its nodes are made again now */
    uint64_t new_nodes; /* nodes made so far: one per op if the path never repeats */
    /* Ops so far that were issued eagerly although their node came often enough to be in a
     * segment. */
    uint64_t warm_ops;
    /* First graphs of segments whose first op had been in a graph before. */
    uint64_t built_anew;
    /* When the last segment was complete, and when the deferred one began. The engine sets both. */
    uint64_t left_ns, came_ns;
    uint32_t ns_per_op; /* host time between ops, smoothed; 0: unknown */

    /* A bit for each deferred record of an event that a later deferred op records again, unseen. */
    uint64_t superseded[CUS_SEGMENT_MAX / 64];
};

/* Number of deferred ops. */
static inline uint32_t cus_plan_deferred(const struct cus_plan_view *view) {
    return view->segment ? view->n : 0;
}

/* The hot path, in place of cus_plan_offer: for the expected op inside of a segment with a graph,
 * neither its first nor its last op. cus_plan_took defers it. Before that, cus_plan_request stores
 * params that differ from the node's, and cus_plan_request_shape another shape. */

/* The kind expected on the hot path, on the segment's own stream; NULL if the next op cannot take
 * it. */
static inline const struct cus_kind *cus_plan_midst(const struct cus_plan_view *view) {
    const struct cus_kind *kind = view->at->kind;
    return kind && !kind->branch ? kind : NULL;
}
/* What the node of the expected op holds. */
static inline __attribute__((always_inline)) const struct cus_values *
cus_plan_before(const struct cus_plan_view *view) {
    return cus_expected_values(view->at);
}
/* Has the op the same shape as the node? */
static inline __attribute__((always_inline)) bool
cus_plan_same_dims(const struct cus_plan_view *view, struct cus_dims dims) {
    return cus_dims_same(dims.d, cus_plan_before(view)->dims);
}
/* Do the arguments behind the leading 8-byte arguments differ from the node's? */
bool cus_plan_others_differ(const struct cus_expected *at, void *const *params);
/* Do the leading 8-byte arguments differ from the node's? */
static inline __attribute__((always_inline)) bool
cus_plan_words_differ(const struct cus_plan_view *view, void *const *params) {
    const struct cus_expected *at = view->at;
    const uint8_t *values = cus_expected_values(at)->params;
    size_t i = 0, n = at->words;
    for (; i + 4 <= n; i += 4)
        if (cus_word_at(params[i]) != cus_word_at(values + 8 * i) ||
            cus_word_at(params[i + 1]) != cus_word_at(values + 8 * i + 8) ||
            cus_word_at(params[i + 2]) != cus_word_at(values + 8 * i + 16) ||
            cus_word_at(params[i + 3]) != cus_word_at(values + 8 * i + 24))
            return true;
    for (; i < n; i++)
        if (cus_word_at(params[i]) != cus_word_at(values + 8 * i))
            return true;
    return false;
}
/* Do any arguments of a launch differ from the node's? */
static inline __attribute__((always_inline)) bool cus_plan_differs(const struct cus_plan_view *view,
                                                                   void *const *params) {
    return cus_plan_words_differ(view, params) ||
           (__builtin_expect(view->at->others, 0) && cus_plan_others_differ(view->at, params));
}
/* Does the node hold this memset or copy, whose params are `words` words? */
static inline __attribute__((always_inline)) bool
cus_plan_same_words(const struct cus_plan_view *view, struct cus_dims dims, const uint64_t *flat,
                    uint32_t words) {
    const uint8_t *values = cus_plan_before(view)->params;
    if (!cus_plan_same_dims(view, dims))
        return false;
    for (uint32_t i = 0; i < words; i++)
        if (flat[i] != cus_word_at(values + (size_t)8 * i))
            return false;
    return true;
}
/* Stores these params for a node whose shape is right. */
void cus_plan_request(struct cus_plan_view *view, void *const *params);
/* The same with params as one block; does nothing if they equal the node's. */
void cus_plan_request_flat(struct cus_plan_view *view, const uint8_t *flat);
void cus_plan_request_others(struct cus_plan_view *view, void *const *params);
/* The same for a launch with another shape than the node's. `flat`, if not NULL, has the params as
 * one block. False: no node may be given that shape, and nothing was done. */
bool cus_plan_request_shape(struct cus_plan_view *view, struct cus_dims dims, void *const *params,
                            const uint8_t *flat);
/* Prefetches, for writing, the lines in which the next op's params will be stored. After a submit,
 * another CPU may hold these lines. Behind the last op the lines may belong to other data, which is
 * slow at worst. */
static inline __attribute__((always_inline)) void cus_plan_fetch_requested(const void *requested) {
    enum { LINES = 3 };
    const uint8_t *at = (const uint8_t *)requested;
    for (unsigned line = 0; line < LINES; line++)
        cus_fetch_for_writing(&at[line * CUS_LINE]);
}
static inline __attribute__((always_inline)) void cus_plan_request_here(struct cus_plan_view *view,
                                                                        void *const *params) {
    const struct cus_expected *at = view->at;
    if (__builtin_expect(at->others, 0)) {
        cus_plan_request_others(view, params);
        return;
    }
    const struct cus_values *values = cus_expected_values(at);
    uint8_t *requested =
        view->segment->requested + ((const uint8_t *)values - view->predicted->image);
    view->dirty[view->n / 64] |= (uint64_t)1 << view->n % 64;
    memcpy(requested, values, sizeof *values);
    cus_plan_fetch_requested(requested + at->bytes);
    requested += sizeof *values;
    for (const uint8_t *end = requested + (size_t)8 * at->words; requested < end; requested += 8)
        memcpy(requested, *params++, 8);
}
/* Defers the op. */
static inline __attribute__((always_inline)) void cus_plan_took(struct cus_plan_view *view) {
    view->n++;
    const uint8_t *next = (const uint8_t *)view->at + view->at->bytes;
    /* Before the next op the program may use more memory than a near cache holds. */
    __builtin_prefetch(next);
    __builtin_prefetch(next + CUS_LINE);
    view->at = (const struct cus_expected *)(const void *)next;
}
/* What the program requested with the op deferred last: `before`, the values of its node, or else
 * its entry in `requested`. */
static inline __attribute__((always_inline)) const struct cus_values *
cus_plan_after(const struct cus_plan_view *view, const struct cus_values *before) {
    uint32_t i = view->n - 1;
    if (__builtin_expect(view->dirty[i / 64] >> i % 64 & 1, 0))
        return cus_image_op(view->segment->requested, view->segment, i);
    return before;
}

#endif
