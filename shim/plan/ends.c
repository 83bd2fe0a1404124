/*
 * Decides where segments end: makes a boundary where breaks come again and again, and forgets the
 * boundary when they stop.
 * learn.h declares these functions; plan.c, cursor.c and prefix.c call them under the engine's
 * lock, after a cut, a pause or a passed boundary. Nothing here is on the hot path or calls the
 * driver; segments are dropped through learn.c.
 */
#include "shim/base/hazard.h"
#include "shim/plan/advice.h"
#include "shim/plan/learn.h"

enum {
    /* Recent cuts by the watchdog that make a boundary. */
    CUTS_BY_WATCHDOG = 3,
    /* Begins of the segment that take one such cut off the count. The watchdog waits about as long
     * as so many ops take. */
    WATCHDOG_EACH = 400,
    /* Recent cuts by the watchdog at one place that make a boundary where the owning thread had no
     * processor, and begins of the segment that take one off the count. Chance does not bring so
     * many; a thread that polls where processors are few does. */
    PAUSES = 4,
    PAUSES_EACH = 8,
    /* Recent cuts by calls of the owning thread that make a boundary. */
    CUTS_BY_OWNER = 2,
    /* If a boundary was forgotten and came back, it needs CUTS_AGAIN more cuts for each time. */
    CUTS_AGAIN = 2,
    /* Begins of the segment that take one cut off the count, at most. Rarer cuts are chance. */
    CUTS_EACH = 64,
    /* Passes without a break until a boundary is forgotten. The number doubles each time that
     * the boundary comes back soon. */
    CUT_PASSES = 16,
    /* The number of passes doubles at most RETURNS times. */
    RETURNS = 8,
    /* Breaks at a boundary that are counted: multiplied by CUTS_EACH they fit into 16 bits, as do
     * GAPS_MAX pauses multiplied by WATCHDOG_EACH. */
    CUTS_MAX = 512,
    GAPS_MAX = 128,
    /* Recent divergences at one node that make a boundary. */
    FORKS = 3,
    /* Begins of the segment that take one divergence off the count. */
    FORKS_EACH = 4,
    /* If the segment has begun more than LATELY times, a boundary needs FORKS_MORE more
     * divergences, since a few unusual steps may come in a row. */
    FORKS_MORE = 12,
    /* Passes in a row with the same child until a fork is forgotten. */
    FORK_PASSES = 4096,
    /* Begins of a segment over which it is judged, at least. */
    LATELY = 64,
    /* If the host pauses for this long (ns), the ops before the pause should be launched, so that
     * the GPU does not wait. */
    GAP_NS = 50000,
    /* The pause must also take one part in GAP_PART of the time from the segment's first op to its
     * last. */
    GAP_PART = 4,
    /* The pause must also be GAP_OPS times as long as the average of the other intervals. */
    GAP_OPS = 8,
    /* Pauses in a row at the same place that make a boundary. */
    GAPS = 8,
    /* The begin at which a segment is timed for the first time. */
    TIMED_FROM = 4,
    /* Begins of a segment before it may be dropped as lost. */
    LOST_MIN = 16,
    /* Times that a path left a segment within its first ops for an op that no segment had. If most
     * begins end so, a boundary is made at this count. Before, the plan is still learning how the
     * path goes on behind such ops. */
    ASTRAY = 4096
};

void cus_learn_call(struct cus_node *at) {
    if (at->boundary || ++at->cuts < CUTS_BY_OWNER)
        return;
    at->boundary = CUS_BOUNDARY_CUT;
    at->passes = 0;
}

void cus_learn_called(struct cus_node *at) {
    at->cuts = CUTS_BY_OWNER - 1;
    cus_learn_call(at);
}

/* Counts one more event at a node. The count first loses one for every `each` begins of the
 * segment since the last event. So old events do not matter, however often the segment was
 * launched before. */
static uint32_t count_lately(uint16_t *n, uint16_t *at, const struct cus_segment *segment,
                             uint32_t each) {
    uint16_t begun = (uint16_t)segment->begun;
    uint16_t since = (uint16_t)(begun - *at); /* large if another segment was counted then */
    uint32_t fewer = since ? (since - 1u) / each : 0;
    *n = (uint16_t)(fewer < *n ? *n - fewer : 0);
    *at = begun;
    *n += *n < UINT16_MAX;
    return *n;
}

/* Counts one more event of a segment over its recent begins: the count of older begins is scaled
 * down to `lately` of them. Returns whether the event came in more than half of the begins. */
static bool befalls(struct cus_lately *of, const struct cus_segment *segment, uint32_t lately) {
    uint32_t begins = segment->begun - of->from;
    if (begins >= 2 * lately) {
        of->n = (uint32_t)((uint64_t)of->n * lately / begins);
        of->from = segment->begun - lately;
    }
    of->n++;
    return cus_lately_mostly(of, segment);
}

/* A cut costs the ops that were deferred; a boundary costs one more graph launch, which is about as
 * much as one op. If a cut of n ops comes at least once in n begins, the boundary pays. */
