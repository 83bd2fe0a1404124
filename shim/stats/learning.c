/*
 * Keeps step times and makes the figures of them. stream/why.c adds the steps of an engine under
 * its lock, and asks for the figures at a report. Never calls the driver, allocates or reads a
 * clock.
 */
#include "shim/stats/learning.h"

#include <stddef.h>

#include "shim/base/curve.h"

_Static_assert((int)CUS_LEARNING_STEPS <= (int)CUS_CURVE_MAX, "a curve");

enum {
    SHORT = 8,    /* a step is short if so many of it have fewer ops than a typical one */
    SAME_MIN = 3, /* fewer steps of a length say nothing: they set the program up */
    ALONE = 20,   /* a step has no graphs if at most one op of so many was in one */
};

bool cus_learning_wants(const struct cus_learning *learning) {
    return learning->steps < CUS_LEARNING_STEPS || learning->steps % CUS_LEARNING_EVERY == 0;
}

bool cus_learning_counts(const struct cus_learning *learning, uint64_t ops) {
    return ops * SHORT >= learning->length;
}

static bool alike(const struct cus_learning_step *a, const struct cus_learning_step *b) {
    return a->ops <= 2 * (uint64_t)b->ops && b->ops <= 2 * (uint64_t)a->ops;
}

/* The step that is at most twice as long as others, or half, which have most ops together with it.
 * NULL: there are too few. */
static const struct cus_learning_step *typical(const struct cus_learning *learning, uint32_t n) {
    const struct cus_learning_step *best = NULL;
    uint64_t most = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t ops = 0, same = 0;
        for (uint32_t k = 0; k < n; k++)
            if (alike(&learning->first[i], &learning->first[k])) {
                ops += learning->first[k].ops;
                same++;
            }
        if (same >= SAME_MIN && ops > most) {
            most = ops;
            best = &learning->first[i];
        }
    }
    return best;
}

/* The table is full. Many programs wait for single ops between their steps: such a wait becomes a
 * part of the next step, and there is room for more. */
static void join_short(struct cus_learning *learning) {
    const struct cus_learning_step *like = typical(learning, CUS_LEARNING_STEPS);
    struct cus_learning_step joined = {.ops = 0};
    uint32_t n = 0;
    learning->length = like ? like->ops : 1;
    for (uint32_t i = 0; i < CUS_LEARNING_STEPS; i++) {
        struct cus_learning_step step = learning->first[i];
        joined.ns += step.ns;
        joined.saved_ns += step.saved_ns;
        if (!cus_learning_counts(learning, step.ops))
            continue;
        step.ns = step.ns ? joined.ns : 0;
        step.saved_ns = joined.saved_ns;
        learning->first[n++] = step;
        joined = (struct cus_learning_step){.ops = 0};
    }
    learning->steps = n;
}

/* A step that is longer than all first ones together begins the program's work: those only led up
 * to it. */
void cus_learning_add(struct cus_learning *learning, const struct cus_learning_step *step) {
    if (learning->steps >= CUS_LEARNING_STEPS && step->ops > learning->ops) {
        learning->steps = learning->ops = learning->n_late = 0;
        learning->length = 0;
    }
    bool wanted = cus_learning_wants(learning);
    uint64_t at = learning->steps++;
    if (at < CUS_LEARNING_STEPS) {
        learning->first[at] = *step;
        learning->ops += step->ops;
        if (at + 1 == CUS_LEARNING_STEPS && !learning->length)
            join_short(learning);
    } else if (wanted) {
        learning->late[learning->n_late++ % CUS_LEARNING_LATE] = *step;
    }
}

/* ---- figures ---- */

struct steps {
    const struct cus_learning_step *at[CUS_LEARNING_STEPS];
    uint32_t n;
};

static void gather(const struct cus_learning_step *from, uint32_t n,
                   const struct cus_learning_step *like, struct steps *to) {
    to->n = 0;
    for (uint32_t i = 0; i < n; i++)
        if (alike(&from[i], like))
            to->at[to->n++] = &from[i];
}

/* Puts `value` into its place among the `n` sorted values. */
static void insert(uint64_t *sorted, uint32_t n, uint64_t value) {
    for (; n && sorted[n - 1] > value; n--)
        sorted[n] = sorted[n - 1];
    sorted[n] = value;
}

static uint64_t late(const struct steps *first, const struct steps *later) {
    uint64_t sorted[CUS_LEARNING_STEPS];
    uint32_t n = 0;
    const struct steps *steps = later->n ? later : first;
    for (uint32_t i = later->n ? 0 : first->n / 2; i < steps->n; i++)
        if (steps->at[i]->ns)
            insert(sorted, n++, steps->at[i]->ns);
    return n ? sorted[n / 2] : 0;
}

static bool is_alone(const struct cus_learning_step *step) {
    return step->in_graphs * (uint64_t)ALONE <= step->ops;
}

/* The median of the steps without graphs, but for the first step. If there is none: of the first
 * ten. */
static uint64_t plain(const struct steps *steps, bool seen) {
    uint64_t sorted[CUS_LEARNING_STEPS];
    uint32_t n = 0;
    for (uint32_t i = 1; i < steps->n && (seen || i <= CUS_CURVE_FIRST); i++) {
        int64_t ns = (int64_t)steps->at[i]->ns + steps->at[i]->saved_ns;
        if (steps->at[i]->ns && ns > 0 && (!seen || is_alone(steps->at[i])))
            insert(sorted, n++, (uint64_t)ns);
    }
    return n ? sorted[n / 2] : 0;
}

static void set_curve(struct cus_learned *learned, const struct steps *steps) {
    uint64_t ns[CUS_LEARNING_STEPS] = {0};
    for (uint32_t i = 0; i < steps->n; i++)
        ns[i] = steps->at[i]->ns;
    bool skips = !ns[0]; /* when the first step began is not known */
    uint32_t at =
        cus_curve_reached(ns + skips, steps->n - skips, learned->plain_ns, learned->late_ns);
    learned->gain_at = at ? at + skips : 0;
    if (steps->n <= CUS_CURVE_FIRST || !learned->plain_ns)
        return;
    learned->first_ten_ns = cus_curve_first(ns + 1, steps->n - 1);
    uint64_t ten = CUS_CURVE_FIRST * learned->plain_ns;
    learned->percent = (uint32_t)((learned->first_ten_ns * 100 + ten / 2) / ten);
}

struct cus_learned cus_learning_sum(const struct cus_learning *learning) {
    uint64_t first = learning->steps, later = learning->n_late;
    uint32_t n_first = first < CUS_LEARNING_STEPS ? (uint32_t)first : (uint32_t)CUS_LEARNING_STEPS;
    uint32_t n_later = later < CUS_LEARNING_LATE ? (uint32_t)later : (uint32_t)CUS_LEARNING_LATE;
    const struct cus_learning_step *like = typical(learning, n_first);
    struct cus_learned learned = {.steps = 0};
    struct steps early, lately;
    if (!like)
        return learned;
    gather(learning->first, n_first, like, &early);
    gather(learning->late, n_later, like, &lately);
    learned.steps = early.n + lately.n;
    for (uint32_t i = 1; i < early.n; i++)
        learned.plain_seen |= is_alone(early.at[i]);
    learned.plain_ns = plain(&early, learned.plain_seen);
    learned.late_ns = late(&early, &lately);
    set_curve(&learned, &early);
    for (; learned.n_first < early.n && learned.n_first < CUS_LEARNING_SHOWN; learned.n_first++)
        learned.first[learned.n_first] = *early.at[learned.n_first];
    return learned;
}
