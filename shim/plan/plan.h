/*
 * The plan of one stream: decides which ops are deferred, where a segment ends, and which graph
 * stands for it. Pure functions of ops and of what came before: no CUDA, locks, clocks or I/O.
 * shim/stream calls it under the engine's lock; tools and unit tests use the same code.
 * The caller offers each op (cus_plan_offer) and acts on the answer; see enum cus_offer.
 *
 * Invariant: deferred ops are always the first `n` ops of one segment, `segment`. If bit i of
 * `dirty` is set, op i is stored in `segment->requested`; otherwise it equals the predicted
 * variant's image.
 */
#ifndef CUSPLICE_PLAN_PLAN_H
#define CUSPLICE_PLAN_PLAN_H

#include "shim/plan/loop.h"
#include "shim/plan/merges.h"
#include "shim/plan/ramp.h"
#include "shim/plan/repeat.h"
#include "shim/plan/segment.h"
#include "shim/plan/segment_list.h"

struct cus_advice;

struct cus_plan_limits {
    uint32_t warmup;        /* visits of a node before it may be part of a segment */
    uint32_t segment_first; /* ops of the first segment of a step; later ones may be larger */
    uint32_t segment_max;
    uint32_t segment_ns; /* most host time that a segment may take to fill; 0: any */
    uint32_t variants;   /* most graphs of a segment */
    uint32_t nodes_max;
    enum cus_mode mode; /* which kernels may be in graphs, in which steps */
    bool count_only;    /* nothing is learned: ops are counted, and all are EAGER */
};

/* Destroys a graph that the plan drops. `context` is the one given to cus_plan_init. */
typedef void cus_plan_drop_fn(void *context, struct cus_exec *exec);

struct cus_plan {
    /* Deferred ops. The fields that the hot path reads come first. */
    const struct cus_expected *at; /* the op expected next, in the image of `predicted` */
    uint32_t n;
    struct cus_segment *segment;
    bool timed;        /* the caller reports when each op of this segment came */
    bool reshaped;     /* a deferred op has another shape than the predicted variant */
    bool head_patched; /* the first op may differ from the one in `heads` */
    /* A bit for each deferred op that differs from the image, and for each whose shape does. */
    uint64_t dirty[CUS_SEGMENT_MAX / 64];
    uint64_t reshapes[CUS_SEGMENT_MAX / 64];
    struct cus_variant *predicted; /* NULL: the segment has no graph yet */
    struct cus_signature own;      /* signature of the complete segment's ops; set if has_own */
    bool has_own;

    struct cus_plan_limits limits;
    /* Where the path is. The fields that recording an op reads come first. */
    struct cus_node *cur;
    struct cus_node *offered;         /* the child found by the last offer, or NULL */
    enum cus_step_class offered_step; /* the step class of that offer */
    enum cus_step_class step;         /* given by the last marker */
    bool broken;                      /* a break came since the last op */
    bool called;                      /* that break was a call, and nothing was deferred */
    bool covered;                     /* a call came that covers the stream without naming it */
    bool looking;                     /* the loop finder is being fed */
    bool looped;                      /* a loop was found since the host waited last */
    bool again; /* the last step was forgotten; its nodes are made again now */
    uint32_t step_ops;
    uint32_t advised_ops;     /* of step_ops: up to where an earlier run last knew the path */
    struct cus_signature sig; /* of the step up to `cur`, without deferred ops */
    uint64_t unsynced;        /* ops since the host waited last, over all turns of loops */
    /* Signatures that came and how often. A signature may be in any slot of a small group. One that
     * comes again earns a variant. */
    uint64_t *sig_counts;
    uint64_t sig_mask;    /* number of slots, a power of two, minus one */
    uint64_t sig_evicted; /* shapes that took another one's slot since the table grew */
    uint32_t turns;       /* steps and turns of loops so far; nodes are stamped with it */
    /* Ops of a turn of the loop that was found last, until the turn's last node is marked; else
     * 0. */
    uint32_t loop_ops;
    /* Ops so far that were issued eagerly although their node came often enough to be in a
     * segment. */
    uint64_t warm_ops;
    uint64_t new_nodes; /* nodes made so far: one per op if the path never repeats */
    /* First graphs of segments whose first op had been in a graph before. */
    uint64_t built_anew;
    struct cus_merges merges;
    uint32_t longest;          /* the most `unsynced` ops when the host waited */
    struct cus_ramp ramp;      /* the size that the next segment of the step may have */
    struct cus_ramp ramped;    /* `ramp` as it was when the deferred segment began */
    struct cus_segment *other; /* the segment of the last OTHER */
    /* After a divergence: the op could be in another segment that begins with the deferred ops. */
    bool may_turn;
    struct cus_segment *heads; /* segments with a graph, by the hash of their first op */
    struct cus_advice *advice; /* from earlier runs, shared by all plans; NULL: none */
    struct cus_dispatch dispatch;
    struct cus_tree tree;