static uint32_t ops_per_cut(uint32_t ops) {
    return ops < CUTS_EACH ? ops : (uint32_t)CUTS_EACH;
}

/* The host once paused at the boundary. If no segment begins behind it, nothing shows whether it
 * does so now. */
static bool is_unseen(const struct cus_plan *plan, const struct cus_node *at) {
    return at->boundary == CUS_BOUNDARY_GAP && plan->view.came_ns < plan->view.left_ns;
}

static bool pauses(const struct cus_plan *plan, const struct cus_node *at) {
    return at->boundary == CUS_BOUNDARY_GAP && plan->view.came_ns >= plan->view.left_ns + GAP_NS;
}

/* Passes for each break that keep a boundary. */
static uint32_t passes_per_cut(const struct cus_node *at) {
    if (at->boundary == CUS_BOUNDARY_GAP)
        return WATCHDOG_EACH;
    return ops_per_cut(at->segment ? at->segment->n : 0);
}

/* Makes the segment stale: when its step has come again, it is dropped and formed anew. If the host
 * never waits, no step ends, and nothing is done. */
static void form_anew(struct cus_plan *plan, struct cus_segment *segment) {
    if (!segment || segment->stale || !plan->longest)
        return;
    segment->stale = true;
    plan->n_stale++;
}

static void forget(struct cus_plan *plan, struct cus_node *at) {
    at->boundary = CUS_BOUNDARY_NONE;
    at->cuts = 0;
    at->passes = 0;
    form_anew(plan, at->segment);
    if (at->expect)
        form_anew(plan, at->expect->segment);
}

void cus_learn_forked(struct cus_plan *plan, struct cus_node *at) {
    if (at->way != at->expect)
        at->passes = 0;
    at->way = at->expect;
    if (++at->passes > FORK_PASSES)
        forget(plan, at);
}

void cus_learn_passed(struct cus_plan *plan, struct cus_node *at) {
    uint32_t most = at->boundary == CUS_BOUNDARY_GAP ? GAPS_MAX : CUTS_MAX;
    if (plan->broken || plan->covered || pauses(plan, at)) {
        if (++at->cuts >= most) {
            at->cuts /= 2;
            at->passes /= 2;
        }
        return;
    }
    if (is_unseen(plan, at))
        return;
    if (++at->passes <= (uint32_t)CUT_PASSES << at->returns ||
        at->passes <= passes_per_cut(at) * at->cuts)
        return;
    at->returns += at->returns < RETURNS;
    forget(plan, at);
}

/* Makes a boundary at `at`: a segment ends there from now on. Drops every segment that goes on
 * behind `at`. If `at` is among their first nodes, these can be several. */
static void end_at(struct cus_plan *plan, struct cus_node *at, enum cus_boundary boundary,
                   struct cus_segment *segment) {
    uint32_t i = 0;
    at->boundary = (uint8_t)boundary;
    at->passes = 0;
    at->cuts = CUTS_BY_OWNER;
    if (segment->begun > (uint32_t)CUT_PASSES << at->returns)
        at->returns = 0; /* the boundary was in no segment's way for long */
    while (i < CUS_PREFIX_MAX && i < segment->n && segment->nodes[i] != at)
        i++;
    cus_learn_drop(plan, segment);
    if (i == CUS_PREFIX_MAX)
        return;
    for (struct cus_segment *other = plan->view.segments, *next; other; other = next) {
        next = other->next;
        if (other->n > i + 1 && other->nodes[i] == at)
            cus_learn_drop(plan, other);
    }
}

void cus_learn_outgrown(struct cus_plan *plan, struct cus_segment *segment) {
    cus_learn_drop(plan, segment);
}

bool cus_learn_replaced(struct cus_plan *plan, struct cus_segment *segment,
                        const struct cus_node *node) {
    const struct cus_node *head = segment->nodes[0];
    if (!befalls(&segment->lost, segment, LATELY))
        return false;
    cus_learn_drop(plan, segment);
    for (struct cus_segment *other = plan->view.segments, *next; head == node && other;
         other = next) {
        next = other->next;
        if (other->nodes[0] == head)
            cus_learn_drop(plan, other);
    }
    return true;
}

/* The path forks behind the first `n` ops. A boundary there, between the fork of a branch and its
 * join, would keep the whole region out of graphs. So it lies in front of the record with which the
 * region begins. NULL: the region begins with the segment already. */
static struct cus_node *fork_end(const struct cus_segment *segment, uint32_t n) {
    uint32_t joined = n;
    while (cus_segment_open(segment, joined))
        joined--;
    if (joined == n)
        return segment->nodes[n - 1];
    return joined > 1 && cus_record_forks(segment->nodes[joined - 1]) ? segment->nodes[joined - 2]
                                                                      : NULL;
}

