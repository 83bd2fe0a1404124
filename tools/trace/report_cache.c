/*
 * report cache: one row for each signature of a step. verb_report.c and html.c call it. It never
 * reads the library's signature cache.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "tools/trace/report.h"

enum { STEPS, OPS, IN_GRAPHS, GRAPHS, SHARE, FIRST, FIRST_NS, TIME_AVG, SIGNATURE, LIST };

static const struct table_column columns[] = {
    {"steps", TABLE_COUNT},      {"ops", TABLE_COUNT},      {"in_graphs", TABLE_COUNT},
    {"graphs", TABLE_COUNT},     {"share", TABLE_PERCENT},  {"first_step", TABLE_COUNT},
    {"first_seen_ns", TABLE_NS}, {"time_avg_ns", TABLE_NS}, {"signature", TABLE_TEXT},
    {"list", TABLE_TEXT},
};
enum { COLUMNS = sizeof columns / sizeof *columns };

static union table_value *row_of(const struct look *look, struct table *table,
                                 struct report_rows *rows, uint32_t number) {
    const struct model_step *step = &look->model->steps[number];
    char signature[20], list[1024];
    snprintf(signature, sizeof signature, "%016" PRIx64, look->signatures[number]);
    uint32_t known = rows->n;
    uint32_t at = report_row(rows, look->signatures[number], "");
    if (at == CST_NONE) {
        table->failed = true;
        return NULL;
    }
    if (at < known)
        return table->values + (size_t)at * COLUMNS;
    union table_value *row = table_row(table);
    if (!row)
        return NULL;
    look_list(look, look->model->streams[step->stream].ops + step->first, step->n_ops, list,
              sizeof list);
    row[OPS].number = step->n_ops;
    row[FIRST].number = step->number;
    row[FIRST_NS].number = (int64_t)(step->begin_ns - look->trace->begin_ns);
    row[SIGNATURE].text = table_keep(table, signature);
    row[LIST].text = table_keep(table, list);
    return row;
}

void report_cache(const struct look *look, struct table *table) {
    struct report_rows rows = {0};
    /* By row. Steps of one signature need not have equally many ops: records of events do not count
     * in it. */
    uint64_t *ops = calloc(look->model->n_steps + (size_t)1, sizeof *ops);
    table_init(table, "cache", columns, COLUMNS, "steps");
    table->spare = "first_step,first_seen_ns,signature,graphs,in_graphs";
    look_notes(look, table);
    table->failed |= !ops;
    for (uint32_t i = 0; i < look->model->n_steps && !table->failed; i++) {
        const struct model_step *step = &look->model->steps[i];
        union table_value *row = row_of(look, table, &rows, i);
        if (!row)
            break;
        row[STEPS].number++;
        ops[(row - table->values) / COLUMNS] += step->n_ops;
        row[IN_GRAPHS].number += step->in_graphs;
        row[GRAPHS].number += step->graphs;
        row[TIME_AVG].number += (int64_t)(step->end_ns - step->begin_ns);
    }
    for (size_t i = 0; i < table->n_rows; i++) {
        union table_value *row = table->values + i * COLUMNS;
        row[TIME_AVG].number /= row[STEPS].number;
        row[SHARE].real = look_share((uint64_t)row[IN_GRAPHS].number, ops[i]);
    }
    free(ops);
    report_rows_free(&rows);
}