    cus_plan_drop_fn *drop;
    void *context;
    uint64_t seed;                    /* what paths begin with: the GPU and so on */
    bool advised;                     /* a segment was formed by advice */
    uint64_t steps[CUS_STEP_CLASSES]; /* markers that came, by step class */
    uint32_t build_quota;             /* ops that may be built in one step; 0: any */
    uint32_t put_off;                 /* the turn in which a first graph was put off last */
    uint32_t n_waiting;               /* segments that wait for their first graph */
    uint32_t ns_per_op;               /* host time between ops, smoothed; 0: unknown */
    bool aside;                       /* the submit thread patches most segments */
    uint32_t settle_in;               /* steps until the look at sizes; 0: it was made */
    uint32_t n_stale;                 /* segments that are stale */
    uint32_t memory_epoch;            /* as the caller said last; moves when memory may have gone */
    uint64_t clock; /* counts segments begun; orders variants and segments by use */
    uint64_t clock_now, clock_before; /* the clock when this step began, and the one before */
    /* The clock when `launched` was launched the time before, plus one for each segment begun
     * since. */
    uint64_t then;
    struct cus_variant *launched; /* the variant launched last; NULL: it is gone */

    /* Learning. */
    struct {
        uint64_t first, last; /* when the timed segment's first op came, and its last so far */
        uint64_t longest;     /* longest time between two of these ops */
        uint32_t behind;      /* the op in front of that time */
    } gap;
    struct cus_loop loop;
    struct cus_segment *segments; /* all, the one launched or formed last first */
    struct cus_segment *oldest;   /* the last of `segments` */
    uint32_t n_segments;
    uint64_t n_formed; /* segments formed so far */

    /* CUS_HISTORY entries by the clock: the segment launched then, if not launched since. NULL: no
     * two segments have begun alike so far. */
    struct cus_segment **history;

    /* Sweeps of nodes that do not come any more. */
    uint32_t swept_turn;  /* `turns` at the last sweep */
    uint64_t swept_clock; /* `clock` at the last sweep */
    uint64_t unknown;     /* ops since then that found no place in the full tree */

    /* Segment lists of the running step, and of the last step that used graphs. */
    struct cus_segment_list now, last;
};

enum { CUS_HISTORY = 16384 };
static inline struct cus_segment **cus_plan_history_at(const struct cus_plan *plan,
                                                       uint64_t clock) {
    return &plan->history[clock % CUS_HISTORY];
}

