/*
 * The plan of one stream: which op is deferred, which ends a segment, which exec stands for it.
 * Pure: functions of ops and of what came before, without CUDA, locks, clocks or I/O; live use,
 * offline what-if and unit tests share them.
 *
 * The caller (shim/stream, under the engine's lock) offers each op and does what the answer says:
 *
 *   offer -> DEFERRED         the op is deferred: report success
 *         -> FULL         the segment is complete: choose, build or patch, launch, then fired (or
 * flushed)
 *         -> BEGIN        a segment could begin here: if the caller may defer now, begin and offer
 * again; else as EAGER
 *         -> EAGER        issue the op, then record it
 *         -> OTHER        what is deferred may be the beginning of another segment, of which a
 * graph is to be built first: if the caller may, turn and offer again; else as DIVERGED
 *         -> DIVERGED     another op than the expected one: issue what is deferred, then flushed,
 * and offer again
 *         -> UNSUPPORTED  no node can take this op's shape: issue what is deferred, then flushed;
 * issue the op, then record it
 *
 * Invariant: deferred ops are always a prefix of one segment, `n` ops of `segment`; op i is in
 * `segment->asked` where bit i of `dirty` is set and equals the predicted variant's image
 * otherwise.
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
    uint32_t segment_first; /* ops of the first segment of a step; the next ones grow from there */
    uint32_t segment_max;
    uint32_t segment_ns; /* host time that a segment may take to fill; 0: any */
    uint32_t variants;   /* execs per segment */
    uint32_t nodes_max;
    enum cus_mode mode; /* which kernels may be put into graphs of which steps */
};

/* Destroys what the plan drops. `context` is the one given to cus_plan_init. */
typedef void cus_plan_drop_fn(void *context, struct cus_exec *exec);

struct cus_plan {
    /* Deferred ops. What the hot path looks at stands first. */
    const struct cus_expected *at; /* what it expects next; in the image of `predicted` */
    uint32_t n;
    struct cus_segment *segment;
    bool timed;        /* the caller says when each op of this segment came */
    bool reshaped;     /* a deferred op's shape differs from the predicted variant's */
    bool head_patched; /* the segment begins otherwise than the head index has it */
    uint64_t dirty[CUS_SEGMENT_MAX / 64];    /* one bit per deferred op, */
    uint64_t reshapes[CUS_SEGMENT_MAX / 64]; /* and one where its shape is another, too */
    struct cus_variant *predicted;           /* NULL: the segment has no exec yet */
    struct cus_signature own;                /* of the complete segment's ops, */
    bool has_own;                            /* once it was asked for */

    struct cus_plan_limits limits;
    /* Where the path is: what an op that is recorded looks at comes first. */
    struct cus_node *cur;
    struct cus_node *offered;         /* the child that the last offer was about, or NULL, */
    enum cus_step_class offered_step; /* and its step */
    enum cus_step_class step;         /* from the last marker on */
    bool broken;                      /* a break came since the last op */
    bool called;                      /* it was a call, while nothing was deferred */
    bool covered;                     /* or one that does not name the stream, but covers it */
    bool looking;                     /* the loop finder is fed */
    bool looped;                      /* a loop was found since the host waited last */
    bool again; /* the step before was forgotten: this one's nodes are made once more */
    uint32_t step_ops;
    uint32_t advised_ops;     /* of these, up to where an earlier run knew the path last */
    struct cus_signature sig; /* of the step up to `cur`, deferred ops not counted */
    uint64_t unsynced;        /* ops since the host waited last, over all turns of loops */
    uint64_t *sig_counts; /* signatures met and how often, in one of a few slots: those that come
                       again earn a variant */
    uint64_t sig_mask;    /* its slots, a power of two, less one */
    uint64_t sig_evicted; /* shapes that took another signature's slot since there are so many */
    uint32_t turns;       /* steps, and turns of loops, so far: the stamp of nodes */
    uint32_t loop_ops;   /* ops of a turn of a loop just found whose last node is not marked yet; 0:
                            none */
    uint64_t warm_ops;   /* ops so far that were issued by themselves though their node had come
                        often enough to be in a segment */
    uint64_t new_nodes;  /* nodes made so far: a path that never repeats makes one per op */
    uint64_t built_anew; /* first graphs of segments that begin with an op that had been in one */
    struct cus_merges merges;
    uint32_t longest; /* the most that there were when it waited */
    struct cus_ramp
        ramp; /* how large the next segment may be: grows from segment to segment of a step */
    struct cus_ramp ramped;    /* the same of the segment that has begun */
    struct cus_segment *other; /* that the last offer was about */
    bool may_turn; /* the op that came in place of the expected one could be in such a segment */
    struct cus_segment *heads; /* those with an exec, by the hash of their first op */
    struct cus_advice *advice; /* of earlier runs, for all plans of the process; NULL: none */
    struct cus_dispatch dispatch;
    struct cus_tree tree;