void cus_learn_cut(struct cus_plan *plan, struct cus_segment *segment, uint32_t n,
                   enum cus_cut cut) {
    if (!n || cut == CUS_CUT_REFUSED)
        return;
    struct cus_node *at = segment->nodes[n - 1];
    if (CUS_HAZARD(F14) && cut == CUS_CUT_PAUSED) {
        if (count_lately(&at->cuts, &at->cut_at, segment, PAUSES_EACH) >= PAUSES)
            end_at(plan, at, CUS_BOUNDARY_GAP, segment);
        return;
    }
    if (cut == CUS_CUT_DIVERGED && plan->may_turn) {
        if (befalls(&segment->astray, segment, ASTRAY) && segment->astray.n >= ASTRAY &&
            fork_end(segment, n) == at)
            end_at(plan, at, CUS_BOUNDARY_FORK, segment);
        return;
    }
    bool lost = befalls(&segment->lost, segment, LATELY) && segment->begun >= LOST_MIN;
    enum cus_boundary boundary = CUS_BOUNDARY_NONE;
    if (cut == CUS_CUT_WATCHDOG || cut == CUS_CUT_PAUSED) {
        if (count_lately(&at->cuts, &at->cut_at, segment, WATCHDOG_EACH) >= CUTS_BY_WATCHDOG)
            boundary = CUS_BOUNDARY_GAP; /* the host paused */
    } else if (cut == CUS_CUT_OWNER || !CUS_HAZARD(F3)) {
        uint32_t least = CUTS_BY_OWNER + CUTS_AGAIN * at->returns;
        if (count_lately(&at->cuts, &at->cut_at, segment, ops_per_cut(n)) >= least)
            boundary = CUS_BOUNDARY_CUT;
    }
    uint32_t forks = FORKS + (segment->begun > LATELY ? FORKS_MORE : 0);
    if (cut == CUS_CUT_DIVERGED &&
        count_lately(&at->forks, &at->fork_at, segment, FORKS_EACH) >= forks &&
        fork_end(segment, n)) {
        boundary = CUS_BOUNDARY_FORK;
        at = fork_end(segment, n);
    }
    if (boundary) {
        end_at(plan, at, boundary, segment);
    } else if (lost) {
        cus_advice_bad(plan, segment);
        cus_learn_drop_for(plan, segment, CUS_RETRY_LOST);
    }
}

/* Makes the alias a node of its own, with `warmup` visits. The segment in front of it is
 * dropped, to be formed anew with this node. */
static void part_again(struct cus_plan *plan, struct cus_node *alias) {
    const struct cus_node *before = alias->key.parent;
    alias->join = NULL;
    alias->visits = plan->limits.warmup;
    if (before->segment)
        cus_learn_drop(plan, before->segment);
}

static uint32_t place_of(const struct cus_segment *segment, const struct cus_node *node) {
    uint32_t i = 0;
    while (segment->nodes[i] != node)
        i++;
    return i;
}

/* From the node to the end of its segment all ops are issued eagerly. After FORKS such times, the
 * segment gets a boundary in front of the node. If the boundary would leave one op alone on either
 * side, that op would never be in a graph again, and between a fork and its join none would be.
 * Then the alias becomes a node of its own instead, and the path merges later. */
void cus_learn_reached(struct cus_plan *plan, struct cus_node *alias) {
    struct cus_node *node = alias->join;
    struct cus_segment *segment = node->segment;
    struct cus_node *before = (struct cus_node *)(uintptr_t)node->key.parent;
    if (node == segment->nodes[1] || node == segment->nodes[segment->n - 1] ||
        cus_segment_open(segment, place_of(segment, node))) {
        part_again(plan, alias);
        return;
    }
    if (++before->forks >= FORKS)
        end_at(plan, before, CUS_BOUNDARY_FORK, segment);
}

/* True at the 4th, 8th, 16th ... begin, since timed ops do not take the hot path. After a pause was
 * seen, every begin is timed. */
bool cus_learn_wants_time(const struct cus_segment *segment) {
    bool now = segment->begun >= TIMED_FROM && (segment->begun & (segment->begun - 1)) == 0;
    return CUS_HAZARD(F6) && (now || segment->gaps);
}

/* Did one pause take much of the time of the `n` timed ops? If the host is slow at each op, an
 * interval as long as a few of them is no pause. The GPU waits for the host there anyway, and
 * each segment too many costs the host a graph launch. */
static bool paused(const struct cus_plan *plan, uint32_t n) {
    uint64_t longest = plan->gap.longest, all = plan->gap.last - plan->gap.first;
    return longest >= GAP_NS && longest * GAP_PART >= all &&
           longest * (n - 2) >= GAP_OPS * (all - longest);
}

/* If the host pauses at the same place each time, and the pause takes much of the segment's time,
 * makes a boundary there. */
void cus_learn_gap(struct cus_plan *plan, struct cus_segment *segment) {
    if (!plan->view.timed)
        return;
    if (!paused(plan, segment->n) || (segment->gaps && segment->gap != plan->gap.behind)) {
        segment->gaps = 0;
        return;
    }
    segment->gap = plan->gap.behind;
    if (++segment->gaps < GAPS)
        return;
    end_at(plan, segment->nodes[segment->gap], CUS_BOUNDARY_GAP, segment);
}
