/*
 * Where segments end: boundaries that are made by what befalls segments lately, and forgotten when
 * it does not any more.
 *
 * Runs under the engine's lock, on the rare paths: a cut, a pause, a boundary that is passed. Never
 * calls the driver; segments go through learn.c.
 */
#include "shim/base/hazard.h"
#include "shim/base/pays.h"
#include "shim/plan/advice.h"
#include "shim/plan/learn.h"
#include "shim/plan/sizes.h"

enum {
    CUTS_BY_WATCHDOG = 3, /* cuts by the watchdog that make a boundary, */
    WATCHDOG_EACH =
        400,           /* where there is one with so many begins: it takes as long as so many ops */
    CUTS_BY_OWNER = 2, /* cuts by the owning thread's calls that do, */
    CUTS_AGAIN = 2,    /* and so many more for each time that it was forgotten and came back, */
    CUTS_EACH = 64,    /* where there is one with so many begins: less than that is chance */
    CUT_PASSES = 16,   /* passes without a break before a boundary is forgotten, twice as many */
    RETURNS = 8,       /* each time that it came back soon, so often at most */
    CUTS_MAX = 512,    /* breaks at a boundary that are remembered: times CUTS_EACH, 16 bits */
    GAP_PASSES = 4096, /* passes before it is forgotten that the host paused there */
    FORKS = 3,         /* divergences at one node that do, */
    FORKS_EACH = 4,    /* where they are at least 1 of 4, */
    FORKS_MORE = 12, /* and so many more of a segment that is older than LATELY: odd steps may come
                        a few in a row */
    FORK_PASSES = 4096, /* in a row that one way is taken before a fork is forgotten */
    LATELY = 64,        /* begins of a segment by which it is judged, at least */
    GAP_NS = 50000,     /* a pause of the host from which on the GPU had better not wait for it */
    GAP_PART = 4,       /* ... if it is at least this part of the time that the segment took, */
    GAP_OPS = 8,        /* and so many times as long as it was from one to the next of its others */
    GAPS = 8,           /* pauses at one place in a row that make a boundary */
    TIMED_FROM = 4,     /* the begin at which a segment is timed for the first time */
    LOST_MIN = 16,      /* begins before a segment is judged */
    ASTRAY = 4096 /* times that a path left a segment in its first ops for what no segment had,
                     from which on, where these are most, it shall not: it is still learned
                     how the path goes on */
};

void cus_learn_call(struct cus_node *at) {
    if (at->boundary || ++at->cuts < CUTS_BY_OWNER)
        return;
    at->boundary = CUS_BOUNDARY_CUT;
    at->passes = 0;
}

/* One more of what takes place at a node, lately: one less for each `each` begins of the segment
 * since it did last, however long the segment was launched before. */
static uint32_t count_lately(uint16_t *n, uint16_t *at, const struct cus_segment *segment,
                             uint32_t each) {
    uint16_t begun = (uint16_t)segment->begun;
    uint16_t since = (uint16_t)(begun - *at); /* large where another segment was begun then */
    uint32_t fewer = since ? (since - 1u) / each : 0;
    *n = (uint16_t)(fewer < *n ? *n - fewer : 0);
    *at = begun;
    *n += *n < UINT16_MAX;
    return *n;
}

/* Of what befell it long ago no more is kept than its share. Returns whether it is most of what
 * befalls it. */
static bool befalls(struct cus_lately *of, const struct cus_segment *segment, uint32_t lately) {
    uint32_t begins = segment->begun - of->from;
    if (begins >= 2 * lately) {
        of->n = (uint32_t)((uint64_t)of->n * lately / begins);
        of->from = segment->begun - lately;
    }
    of->n++;
    return cus_lately_mostly(of, segment);
}

/* A cut costs what is deferred, a boundary the launch of a graph, which is as much as one op: it is
 * worth a cut of so many ops that comes with one of as many begins. */
