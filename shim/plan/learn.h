/*
 * What the plan learns: segments and the index of their first ops (learn.c), and where segments end
 * (ends.c). plan.c, cursor.c, sizes.c and other files of the plan call it under the engine's lock.
 * HAZARDS F3 and F6 say what may become a boundary, F11 what is dropped.
 */
#ifndef CUSPLICE_PLAN_LEARN_H
#define CUSPLICE_PLAN_LEARN_H

#include "shim/plan/state.h"

/* Visits of a head node until a segment is tried there again, after one that was lost more often
 * than not. */
enum { CUS_RETRY_LOST = 256 };

/* Takes a new segment into the plan's list. */
void cus_learn_add(struct cus_plan *plan, struct cus_segment *segment);
/* Drops the segment. The second function also keeps its head node without a segment for `visits`
 * visits. */
void cus_learn_drop(struct cus_plan *plan, struct cus_segment *segment);
void cus_learn_drop_for(struct cus_plan *plan, struct cus_segment *segment, uint32_t visits);
/* After a launch: from now on the segment is found by its first op. `otherwise`: this first op
 * differs from the one of the launch before. After several such launches in a row the segment
 * leaves the index. */
void cus_learn_index(struct cus_plan *plan, struct cus_segment *segment, bool otherwise);
/* The driver refused the segment's graph (plan.h, CUS_ENDED_REFUSED). May drop the segment. */
void cus_learn_refused(struct cus_plan *plan, struct cus_segment *segment,
                       struct cus_variant *broken);
/* There was no memory for the segment's graph. If it has none, it is dropped for a while. */
void cus_learn_no_room(struct cus_plan *plan, struct cus_segment *segment);
/* The path passes a boundary that a cut or a pause made, with a break (plan->broken, plan->covered)
 * or without. If the boundary has lost its reason, it is forgotten. If a cut had made it, the
 * segments on both sides become stale. */
void cus_learn_passed(struct cus_plan *plan, struct cus_node *at);
/* The path passes a fork. The fork is forgotten after the same child was taken many times in a
 * row. */
void cus_learn_forked(struct cus_plan *plan, struct cus_node *at);
/* A call came behind this node that would have cut a segment there. */
void cus_learn_call(struct cus_node *at);
/* The same where such calls came often enough for a boundary. */
void cus_learn_called(struct cus_node *at);
/* The first `n` ops of the segment were issued one by one because of `cut`. May drop the
 * segment. */
void cus_learn_cut(struct cus_plan *plan, struct cus_segment *segment, uint32_t n,
                   enum cus_cut cut);
/* The plan now knows how the path goes on behind this segment. Drops it, so that a longer one can
 * be formed. */
void cus_learn_outgrown(struct cus_plan *plan, struct cus_segment *segment);
/* A path that begins earlier came to `node` of this segment. If the segment is lost more often than
 * not, it is dropped, and true is returned. If `node` is its head, all segments with that head are
 * dropped. */
bool cus_learn_replaced(struct cus_plan *plan, struct cus_segment *segment,
                        const struct cus_node *node);
/* A path came by this alias to a node inside of that node's segment. May drop the segment, or make
 * the alias a node of its own. */
void cus_learn_reached(struct cus_plan *plan, struct cus_node *alias);
/* Is the segment that begins now to be timed? */
bool cus_learn_wants_time(const struct cus_segment *segment);
/* A segment was launched. If its ops were timed, looks for a pause of the host. May drop the
 * segment. */
void cus_learn_gap(struct cus_plan *plan, struct cus_segment *segment);
/* A segment was launched: moves it to the front of the list. */
void cus_learn_used(struct cus_plan *plan, struct cus_segment *segment);
/* The step ends: drops its stale segments, as many as the next step may build. */
void cus_learn_sizing(struct cus_plan *plan);
/* Forgets nodes and segments that did not come since the last sweep. Nothing may be deferred. */
void cus_learn_sweep(struct cus_plan *plan);
/* Forgets all nodes that are not marked (cus_tree_mark). The path must stand at the root or at a
 * marked node. */
void cus_learn_forget(struct cus_plan *plan);

#endif
