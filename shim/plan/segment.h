/*
 * Segments: consecutive nodes of a path that one executable graph stands for, and their variants.
 * The plan's files use it under the lock of the engine that owns the plan. `struct cus_exec`
 * belongs to shim/graph and is only passed on here.
 *
 * Each node of a segment is the expected child of the one before. If paths part within the first
 * CUS_PREFIX_MAX ops, each path has its own segment with the same first nodes. So the plan can
 * defer these ops before it knows which path comes.
 * Each variant has an *image*: what its graph's nodes hold, in the order in which ops are compared.
 * `requested` has the same layout and takes values that differ from the image. If many differ, the
 * two are swapped (cus_variant_swap), which saves a copy.
 */
#ifndef CUSPLICE_PLAN_SEGMENT_H
#define CUSPLICE_PLAN_SEGMENT_H

#include "shim/base/uthash.h"
#include "shim/plan/tree.h"

enum {
    CUS_SEGMENT_MAX = 1024,
    CUS_PREFIX_MAX = 3,
};

struct cus_exec;

struct cus_variant {
    /* Signatures of the step before and behind the segment at the last launch. */
    struct cus_signature in, out;
    struct cus_signature own; /* signature of the ops in the image alone */
    struct cus_exec *exec;
    const struct cus_segment *segment;
    uint64_t used; /* the plan's clock at the last launch */
    /* The plan's epoch when the memset and copy nodes were known to be good. */
    uint32_t memory_epoch;
    uint32_t verified;                 /* 1: launched in mode verify */
    uint32_t number;                   /* counts the segment's variants, dropped ones included */
    bool doubted;                      /* a node may hold something else than the image says */
    uint64_t fired;                    /* the segment's launches at the variant's last one */
    struct cus_variant *newer, *older; /* in the order of their last launch */
    /* Variants of any segment: the one launched just before this one, and just behind it. */
    struct cus_variant *before, *behind;
    uint64_t shape_key, place_key;
    uint64_t values_key; /* of the values that it was given when many differed; 0: not known */
    UT_hash_handle by_shape, by_place,
        by_values; /* used if the segment has more than CUS_VARIANTS_FEW */
    uint8_t *image;
    /* A bit for each op for which the graph has no node (cus_plan_supersede). NULL: none. */
    uint64_t *absent;
};

struct cus_place {
    const struct cus_kind *kind; /* the kind of its node */
    uint32_t offset;             /* of the op in an image */
};

/* Stands in front of each op of an image. The hot path compares it in this order. Behind it come
 * shape and params (struct cus_values), then the next op. */
struct cus_expected {
    /* The function, if a launch of it without any attribute is expected on the segment's own
     * stream. Otherwise an address at which no function is. */
    const void *plain;
    const struct cus_kind *kind; /* NULL: no op takes the hot path here */
    uint32_t bytes;              /* to the next op's entry */
    uint16_t words;              /* leading arguments of 8 bytes, without a gap */
    uint16_t others;             /* number of arguments behind those: `tail` */
    const struct cus_argument *tail;
};
/* No op takes the hot path. */
extern const struct cus_expected cus_expect_nothing;

/* How often an event came in the recent begins of a segment (plan/ends.c). */
struct cus_lately {
    uint32_t n, from; /* events, and the begin from which they count */
};