enum cus_offer {
    CUS_OFFER_DEFERRED, /* the op is deferred: report success */
    /* The segment is complete: choose, build or patch, launch, then cus_plan_end. */
    CUS_OFFER_FULL,
    /* A segment could begin here. If the caller may defer now: cus_plan_accept, then offer again.
     * Otherwise do as for EAGER. */
    CUS_OFFER_BEGIN,
    CUS_OFFER_EAGER, /* issue the op, then record it */
    /* The deferred ops may be the beginning of another segment that has no graph yet. If the
     * caller may build it: cus_plan_accept, then offer again. Otherwise do as for DIVERGED. */
    CUS_OFFER_OTHER,
    /* Another op than the expected one: flush, cus_plan_end, then offer again. */
    CUS_OFFER_DIVERGED,
    /* No node may have this op's shape: flush, cus_plan_end, issue the op, then record it. */
    CUS_OFFER_UNSUPPORTED,
};

/* What a segment needs that the plan proposes to begin, or to go on with. */
struct cus_proposal {
    uint32_t to_build; /* ops to be built before the segment can be launched; 0: it has a graph */
    bool advised;      /* an earlier run says that the segment pays */
};

enum cus_choice { CUS_CHOICE_EXACT, CUS_CHOICE_PATCH, CUS_CHOICE_BUILD };

/* Why deferred ops were issued one by one. */
enum cus_cut {
    CUS_CUT_OWNER,    /* a call by the owning thread: it will come again at this place */
    CUS_CUT_WATCHDOG, /* no op came for hold_us */
    CUS_CUT_DIVERGED,
    CUS_CUT_OTHER,   /* another thread, or exit: nothing is learned from it */
    CUS_CUT_REFUSED, /* the complete segment was not launched; CUS_ENDED says why */
};

/* What became of the deferred ops. All but LAUNCHED: they were issued one by one. */
enum cus_ended {
    CUS_ENDED_LAUNCHED, /* the complete segment, as the graph `variant` */
    CUS_ENDED_CUT,      /* `cut` says why */
    /* The complete segment, because its graph failed. `variant` did not launch, or its content is
     * unknown. NULL: no graph could be built, and the plan does not try again soon. */
    CUS_ENDED_REFUSED,
    CUS_ENDED_NO_ROOM, /* the complete segment, for lack of memory: a graph is tried again later */
};
struct cus_outcome {
    enum cus_ended ended;
    enum cus_cut cut;
    struct cus_variant *variant;
};

void cus_plan_init(struct cus_plan *plan, const struct cus_plan_limits *limits,
                   cus_plan_drop_fn *drop, void *context);
/* Call after init: uses advice of earlier runs, or collects it for later ones. */
void cus_plan_advise(struct cus_plan *plan, struct cus_advice *advice, uint64_t seed);
/* Drops every segment and forgets every path. Nothing may be deferred. */
void cus_plan_clear(struct cus_plan *plan);

/* The kind expected next, or NULL. With it the caller need not look up the kind. */
static inline const struct cus_kind *cus_plan_expected(const struct cus_plan *plan) {
    if (plan->segment)
        return plan->segment->places[plan->n].kind;
    return plan->cur->expect ? plan->cur->expect->key.kind : NULL;
}

/* The hot path, in place of cus_plan_offer: for the expected op inside of a segment with a graph,
 * neither its first nor its last op. cus_plan_took defers it. Before that, cus_plan_request stores
 * params that differ from the node's, and cus_plan_request_shape another shape. */