static uint32_t ops_per_cut(uint32_t ops) {
    return ops < CUTS_EACH ? ops : (uint32_t)CUTS_EACH;
}

static uint32_t passes_until_forgotten(const struct cus_node *at) {
    return at->boundary == CUS_BOUNDARY_GAP ? (uint32_t)GAP_PASSES
                                            : (uint32_t)CUT_PASSES << at->returns;
}

/* It goes when its step has come again; where the host never waits, there is none. */
static void form_anew(struct cus_plan *plan, struct cus_segment *segment) {
    if (!CUS_PAYS(REFORM_ENDS) || !segment || segment->sizing != plan->sizing || !plan->longest)
        return;
    cus_sizes_gone(plan, segment);
    segment->sizing--;
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
    if (plan->broken || plan->covered) {
        if (++at->cuts >= CUTS_MAX) {
            at->cuts /= 2;
            at->passes /= 2;
        }
        return;
    }
    if (++at->passes <= passes_until_forgotten(at) ||
        at->passes <= ops_per_cut(at->segment ? at->segment->n : 0) * at->cuts)
        return;
    if (at->boundary == CUS_BOUNDARY_GAP) {
        at->boundary = CUS_BOUNDARY_NONE; /* whether the host still makes one is not seen */
        at->cuts = at->passes = 0;
        return;
    }
    at->returns += at->returns < RETURNS;
    forget(plan, at);
}

/* The segment that begins with `node`, and could begin before it; the one that ends with it, and
 * could take in the op behind it. */
static struct cus_segment *begins_with(const struct cus_node *node) {
    struct cus_segment *segment = node && !node->key.kind->step ? node->segment : NULL;
    return segment && segment->nodes[0] == node ? segment : NULL;
}

static struct cus_segment *ends_with(const struct cus_node *node) {
    struct cus_segment *segment = node->boundary || node->loop_end ? NULL : node->segment;
    return segment && segment->n >= CUS_TAKES_IN && segment->nodes[segment->n - 1] == node ? segment
                                                                                           : NULL;
}

/* A segment is about to end at `at`. One op that is left by itself on either side would go out by
 * itself for ever: the neighbour on that side is formed anew, with it. */
static void leave_none_alone(struct cus_plan *plan, const struct cus_node *at,
                             const struct cus_segment *segment) {
    const struct cus_node *first = segment->nodes[0], *last = segment->nodes[segment->n - 1];
    const struct cus_node *before = first->key.parent;
    if (first == at && before && before->expect == first && !first->key.kind->step)
        form_anew(plan, ends_with(before));
    if (segment->nodes[segment->n - 2] == at && !last->boundary && !last->loop_end)
        form_anew(plan, begins_with(last->expect));
}

/* A segment ends at `at` from now on: all go that go on behind it. Where it is among their first
 * nodes, there may be several. */
