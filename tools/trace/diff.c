/*
 * Compares two traces. It pairs the n-th step of a signature in A with the n-th in B, and their
 * ops one by one, since equal signatures have equal ops, but for records of events. Where no step
 * finds one so, or a trace is an imported profile, which knows less of names and shapes, those left
 * over are paired by the names of their ops alone. verb_diff.c calls it. It never pairs by time.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/trace/diff.h"
#include "tools/trace/facts.h"
#include "tools/trace/report.h"

#define XXH_INLINE_ALL
#include "xxhash.h"

struct occurrence {
    uint64_t signature; /* of what is compared now */
    uint32_t step;
};

static int by_signature(const void *x, const void *y) {
    const struct occurrence *a = x, *b = y;
    if (a->signature != b->signature)
        return a->signature < b->signature ? -1 : 1;
    return a->step < b->step ? -1 : a->step > b->step;
}

/* A's steps before those that B alone has. */
static int by_pair(const void *x, const void *y) {
    const struct diff_pair *a = x, *b = y;
    if (a->signature != b->signature)
        return a->signature < b->signature ? -1 : 1;
    if (a->a != b->a)
        return a->a < b->a ? -1 : 1;
    return a->b < b->b ? -1 : a->b > b->b;
}

static struct occurrence *occurrences(const struct look *look) {
    struct occurrence *at = malloc((look->model->n_steps + (size_t)1) * sizeof *at);
    for (uint32_t i = 0; at && i < look->model->n_steps; i++)
        at[i] = (struct occurrence){look->signatures[i], i};
    return at;
}

static uint64_t names_signature(const struct look *look, uint32_t number) {
    const struct model_step *step = &look->model->steps[number];
    uint64_t signature = 0;
    for (uint32_t i = 0; i < step->n_ops; i++) {
        const struct cst_op *op = look_op(look, step->stream, step->first + i)->op;
        const char *name = names_of(look->names, op->kind);
        if (!look_is_event(look, op))
            signature = XXH3_64bits_withSeed(name, strlen(name),
                                             signature * 31 + look->trace->kinds[op->kind]->op);
    }
    return signature;
}

/* Takes out of both what they have in common, and leaves the rest in front. */
static void take_common(const struct look *a, struct occurrence *x, size_t *n, struct occurrence *y,
                        size_t *m, struct diff_pairs *pairs) {
    size_t i = 0, j = 0, rest_x = 0, rest_y = 0;
    qsort(x, *n, sizeof *x, by_signature);
    qsort(y, *m, sizeof *y, by_signature);
    while (i < *n || j < *m) {
        if (j == *m || (i < *n && x[i].signature < y[j].signature)) {
            x[rest_x++] = x[i++];
        } else if (i == *n || y[j].signature < x[i].signature) {
            y[rest_y++] = y[j++];
        } else {
            pairs->at[pairs->n++] =
                (struct diff_pair){a->signatures[x[i].step], x[i].step, y[j].step};
            i++, j++;
        }
    }
    *n = rest_x;
    *m = rest_y;
}

static void take_names(const struct look *a, struct occurrence *x, size_t *n, const struct look *b,
                       struct occurrence *y, size_t *m, struct diff_pairs *pairs) {
    for (size_t i = 0; i < *n; i++)
        x[i].signature = names_signature(a, x[i].step);
    for (size_t i = 0; i < *m; i++)
        y[i].signature = names_signature(b, y[i].step);
    take_common(a, x, n, y, m, pairs);
}

static void align_all(const struct look *a, struct occurrence *x, const struct look *b,
                      struct occurrence *y, struct diff_pairs *pairs) {
    size_t n = a->model->n_steps, m = b->model->n_steps, by_signatures;
    take_common(a, x, &n, y, &m, pairs);
    by_signatures = pairs->n;
    if (!by_signatures || facts_imported(a->facts) || facts_imported(b->facts))
        take_names(a, x, &n, b, y, &m, pairs);
    pairs->aligned = pairs->n;
    pairs->by_names = pairs->n - by_signatures;
    for (size_t i = 0; i < n; i++)
        pairs->at[pairs->n++] = (struct diff_pair){a->signatures[x[i].step], x[i].step, CST_NONE};
    for (size_t i = 0; i < m; i++)
        pairs->at[pairs->n++] = (struct diff_pair){b->signatures[y[i].step], CST_NONE, y[i].step};
    qsort(pairs->at, pairs->n, sizeof *pairs->at, by_pair);
}

