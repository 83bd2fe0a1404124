/*
 * Makes strategies for tools/replay out of the cells, and measures them a batch at a time.
 * verb_bench.c calls it. It never starts a player itself.
 */
#include "tools/bench/grid.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const bench_strategies[] = {"eager", "piecewise", "full", "as-recorded", NULL};

/* ---- which there are ---- */

static bool add(struct bench_grid *grid, enum bench_strategy strategy, unsigned segment,
                const struct bench_breaks *breaks) {
    void *cells = realloc(grid->cells, (grid->n + 1) * sizeof *grid->cells);
    if (!cells)
        return false;
    grid->cells = cells;
    grid->cells[grid->n++] =
        (struct bench_cell){.strategy = strategy, .segment = segment, .breaks = breaks};
    return true;
}

bool bench_grid_make(struct bench_grid *grid, const struct bench_plan *plan,
                     const struct bench_lists *lists) {
    *grid = (struct bench_grid){0};
    bool good = add(grid, BENCH_EAGER, 0, NULL);
    for (unsigned l = 0; l < lists->n && plan->strategies[BENCH_PIECEWISE]; l++)
        for (unsigned p = 0; p < plan->n_segments; p++)
            good = good && add(grid, BENCH_PIECEWISE, plan->segments[p], &lists->lists[l]);
    for (unsigned p = 0; p < plan->n_segments && plan->strategies[BENCH_FULL]; p++)
        good = good && add(grid, BENCH_FULL, plan->segments[p], NULL);
    if (plan->strategies[BENCH_AS_RECORDED])
        good = good && add(grid, BENCH_AS_RECORDED, 0, NULL);
    grid->batches = grid->n > 1 ? (grid->n - 1 + BENCH_BATCH - 1) / BENCH_BATCH : 1;
    return good;
}

void bench_grid_free(struct bench_grid *grid) {
    for (unsigned i = 0; i < grid->n; i++)
        replay_free(&grid->cells[i].measured, 1);
    free(grid->cells);
    *grid = (struct bench_grid){0};
}

double bench_grid_seconds(const struct bench_grid *grid, const struct cst_trace *trace,
                          const struct replay_setup *setup) {
    const double start = 1, call = 4e-6; /* of a player; of the plain driver */
    double pass = (double)trace->replay.n_works * call;
    uint64_t steps = 0;
    for (size_t i = 0; i < trace->replay.n_works; i++) {
        const struct cst_work *work = trace->replay.works[i];
        pass += setup->pace != REPLAY_UNPACED ? (double)work->gap_ns * 1e-9 : 0;
        steps += work->head.flags == CST_WORK_SYNC;
    }
    double players = grid->n - 1 + grid->batches;
    double warm = fmax(setup->warm, 64.0 / (double)(steps + 1));
    double measured = setup->rounds * fmin(20, ceil(0.05 / pass));
    return players * (start + pass * (1 + warm + measured));
}

/* ---- a batch ---- */

struct batch {
    struct replay_strategy strategies[BENCH_BATCH + 1];
    struct replay_measured measured[BENCH_BATCH + 1];
    char names[BENCH_BATCH + 1][BENCH_LABEL + 64]; /* in messages */
    char sizes[BENCH_BATCH + 1][2][16];
    const char *keys[BENCH_SETTINGS + 2], *values[BENCH_BATCH + 1][BENCH_SETTINGS + 2];
};

/* The plan's settings, and behind them the sizes of graphs. */
static void set_settings(struct batch *batch, unsigned i, const struct bench_cell *cell,
                         const struct bench_plan *plan) {
    struct replay_strategy *strategy = &batch->strategies[i];
    unsigned n = plan->n_settings;
    for (unsigned k = 0; k < n; k++) {
        batch->keys[k] = plan->names[k];
        batch->values[i][k] = plan->values[k];
    }
    snprintf(batch->sizes[i][0], sizeof batch->sizes[i][0], "%u", cell->segment);
    snprintf(batch->sizes[i][1], sizeof batch->sizes[i][1], "%u",
             plan->first < cell->segment ? plan->first : cell->segment);
    for (unsigned k = 0; k < 2; k++)
        batch->values[i][n + k] = batch->sizes[i][k];
    batch->keys[n] = "segment_max";
    batch->keys[n + 1] = "segment_first";
    strategy->names = batch->keys;
    strategy->values = batch->values[i];
    strategy->n_settings = n + (plan->first ? 2 : 1);
}

