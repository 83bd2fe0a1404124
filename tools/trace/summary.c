/*
 * The page of `cusplice report TRACE`: sentences, the kernels, the breaks, what to try next.
 * verb_report.c calls it, on one thread. Its numbers are those of the reports.
 */
#include "tools/trace/summary.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "shim/stats/tally.h"
#include "tools/trace/clean.h"
#include "tools/trace/facts.h"
#include "tools/trace/report.h"

enum { OPS, SHARE, RUNS, REASON, KERNEL, WHAT, ADVICE };

static const struct table_column columns[] = {
    {"ops", TABLE_COUNT},   {"share", TABLE_PERCENT}, {"runs", TABLE_COUNT},
    {"reason", TABLE_TEXT}, {"kernel", TABLE_TEXT},   {"what", TABLE_TEXT},
    {"advice", TABLE_TEXT},
};
enum { COLUMNS = sizeof columns / sizeof *columns };

static unsigned column_of(const struct table *table, const char *key) {
    unsigned i = 0;
    while (i + 1 < table->n_columns && strcmp(table->columns[i].key, key) != 0)
        i++;
    return i;
}

/* ---- breaks ---- */

static bool explain_why(const char *key, const char **what, const char **advice) {
    for (unsigned i = 0; i < CUS_WHYS; i++)
        if (strcmp(cus_why_key(i), key) == 0) {
            *what = cus_why_what(i);
            *advice = cus_why_advice(i);
            return true;
        }
    return false;
}

static bool explain_cause(const char *key, const char **what, const char **advice) {
    static const char *const keys[] = {
#define CUS_CAUSE(id, key) key,
#include "shim/stats/reasons.def"
    };
    for (unsigned i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(keys[i], key) == 0) {
            *what = cus_cause_what(i);
            *advice = cus_cause_advice(i);
            return true;
        }
    if (strncmp(key, "cu", 2) != 0)
        return false;
    *what = cus_call_what(key);
    *advice = cus_call_advice(key);
    return true;
}

/* Is it an op that this reason kept out of graphs? As report_breaks has it. */
static bool is_of(const struct look *look, const struct model_op *op, const char *how,
                  const char *by) {
    enum look_outcome outcome = look_outcome(op);
    uint32_t text = 0;
    if (outcome == LOOK_EAGER && strcmp(how, "eager") == 0)
        text = op->op->why;
    else if (outcome == LOOK_FLUSHED && strcmp(how, "flush") == 0)
        text = ((const struct cst_flush *)op->out)->cause;
    else
        return false;
    return strcmp(cst_string(look->trace, text), by) == 0;
}

/* The name of the op that met the reason most. */
static const char *most_met(const struct look *look, const char *how, const char *by,
                            struct table *table) {
    uint32_t *times = calloc((size_t)look->trace->n_kinds + 1, sizeof *times), most = 0;
    if (!times) {
        table->failed = true;
        return "";
    }
    for (uint32_t i = 0; i < look->model->n_ops; i++)
        if (is_of(look, &look->model->ops[i], how, by)) {
            uint32_t kind = look->model->ops[i].op->kind;
            if (++times[kind] > times[most] || !times[most])
                most = kind;
        }
    const char *name = times[most] ? names_of(look->names, most) : "";
    free(times);
    return table_keep(table, name);
}