bool diff_align(const struct look *a, const struct look *b, struct diff_pairs *pairs) {
    struct occurrence *x = occurrences(a), *y = occurrences(b);
    pairs->at = malloc((a->model->n_steps + (size_t)b->model->n_steps + 1) * sizeof *pairs->at);
    bool made = x && y && pairs->at;
    if (made)
        align_all(a, x, b, y, pairs);
    free(x);
    free(y);
    return made;
}

/* Does an op of A have the name of one of B? False without memory. */
static bool shares_name(const struct look *a, const struct look *b) {
    struct report_rows rows = {0};
    bool shares = false;
    for (uint32_t i = 0; i < a->model->n_ops; i++) {
        uint32_t kind = a->model->ops[i].op->kind;
        report_row(&rows, a->trace->kinds[kind]->op, names_of(a->names, kind));
    }
    uint32_t known = rows.n;
    for (uint32_t i = 0; i < b->model->n_ops && !shares; i++) {
        uint32_t kind = b->model->ops[i].op->kind;
        shares = report_row(&rows, b->trace->kinds[kind]->op, names_of(b->names, kind)) < known;
    }
    report_rows_free(&rows);
    return shares;
}

/* Why no step has one beside it. */
static void note_none(const struct look *a, const struct look *b, struct table *table) {
    const struct model *x = a->model, *y = b->model;
    char text[256];
    if (!x->n_ops || !y->n_ops)
        snprintf(text, sizeof text, "trace %s has no ops", x->n_ops ? "B" : "A");
    else if (!shares_name(a, b))
        snprintf(text, sizeof text, "no op of A has the name of an op of B");
    else
        snprintf(text, sizeof text,
                 "no step of A has the names of a step of B in their order; A has %u steps of %.1f "
                 "ops, B %u of %.1f",
                 x->n_steps, (double)x->n_ops / x->n_steps, y->n_steps,
                 (double)y->n_ops / y->n_steps);
    table_note(table, "not_aligned", text);
}

static void notes(const struct look *a, const struct look *b, const struct diff_pairs *pairs,
                  struct table *table) {
    table_note(table, "trace_a", a->trace->path);
    table_note(table, "trace_b", b->trace->path);
    table_note_number(table, "ops_a", a->model->n_ops);
    table_note_number(table, "ops_b", b->model->n_ops);
    table_note_number(table, "in_graphs_a", (int64_t)a->model->in_graphs);
    table_note_number(table, "in_graphs_b", (int64_t)b->model->in_graphs);
    table_note_number(table, "steps_aligned", (int64_t)pairs->aligned);
    if (pairs->by_names)
        table_note_number(table, "steps_aligned_by_names", (int64_t)pairs->by_names);
    table_note_number(table, "steps_only_a", (int64_t)(a->model->n_steps - pairs->aligned));
    table_note_number(table, "steps_only_b", (int64_t)(b->model->n_steps - pairs->aligned));
    if (!pairs->aligned)
        note_none(a, b, table);
    if (facts_imported(a->facts) || facts_imported(b->facts)) {
        char text[256];
        snprintf(text, sizeof text, "%s imported " FACTS_IMPORT,
                 !facts_imported(b->facts)   ? "A is"
                 : !facts_imported(a->facts) ? "B is"
                                             : "A and B are");
        table_note(table, "imported", text);
    }
    if (a->trace->lost_records || b->trace->lost_records)
        table_note(table, "lost", "records were lost: see cusplice info");
}

/* ---- by kernel ---- */

enum {
    CALLS_A,
    CALLS_B,
    ALIGNED,
    ONLY_A,
    ONLY_B,
    GRAPHS_A,
    GRAPHS_B,
    GAINED,
    LOST,
    HOST_A,
    HOST_B,
    DELTA,
    BREAKS_A,
    BREAKS_B,
    IN,
    NAME
};

