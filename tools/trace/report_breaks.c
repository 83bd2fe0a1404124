/*
 * report breaks: ops outside graphs, by reason: eager ops by theirs, flushes by reason and cause,
 * and ops still deferred at the end. verb_report.c and html.c call it. It never prints.
 */
#include "tools/trace/report.h"

#define XXH_INLINE_ALL
#include "xxhash.h"

enum { COUNT, OPS, RUNS, SHARE, HOW, REASON, BY };

static const struct table_column columns[] = {
    {"count", TABLE_COUNT}, {"ops", TABLE_COUNT},   {"runs", TABLE_COUNT}, {"share", TABLE_PERCENT},
    {"how", TABLE_TEXT},    {"reason", TABLE_TEXT}, {"by", TABLE_TEXT},
};
enum { COLUMNS = sizeof columns / sizeof *columns };

struct pass {
    const struct look *look;
    struct table *table;
    struct report_rows rows;
};

static uint64_t key_of(enum look_outcome how, uint32_t reason, uint32_t by) {
    const uint32_t numbers[] = {how, reason, by};
    return XXH3_64bits(numbers, sizeof numbers);
}

static union table_value *row_of(struct pass *pass, enum look_outcome how, uint32_t reason,
                                 uint32_t by) {
    static const char *const words[] = {"", "eager", "flush", "open"};
    const char *why = cst_string(pass->look->trace, reason);
    const char *cause = cst_string(pass->look->trace, by);
    uint32_t known = pass->rows.n;
    /* By number, since this is asked for each op and texts may be long. */
    uint32_t at = report_row(&pass->rows, key_of(how, reason, by), "");
    if (at == CST_NONE) {
        pass->table->failed = true;
        return NULL;
    }
    if (at < known)
        return pass->table->values + (size_t)at * COLUMNS;
    union table_value *row = table_row(pass->table);
    if (row) {
        row[HOW].text = words[how];
        row[REASON].text = why;
        row[BY].text = cause;
    }
    return row;
}

static void take(struct pass *pass, uint32_t stream, uint32_t i) {
    const struct model_op *op = look_op(pass->look, stream, i);
    enum look_outcome outcome = look_outcome(op);
    uint32_t reason = 0, by = 0;
    if (outcome == LOOK_GRAPH)
        return;
    if (outcome == LOOK_EAGER) {
        reason = op->op->eager;
        by = op->op->why;
    } else if (outcome == LOOK_FLUSHED) {
        reason = ((const struct cst_flush *)op->out)->reason;
        by = ((const struct cst_flush *)op->out)->cause;
    }
    union table_value *row = row_of(pass, outcome, reason, by);
    if (!row)
        return;
    row[COUNT].number += outcome != LOOK_FLUSHED;
    row[OPS].number++;
    row[RUNS].number += look_ends_run(pass->look, stream, i);
}

void report_breaks(const struct look *look, struct table *table) {
    const struct cst_trace *trace = look->trace;
    struct pass pass = {.look = look, .table = table};
    table_init(table, "breaks", columns, COLUMNS, "ops");
    table->spare = "share,runs";
    look_notes(look, table);
    for (uint32_t s = 0; s < trace->n_streams; s++)
        for (uint32_t i = 0; i < look->model->streams[s].n_ops && !table->failed; i++)
            take(&pass, s, i);
    for (size_t i = 0; i < trace->n_events && !table->failed; i++)
        if (trace->events[i]->type == CST_FLUSH) {
            const struct cst_flush *flush = (const struct cst_flush *)trace->events[i];
            union table_value *row = row_of(&pass, LOOK_FLUSHED, flush->reason, flush->cause);
            if (row)
                row[COUNT].number++;
        }
    for (size_t i = 0; i < table->n_rows; i++) {
        union table_value *row = table->values + i * COLUMNS;
        row[SHARE].real = look_share((uint64_t)row[OPS].number, look->model->n_ops);
    }
    report_rows_free(&pass.rows);
}
