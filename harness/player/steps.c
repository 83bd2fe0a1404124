/*
 * Finds the steps of a program: from one wait of the host to the next.
 *
 * A program's first steps upload and prepare, and its last steps may be short. The typical steps
 * are those with most of the work; their number of calls tells them from the others.
 */
#include <stdlib.h>
#include <string.h>

#include "harness/player/player.h"

static int by_length(const void *a, const void *b) {
    size_t x = *(const size_t *)a, y = *(const size_t *)b;
    return (x > y) - (x < y);
}

static int by_time(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Do both steps issue the same calls, without a thread's first call? */
static bool alike(const struct player_op *a, const struct player_op *b, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (a[i].what != b[i].what || a[i].thread != b[i].thread || a[i].first || b[i].first)
            return false;
    return true;
}

static uint64_t by_itself(const struct player_op *ops, size_t n) {
    uint64_t ns = 0;
    for (size_t i = 0; i < n; i++)
        ns += ops[i].gap_ns;
    return ns;
}

/* Other work of the host only makes steps slower. So all steps that equal the fastest typical
 * one take the times between its calls. */
static void all_as_the_fastest(struct player *p) {
    const struct player_op *fastest = NULL;
    uint64_t least = UINT64_MAX;
    struct player_op *ops = p->ops;
    for (size_t i = 0; i < p->n_steps; ops += p->steps[i++].n_ops) {
        size_t n = p->steps[i].n_ops;
        if (p->steps[i].typical && alike(ops, ops, n) && by_itself(ops, n) < least) {
            least = by_itself(ops, n);
            fastest = ops;
        }
    }
    ops = p->ops;
    for (size_t i = 0; i < p->n_steps; ops += p->steps[i++].n_ops)
        if (fastest && p->steps[i].typical && alike(ops, fastest, p->steps[i].n_ops))
            for (size_t k = 0; k < p->steps[i].n_ops; k++)
                ops[k].gap_ns = fastest[k].gap_ns;
}

/* The length of steps that together hold most ops; the larger one if two are equal. */
static size_t typical_length(const struct player *p) {
    size_t *lengths = player_need(calloc(p->n_steps + 1, sizeof *lengths));
    size_t best = 0, most = 0;
    for (size_t i = 0; i < p->n_steps; i++)
        lengths[i] = p->steps[i].n_ops;
    qsort(lengths, p->n_steps, sizeof *lengths, by_length);
    for (size_t i = 0, end; i < p->n_steps; i = end) {
        for (end = i; end < p->n_steps && lengths[end] == lengths[i];)
            end++;
        if ((end - i) * lengths[i] >= most) {
            most = (end - i) * lengths[i];
            best = lengths[i];
        }
    }
    free(lengths);
    return best;
}

void player_steps(struct player *p) {
    for (size_t i = 0; i < p->n_ops; i++)
        p->n_steps += p->ops[i].last;
    p->steps = player_need(calloc(p->n_steps + 1, sizeof *p->steps));
    for (size_t i = 0, step = 0; i < p->n_ops; i++) {
        p->steps[step].n_ops++;
        step += p->ops[i].last;
    }
    size_t length = typical_length(p);
    for (size_t i = 0; i < p->n_steps; i++)
        p->steps[i].typical = p->steps[i].n_ops == length;
    /* No one waits for a program's start, so steps that are not measured run as fast as
     * possible. */
    for (size_t i = 0, step = 0; i < p->n_ops; i++) {
        if (!p->steps[step].typical)
            p->ops[i].gap_ns = 0;
        step += p->ops[i].last;
    }
    if (p->pace == PLAYER_FASTEST)
        all_as_the_fastest(p);
}

uint64_t player_step_ns(const struct player *p) {
    uint64_t *times = player_need(calloc(p->n_steps + 1, sizeof *times)), median;
    size_t n = 0;
    for (size_t i = 0; i < p->n_steps; i++)
        if (p->steps[i].typical)
            times[n++] = p->steps[i].ns;
    qsort(times, n, sizeof *times, by_time);
    median = n ? times[n / 2] : 0;
    free(times);
    return median;
}

void player_curve(struct player *p) {
    for (size_t i = 0; i < p->n_steps && p->n_curve < CUS_CURVE_MAX; i++)
        if (p->steps[i].typical)
            p->curve[p->n_curve++] = p->steps[i].ns;
}