    cus_plan_drop_fn *drop;
    void *context;
    uint64_t seed;                    /* what paths begin with: which GPU and so on */
    bool advised;                     /* a segment was formed by it */
    uint64_t steps[CUS_STEP_CLASSES]; /* markers met, by what they said */
    uint32_t build_quota; /* ops that a new segment may have to be built in one step; 0: any */
    uint32_t put_off;     /* the step in which a segment's first exec might not be built, last, */
    uint32_t n_waiting;   /* and the segments that wait for theirs */
    uint32_t ns_per_op;   /* host time between ops, smoothed; 0: unknown */
    bool aside;           /* the caller has most segments patched beside the program's thread */
    /* Of segments alive that were formed since it was decided last to form all anew: */
    uint64_t paces;                   /* the paces of those whose size one has set, added up, */
    uint32_t n_paced;                 /* and how many these are; */
    uint64_t quotas;                  /* the shares of those that one has kept from being larger, */
    uint32_t n_bounded;               /* and how many these are */
    uint32_t settle_in, settle_every; /* steps until segments that a slower pace has shaped are
                                         formed anew, and from then to the next time */
    uint32_t sizing;       /* counts such decisions: a segment that was formed before the */
    uint32_t n_stale;      /* last one goes when its step comes again; so many do */
    uint32_t memory_epoch; /* as the caller said last: moves when memory may have gone */
    uint64_t clock;        /* counts segments begun: orders variants and segments by use */
    uint64_t clock_now, clock_before; /* the clock when this step began, and the one before */
    uint64_t
        then; /* the clock when the path was here before, by the variant that was launched last */
    struct cus_variant *launched; /* that one; NULL: it is gone */

    /* Learning. */
    struct {
        uint64_t first,
            last;         /* when the first op of the timed segment came, and the last one so far */
        uint64_t longest; /* the longest time between two of them */
        uint32_t behind;  /* the op that was followed by it */
    } gap;
    struct cus_loop loop;
    struct cus_segment *segments; /* all, most recently launched or formed first */
    struct cus_segment *oldest;   /* the last of `segments` */
    uint32_t n_segments;
    uint64_t n_formed; /* segments formed so far */

    struct cus_segment *
        *history; /* CUS_HISTORY of them, by the clock: the segment that was launched then, if
                it was not since; NULL: no two segments begin alike */
    struct cus_segment *
        *lenders; /* segments with a graph, by their kinds; NULL: nobody asked (lenders.c) */

    /* Forgetting what does not come any more, and sharing what does. */
    uint32_t swept_turn;  /* when nodes were swept last; */
    uint64_t swept_clock; /* the same by the other clock */
    uint64_t unknown;     /* ops since then that had no room in the tree */

    struct cus_segment_list now,
        last; /* segment list of the running step and of the last whole one that used graphs */
};

enum { CUS_HISTORY = 16384 };
static inline struct cus_segment **cus_plan_history_at(const struct cus_plan *plan,
                                                       uint64_t clock) {
    return &plan->history[clock % CUS_HISTORY];
}

enum cus_offer {
    CUS_OFFER_DEFERRED,
    CUS_OFFER_FULL,
    CUS_OFFER_BEGIN,
    CUS_OFFER_EAGER,
    CUS_OFFER_OTHER,
    CUS_OFFER_DIVERGED,
    CUS_OFFER_UNSUPPORTED,
};

enum cus_choice { CUS_CHOICE_EXACT, CUS_CHOICE_PATCH, CUS_CHOICE_BUILD };

/* Why deferred ops were issued one by one. */
enum cus_cut {
    CUS_CUT_OWNER,    /* a call by the owning thread: it will come again at this place */
    CUS_CUT_WATCHDOG, /* nothing came for hold_us */
    CUS_CUT_DIVERGED,
    CUS_CUT_OTHER,   /* chance: another thread, exit: nothing is learned from it */
    CUS_CUT_REFUSED, /* the complete segment could not be launched: cus_plan_refused judges it */
};

void cus_plan_init(struct cus_plan *plan, const struct cus_plan_limits *limits,
                   cus_plan_drop_fn *drop, void *context);
