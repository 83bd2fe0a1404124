/*
 * Keeps all steps, and takes the medians of the typical ones. clock.c calls it, one thread at a
 * time.
 */
#include "tools/whatif/steps.h"

#include <stdlib.h>
#include <string.h>

#include "tools/whatif/driver.h"

static struct {
    struct whatif_step *steps;
    size_t n_steps, room;
} here;

void whatif_steps_add(const struct whatif_step *step) {
    if (here.n_steps == here.room) {
        here.room = here.room ? 2 * here.room : 256;
        here.steps = whatif_need(realloc(here.steps, here.room * sizeof *here.steps));
    }
    here.steps[here.n_steps++] = *step;
}

static int by_ops(const void *a, const void *b) {
    uint64_t x = ((const struct whatif_step *)a)->ops, y = ((const struct whatif_step *)b)->ops;
    return x < y ? -1 : x > y;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median(double *values, size_t n) {
    qsort(values, n, sizeof *values, by_value);
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

/* How many ops the steps have in which most ops are. */
static uint64_t find_typical(void) {
    struct whatif_step *sorted = whatif_need(malloc(here.n_steps * sizeof *sorted));
    uint64_t best = 0, most = 0;
    memcpy(sorted, here.steps, here.n_steps * sizeof *sorted);
    qsort(sorted, here.n_steps, sizeof *sorted, by_ops);
    for (size_t i = 0, n = 0; i < here.n_steps; i++) {
        n = i && sorted[i].ops == sorted[i - 1].ops ? n + 1 : 1;
        if (n * sorted[i].ops > most) {
            most = n * sorted[i].ops;
            best = sorted[i].ops;
        }
    }
    free(sorted);
    return best;
}

static void find_curve(struct whatif_times *times) {
    times->recorded_first = 0;
    for (size_t i = 0; i < here.n_steps && times->n_curve < CUS_CURVE_MAX; i++) {
        const struct whatif_step *step = &here.steps[i];
        if (step->ops != times->step_ops)
            continue;
        if (times->n_curve < CUS_CURVE_FIRST)
            times->recorded_first += step->recorded;
        times->curve[times->n_curve++] = (uint64_t)(step->ns + 0.5);
    }
    times->first = (double)cus_curve_first(times->curve, (uint32_t)times->n_curve);
}

static void sum_up(struct whatif_times *times) {
    size_t of = 0, n = 0;
    double *ns = whatif_need(malloc(here.n_steps * sizeof *ns)),
           *recorded = whatif_need(malloc(here.n_steps * sizeof *recorded));
    times->steps = here.n_steps;
    times->step_ops = find_typical();
    times->total = times->recorded_total = 0;
    times->own = times->calls = times->waits = times->busy = 0;
    for (size_t i = 0; i < here.n_steps; i++)
        times->typical += here.steps[i].ops == times->step_ops;
    for (size_t i = 0; i < here.n_steps; i++) {
        const struct whatif_step *step = &here.steps[i];
        times->total += step->ns;
        times->recorded_total += step->recorded;
        if (step->ops != times->step_ops || of++ < times->typical / 2)
            continue;
        ns[n] = step->ns;
        recorded[n++] = step->recorded;
        times->own += step->own;
        times->calls += step->calls;
        times->waits += step->waits;
        times->busy += step->busy;
    }
    times->step = median(ns, n);
    times->recorded_step = median(recorded, n);
    times->fast = ns[n / 10]; /* sorted by now */
    times->recorded_fast = recorded[n / 10];
    times->own /= (double)n;
    times->calls /= (double)n;
    times->waits /= (double)n;
    times->busy /= (double)n;
    free(ns);
    free(recorded);
}

void whatif_steps_sum(struct whatif_times *times) {
    *times =
        (struct whatif_times){.step = -1, .recorded_step = -1, .total = -1, .recorded_total = -1};
    times->fast = times->recorded_fast = times->first = times->recorded_first = -1;
    times->own = times->calls = times->waits = times->busy = -1;
    if (!here.n_steps)
        return;
    sum_up(times);
    find_curve(times);
}