static const struct table_column kernel_columns[] = {
    {"calls_a", TABLE_COUNT},     {"calls_b", TABLE_COUNT},  {"aligned", TABLE_COUNT},
    {"only_a", TABLE_COUNT},      {"only_b", TABLE_COUNT},   {"in_graphs_a", TABLE_COUNT},
    {"in_graphs_b", TABLE_COUNT}, {"gained", TABLE_COUNT},   {"lost", TABLE_COUNT},
    {"host_a_ns", TABLE_NS},      {"host_b_ns", TABLE_NS},   {"host_delta_ns", TABLE_NS},
    {"breaks_a", TABLE_COUNT},    {"breaks_b", TABLE_COUNT}, {"in", TABLE_TEXT},
    {"name", TABLE_TEXT},
};
enum { KERNEL_COLUMNS = sizeof kernel_columns / sizeof *kernel_columns };

/* Rows of the kinds of a trace, made where there are none; `side`: 0 for A, 1 for B. */
static uint32_t *rows_of(const struct look *look, unsigned side, struct report_rows *rows,
                         struct table *table) {
    uint32_t *row_of = malloc((look->trace->n_kinds + 1) * sizeof *row_of);
    table->failed |= !row_of;
    for (uint32_t i = 0; !table->failed && i < look->trace->n_kinds; i++)
        row_of[i] = CST_NONE;
    for (uint32_t s = 0; s < look->trace->n_streams; s++)
        for (uint32_t i = 0; !table->failed && i < look->model->streams[s].n_ops; i++) {
            const struct model_op *op = look_op(look, s, i);
            uint32_t kind = op->op->kind;
            if (row_of[kind] == CST_NONE) {
                const char *name = names_of(look->names, kind);
                row_of[kind] = report_row(rows, look->trace->kinds[kind]->op, name);
                union table_value *row = NULL;
                if (row_of[kind] == CST_NONE ||
                    (row_of[kind] >= table->n_rows && !(row = table_row(table)))) {
                    table->failed = true;
                    break;
                }
                if (row)
                    row[NAME].text = name;
            }
            union table_value *row = table->values + (size_t)row_of[kind] * KERNEL_COLUMNS;
            enum look_outcome outcome = look_outcome(op);
            row[CALLS_A + side].number++;
            row[GRAPHS_A + side].number += outcome == LOOK_GRAPH;
            row[HOST_A + side].number += op->op->host_ns;
            row[BREAKS_A + side].number += outcome == LOOK_EAGER && look_ends_run(look, s, i);
        }
    return row_of;
}

bool diff_next(const struct look *a, const struct look *b, const struct diff_pair *pair,
               struct diff_place *place) {
    const struct model_step *x = &a->model->steps[pair->a], *y = &b->model->steps[pair->b];
    while (place->i < x->n_ops && place->j < y->n_ops) {
        place->a = look_op(a, x->stream, x->first + place->i);
        place->b = look_op(b, y->stream, y->first + place->j);
        bool only_a = look_is_event(a, place->a->op) && !look_is_event(b, place->b->op);
        bool only_b = look_is_event(b, place->b->op) && !look_is_event(a, place->a->op);
        place->i += !only_b;
        place->j += !only_a;
        if (!only_a && !only_b) /* else the other recording has it as a call */
            return true;
    }
    return false;
}

static void compare(const struct look *a, const struct look *b, const struct diff_pair *pair,
                    const uint32_t *row_of, struct table *table) {
    for (struct diff_place at = {0}; diff_next(a, b, pair, &at);) {
        union table_value *row = table->values + (size_t)row_of[at.a->op->kind] * KERNEL_COLUMNS;
        row[ALIGNED].number++;
        row[GAINED].number += !model_in_graph(at.a) && model_in_graph(at.b);
        row[LOST].number += model_in_graph(at.a) && !model_in_graph(at.b);
        row[DELTA].number += (int64_t)at.b->op->host_ns - (int64_t)at.a->op->host_ns;
    }
}