static void end_at(struct cus_plan *plan, struct cus_node *at, enum cus_boundary boundary,
                   struct cus_segment *segment) {
    uint32_t i = 0;
    at->boundary = (uint8_t)boundary;
    at->passes = 0;
    at->cuts = CUTS_BY_OWNER;
    if (segment->begun > (uint32_t)CUT_PASSES << at->returns)
        at->returns = 0; /* it was in nobody's way for long */
    while (i < CUS_PREFIX_MAX && i < segment->n && segment->nodes[i] != at)
        i++;
    leave_none_alone(plan, at, segment);
    cus_learn_drop(plan, segment);
    if (i == CUS_PREFIX_MAX)
        return;
    for (struct cus_segment *other = plan->segments, *next; other; other = next) {
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
    for (struct cus_segment *other = plan->segments, *next; head == node && other; other = next) {
        next = other->next;
        if (other->nodes[0] == head)
            cus_learn_drop(plan, other);
    }
    return true;
}

void cus_learn_cut(struct cus_plan *plan, struct cus_segment *segment, uint32_t n,
                   enum cus_cut cut) {
    if (!n || cut == CUS_CUT_REFUSED)
        return;
    struct cus_node *at = segment->nodes[n - 1];
    if (cut == CUS_CUT_DIVERGED && plan->may_turn) {
        if (befalls(&segment->astray, segment, ASTRAY) && segment->astray.n >= ASTRAY)
            end_at(plan, at, CUS_BOUNDARY_FORK, segment);
        return;
    }
    bool lost = befalls(&segment->lost, segment, LATELY) && segment->begun >= LOST_MIN;
    enum cus_boundary boundary = CUS_BOUNDARY_NONE;
    if (cut == CUS_CUT_WATCHDOG) {
        if (count_lately(&at->cuts, &at->cut_at, segment, WATCHDOG_EACH) >= CUTS_BY_WATCHDOG)
            boundary = CUS_BOUNDARY_GAP; /* the host made a pause */
    } else if (cut == CUS_CUT_OWNER || !CUS_HAZARD(F3)) {
        uint32_t least = CUTS_BY_OWNER + CUTS_AGAIN * at->returns;
        if (count_lately(&at->cuts, &at->cut_at, segment, ops_per_cut(n)) >= least)
            boundary = CUS_BOUNDARY_CUT;
    }
    uint32_t forks = FORKS + (segment->begun > LATELY ? FORKS_MORE : 0);
    if (cut == CUS_CUT_DIVERGED &&
        count_lately(&at->forks, &at->fork_at, segment, FORKS_EACH) >= forks)
        boundary = CUS_BOUNDARY_FORK;
    if (boundary) {
        end_at(plan, at, boundary, segment);
    } else if (lost) {
        cus_advice_bad(plan, segment);
        cus_learn_drop_for(plan, segment, CUS_RETRY_LOST);
    }
}

/* It is no alias any more: a node that came as often as it did. The segment in front of it is
 * formed anew, with it. */
static void part_again(struct cus_plan *plan, struct cus_node *alias) {
    const struct cus_node *before = alias->key.parent;
    alias->join = NULL;
    alias->visits = plan->limits.warmup;
    if (before->segment)
        cus_learn_drop(plan, before->segment);
}

/* Up to the end of that segment all of its ops go out by themselves. Where that is one op, or where
 * one would be left in front, these would never be in a graph again: the path joins the other one
 * later, with a node of its own here. */
void cus_learn_met(struct cus_plan *plan, struct cus_node *alias) {
    struct cus_node *node = alias->join;
    struct cus_segment *segment = node->segment;
    struct cus_node *before = (struct cus_node *)(uintptr_t)node->key.parent;
    if (node == segment->nodes[1] || node == segment->nodes[segment->n - 1]) {
        part_again(plan, alias);
        return;
    }
    if (++before->forks >= FORKS)
        end_at(plan, before, CUS_BOUNDARY_FORK, segment);
}

/* Seldom, and less and less: while ops are timed they take the long way. A pause that was seen is
 * looked for again at once. */
bool cus_learn_wants_time(const struct cus_segment *segment) {
    bool now = segment->begun >= TIMED_FROM && (segment->begun & (segment->begun - 1)) == 0;
    return CUS_HAZARD(F6) && (now || segment->gaps);
}

/* Did much of the time of the `n` ops that were timed go into one pause? Where the host takes long
 * from op to op it is none that only lasts as long as a few of these do: the GPU waits for the host
 * there anyway, and each end of a segment that is too many costs the host a graph. */
static bool paused(const struct cus_plan *plan, uint32_t n) {
    uint64_t longest = plan->gap.longest, all = plan->gap.last - plan->gap.first;
    return longest >= GAP_NS && longest * GAP_PART >= all &&
           longest * (n - 2) >= GAP_OPS * (all - longest);
}

/* A pause that much of the segment's time goes into, at the same place each time. */
void cus_learn_gap(struct cus_plan *plan, struct cus_segment *segment) {
    if (!plan->timed)
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
