/*
 * Segments: the part of a path that is one executable graph, and its variants.
 *
 * A segment is a run of tree nodes, each the expected child of the one before. Where paths part
 * within a segment's first CUS_PREFIX_MAX ops, there is one for each of them, which begin with the
 * same nodes: what is deferred of one is what would be deferred of the other, and which of them it
 * is need not be known before they part. It keeps up to `variants` executable graphs (one per
 * signature that came by again and again; plan/variants.h); for each an *image*: what its nodes
 * hold, op by op, laid out in the order in which it is compared. `asked` has the same layout and
 * takes what the program asked for where that differs from the image. Where most does, the two
 * change places in the end (cus_variant_swap), and nothing is copied.
 *
 * Guarded by the lock of the engine that owns the plan. `struct cus_exec` belongs to shim/graph;
 * here it is only handed on.
 */
#ifndef CUSPLICE_PLAN_SEGMENT_H
#define CUSPLICE_PLAN_SEGMENT_H

#include "shim/base/uthash.h"
#include "shim/plan/tree.h"

enum {
    CUS_SEGMENT_MAX = 1024,
    CUS_PREFIX_MAX = 3,
    CUS_TAKES_IN = 8 /* ops from which on a segment takes in one that would be left by itself */
};

struct cus_exec;

struct cus_variant {
    struct cus_signature in,
        out; /* of the step before and behind the segment, when it was last launched */
    struct cus_signature own; /* of the ops as the image has them, by themselves */
    struct cus_exec *exec;
    const struct cus_segment *segment;
    uint64_t used; /* the plan's clock at its last launch */
    uint32_t
        memory_epoch;  /* the plan's when its memset and copy nodes were last known to be good */
    uint32_t verified; /* 1: it was launched in mode verify */
    uint32_t number;   /* counts the variants of the segment, those that went included */
    bool doubted;      /* a node of it may hold something else than the image says */
    bool moved;        /* when its shapes came last most of its nodes had to be patched */
    uint64_t fired;    /* the segment's at its last launch */
    struct cus_variant *newer, *older;   /* in the order of their last launch */
    struct cus_variant *before, *behind; /* of any segment: launched next to it, the last time */
    uint64_t shape_key, place_key;
    UT_hash_handle by_shape, by_place; /* where the segment has more than a few */
    uint8_t *image;
};

struct cus_place {
    const struct cus_kind *kind; /* that of its node */
    uint32_t offset;             /* of the op in an image */
};

/* In front of each op of an image: what the hot path compares, in this order; behind it the shape
 * and the params (struct cus_values). Behind the params stands the next one. */
struct cus_expected {
    const void *plain; /* the function, where a launch of it without any attribute is meant; where
                          none is, what no function is at */
    const struct cus_kind *kind; /* NULL: no op takes the hot path here */
    uint32_t bytes;              /* to the next one */
    uint16_t words;  /* arguments of 8 bytes with which the params begin, without a gap */
    uint16_t others; /* arguments behind those: */
    const struct cus_argument *tail;
};
/* Nothing at all takes the hot path. */
extern const struct cus_expected cus_expect_nothing;

/* How often something befell a segment, of the times that it was begun lately (plan/learn.c). */
struct cus_lately {
    uint32_t n, from; /* since it had been begun so often */
};