struct cus_segment {
    uint32_t n;
    uint32_t id; /* counts the plan's segments */
    uint32_t n_variants;
    uint32_t n_numbered; /* variants so far */
    uint32_t begun;      /* times that ops were deferred for it */
    uint32_t lead;       /* first nodes that another segment has, too */
    /* The path diverged within CUS_PREFIX_MAX ops to an op that no segment had. */
    struct cus_lately astray;
    struct cus_lately lost; /* its deferred ops were issued one by one */
    uint64_t fired;         /* launches as a graph */
    uint64_t tallied;       /* launches that its kinds' tallies contain */
    uint32_t unbuilt;       /* failed builds of a further variant in a row */
    uint32_t refused;       /* refused patches or launches, not far apart */
    uint64_t unbuilt_until; /* launch from which a build is tried again */
    uint64_t refused_at;    /* launches at the last refusal */
    uint32_t gaps;          /* pauses of the host in a row at the same place */
    uint32_t gap;           /* the op in front of the pause */
    uint32_t image_bytes;
    struct cus_signature power; /* cus_signature_power of its ops */
    uint8_t *requested;         /* an image whose content is all known */
    uint32_t formed_ns;         /* the pace that set its size; 0: another reason did */
    uint32_t advice;            /* the advice entry by which it was formed, plus 1; 0: none */
    bool advised;               /* formed by advice, and no graph was tried yet */
    bool bounded;               /* the build quota kept it small when it was formed */
    bool stale;                 /* is dropped when its step has come again */
    bool memory;                /* holds memsets or copies */
    uint32_t records;           /* records of events, and waits for them, that it holds */
    uint8_t branches;           /* a bit for each branch that it has ops of (branches.h) */
    /* An op was not superseded for which a graph had no node: further graphs have all nodes. */
    bool all_nodes;
    bool cold;                           /* ends where the path behind it was not known yet */
    bool waits;                          /* its first graph was put off when it came last */
    struct cus_place *places;            /* stored behind the nodes */
    struct cus_variant *newest, *oldest; /* by their last launch */
    struct cus_variant *guest;           /* patched to rare shapes last, and next time again */
    struct cus_variant *by_shape, *by_place, *by_values;
    uint64_t used;
    uint32_t otherwise; /* launches in a row whose first op differed from the last */
    uint64_t head_hash; /* of the first op in the variant launched last; key in `heads` */
    bool hashed;        /* head_hash is set */
    bool indexed;       /* is in `heads`: one of the segments with this first op */
    struct cus_segment *prev, *next; /* all segments of the plan */
    UT_hash_handle hh;
    struct cus_node *nodes[];
};

/* Does a branch fork behind this record? Any other record that began a segment would wait for all
 * of it: its time would be too late. */
bool cus_record_forks(const struct cus_node *node);

/* Forms a segment from `node` along the expected path, of at most `max` ops, and claims its nodes.
 * Its first ops are the `lead` nodes in front of `node`, which stay another segment's. A node
 * qualifies if it came `warmup` times (once if advice names it), has reached `retry_at`, and is in
 * no other segment. Its kind must be allowed in graphs of such steps. A marker only begins a
 * segment, since the step behind it may be of another class. It ends where every branch is joined.
 * NULL if fewer than two ops qualify, records and waits not counted, or memory ran out; or another
 * segment, `in_way`, lies between a fork and its join. */
struct cus_segment *cus_segment_form(struct cus_node *node, uint32_t lead, uint32_t max,
                                     uint32_t warmup, const struct cus_dispatch *dispatch,
                                     struct cus_segment **in_way);
/* Is a branch not joined behind the first `n` ops? */
bool cus_segment_open(const struct cus_segment *segment, uint32_t n);
/* Gives the nodes back and frees the segment. The caller has dropped its variants. */
void cus_segment_free(struct cus_segment *segment);

/* Does the event come in more than half of the recent begins? */
static inline bool cus_lately_mostly(const struct cus_lately *of,
                                     const struct cus_segment *segment) {
    return of->n * 2 > segment->begun - of->from;
}

/* Adds the launches since the last call to the tallies of its kinds. */
void cus_segment_tally(struct cus_segment *segment);

/* Makes a variant with an image but without a graph; it is not in the segment yet. NULL: no
 * memory. */
struct cus_variant *cus_variant_new(const struct cus_segment *segment);
/* Frees a variant that is in no segment; NULL is allowed. */
void cus_variant_free(struct cus_variant *variant);

/* The node of op `i` now holds what the image says, or (`known` false) something unknown. */
void cus_variant_know(struct cus_variant *variant, const struct cus_segment *segment, uint32_t i,
                      bool known);

/* Swaps `requested` and the image; the caller patches the nodes of all `dirty` ops (a bit each).
 * Ops that are not dirty are copied to `requested` first. The variant must not be doubted. */
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