void diff_kernels(const struct look *a, const struct look *b, struct table *table) {
    struct diff_pairs pairs = {0};
    struct report_rows rows = {0};
    table_init(table, "diff", kernel_columns, KERNEL_COLUMNS, "calls_a");
    table->spare = "in,host_a_ns,host_b_ns,breaks_a,breaks_b,only_a,only_b,in_graphs_a,in_graphs_b,"
                   "calls_b";
    table->failed |= !diff_align(a, b, &pairs);
    notes(a, b, &pairs, table);
    uint32_t *row_of_a = rows_of(a, 0, &rows, table), *row_of_b = rows_of(b, 1, &rows, table);
    for (size_t i = 0; !table->failed && i < pairs.n; i++)
        if (pairs.at[i].a != CST_NONE && pairs.at[i].b != CST_NONE)
            compare(a, b, &pairs.at[i], row_of_a, table);
    for (size_t i = 0; i < table->n_rows; i++) {
        union table_value *row = table->values + i * KERNEL_COLUMNS;
        row[ONLY_A].number = row[CALLS_A].number - row[ALIGNED].number;
        row[ONLY_B].number = row[CALLS_B].number - row[ALIGNED].number;
        row[IN].text = !row[CALLS_B].number ? "A" : !row[CALLS_A].number ? "B" : "both";
    }
    free(row_of_a);
    free(row_of_b);
    free(pairs.at);
    report_rows_free(&rows);
}

/* ---- by signature ---- */

enum {
    STEPS_A,
    STEPS_B,
    STEPS_ALIGNED,
    OPS,
    IN_A,
    IN_B,
    LAUNCHES_A,
    LAUNCHES_B,
    TIME_A,
    TIME_B,
    STEP_IN,
    SIGNATURE,
    LIST
};

static const struct table_column step_columns[] = {
    {"steps_a", TABLE_COUNT},    {"steps_b", TABLE_COUNT},     {"aligned", TABLE_COUNT},
    {"ops", TABLE_COUNT},        {"in_graphs_a", TABLE_COUNT}, {"in_graphs_b", TABLE_COUNT},
    {"graphs_a", TABLE_COUNT},   {"graphs_b", TABLE_COUNT},    {"time_avg_a_ns", TABLE_NS},
    {"time_avg_b_ns", TABLE_NS}, {"in", TABLE_TEXT},           {"signature", TABLE_TEXT},
    {"list", TABLE_TEXT},
};
enum { STEP_COLUMNS = sizeof step_columns / sizeof *step_columns };

static void add_step(union table_value *row, const struct look *look, uint32_t step,
                     unsigned side) {
    const struct model_step *s = &look->model->steps[step];
    row[STEPS_A + side].number++;
    row[OPS].number = row[OPS].number ? row[OPS].number : s->n_ops;
    row[IN_A + side].number += s->in_graphs;
    row[LAUNCHES_A + side].number += s->graphs;
    row[TIME_A + side].number += (int64_t)(s->end_ns - s->begin_ns);
}

void diff_steps(const struct look *a, const struct look *b, struct table *table) {
    struct diff_pairs pairs = {0};
    union table_value *row = NULL;
    table_init(table, "diff", step_columns, STEP_COLUMNS, "steps_a");
    table->spare = "signature,in,graphs_a,graphs_b,in_graphs_a,in_graphs_b,steps_b";
    table->failed |= !diff_align(a, b, &pairs);
    notes(a, b, &pairs, table);
    for (size_t i = 0; i < pairs.n && !table->failed; i++) {
        const struct diff_pair *pair = &pairs.at[i];
        if (!i || pair[-1].signature != pair->signature) {
            char text[1024];
            const struct look *look = pair->a != CST_NONE ? a : b;
            const struct model_step *step =
                &look->model->steps[pair->a != CST_NONE ? pair->a : pair->b];
            row = table_row(table);
            if (!row)
                break;
            snprintf(text, sizeof text, "%016" PRIx64, pair->signature);
            row[SIGNATURE].text = table_keep(table, text);
            look_list(look, look->model->streams[step->stream].ops + step->first, step->n_ops, text,
                      sizeof text);
            row[LIST].text = table_keep(table, text);
        }
        if (pair->a != CST_NONE)
            add_step(row, a, pair->a, 0);
        if (pair->b != CST_NONE)
            add_step(row, b, pair->b, 1);
        row[STEPS_ALIGNED].number += pair->a != CST_NONE && pair->b != CST_NONE;
    }
    for (size_t i = 0; i < table->n_rows; i++) {
        row = table->values + i * STEP_COLUMNS;
        for (unsigned side = 0; side < 2; side++)
            if (row[STEPS_A + side].number)
                row[TIME_A + side].number /= row[STEPS_A + side].number;
            else
                row[TIME_A + side] = table_unknown(TABLE_NS);
        row[STEP_IN].text = !row[STEPS_B].number ? "A" : !row[STEPS_A].number ? "B" : "both";
    }
    free(pairs.at);
}