struct cus_segment {
    uint32_t n;
    uint32_t id; /* counts the segments of a plan */
    uint32_t n_variants;
    uint32_t n_numbered;      /* variants so far */
    uint32_t begun;           /* times that ops were deferred for it */
    uint32_t lead;            /* nodes that another segment has, which parts from it behind them */
    struct cus_lately astray; /* another op came within CUS_PREFIX_MAX, which no segment had */
    struct cus_lately lost;   /* what was deferred had to be issued one by one after all */
    uint64_t fired;           /* times that it was launched as a graph, and how many of these the */
    uint64_t tallied;         /* tallies of its kinds know of */
    uint32_t unbuilt; /* times in a row that a further variant could not be built, and the */
    uint32_t refused; /* times that a graph of it could not be patched or launched, not far apart */
    uint64_t unbuilt_until; /* launch from which on that is tried again, where these are many */
    uint64_t refused_at;    /* the launches when that was last */
    uint32_t in_vain;       /* looks in a row for a variant from which fewer nodes differ */
    uint32_t moved;      /* launches in a row by a variant of these very shapes, beside others, of
                            which most nodes had to be patched, as the last time */
    uint32_t given_up;   /* times that all but one were dropped for that */
    uint64_t lone_until; /* launch from which on there may be several again */
    uint32_t gaps;       /* times in a row that the host paused at the same place */
    uint32_t gap;        /* the op behind which it did */
    uint32_t image_bytes;
    struct cus_signature power; /* cus_signature_power of its ops */
    uint8_t *requested;         /* as an image of which all is known */
    uint32_t sizing;            /* the plan's when it was formed */
    uint32_t formed_ns;         /* the pace that set its size; 0: something else did */
    uint32_t formed_quota;      /* ops, where the share kept it from having more; 0: it did not */
    uint32_t advice;            /* the entry by which it was formed; 0: none */
    bool advised;               /* formed by advice, and no graph of it was tried yet */
    bool memory;                /* holds memsets or copies */
    bool cold;                  /* it ends where it was not known yet how the path goes on */
    bool waits;                 /* its first exec might not be built when it came last */
    struct cus_place *places;   /* lie behind the nodes */
    struct cus_variant *newest, *oldest; /* by their last launch */
    struct cus_variant *guest;           /* was patched to other shapes last, and is next time */
    struct cus_variant *by_shape, *by_place;
    uint64_t used;
    uint32_t otherwise; /* launches in a row that began otherwise than the one before */
    uint64_t head_hash; /* of the first op as held by the variant launched last: key of the plan's
                           head index */
    bool hashed;        /* head_hash is set */
    bool indexed;       /* found under it: of segments with the same first op only one is */
    bool in_lenders;    /* found by lenders.c, by the hash of its kinds, in a list */
    uint64_t kinds_hash;
    struct cus_segment *lender_prev, *lender_next;
    struct cus_segment *prev, *next; /* all segments of the plan */
    UT_hash_handle hh;
    struct cus_node *nodes[];
};

/* Forms a segment from `node` along the expected path, `max` ops at most, and claims its nodes. The
 * `lead` nodes that lead to `node`, which stay another segment's, are its first ones. NULL
 * where fewer than two ops qualify or memory ran out. A node qualifies when it was reached `warmup`
 * times, or once where advice speaks for it, its kind may be deferred and be in graphs of such
 * steps, and no other segment has it. A marker begins a segment: behind it the step may be of
 * another class. */
struct cus_segment *cus_segment_form(struct cus_node *node, uint32_t lead, uint32_t max,
                                     uint32_t warmup, const struct cus_dispatch *dispatch);
/* The segment that begins behind this one, where nothing but its size keeps them apart; or NULL. */
struct cus_segment *cus_segment_behind(const struct cus_segment *segment);
/* Gives the nodes back and frees the segment; the variants have been dropped. */
void cus_segment_free(struct cus_segment *segment);

/* More often than not, lately? */
static inline bool cus_lately_mostly(const struct cus_lately *of,
                                     const struct cus_segment *segment) {
    return of->n * 2 > segment->begun - of->from;
}

/* Tells the tallies of its kinds how often it was launched since it was told last. */
void cus_segment_tally(struct cus_segment *segment);

/* A variant without a graph yet, with an image; not yet part of the segment. NULL: no memory. */
struct cus_variant *cus_variant_new(const struct cus_segment *segment);
/* Of a variant that is part of no segment, or NULL. */
void cus_variant_free(struct cus_variant *variant);

/* The node of op `i` holds what the image says, or something else. */
void cus_variant_know(struct cus_variant *variant, const struct cus_segment *segment, uint32_t i,
                      bool known);

/* What was asked becomes the image, and the other way round: of all ops, those apart that are not
 * `dirty`, a bit each, whose nodes hold what they are asked for. Of a variant that is not doubted.
 */
void cus_variant_swap(struct cus_variant *variant, struct cus_segment *segment,
                      const uint64_t *dirty);

static inline const struct cus_values *cus_expected_values(const struct cus_expected *expected) {
    return (const struct cus_values *)(const void *)(expected + 1);
}
static inline struct cus_values *cus_place_op(uint8_t *image, const struct cus_place *place) {
    return (struct cus_values *)(void *)(image + place->offset);
}
static inline struct cus_values *cus_image_op(uint8_t *image, const struct cus_segment *segment,
                                              uint32_t i) {
    return cus_place_op(image, &segment->places[i]);
}
static inline struct cus_expected *
cus_image_expected(uint8_t *image, const struct cus_segment *segment, uint32_t i) {
    return (struct cus_expected *)(void *)cus_image_op(image, segment, i) - 1;
}

#endif