/* Rows of the report, those with the most ops first, without reasons that kept no op. */
static void fill_breaks(const struct look *look, const struct table *report, struct table *out) {
    unsigned ops = column_of(report, "ops"), share = column_of(report, "share");
    unsigned runs = column_of(report, "runs"), how = column_of(report, "how");
    unsigned by = column_of(report, "by");
    int64_t below = INT64_MAX;
    size_t at = 0;
    for (unsigned n = 0; n < SUMMARY_ROWS; n++) {
        const union table_value *best = NULL;
        for (size_t i = 0; i < report->n_rows; i++) {
            const union table_value *row = report->values + i * report->n_columns;
            bool behind = row[ops].number < below || (row[ops].number == below && i > at);
            if (row[ops].number && behind && (!best || row[ops].number > best[ops].number))
                best = row;
        }
        union table_value *row = best ? table_row(out) : NULL;
        if (!row)
            return;
        below = best[ops].number;
        at = (size_t)(best - report->values) / report->n_columns;
        const char *text = best[by].text, *what = "", *advice = "";
        if (!(strcmp(best[how].text, "eager") == 0 ? explain_why : explain_cause)(text, &what,
                                                                                  &advice) &&
            strcmp(best[how].text, "open") == 0)
            what = "still deferred when the trace ends";
        row[OPS].number = best[ops].number;
        row[SHARE].real = best[share].real;
        row[RUNS].number = best[runs].number;
        row[REASON].text = table_keep(out, *text ? text : best[how].text);
        row[KERNEL].text = most_met(look, best[how].text, text, out);
        row[WHAT].text = what;
        row[ADVICE].text = advice;
    }
}

void summary_fill(const struct look *look, struct table *kernels, struct table *breaks) {
    struct table report = {0};
    report_kernels(look, kernels);
    kernels->name = "summary";
    if (look->model->gpu_known)
        kernels->sort = "gpu_ns";
    report_breaks(look, &report);
    table_init(breaks, "breaks", columns, COLUMNS, "ops");
    breaks->spare = "advice,runs";
    breaks->failed = report.failed;
    if (!report.failed && !facts_imported(look->facts))
        fill_breaks(look, &report, breaks);
    table_free(&report);
}

/* ---- the page ---- */

static void put_mode(void *context, const char *key, size_t key_bytes, const char *value,
                     size_t bytes) {
    char *mode = context;
    if (key_bytes == 6 && memcmp(key, "\"mode\"", 6) == 0)
        look_unquote(value, bytes, mode, 32);
}

static void put_options(void *context, const char *key, size_t key_bytes, const char *value,
                        size_t bytes) {
    char *text =
        key_bytes == 9 && memcmp(key, "\"options\"", 9) == 0 ? strndup(value, bytes) : NULL;
    if (text)
        facts_each(text, put_mode, context);
    free(text);
}

static void put_line(FILE *to, const char *text, unsigned width) {
    fputs("  ", to);
    clean_fold(to, text, 2, 4, width);
}

static void put_head(const struct look *look, unsigned width, FILE *to) {
    const struct cst_trace *trace = look->trace;
    const struct model *model = look->model;
    char time[32], gpu[128], argv[1024], mode[32] = "", text[1400];
    table_human(TABLE_NS, (union table_value){.number = (int64_t)(trace->end_ns - trace->begin_ns)},
                time, sizeof time);
    look_fact(look, "gpu", gpu, sizeof gpu);
    look_fact(look, "argv", argv, sizeof argv);
    facts_each(look->facts, put_options, mode);
    clean_print(to, "%s\n", trace->path);
    snprintf(text, sizeof text, "%s%s of %s%s%s%s%s%s", time, trace->closed ? "" : " (cut short)",
             *argv ? argv : "a program that the trace does not name", *gpu ? ", on " : "", gpu,
             *mode ? ", in mode " : "", mode, trace->lost_records ? "; records were lost" : "");
    put_line(to, text, width);
    if (facts_imported(look->facts)) {
        snprintf(text, sizeof text, "%u ops in %u steps, imported " FACTS_IMPORT, model->n_ops,
                 model->n_steps);
        put_line(to, text, width);
        return;
    }
    snprintf(text, sizeof text,
             "%.1f %% of %u ops went into graphs: %" PRIu64 " graph launches in %u steps",
             look_share(model->in_graphs, model->n_ops), model->n_ops, model->graph_launches,
             model->n_steps);
    put_line(to, text, width);
    snprintf(text, sizeof text,
             "%" PRIu64 " ops were issued by the program's own calls, %" PRIu64
             " deferred and then issued one by one",
             model->eager, model->flushed);
    put_line(to, text, width);
    if (model->open)
        fprintf(to, "  %" PRIu64 " ops were still deferred when the trace ended\n", model->open);
}