/* Behind init, where earlier runs are listened to or later ones are to be told. */
void cus_plan_advise(struct cus_plan *plan, struct cus_advice *advice, uint64_t seed);
/* Drops every segment and forgets every path. Nothing may be deferred. */
void cus_plan_clear(struct cus_plan *plan);

/* The kind that is expected next, NULL where nothing is: lets the caller skip looking the kind up.
 */
static inline const struct cus_kind *cus_plan_expected(const struct cus_plan *plan) {
    if (plan->segment)
        return plan->segment->places[plan->n].kind;
    return plan->cur->expect ? plan->cur->expect->key.kind : NULL;
}

/* The hot path, in place of offer: is the op the one that is expected in the midst of a segment
 * which has an exec, one that neither begins nor ends the segment? Then it is deferred by
 * cus_plan_took, where the node holds other params by cus_plan_request first, and where it has
 * another shape by cus_plan_request_shape. */

/* The kind that is expected there; NULL elsewhere. */
static inline const struct cus_kind *cus_plan_midst(const struct cus_plan *plan) {
    return plan->at->kind;
}
/* What the node holds. */
static inline __attribute__((always_inline)) const struct cus_values *
cus_plan_before(const struct cus_plan *plan) {
    return cus_expected_values(plan->at);
}
/* The same shape as the node's? */
static inline __attribute__((always_inline)) bool cus_plan_same_dims(const struct cus_plan *plan,
                                                                     struct cus_dims dims) {
    return cus_dims_same(dims.d, cus_plan_before(plan)->dims);
}
/* Do the arguments behind the words differ? */
bool cus_plan_others_differ(const struct cus_expected *at, void *const *params);
/* Do the words? */
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
/* Does the node hold other params than these arguments of a launch? */
static inline __attribute__((always_inline)) bool cus_plan_differs(const struct cus_plan *plan,
                                                                   void *const *params) {
    return cus_plan_words_differ(plan, params) ||
           (__builtin_expect(plan->at->others, 0) && cus_plan_others_differ(plan->at, params));
}
/* Of a memset or copy, which has so many words of them: does the node hold the same? */
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
/* The node's shape is right; its params are to become these. */
void cus_plan_request(struct cus_plan *plan, void *const *params);
/* The same, where they differ, of params as one block. */
void cus_plan_request_flat(struct cus_plan *plan, const uint8_t *flat);
void cus_plan_request_others(struct cus_plan *plan, void *const *params);
/* The same of a launch in another shape than the node's; `flat`, where there is one, has its params
 * as one block. False: no node may be given that shape, and nothing was done. */
bool cus_plan_request_shape(struct cus_plan *plan, struct cus_dims dims, void *const *params,
                            const uint8_t *flat);
/* Where one op's params are written the next one's mostly will be: the lines for them are fetched
 * meanwhile, to be written, for of a segment that was submitted another processor has them. They
 * may be another's behind the last op: that is slow at worst. By the instruction's name, since
 * __builtin_prefetch reads unless a compiler is told that all processors have it; one that lacks it
 * does nothing. */
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
/* The op is deferred. */
static inline __attribute__((always_inline)) void cus_plan_took(struct cus_plan *plan) {
    plan->n++;
    const uint8_t *next = (const uint8_t *)plan->at + plan->at->bytes;
    /* A program may go through more memory than a near cache holds before it asks for that one. */
    __builtin_prefetch(next);
    __builtin_prefetch(next + CUS_LINE);
    plan->at = (const struct cus_expected *)(const void *)next;
}
/* What the program asked for when the last op was deferred: what the node held `before`, or beside
 * it what differs. */
static inline __attribute__((always_inline)) const struct cus_values *
cus_plan_after(const struct cus_plan *plan, const struct cus_values *before) {
    uint32_t i = plan->n - 1;
    if (__builtin_expect(plan->dirty[i / 64] >> i % 64 & 1, 0))
        return cus_image_op(plan->segment->requested, plan->segment, i);
    return before;
}

/* The class that the step has from this op on. */
static inline enum cus_step_class cus_plan_step(const struct cus_plan *plan,
                                                const struct cus_op *op) {
    uint64_t tokens;
    return op->kind->step ? cus_step_classify(op->kind->step, op->dims, &tokens) : plan->step;
}
/* May this op be put into a graph of its step? If not, a rule or the step's size says so. */
static inline bool cus_plan_allows(const struct cus_plan *plan, const struct cus_op *op) {
    return cus_dispatch_allows(&plan->dispatch, cus_plan_step(plan, op), op->kind);
}

