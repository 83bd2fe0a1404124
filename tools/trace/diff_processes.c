/*
 * diff of folders: one row for two processes, or for one that has none beside it. verb_diff.c says
 * which two, and opens them one pair after another. It never prints.
 */
#include <stdlib.h>
#include <string.h>

#include "tools/trace/diff.h"
#include "tools/trace/report.h"

enum {
    RANK_A,
    RANK_B,
    PROGRAM,
    OPS_A,
    OPS_B,
    SHARE_A,
    SHARE_B,
    GRAPHS_A,
    GRAPHS_B,
    STEPS_A,
    STEPS_B,
    ALIGNED,
    GAINED,
    LOST,
    STEP_A,
    STEP_B,
    TIME_A,
    TIME_B,
    IN,
    TRACE_A,
    TRACE_B
};

static const struct table_column columns[] = {
    {"rank_a", TABLE_COUNT},     {"rank_b", TABLE_COUNT},   {"program", TABLE_TEXT},
    {"ops_a", TABLE_COUNT},      {"ops_b", TABLE_COUNT},    {"share_a", TABLE_PERCENT},
    {"share_b", TABLE_PERCENT},  {"graphs_a", TABLE_COUNT}, {"graphs_b", TABLE_COUNT},
    {"steps_a", TABLE_COUNT},    {"steps_b", TABLE_COUNT},  {"steps_aligned", TABLE_COUNT},
    {"gained", TABLE_COUNT},     {"lost", TABLE_COUNT},     {"step_avg_a_ns", TABLE_NS},
    {"step_avg_b_ns", TABLE_NS}, {"time_a_ns", TABLE_NS},   {"time_b_ns", TABLE_NS},
    {"in", TABLE_TEXT},          {"trace_a", TABLE_TEXT},   {"trace_b", TABLE_TEXT},
};
enum { COLUMNS = sizeof columns / sizeof *columns };

void diff_processes_begin(struct table *table) {
    table_init(table, "diff", columns, COLUMNS, "-rank_a");
    table->spare =
        "trace_b,trace_a,time_a_ns,time_b_ns,graphs_a,graphs_b,steps_a,steps_b,in,program";
}

/* Of the steps that have one beside them. */
static void add_steps(const struct look *a, const struct look *b, const struct diff_pairs *pairs,
                      union table_value *row) {
    uint64_t time[2] = {0, 0};
    for (size_t i = 0; i < pairs->n; i++) {
        const struct diff_pair *pair = &pairs->at[i];
        if (pair->a == CST_NONE || pair->b == CST_NONE)
            continue;
        const struct model_step *x = &a->model->steps[pair->a], *y = &b->model->steps[pair->b];
        time[0] += x->end_ns - x->begin_ns;
        time[1] += y->end_ns - y->begin_ns;
        for (struct diff_place at = {0}; diff_next(a, b, pair, &at);) {
            row[GAINED].number += !model_in_graph(at.a) && model_in_graph(at.b);
            row[LOST].number += model_in_graph(at.a) && !model_in_graph(at.b);
        }
    }
    row[ALIGNED].number = (int64_t)pairs->aligned;
    for (unsigned side = 0; side < 2 && pairs->aligned; side++)
        row[STEP_A + side].number = (int64_t)(time[side] / pairs->aligned);
}

static void add_side(const struct look *look, unsigned side, union table_value *row,
                     struct table *table) {
    const struct cst_trace *trace = look->trace;
    const char *slash = strrchr(trace->path, '/');
    char program[256];
    row[RANK_A + side].number = report_rank(look);
    row[OPS_A + side].number = look->model->n_ops;
    row[SHARE_A + side].real = look_share(look->model->in_graphs, look->model->n_ops);
    row[GRAPHS_A + side].number = (int64_t)look->model->graph_launches;
    row[STEPS_A + side].number = look->model->n_steps;
    row[TIME_A + side].number = (int64_t)(trace->end_ns - trace->begin_ns);
    row[TRACE_A + side].text = table_keep(table, slash ? slash + 1 : trace->path);
    report_program(look, program, sizeof program);
    row[PROGRAM].text = table_keep(table, program);
    look_note_imported(look, table);
}

void diff_processes_add(const struct look *a, const struct look *b, struct table *table) {
    struct diff_pairs pairs = {0};
    union table_value *row = table_row(table);
    if (!row)
        return;
    for (unsigned i = 0; i < COLUMNS; i++)
        if (columns[i].unit != TABLE_TEXT)
            row[i] = table_unknown(columns[i].unit);
    if (b)
        add_side(b, 1, row, table);
    if (a)
        add_side(a, 0, row, table);
    row[IN].text = !b ? "A" : !a ? "B" : "both";
    if (!a || !b)
        return;
    row[GAINED].number = row[LOST].number = 0;
    if (diff_align(a, b, &pairs))
        add_steps(a, b, &pairs, row);
    else
        table->failed = true;
    free(pairs.at);
}