/* What the reasons of the table mean; a line has no room for that. */
static void put_reasons(const struct table *breaks, unsigned width, FILE *to) {
    char text[400];
    for (size_t i = 0; i < breaks->n_rows; i++) {
        const union table_value *row = breaks->values + i * breaks->n_columns;
        snprintf(text, sizeof text, "%s: %s", row[REASON].text, row[WHAT].text);
        if (*row[WHAT].text)
            put_line(to, text, width);
    }
}

static void put_item(FILE *to, const char *text, unsigned width) {
    fputs("  - ", to);
    clean_fold(to, text, 4, 4, width);
}

/* What a command is for, and the command with the trace. */
static void put_command(const char *what, const char *command, const struct look *look,
                        unsigned width, FILE *to) {
    char text[5000];
    snprintf(text, sizeof text, "%s: %s %s", what, command, look->trace->path);
    if (!width || 4 + clean_columns(text) <= width) {
        put_item(to, text, width);
        return;
    }
    clean_print(to, "  - %s:\n", what); /* a command that was folded could not be pasted */
    clean_print(to, "      %s %s\n", command, look->trace->path);
}

static void put_next(const struct look *look, const struct table *breaks, unsigned width,
                     FILE *to) {
    char text[1200];
    fputs("\nwhat to try next\n", to);
    for (size_t i = 0; i < breaks->n_rows && i < 3; i++) {
        const union table_value *row = breaks->values + i * breaks->n_columns;
        if (!*row[ADVICE].text || strncmp(row[ADVICE].text, "nothing", 7) == 0)
            continue;
        snprintf(text, sizeof text, "%s: %s", row[REASON].text, row[ADVICE].text);
        put_item(to, text, width);
    }
    if (facts_imported(look->facts))
        put_command("what of it would go into graphs", "cusplice whatif", look, width, to);
    if (breaks->n_rows || facts_imported(look->facts))
        put_command("what each kernel costs as a break", "cusplice whatif --sweep", look, width,
                    to);
    if (!look->model->gpu_known && !facts_imported(look->facts))
        put_item(to, "how long kernels run: record with --gpu-times", width);
    put_command("all kernels (or segments, cache, breaks, coverage)", "cusplice report kernels",
                look, width, to);
    put_command("a page for a browser", "cusplice report --html page.html", look, width, to);
}

void summary_print(const struct look *look, struct table *kernels, struct table *breaks,
                   const struct table_view *view, FILE *to) {
    struct table_view few = *view, all = {.width = view->width};
    bool gpu = look->model->gpu_known, graphs = !facts_imported(look->facts);
    if (!few.fields && gpu)
        few.fields =
            graphs ? "calls,share,breaks,gpu_ns,host_ns,name" : "calls,gpu_ns,host_ns,name";
    else if (!few.fields)
        few.fields = graphs ? "calls,share,breaks,host_ns,host_avg_ns,name"
                            : "calls,host_ns,host_avg_ns,name";
    all.fields = "ops,share,runs,reason,kernel";
    put_head(look, view->width, to);
    kernels->n_notes = 0; /* that is the head */
    kernels->also = NULL;
    fprintf(to, "\nkernels that took most of %s\n",
            gpu ? "the GPU's time" : "the host's time, by their calls");
    table_print(kernels, &few, to);
    if (breaks->n_rows) {
        fputs("\nwhat kept ops out of graphs\n", to);
        table_print(breaks, &all, to);
        put_reasons(breaks, view->width, to);
    }
    put_next(look, breaks, view->width, to);
}