/* Ops deferred now. */
static inline uint32_t cus_plan_deferred(const struct cus_plan *plan) {
    return plan->segment ? plan->n : 0;
}

enum cus_offer cus_plan_offer(struct cus_plan *plan, const struct cus_op *op);
/* After EAGER, of an op that may be in a graph: why it is not. SHORT, too, where it was its shape
 * that the plan did not like. */
enum cus_why cus_plan_why(const struct cus_plan *plan, const struct cus_op *op);
/* After DEFERRED or FULL, where the segment is `timed`: the op came at `ns`. */
void cus_plan_note_time(struct cus_plan *plan, uint64_t ns);
/* After BEGIN: how many ops must be built before the segment can be launched; 0 where it has an
 * exec.
 * `*advised`: an earlier run says that it pays. */
uint32_t cus_plan_to_build(const struct cus_plan *plan, bool *advised);
/* A segment without an exec may not be built in this step. What there is to build goes into such
 * ones first: patching what has an exec already costs less than issuing ops by themselves. */
void cus_plan_put_off(struct cus_plan *plan);
/* Does one that came in this step or the last few still wait? */
bool cus_plan_put_off_lately(const struct cus_plan *plan);
/* After BEGIN, of a segment without an exec: could it be launched by cus_plan_borrow? */
bool cus_plan_can_borrow(struct cus_plan *plan);
/* After BEGIN: defers from here on. The op is to be offered again. */
void cus_plan_begin(struct cus_plan *plan, const struct cus_op *op);
/* After OTHER: the segment; what is deferred is the beginning of it from here on. The op is to be
 * offered again. */
static inline struct cus_segment *cus_plan_other(const struct cus_plan *plan) {
    return plan->other;
}
void cus_plan_turn(struct cus_plan *plan);
/* An op was issued by itself and succeeded. */
void cus_plan_record(struct cus_plan *plan, const struct cus_op *op);
/* The same, directly behind EAGER or BEGIN and before the op is issued, so that nothing is looked
 * up twice. Where it then fails it is taken back, unless another thread has gone on meanwhile: an
 * op that fails each time does not become one that comes often. */
struct cus_plan_mark {
    struct cus_node *cur, *node; /* where the path was, and went; NULL: nowhere */
    struct cus_signature sig;
    uint64_t unsynced; /* as the following, before */
    uint32_t step_ops;
    uint32_t turns;
    uint32_t turns_after;
    enum cus_step_class step;
    bool looking;            /* the loop finder was fed already, */
    struct cus_loop_at loop; /* and then: where it was */
};
void cus_plan_record_offered(struct cus_plan *plan, const struct cus_op *op,
                             struct cus_plan_mark *mark);
void cus_plan_take_back(struct cus_plan *plan, const struct cus_plan_mark *mark);
/* In place of all that, where nothing is to be learned: one op more of this step; */
static inline void cus_plan_count(struct cus_plan *plan) {
    plan->step_ops++;
    plan->unsynced++;
}
/* and one less, unless the step of turn `turns` has ended meanwhile. */
static inline void cus_plan_uncount(struct cus_plan *plan, uint32_t turns) {
    if (plan->turns != turns)
        return;
    plan->step_ops--;
    plan->unsynced--;
}

/* The host took `ns` over so many intervals between the ops of the segment that was filled last:
 * what the sizes of new segments follow. */
void cus_plan_paced(struct cus_plan *plan, uint32_t intervals, uint64_t ns);
/* Memory may have been freed, unmapped or unregistered since the epoch was another one: a memset or
 * copy node was resolved when it was made or patched and is patched again before its next launch,
 * even at the same address. Said before begin. */
static inline void cus_plan_memory(struct cus_plan *plan, uint32_t epoch) {
    plan->memory_epoch = epoch;
}

/* After BEGIN: the segment. */
struct cus_segment *cus_plan_next_segment(const struct cus_plan *plan);
/* In builds with CUS_CHECKS: aborts where the invariant above does not hold. */
void cus_plan_check(const struct cus_plan *plan);
/* The first op from `from` on that differs from the predicted variant's image; n where none does.
 */