/* The kind expected on the hot path; NULL if the next op cannot take it. */
static inline const struct cus_kind *cus_plan_midst(const struct cus_plan *plan) {
    return plan->at->kind;
}
/* What the node of the expected op holds. */
static inline __attribute__((always_inline)) const struct cus_values *
cus_plan_before(const struct cus_plan *plan) {
    return cus_expected_values(plan->at);
}
/* Has the op the same shape as the node? */
static inline __attribute__((always_inline)) bool cus_plan_same_dims(const struct cus_plan *plan,
                                                                     struct cus_dims dims) {
    return cus_dims_same(dims.d, cus_plan_before(plan)->dims);
}
/* Do the arguments behind the leading 8-byte arguments differ from the node's? */
bool cus_plan_others_differ(const struct cus_expected *at, void *const *params);
/* Do the leading 8-byte arguments differ from the node's? */
static inline __attribute__((always_inline)) bool cus_plan_words_differ(const struct cus_plan *plan,
                                                                        void *const *params) {
    const struct cus_expected *at = plan->at;
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
static inline __attribute__((always_inline)) bool cus_plan_differs(const struct cus_plan *plan,
                                                                   void *const *params) {
    return cus_plan_words_differ(plan, params) ||
           (__builtin_expect(plan->at->others, 0) && cus_plan_others_differ(plan->at, params));
}
/* Does the node hold this memset or copy, whose params are `words` words? */
static inline __attribute__((always_inline)) bool cus_plan_same_words(const struct cus_plan *plan,
                                                                      struct cus_dims dims,
                                                                      const uint64_t *flat,
                                                                      uint32_t words) {
    const uint8_t *values = cus_plan_before(plan)->params;
    if (!cus_plan_same_dims(plan, dims))
        return false;
    for (uint32_t i = 0; i < words; i++)
        if (flat[i] != cus_word_at(values + (size_t)8 * i))
            return false;
    return true;
}
/* Stores these params for a node whose shape is right. */
void cus_plan_request(struct cus_plan *plan, void *const *params);
/* The same with params as one block; does nothing if they equal the node's. */
void cus_plan_request_flat(struct cus_plan *plan, const uint8_t *flat);
void cus_plan_request_others(struct cus_plan *plan, void *const *params);
/* The same for a launch with another shape than the node's. `flat`, if not NULL, has the params as
 * one block. False: no node may be given that shape, and nothing was done. */
bool cus_plan_request_shape(struct cus_plan *plan, struct cus_dims dims, void *const *params,
                            const uint8_t *flat);
/* Prefetches, for writing, the lines in which the next op's params will be stored. After a submit,
 * another CPU may hold these lines. Behind the last op the lines may belong to other data, which is
 * slow at worst. The code names the instruction, because __builtin_prefetch may prefetch for
 * reading. A CPU without prefetchw ignores it. */
static inline __attribute__((always_inline)) void cus_plan_fetch_requested(const void *requested) {
    enum { LINES = 3 };
    const uint8_t *at = (const uint8_t *)requested;
    for (unsigned line = 0; line < LINES; line++)
#ifdef __x86_64__
        __asm__ volatile("prefetchw %0" : : "m"(at[line * CUS_LINE]));
#else
        __builtin_prefetch(&at[line * CUS_LINE], 1);
#endif
}
static inline __attribute__((always_inline)) void cus_plan_request_here(struct cus_plan *plan,
                                                                        void *const *params) {
    const struct cus_expected *at = plan->at;
    if (__builtin_expect(at->others, 0)) {
        cus_plan_request_others(plan, params);
        return;
    }
    const struct cus_values *values = cus_expected_values(at);
    uint8_t *requested =
        plan->segment->requested + ((const uint8_t *)values - plan->predicted->image);
    plan->dirty[plan->n / 64] |= (uint64_t)1 << plan->n % 64;
    memcpy(requested, values, sizeof *values);
    cus_plan_fetch_requested(requested + at->bytes);
    requested += sizeof *values;
    for (const uint8_t *end = requested + (size_t)8 * at->words; requested < end; requested += 8)
        memcpy(requested, *params++, 8);
}
/* Defers the op. */
static inline __attribute__((always_inline)) void cus_plan_took(struct cus_plan *plan) {
    plan->n++;
    const uint8_t *next = (const uint8_t *)plan->at + plan->at->bytes;
    /* Before the next op the program may use more memory than a near cache holds. */
    __builtin_prefetch(next);
    __builtin_prefetch(next + CUS_LINE);
    plan->at = (const struct cus_expected *)(const void *)next;
}
/* What the program requested with the op deferred last: `before`, the values of its node, or else
 * its entry in `requested`. */
static inline __attribute__((always_inline)) const struct cus_values *
cus_plan_after(const struct cus_plan *plan, const struct cus_values *before) {
    uint32_t i = plan->n - 1;
    if (__builtin_expect(plan->dirty[i / 64] >> i % 64 & 1, 0))
        return cus_image_op(plan->segment->requested, plan->segment, i);
    return before;
}

/* The step class from this op on. */
static inline enum cus_step_class cus_plan_step(const struct cus_plan *plan,
                                                const struct cus_op *op) {
    uint64_t tokens;
    return op->kind->step ? cus_step_classify(op->kind->step, op->dims, &tokens) : plan->step;
}
/* May this op be in a graph of its step? A rule or the step's size may forbid it. */
static inline bool cus_plan_allows(const struct cus_plan *plan, const struct cus_op *op) {
    return cus_dispatch_allows(&plan->dispatch, cus_plan_step(plan, op), op->kind);
}

/* Number of deferred ops. */
static inline uint32_t cus_plan_deferred(const struct cus_plan *plan) {
    return plan->segment ? plan->n : 0;
}

/* Offers the op. BEGIN and OTHER fill in `proposal`. */
enum cus_offer cus_plan_offer(struct cus_plan *plan, const struct cus_op *op,
                              struct cus_proposal *proposal);
/* After EAGER: why an op that may be in a graph is not. SHORT stands also for a shape that no node
 * may have. */
enum cus_why cus_plan_why(const struct cus_plan *plan, const struct cus_op *op);
/* After DEFERRED or FULL, if the segment is `timed`: the op came at `ns`. */
void cus_plan_note_time(struct cus_plan *plan, uint64_t ns);
/* After BEGIN: the segment's first graph may not be built in this step. First graphs come before
 * further variants, since patching an existing graph already costs less than eager ops. */
void cus_plan_put_off(struct cus_plan *plan);
/* Does a segment still wait for its first graph that came in one of the last steps? */
bool cus_plan_put_off_lately(const struct cus_plan *plan);
/* After BEGIN: defers from here on. After OTHER: makes the deferred ops the beginning of the other
 * segment. Then offer the op again.
 * The memory epoch moves when memory may have been freed, unmapped or unregistered. Memset and copy
 * nodes, whose addresses the driver resolved earlier, are then patched again before their next
 * launch, even at the same address. */
void cus_plan_accept(struct cus_plan *plan, const struct cus_op *op, uint32_t memory_epoch);
/* An op was issued eagerly and succeeded. */
void cus_plan_record(struct cus_plan *plan, const struct cus_op *op);
/* The same directly after EAGER or BEGIN, before the op is issued, so that nothing is looked up
 * twice. If the op then fails, cus_plan_take_back undoes it, unless another thread went on
 * meanwhile. So an op that fails each time does not become warm. */
struct cus_plan_mark {
    /* Where the path was, and where it went; NULL: the tree was full. */
    struct cus_node *cur, *node;
    struct cus_signature sig;
    uint64_t unsynced; /* this and the next fields: the plan's before the op */
    uint32_t step_ops;
    uint32_t turns;
    uint32_t turns_after;
    enum cus_step_class step;
    bool looking;            /* the loop finder was fed already */
    struct cus_loop_at loop; /* its state, if so */
};
void cus_plan_record_offered(struct cus_plan *plan, const struct cus_op *op,
                             struct cus_plan_mark *mark);
void cus_plan_take_back(struct cus_plan *plan, const struct cus_plan_mark *mark);

/* The host took `ns` for `intervals` between the ops of the segment filled last. Sizes of new
 * segments follow this pace. */
void cus_plan_paced(struct cus_plan *plan, uint32_t intervals, uint64_t ns);

/* In builds with CUS_CHECKS: aborts if the invariant does not hold. */
void cus_plan_check(const struct cus_plan *plan);
/* The first op from `from` on that differs from the predicted variant's image; n if none does. */
uint32_t cus_plan_next_dirty(const struct cus_plan *plan, uint32_t from);
/* The number of such ops. */
uint32_t cus_plan_n_dirty(const struct cus_plan *plan);
/* Has deferred op `i` another shape than its node? */
bool cus_plan_reshapes(const struct cus_plan *plan, uint32_t i);
/* Deferred op `i` as the program requested it. */
const struct cus_values *cus_plan_values(const struct cus_plan *plan, uint32_t i);
/* After FULL: chooses what to launch. With PATCH and EXACT, `dirty` then says which nodes of
 * `*variant` must be patched. With BUILD a new graph is to be built from the deferred ops. If that
 * fails, cus_plan_fall_back says what to patch instead. */
enum cus_choice cus_plan_choose(struct cus_plan *plan, struct cus_variant **variant);
/* After BUILD was refused, or (`later`) not tried: the variant to patch; NULL if the segment has
 * none. */
struct cus_variant *cus_plan_fall_back(struct cus_plan *plan, bool later);
/* Node `i` of the chosen variant was patched to the requested values; if not `known`, its content
 * is unknown now. */
void cus_plan_patched(struct cus_plan *plan, struct cus_variant *variant, uint32_t i, bool known);
/* The same for all nodes that differ; they must be patched before anything else is done with the
 * variant. Sets a bit in `nodes` for each, and returns their number. */
uint32_t cus_plan_patched_all(struct cus_plan *plan, struct cus_variant *variant,
                              uint64_t nodes[CUS_SEGMENT_MAX / 64]);
/* Adds a new graph, built from the deferred ops, as a variant. NULL if memory ran out; the caller
 * then still owns the graph. */
struct cus_variant *cus_plan_built(struct cus_plan *plan, struct cus_exec *exec);
/* Nothing is deferred any more: reports what became of the deferred ops. The segment and its
 * variants may be gone afterwards. True if a turn of a loop ended with these ops. */
bool cus_plan_end(struct cus_plan *plan, struct cus_outcome outcome);

/* A call that is not an op came and would cut a segment here. The caller has flushed deferred
 * ops. */
static inline void cus_plan_break(struct cus_plan *plan) {
    plan->called |= !plan->broken; /* a segment that was cut has counted the call */
    plan->broken = true;
}
/* The same for a call that does not name the stream. It keeps a boundary but makes none, since many
 * such calls come while a program warms up and never again. */
static inline void cus_plan_covered(struct cus_plan *plan) {
    plan->covered = true;
}
/* The step ended: the path starts at the root again. */
void cus_plan_step_end(struct cus_plan *plan);

/* The stream is demoted: forgets everything except segments that were launched often and the paths
 * to them. False if there are none. Nothing may be deferred. */
bool cus_plan_demote(struct cus_plan *plan);
/* Writes hashes of the first CUS_HEAD_OPS ops (plan/repeat.h) of steps that begin with a segment.
 * Returns their number, `max` at most. */
unsigned cus_plan_heads(const struct cus_plan *plan, uint64_t *heads, unsigned max);

/* Drops the segment launched least recently. False if only segments of this step and the one before
 * have graphs. */
bool cus_plan_drop_oldest(struct cus_plan *plan);
/* A segment that was reported as LAUNCHED was not launched after all. */
void cus_plan_unlaunched(struct cus_variant *variant);
/* Like CUS_ENDED_REFUSED, for such a segment. It must not have begun again, and nothing of it is
 * deferred. */
void cus_plan_failed(struct cus_plan *plan, struct cus_variant *broken);
/* Drops `n` segments, launched least recently first, or single graphs of a segment with many. If
 * none is left, forgets every path. True while there is more. Nothing may be deferred. */
bool cus_plan_evict(struct cus_plan *plan, unsigned n);
/* Drops every segment that holds a launch of `handle`, or every segment for NULL. Nothing may be
 * deferred. */
void cus_plan_drop_handle(struct cus_plan *plan, const void *handle);
#endif
