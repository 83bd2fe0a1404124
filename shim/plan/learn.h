/*
 * What the plan learns from: segments that come and go and the index of heads (learn.c), and where
 * segments end (ends.c). Used by plan.c and cursor.c only; the rules are those of HAZARDS F3 and F6
 * (what may become a boundary) and F11 (what does not pay is dropped).
 */
#ifndef CUSPLICE_PLAN_LEARN_H
#define CUSPLICE_PLAN_LEARN_H

#include "shim/plan/plan.h"

/* Visits of a head before the next try, after a segment that was lost more often than not. */
enum { CUS_RETRY_LOST = 256 };

/* A segment was formed. */
void cus_learn_add(struct cus_plan *plan, struct cus_segment *segment);
/* It goes, and for so many visits of its head none is formed there. */
void cus_learn_drop(struct cus_plan *plan, struct cus_segment *segment);
void cus_learn_drop_for(struct cus_plan *plan, struct cus_segment *segment, uint32_t visits);
/* The segment was launched: it is found by its first op from now on, unless it has begun
 * `otherwise` than the time before again and again. */
void cus_learn_index(struct cus_plan *plan, struct cus_segment *segment, bool otherwise);
/* The graph of the segment was refused (plan.h, cus_plan_refused). May drop the segment. */
void cus_learn_refused(struct cus_plan *plan, struct cus_segment *segment,
                       struct cus_variant *broken);
/* The path goes on behind a boundary that a cut or a pause has made, with a break (plan->broken,
 * plan->covered) or without. One that has lost its reason is forgotten, and what cuts kept apart is
 * formed anew. */
void cus_learn_passed(struct cus_plan *plan, struct cus_node *at);
/* The path goes on behind a fork. One behind which one way alone is taken for long is forgotten. */
void cus_learn_forked(struct cus_plan *plan, struct cus_node *at);
/* A call came behind this node that would have cut a segment there. */
void cus_learn_call(struct cus_node *at);
/* The first `n` ops of the segment were issued one by one. May drop the segment. */
void cus_learn_cut(struct cus_plan *plan, struct cus_segment *segment, uint32_t n,
                   enum cus_cut cut);
/* It is known now how the path goes on behind this segment: it goes. */
void cus_learn_outgrown(struct cus_plan *plan, struct cus_segment *segment);
/* A path came to `node`, which this segment has, out of one that begins earlier. Where that is so
 * more often than not, all go that begin where this one does and are in the way of one that begins
 * there: true. */
bool cus_learn_replaced(struct cus_plan *plan, struct cus_segment *segment,
                        const struct cus_node *node);
/* Takes a graph of a segment that has one: that launched least recently. */
struct cus_variant *cus_learn_give(struct cus_plan *plan, struct cus_segment *segment);
/* Of several variants, which save nothing, keeps this one, which is to be launched; of many some go
 * with each launch. None of other shapes is made for a while. */
void cus_learn_keep(struct cus_plan *plan, struct cus_segment *segment,
                    struct cus_variant *variant);
/* A path came by this alias to a node in the midst of its segment. May drop the segment, or make
 * the alias a node. */
void cus_learn_met(struct cus_plan *plan, struct cus_node *alias);
/* Is the segment that begins now to be timed? */
bool cus_learn_wants_time(const struct cus_segment *segment);
/* A segment was launched; if it was timed, its pauses are looked at. May drop the segment. */
void cus_learn_gap(struct cus_plan *plan, struct cus_segment *segment);
/* A segment was launched: it is the one used last. */
void cus_learn_used(struct cus_plan *plan, struct cus_segment *segment);
/* The step ends: those of its segments go that are to be formed anew. */
void cus_learn_sizing(struct cus_plan *plan);
/* Forgets nodes and segments that did not come since the last time. Nothing may be deferred. */
void cus_learn_sweep(struct cus_plan *plan);
/* Forgets all that is not marked (cus_tree_mark). The path stands at the root. */
void cus_learn_forget(struct cus_plan *plan);

#endif