uint32_t cus_plan_next_dirty(const struct cus_plan *plan, uint32_t from);
/* How many do. */
uint32_t cus_plan_n_dirty(const struct cus_plan *plan);
/* Has the node of deferred op `i` another shape? */
bool cus_plan_reshapes(const struct cus_plan *plan, uint32_t i);
/* Deferred op `i` as the program asked for it. */
const struct cus_values *cus_plan_values(const struct cus_plan *plan, uint32_t i);
/* After FULL: which variant to launch. With PATCH and EXACT, `dirty` then says which nodes of it
 * must be patched. With BUILD a new variant is to be made from the deferred ops; where that cannot
 * be, cus_plan_fall_back says what to patch instead. */
enum cus_choice cus_plan_choose(struct cus_plan *plan, struct cus_variant **variant);
/* After BUILD, where there is no memory for another graph and the segment has none: takes that of a
 * segment of the same kinds, which is to be patched as with PATCH; NULL where there is none, or
 * where some segment has not been launched for so long that its memory had better be taken. */
struct cus_variant *cus_plan_borrow(struct cus_plan *plan);
/* After BUILD was refused, or (`later`) not tried: the variant to patch; NULL where the segment has
 * none. */
struct cus_variant *cus_plan_fall_back(struct cus_plan *plan, bool later);
/* Node `i` of the chosen variant now holds what was asked; or, `known` false, something unknown. */
void cus_plan_patched(struct cus_plan *plan, struct cus_variant *variant, uint32_t i, bool known);
/* The same of all that differ, which are to be patched before anything else is done with the
 * variant: `nodes` says which, a bit each. Returns how many. */
uint32_t cus_plan_patched_all(struct cus_plan *plan, struct cus_variant *variant,
                              uint64_t nodes[CUS_SEGMENT_MAX / 64]);
/* A new exec for the complete segment, holding the deferred ops. NULL when memory ran out (the exec
 * stays the caller's). */
struct cus_variant *cus_plan_built(struct cus_plan *plan, struct cus_exec *exec);
/* The segment was launched by this variant; both may be gone now. Returns true where a turn of a
 * loop ended with it. */
bool cus_plan_fired(struct cus_plan *plan, struct cus_variant *variant);
/* The deferred ops were issued one by one. Returns true where a turn of a loop ended with them. */
bool cus_plan_flushed(struct cus_plan *plan, enum cus_cut cut);

/* A call that is not an op came, which would cut a segment here; what was deferred has been
 * flushed.
 */
static inline void cus_plan_break(struct cus_plan *plan) {
    plan->called |= !plan->broken; /* a segment that was cut has counted it */
    plan->broken = true;
}
/* The same of a call that does not name the stream: it keeps a boundary and makes none, since many
 * such come while a program warms up, and then never again. */
static inline void cus_plan_covered(struct cus_plan *plan) {
    plan->covered = true;
}
/* The step ended: the path starts at the root again. */
void cus_plan_step_end(struct cus_plan *plan);

/* The stream is demoted from here on: forgets everything but the segments that were launched often
 * and the way to them. False where there are none. Nothing may be deferred. */
bool cus_plan_demote(struct cus_plan *plan);
/* How the steps begin that such a segment is at the beginning of: hashes of their first
 * CUS_HEAD_OPS ops (plan/repeat.h). Returns how many there are, `max` at most. */
unsigned cus_plan_heads(const struct cus_plan *plan, uint64_t *heads, unsigned max);

/* Drops the segment that was launched least recently. False where there is none with an exec but
 * those of this step and the one before. */
bool cus_plan_drop_oldest(struct cus_plan *plan);
/* In place of flushed, after the deferred ops of a complete segment were issued one by one because
 * its graph could not be: `broken` is the variant whose content is unknown now or that did not
 * launch, NULL where none could be built and none shall be tried again soon. Returns true where a
 * turn of a loop ended with them. */
bool cus_plan_refused(struct cus_plan *plan, struct cus_variant *broken);
/* A segment that was `fired` was not launched after all. */
void cus_plan_unfired(struct cus_variant *variant);
/* Refused, of such a segment, which may not have begun again: nothing of it is deferred any more.
 */
void cus_plan_failed(struct cus_plan *plan, struct cus_variant *broken);
/* The same, where there was no room for a graph: another try is made after a while. */
bool cus_plan_no_room(struct cus_plan *plan);
/* Drops so many segments, or graphs of one that has many, launched least recently first; where none
 * is left, forgets every path. True while there is more. Nothing may be deferred. */
bool cus_plan_evict(struct cus_plan *plan, unsigned n);
/* Drops every segment that holds a launch of `handle`, or every segment for NULL. Nothing may be
 * deferred. */
void cus_plan_drop_handle(struct cus_plan *plan, const void *handle);
#endif
