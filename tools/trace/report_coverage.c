/*
 * report coverage: one row for each step, and totals in the notes. verb_report.c calls it. It
 * never prints.
 */
#include <inttypes.h>

#include "tools/trace/report.h"

enum { STREAM, STEP, OPS, IN_GRAPHS, EAGER, FLUSHED, OPEN, GRAPHS, SHARE, TIME, SIGNATURE, ENDED };

static const struct table_column columns[] = {
    {"stream", TABLE_COUNT},    {"step", TABLE_COUNT},     {"ops", TABLE_COUNT},
    {"in_graphs", TABLE_COUNT}, {"eager", TABLE_COUNT},    {"flushed", TABLE_COUNT},
    {"open", TABLE_COUNT},      {"graphs", TABLE_COUNT},   {"share", TABLE_PERCENT},
    {"time_ns", TABLE_NS},      {"signature", TABLE_TEXT}, {"ended", TABLE_TEXT},
};
enum { COLUMNS = sizeof columns / sizeof *columns };

void report_coverage(const struct look *look, struct table *table) {
    const struct model *model = look->model;
    char text[32];
    table_init(table, "coverage", columns, COLUMNS, "-step");
    table->spare = "signature,open,flushed,ended,graphs,time_ns";
    look_notes(look, table);
    snprintf(text, sizeof text, "%.1f %%", look_share(model->in_graphs, model->n_ops));
    table_note(table, "overall", text);
    for (uint32_t i = 0; i < model->n_steps; i++) {
        const struct model_step *step = &model->steps[i];
        union table_value *row = table_row(table);
        if (!row)
            return;
        static const unsigned fates[] = {IN_GRAPHS, EAGER, FLUSHED, OPEN};
        for (uint32_t op = 0; op < step->n_ops; op++)
            row[fates[look_outcome(look_op(look, step->stream, step->first + op))]].number++;
        row[STREAM].number = step->stream;
        row[STEP].number = step->number;
        row[OPS].number = step->n_ops;
        row[GRAPHS].number = step->graphs;
        row[SHARE].real = look_share(step->in_graphs, step->n_ops);
        row[TIME].number = (int64_t)(step->end_ns - step->begin_ns);
        snprintf(text, sizeof text, "%016" PRIx64, look->signatures[i]);
        row[SIGNATURE].text = table_keep(table, text);
        row[ENDED].text = step->end ? cst_string(look->trace, step->end->name) : "";
    }
}
