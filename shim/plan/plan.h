/*
 * The plan of one stream: decides which ops are deferred, where a segment ends, and which graph
 * stands for it. Pure functions of ops and of what came before: no CUDA, locks, clocks or I/O.
 * shim/stream calls it under the engine's lock; tools and unit tests use the same code.
 * The caller offers each op (cus_plan_offer), acts on the answer (enum cus_offer), and reports what
 * became of deferred ops (cus_plan_end). A segment that another thread launches is reported as
 * launched; cus_plan_unlaunched and cus_plan_failed correct that. The caller reads `struct
 * cus_plan_view` (view.h); the rest of the plan is private to shim/plan (state.h).
 */
#ifndef CUSPLICE_PLAN_PLAN_H
#define CUSPLICE_PLAN_PLAN_H

#include "shim/plan/loop.h"
#include "shim/plan/segment_list.h"
#include "shim/plan/view.h"

struct cus_advice;
struct cus_plan;

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
    CUS_CUT_PAUSED,   /* the same, but the owning thread had no processor: mostly chance */
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

/* The memory that a plan takes, in bytes. */
size_t cus_plan_bytes(void);
void cus_plan_init(struct cus_plan *plan, const struct cus_plan_limits *limits,
                   cus_plan_drop_fn *drop, void *context);
/* Call after init: uses advice of earlier runs, or collects it for later ones. */
void cus_plan_advise(struct cus_plan *plan, struct cus_advice *advice, uint64_t seed);
/* Drops every segment and forgets every path. Nothing may be deferred. */
void cus_plan_clear(struct cus_plan *plan);

/* The kind expected next, or NULL. With it the caller need not look up the kind. */
const struct cus_kind *cus_plan_expected(const struct cus_plan *plan);

/* The step class from this op on. */
enum cus_step_class cus_plan_step(const struct cus_plan *plan, const struct cus_op *op);
/* May this op be in a graph of its step? A rule or the step's size may forbid it. */
bool cus_plan_allows(const struct cus_plan *plan, const struct cus_op *op);

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
 * segment; the memory epoch stays that of the segment before. Then offer the op again.
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
    uint64_t step_ops; /* this and the next fields: the plan's before the op */
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
/* Behind the step that ended last the host waited `ns` for the GPU. If it does so again and again
 * for long, the GPU is the slower side, and a slow host gets smaller segments. */
void cus_plan_waited(struct cus_plan *plan, uint64_t ns);

/* In builds with CUS_CHECKS: aborts if the invariant does not hold. */
void cus_plan_check(const struct cus_plan *plan);
/* The first op from `from` on that differs from the predicted variant's image; n if none does. */
uint32_t cus_plan_next_dirty(const struct cus_plan *plan, uint32_t from);
/* The number of such ops. */
uint32_t cus_plan_n_dirty(const struct cus_plan *plan);
/* Has deferred op `i` another shape than its node? */
bool cus_plan_reshapes(const struct cus_plan *plan, uint32_t i);
/* Deferred op `i` records an event that a later deferred op records again, and nobody saw the event
 * in between: it needs no node. Below: was that said? Is a graph that is built now to have no node
 * for the op? */
void cus_plan_supersede(struct cus_plan *plan, uint32_t i);
bool cus_plan_superseded(const struct cus_plan *plan, uint32_t i);
bool cus_plan_is_absent(const struct cus_plan *plan, uint32_t i);
/* Deferred op `i` as the program requested it. */
const struct cus_values *cus_plan_values(const struct cus_plan *plan, uint32_t i);
/* After FULL: chooses what to launch. With PATCH and EXACT, `dirty` then says which nodes of
 * `*variant` must be patched. With BUILD a new graph is to be built from the deferred ops. If that
 * fails, cus_plan_fall_back says what to patch instead. `aside`: another thread patches, so a patch
 * costs the program nothing. */
enum cus_choice cus_plan_choose(struct cus_plan *plan, bool aside, struct cus_variant **variant);
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
void cus_plan_break(struct cus_plan *plan);
/* The same for a call that does not name the stream. It keeps a boundary but makes none, since many
 * such calls come while a program warms up and never again. */
void cus_plan_covered(struct cus_plan *plan);
/* The step ended: the path starts at the root again. */
void cus_plan_step_end(struct cus_plan *plan);

/* The stream is demoted: forgets everything except segments that were launched often and the paths
 * to them. False if there are none. Nothing may be deferred. */
bool cus_plan_demote(struct cus_plan *plan);
/* Nodes of the launch tree. */
uint32_t cus_plan_nodes(const struct cus_plan *plan);
/* Returns the number of markers of this step class that came, and forgets it. */
uint64_t cus_plan_take_steps(struct cus_plan *plan, enum cus_step_class step);
/* What decides whether a kernel may be in a graph. */
const struct cus_dispatch *cus_plan_dispatch(const struct cus_plan *plan);
/* The segment list of the last step that used graphs. */
const struct cus_segment_list *cus_plan_last_list(const struct cus_plan *plan);
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