static void set_up(struct batch *batch, unsigned i, const struct bench_cell *cell,
                   const struct bench_plan *plan) {
    struct replay_strategy *strategy = &batch->strategies[i];
    *strategy = (struct replay_strategy){.name = bench_strategies[cell->strategy]};
    if (cell->strategy == BENCH_EAGER)
        return;
    strategy->preload = plan->preload;
    strategy->eager = plan->eager;
    if (cell->strategy == BENCH_AS_RECORDED) {
        strategy->config = plan->recorded;
        strategy->names = plan->names;
        strategy->values = plan->values;
        strategy->n_settings = plan->n_settings;
        return;
    }
    snprintf(batch->names[i], sizeof batch->names[i], "%s, segments of %u%s%s",
             bench_strategies[cell->strategy], cell->segment, cell->breaks ? ", breaks " : "",
             cell->breaks ? cell->breaks->label : "");
    strategy->name = batch->names[i];
    strategy->mode = bench_strategies[cell->strategy];
    if (cell->breaks)
        strategy->eager = cell->breaks->eager;
    set_settings(batch, i, cell, plan);
}

/* ---- the plain driver over all batches ---- */

static int by_number(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double middle(double *values, unsigned n) {
    qsort(values, n, sizeof *values, by_number);
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

/* The medians of the batches' figures; `all`: one for each batch. */
static bool join(struct bench_cell *eager, const struct replay_measured *all, unsigned n) {
    double *values = malloc(4 * n * sizeof *values);
    if (!values)
        return false;
    for (unsigned i = 0; i < n; i++) {
        values[i] = all[i].median;
        values[n + i] = all[i].deviation;
        values[2 * n + i] = all[i].p10;
        values[3 * n + i] = all[i].p90;
        eager->measured.n += all[i].n;
        eager->measured.steps += all[i].steps;
        if (all[i].wrong > eager->measured.wrong)
            eager->measured.wrong = all[i].wrong;
    }
    eager->measured.median = eager->eager = middle(values, n);
    eager->measured.deviation = middle(values + n, n);
    eager->measured.p10 = middle(values + 2 * n, n);
    eager->measured.p90 = middle(values + 3 * n, n);
    eager->measured.first_of_eager = 1;
    free(values);
    return true;
}

/* What replay_measure is told to tell: one thread measures one grid at a time. */
static struct {
    bench_told_fn *told;
    unsigned batch, batches;
} here;

static void tell(double part) {
    here.told((here.batch + part) / here.batches);
}

bool bench_grid_measure(struct bench_grid *grid, const struct bench_plan *plan,
                        const struct replay_setup *setup, struct replay_facts *facts,
                        replay_say_fn *say, bench_told_fn *told) {
    struct batch *batch = calloc(1, sizeof *batch);
    struct replay_measured *eager = calloc(grid->batches, sizeof *eager);
    bool good = batch && eager;
    unsigned done = 1, measured = 0;
    struct replay_setup telling = *setup;
    telling.told = tell;
    here.told = told;
    here.batches = grid->batches;
    for (; good && measured < grid->batches; measured++) {
        unsigned n = grid->n - done < BENCH_BATCH ? grid->n - done : BENCH_BATCH;
        set_up(batch, 0, &grid->cells[0], plan);
        for (unsigned i = 0; i < n; i++)
            set_up(batch, i + 1, &grid->cells[done + i], plan);
        here.batch = measured;
        good = replay_measure(&telling, batch->strategies, n + 1, facts, batch->measured, say);
        eager[measured] = batch->measured[0];
        for (unsigned i = 0; i < n; i++) {
            grid->cells[done + i].measured = batch->measured[i + 1];
            grid->cells[done + i].eager = batch->measured[0].median;
        }
        done += n;
    }
    if (!batch || !eager || (good && !join(&grid->cells[0], eager, grid->batches))) {
        say("not enough memory");
        good = false;
    }
    if (eager)
        replay_free(eager, measured);
    free(eager);
    free(batch);
    return good;
}
