/*
 * All that a plan knows. Private to shim/plan and its unit tests: shim/stream sees the view alone.
 * An engine ends with the view, and the plan of which that view is the beginning lies in the same
 * memory (cus_engine_plan in stream/state.h). So no file may see both structs, and the library is
 * not linked with -flto: the compiler would take them for different objects.
 */
#ifndef CUSPLICE_PLAN_STATE_H
#define CUSPLICE_PLAN_STATE_H

#include "shim/plan/loop.h"
#include "shim/plan/merges.h"
#include "shim/plan/plan.h"
#include "shim/plan/ramp.h"
#include "shim/plan/repeat.h"

struct cus_plan {
    struct cus_plan_view view; /* first: cus_engine_plan relies on it */
    bool head_patched;         /* the first op may differ from the one in `heads` */
    struct cus_signature own;  /* signature of the complete segment's ops; set if has_own */
    bool has_own;
    uint64_t values_key; /* of the complete segment's ops, if many differ; else 0 */

    struct cus_plan_limits limits;
    /* Where the path is. The fields that recording an op reads come first. */
    struct cus_node *cur;
    struct cus_node *offered;         /* the child found by the last offer, or NULL */
    enum cus_step_class offered_step; /* the step class of that offer */
    enum cus_step_class step;         /* given by the last marker */
    bool broken;                      /* a break came since the last op */
    bool called;                      /* that break was a call, and nothing was deferred */
    bool covered;                     /* a call came that covers the stream without naming it */
    /* Ops of a turn of the loop that was found last since the host waited; 0: none was. */
    uint32_t looped;
    bool slow_loop;           /* a loop of a short step stayed, as long as the host is slow */
    uint64_t look_until;      /* of step_ops: loops are looked for up to there */
    uint32_t looked;          /* the turn in which an op was new last */
    uint32_t advised_ops;     /* of step_ops: up to where an earlier run last knew the path */
    struct cus_signature sig; /* of the step up to `cur`, without deferred ops */
    /* Signatures that came and how often. A signature may be in any slot of a small group. One that
     * comes again earns a variant. */
    uint64_t *sig_counts;
    uint64_t sig_mask;    /* number of slots, a power of two, minus one */
    uint64_t sig_evicted; /* shapes that took another one's slot since the table grew */
    uint32_t turns;       /* steps and turns of loops so far; nodes are stamped with it */
    struct cus_merges merges;
    uint32_t longest;          /* the most ops of a step so far */
    uint32_t ended;            /* ops of the step that ended last; 0: its wait was counted */
    uint32_t waits;            /* steps with a long wait behind them, less those without, 0 to 8 */
    bool late;                 /* the GPU is the slower side (cus_plan_waited) */
    bool was_late;             /* it was, since the paths were forgotten */
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
    uint32_t put_off;                 /* the turn in which a first graph was put off last */
    uint32_t n_waiting;               /* segments that wait for their first graph */
    uint32_t settle_in;               /* steps until the look at sizes; 0: it was made */
    uint32_t n_stale;                 /* segments that are stale */
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
    struct cus_segment *oldest; /* the last of `segments` */

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

enum {
    CUS_HISTORY = 16384,
    /* Steps until cus_sizes_settle compares the segments with what the pace allows. That is early,
     * since forming segments again loses all their variants. */
    CUS_SETTLE_STEPS = 6,
};
static inline struct cus_segment **cus_plan_history_at(const struct cus_plan *plan,
                                                       uint64_t clock) {
    return &plan->history[clock % CUS_HISTORY];
}

#endif
