/*
 * report FOLDER: one row for each trace of a run's processes, side by side on one clock.
 * verb_report.c adds them one after another, so that one trace is in memory at a time. It never
 * prints.
 */
#include "tools/trace/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANK, PID, PROGRAM, BEGIN, TIME, OPS, SHARE, GRAPHS, STEPS, BREAK, TRACE };

static const struct table_column columns[] = {
    {"rank", TABLE_COUNT},    {"pid", TABLE_COUNT},    {"program", TABLE_TEXT},
    {"begin_ns", TABLE_NS},   {"time_ns", TABLE_NS},   {"ops", TABLE_COUNT},
    {"share", TABLE_PERCENT}, {"graphs", TABLE_COUNT}, {"steps", TABLE_COUNT},
    {"break", TABLE_TEXT},    {"trace", TABLE_TEXT},
};
enum { COLUMNS = sizeof columns / sizeof *columns };

void report_processes_begin(struct table *table) {
    table_init(table, "processes", columns, COLUMNS, "-rank");
    table->spare = "trace,begin_ns,graphs,steps,time_ns";
}

static unsigned column_of(const struct table *table, const char *key) {
    unsigned i = 0;
    while (i + 1 < table->n_columns && strcmp(table->columns[i].key, key) != 0)
        i++;
    return i;
}

/* What issued the most ops one by one, and ended the most runs. */
static void costliest(const struct look *look, char *out, size_t bytes) {
    struct table breaks = {0};
    const union table_value *most = NULL;
    int64_t cost = 0;
    report_breaks(look, &breaks);
    unsigned ops = column_of(&breaks, "ops"), runs = column_of(&breaks, "runs");
    unsigned reason = column_of(&breaks, "reason"), by = column_of(&breaks, "by");
    for (size_t i = 0; i < breaks.n_rows; i++) {
        const union table_value *row = breaks.values + i * breaks.n_columns;
        if (row[ops].number + row[runs].number > cost) {
            cost = row[ops].number + row[runs].number;
            most = row;
        }
    }
    *out = 0;
    if (most)
        snprintf(out, bytes, "%s%s%s", most[reason].text ? most[reason].text : "",
                 most[by].text && *most[by].text ? ": " : "", most[by].text ? most[by].text : "");
    table_free(&breaks);
}

int report_rank(const struct look *look) {
    char text[32];
    look_fact(look, "rank", text, sizeof text);
    size_t digits = strspn(text, "0123456789");
    return digits && digits <= 6 && !text[digits] ? atoi(text) : -1;
}

void report_program(const struct look *look, char *out, size_t bytes) {
    char exe[4200];
    look_fact(look, "exe", exe, sizeof exe);
    const char *slash = strrchr(exe, '/');
    snprintf(out, bytes, "%s", slash ? slash + 1 : exe);
}

void report_processes_add(const struct look *look, struct table *table) {
    const struct cst_trace *trace = look->trace;
    char text[256];
    union table_value *row = table_row(table);
    if (!row)
        return;
    look_fact(look, "pid", text, sizeof text);
    row[RANK].number = report_rank(look);
    row[PID].number = strtol(text, NULL, 10);
    row[BEGIN].number = (int64_t)trace->begin_ns;
    row[TIME].number = (int64_t)(trace->end_ns - trace->begin_ns);
    row[OPS].number = look->model->n_ops;
    row[SHARE].real = look_share(look->model->in_graphs, look->model->n_ops);
    row[GRAPHS].number = (int64_t)look->model->graph_launches;
    row[STEPS].number = look->model->n_steps;
    report_program(look, text, sizeof text);
    row[PROGRAM].text = table_keep(table, text);
    costliest(look, text, sizeof text);
    row[BREAK].text = table_keep(table, text);
    const char *slash = strrchr(trace->path, '/');
    row[TRACE].text = table_keep(table, slash ? slash + 1 : trace->path);
    look_note_imported(look, table);
}

void report_processes_end(struct table *table) {
    int64_t first = INT64_MAX;
    for (size_t i = 0; i < table->n_rows; i++) {
        const union table_value *row = table->values + i * COLUMNS;
        if (row[BEGIN].number && row[BEGIN].number < first)
            first = row[BEGIN].number;
    }
    for (size_t i = 0; i < table->n_rows; i++) {
        union table_value *row = table->values + i * COLUMNS;
        row[BEGIN].number -= row[BEGIN].number ? first : 0;
    }
    table_note_number(table, "processes", (int64_t)table->n_rows);
    table_note(table, "begin_ns", "after the first event of all, by CLOCK_MONOTONIC");
}
