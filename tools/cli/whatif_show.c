/*
 * Prints the results of `cusplice whatif` as text, JSON, CSV or Markdown. verb_whatif.c calls it.
 * It never computes an outcome.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "shim/api/api.h"
#include "shim/base/options.h"
#include "shim/stats/tally.h"
#include "tools/cli/whatif.h"
#include "tools/cli/width.h"
#include "tools/trace/clean.h"
#include "tools/trace/facts.h"
#include "tools/trace/json.h"

enum { COLUMNS = 3, NOTES = 12, ROWS = 99 };

/* Where nothing is deferred steps are not counted: they are those of the baseline. */
static double per_step(const struct whatif_found *found, double ns,
                       const struct whatif_played *played) {
    uint64_t steps = played->counters.steps;
    steps = steps ? steps : found->baseline.counters.steps;
    return ns / 1000 / (double)(steps ? steps : 1);
}

static double host_us(const struct whatif_found *found, const struct whatif_played *played) {
    return per_step(found, whatif_cost_host(found->cost, played), played);
}

static double gpu_us(const struct whatif_found *found, const struct whatif_played *played) {
    return per_step(found, whatif_cost_gpu(found->cost, played, &found->known.measured), played);
}

/* They overlap: the slower one is what a step takes. */
static double us(const struct whatif_found *found, const struct whatif_played *played) {
    double host = host_us(found, played), gpu = gpu_us(found, played);
    return host > gpu ? host : gpu;
}

/* The first ten steps, in per cent of what they take without the library; below 0: there are none.
 */
static double first_of_plain(const struct whatif_found *found, const struct whatif_played *played) {
    double plain = found->plain.times.first;
    return plain > 0 ? 100 * played->times.first / plain : -1;
}

/* The first step that has nine tenths of the gain; below 0: there is none. */
static double gain_at(const struct whatif_found *found, const struct whatif_played *played) {
    const struct whatif_times *times = &played->times, *plain = &found->plain.times;
    uint32_t at = 0;
    if (times->n_curve && plain->n_curve)
        at = cus_curve_reached(times->curve, (uint32_t)times->n_curve, (uint64_t)plain->step,
                               (uint64_t)times->step);
    return at ? at : -1.0;
}

static uint64_t sum(const uint64_t *values, size_t n) {
    uint64_t total = 0;
    while (n)
        total += values[--n];
    return total;
}

static const char *cause_name(unsigned cause) {
    return cause < CUS_API_ROWS_MAX ? cus_api_name(cause) : cus_cause_key(cause - CUS_API_ROWS_MAX);
}

/* ---- notes ---- */

struct notes {
    char text[NOTES][320];
    unsigned n;
};

__attribute__((format(printf, 2, 3))) static void note(struct notes *notes, const char *format,
                                                       ...) {
    va_list args;
    if (notes->n == NOTES)
        return;
    va_start(args, format);
    vsnprintf(notes->text[notes->n++], sizeof notes->text[0], format, args);
    va_end(args);
}

static void note_times(const struct whatif_found *found, struct notes *notes) {
    const struct whatif_times *times = &found->baseline.times;
    if (times->steps && times->typical < CUS_CURVE_FIRST)
        note(notes,
             "first_ten_us is of %" PRIu64 " steps: the trace has no more of the usual length",
             times->typical);
    uint64_t measured = found->known.measured.ops;
    uint64_t ops = sum(found->recorded.ops, CUS_OP_TYPES) - found->recorded.ops[CUS_OP_RECORD];
    char gpu[160];
    if (measured)
        snprintf(gpu, sizeof gpu,
                 "the GPU runs %" PRIu64 " of %" PRIu64 " ops as long as was measured%s", measured,
                 ops, measured < ops ? ", the others are taken for small kernels" : "");
    else
        snprintf(gpu, sizeof gpu, "GPU time takes all kernels for small ones");
    note(notes, "times are a model of one machine (%s); %s", found->cost->name, gpu);
}

static void gather_notes(const struct whatif_found *found, struct notes *notes) {
    const struct cst_trace *trace = found->trace;
    const struct whatif_played *played = &found->baseline;
    if (trace->lost_records)
        note(notes,
             "%" PRIu64 " records (%" PRIu64
             " ops) were lost when this was recorded: all counts are estimates",
             trace->lost_records, trace->lost_ops);
    if (!trace->closed)
        note(notes, "the recording was not ended in good order: this is the part that there is");
    if (found->from)
        note(notes,
             "recorded from step %" PRIu64
             " on: the engine begins to learn there, as it does at the start of a program",
             found->from);
    if (found->imported)
        note(notes, "the trace is imported " FACTS_IMPORT);
    if (found->no_options)
        note(notes, "the trace does not say by which options it was recorded: the baseline has "
                    "those of here and now (cusplice config --list)");
    if (found->guessed_rules)
        note(notes, "the trace does not say by which rules it was recorded: they are read off "
                    "what became of the ops");
    if (played->opaque)
        note(notes,
             "%" PRIu64 " launches have no params in the trace: they are taken for ones that never "
             "change",
             played->opaque);
    if (played->guessed)
        note(notes,
             "%" PRIu64 " ops are on streams of which the trace does not say what they are: taken "
             "for blocking ones that the program made",
             played->guessed);
    if (played->asked.assumed)
        note(notes,
             "%" PRIu64 " times the trace does not say what memory an address is: taken for what "
             "the call is meant for",
             played->asked.assumed);
    if (!found->imported && found->recorded.in_graphs != played->counters.in_graphs &&
        !trace->lost_records)
        note(notes, "the baseline differs from what was recorded: sizes of graphs follow the pace "
                    "of the host, which was another one, or the settings are others");
    note_times(found, notes);
}

/* ---- rows ---- */

struct row {
    const char *section, *name;
    double value[COLUMNS]; /* recorded, baseline, what if; below 0: not known */
    bool real;
};

struct rows {
    struct row row[ROWS];
    unsigned n;
};

static void add(struct rows *rows, const char *section, const char *name, double recorded,
                double baseline, double hypothesis, bool real) {
    if (rows->n < ROWS)
        rows->row[rows->n++] = (struct row){section, name, {recorded, baseline, hypothesis}, real};
}

/* Only what happened in either. */
static void add_each(struct rows *rows, const char *section, const char *(*name)(unsigned),
                     const uint64_t *a, const uint64_t *b, unsigned n) {
    for (unsigned i = 0; i < n; i++)
        if (a[i] || b[i])
            add(rows, section, name(i), -1, (double)a[i], (double)b[i], false);
}

static const char *eager_name(unsigned i) {
    return cus_eager_keys[i];
}

static const char *break_name(unsigned i) {
    return cus_break_keys[i];
}

#define UNKNOWN (-1)

static void gather_times(const struct whatif_found *found, struct rows *rows) {
    const struct whatif_recorded *r = &found->recorded;
    const struct whatif_played *pa = &found->baseline;
    const struct whatif_played *pb = found->asked ? &found->hypothesis : pa;
    uint64_t steps = pa->counters.steps ? pa->counters.steps : 1;
    add(rows, "predicted", "host_us_per_step", (double)r->host_ns / 1000 / (double)steps,
        host_us(found, pa), host_us(found, pb), true);
    add(rows, "predicted", "gpu_us_per_step", UNKNOWN, gpu_us(found, pa), gpu_us(found, pb), true);
    add(rows, "predicted", "us_per_step", UNKNOWN, us(found, pa), us(found, pb), true);
    const struct whatif_times *ta = &pa->times, *tb = &pb->times;
#define TIME(name, field, recorded)                                                                \
    add(rows, "predicted", name, (recorded) / 1000.0, ta->field / 1000, tb->field / 1000, true)
    TIME("step_us", step, ta->recorded_step);
    TIME("step_p10_us", fast, ta->recorded_fast);
    TIME("step_own_us", own, UNKNOWN);
    TIME("step_calls_us", calls, UNKNOWN);
    TIME("step_waits_us", waits, UNKNOWN);
    TIME("step_gpu_us", busy, UNKNOWN);
    TIME("total_us", total, ta->recorded_total);
    TIME("first_ten_us", first, ta->recorded_first);
#undef TIME
    add(rows, "predicted", "first_ten_of_plain", UNKNOWN, first_of_plain(found, pa),
        first_of_plain(found, pb), true);
    add(rows, "predicted", "gain_at_step", UNKNOWN, gain_at(found, pa), gain_at(found, pb), false);
}

static void gather(const struct whatif_found *found, struct rows *rows) {
    const struct whatif_recorded *r = &found->recorded;
    const struct whatif_played *pa = &found->baseline;
    const struct whatif_played *pb = found->asked ? &found->hypothesis : pa;
    const struct cus_counters *a = &pa->counters, *b = &pb->counters;
#define ADD(section, name, recorded, field)                                                        \
    add(rows, section, name, (double)(recorded), (double)a->field, (double)b->field, false)
    for (unsigned i = 0; i < CUS_OP_TYPES; i++)
        ADD("ops", cus_op_keys[i], r->ops[i], ops[i]);
    ADD("issued", "in_graphs", r->in_graphs, in_graphs);
    add(rows, "issued", "eager", (double)r->eager, (double)sum(a->eager_by, CUS_EAGERS),
        (double)sum(b->eager_by, CUS_EAGERS), false);
    add_each(rows, "eager_by", eager_name, a->eager_by, b->eager_by, CUS_EAGERS);
    ADD("", "graph_launches", r->graph_launches, graph_launches);
    ADD("", "segments_formed", UNKNOWN, segments);
    ADD("", "built", UNKNOWN, built);
    ADD("", "runs", UNKNOWN, runs);
    ADD("", "steps", UNKNOWN, steps);
    ADD("signatures", "exact", r->exact, sig_exact);
    ADD("signatures", "patched", r->patched, sig_patched);
    ADD("signatures", "missed", UNKNOWN, sig_missed);
    ADD("", "patched_nodes", r->patched_nodes, patched_nodes);
    add_each(rows, "flushes", cause_name, a->flushes, b->flushes, CUS_CAUSES);
    add_each(rows, "breaks", break_name, a->breaks, b->breaks, CUS_BREAKS);
#undef ADD
    gather_times(found, rows);
}

static void print_value(const struct row *row, unsigned column, char *out, size_t bytes,
                        const char *none) {
    if (row->value[column] < 0)
        snprintf(out, bytes, "%s", none);
    else
        snprintf(out, bytes, row->real ? "%.1f" : "%.0f", row->value[column]);
}

static void row_label(const struct row *row, char *out, size_t bytes) {
    snprintf(out, bytes, "%s%s%s", row->section, *row->section ? "." : "", row->name);
}

/* ---- what changed ---- */

static bool is_time(const struct row *row) {
    return strcmp(row->section, "predicted") == 0;
}

/* Of the table without --wide: always; where what if differs; or never, since another row says the
 * same in a way that is easier to read. */
enum brief { NEVER, CHANGED, ALWAYS };

static enum brief brief_of(const struct row *row) {
    static const char *const always[] = {"in_graphs", "graph_launches", "step_us", NULL};
    static const char *const changed[] = {"issued", "eager_by", "flushes", "breaks", NULL};
    static const char *const names[] = {"built", "patched_nodes", "total_us", "first_ten_us", NULL};
    for (unsigned i = 0; always[i]; i++)
        if (strcmp(row->name, always[i]) == 0)
            return ALWAYS;
    for (unsigned i = 0; changed[i]; i++)
        if (strcmp(row->section, changed[i]) == 0)
            return CHANGED;
    for (unsigned i = 0; names[i]; i++)
        if (strcmp(row->name, names[i]) == 0)
            return CHANGED;
    return NEVER;
}

/* What people do not see as a change is none: 0.1 %. */
static bool differs(const struct row *row) {
    double before = row->value[1], now = row->value[2], apart = now - before;
    return (apart < 0 ? -apart : apart) > (before < 0 ? -before : before) / 1000;
}

static void change(const struct row *row, char *out, size_t bytes) {
    double before = row->value[1], now = row->value[2];
    if (before < 0 || now < 0 || !differs(row))
        *out = 0;
    else if (before > 0)
        snprintf(out, bytes, "%+.1f %%", 100 * (now - before) / before);
    else
        snprintf(out, bytes, "new");
}

/* A table of the rows that are times, or of those that are none. */
static void show_brief(const struct whatif_found *found, const struct rows *rows, bool times) {
    static const char *const heads[COLUMNS] = {"recorded", "baseline", "what if"};
    unsigned columns = found->asked ? COLUMNS : COLUMNS - 1;
    char label[128], value[32];
    printf("\n%-30s", times ? "microseconds, by the model" : "ops and graphs");
    for (unsigned c = 0; c < columns; c++)
        printf(" %12s", heads[c]);
    printf(found->asked ? " %9s\n" : "\n", "change");
    for (unsigned i = 0; i < rows->n; i++) {
        const struct row *row = &rows->row[i];
        enum brief brief = brief_of(row);
        if (is_time(row) != times || brief == NEVER ||
            (brief == CHANGED && found->asked && !differs(row)))
            continue;
        row_label(row, label, sizeof label);
        printf("%-30.30s", times ? row->name : label);
        for (unsigned c = 0; c < columns; c++) {
            print_value(row, c, value, sizeof value, "-");
            printf(" %12s", value);
        }
        change(row, value, sizeof value);
        printf(found->asked ? " %9s\n" : "\n", value);
    }
}

static double share_of(const struct whatif_played *played) {
    uint64_t ops = sum(played->counters.ops, CUS_OP_TYPES);
    return ops ? 100 * (double)played->counters.in_graphs / (double)ops : 0;
}

static double step_of(const struct whatif_found *found, const struct whatif_played *played) {
    return found->baseline.times.steps ? played->times.step / 1000 : us(found, played);
}

/* The answer in a sentence. */
static void show_answer(const struct whatif_found *found, unsigned width) {
    const struct whatif_played *before = &found->baseline, *now = &found->hypothesis;
    double step = step_of(found, before), then = step_of(found, now);
    char text[400];
    if (found->asked)
        snprintf(text, sizeof text,
                 "A step takes %.1f us in place of %.1f us (%+.1f %%), with %.1f %% of all ops in "
                 "graphs in place of %.1f %%.",
                 then, step, step > 0 ? 100 * (then - step) / step : 0, share_of(now),
                 share_of(before));
    else
        snprintf(text, sizeof text,
                 "With the settings of %s a step takes %.1f us, with %.1f %% of all ops "
                 "in graphs. --eager, --mode, --set, -c and --sweep ask for others.",
                 found->no_options ? "here" : "the recording", step, share_of(before));
    clean_fold(stdout, text, 0, 0, width);
}

/* ---- text ---- */

static void show_rows(const struct whatif_found *found, const struct rows *rows,
                      enum table_format format) {
    static const char *const heads[COLUMNS] = {"recorded", "baseline", "what if"};
    unsigned columns = found->asked ? COLUMNS : COLUMNS - 1;
    char label[128], value[32];
    const char *none = format == TABLE_CSV ? "" : "-";
    if (format == TABLE_TEXTUAL)
        printf("%-40s", "");
    else
        fputs(format == TABLE_CSV ? "what" : "| what |", stdout);
    for (unsigned c = 0; c < columns; c++)
        printf(format == TABLE_CSV ? ",%s" : format == TABLE_MD ? " %s |" : " %12s", heads[c]);
    putchar('\n');
    if (format == TABLE_MD)
        printf("| --- |%s\n", columns == COLUMNS ? " ---: | ---: | ---: |" : " ---: | ---: |");
    for (unsigned i = 0; i < rows->n; i++) {
        row_label(&rows->row[i], label, sizeof label);
        printf(format == TABLE_CSV ? "%s" : format == TABLE_MD ? "| %s |" : "%-40s", label);
        for (unsigned c = 0; c < columns; c++) {
            print_value(&rows->row[i], c, value, sizeof value, none);
            printf(format == TABLE_CSV ? ",%s" : format == TABLE_MD ? " %s |" : " %12s", value);
        }
        putchar('\n');
    }
}

static void print_md(const char *before, const char *text, const char *behind) {
    fputs(before, stdout);
    clean_md(stdout, text);
    fputs(behind, stdout);
}

static void show_tries(const struct whatif_found *found, enum table_format format, unsigned width) {
    const struct whatif_played *before = found->asked ? &found->hypothesis : &found->baseline;
    double host = host_us(found, before);
    unsigned name = width >= 97 ? 40 : width > 73 ? width - 57 : 16; /* the numbers take 57 */
    if (format == TABLE_CSV)
        printf("kernel,calls,runs,graph_launches,in_graphs,host_us_per_step,change_us\n");
    else if (format == TABLE_MD)
        printf("\n| kernel as a break | calls | runs | graph launches | in graphs | host us a "
               "step | change |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: |\n");
    else
        printf("\n%-*s %8s %8s %8s %9s %10s %8s\n", (int)name, "as a break", "calls", "runs",
               "graphs", "in graphs", "us a step", "change");
    for (uint32_t i = 0; i < found->n_tries; i++) {
        const struct whatif_try *it = &found->tries[i];
        const struct cus_counters *c = &it->played.counters;
        double now = host_us(found, &it->played);
        if (format == TABLE_CSV)
            clean_csv(stdout, it->kernel->name);
        else if (format == TABLE_MD)
            print_md("| ", it->kernel->base, " |");
        else
            clean_cell(stdout, it->kernel->base, name);
        printf(format == TABLE_CSV ? ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%.1f,%.1f\n"
               : format == TABLE_MD
                   ? " %" PRIu64 " | %" PRIu64 " | %" PRIu64 " | %" PRIu64 " | %.1f | %+.1f |\n"
                   : " %8" PRIu64 " %8" PRIu64 " %8" PRIu64 " %9" PRIu64 " %10.1f %+8.1f\n",
               it->kernel->calls, c->runs, c->graph_launches, c->in_graphs, now, now - host);
    }
    if (found->kernels > found->n_tries && format != TABLE_CSV)
        printf("\n%u kernels that are launched less often were not tried.\n",
               found->kernels - found->n_tries);
}

/* ---- JSON ---- */

static void json_each(struct cus_json *json, const char *key, const char *(*name)(unsigned),
                      const uint64_t *values, unsigned n, bool all) {
    cus_json_open(json, key, '{');
    for (unsigned i = 0; i < n; i++)
        if (all || values[i])
            cus_json_number(json, name(i), values[i]);
    cus_json_close(json, '}');
}

static void json_curve(struct cus_json *json, const struct whatif_found *found,
                       const struct whatif_played *played) {
    double at = gain_at(found, played);
    if (!played->times.n_curve)
        return;
    json_fixed(json, "first_ten_us", played->times.first / 1000);
    json_fixed(json, "first_ten_of_plain", first_of_plain(found, played));
    if (at > 0)
        cus_json_number(json, "gain_at_step", (uint64_t)at);
    else
        cus_json_raw(json, "gain_at_step", "null");
}

static void json_times(struct cus_json *json, const struct whatif_times *times) {
    const struct {
        const char *name;
        double ns;
    } row[] = {{"step_us", times->step},        {"step_p10_us", times->fast},
               {"step_own_us", times->own},     {"step_calls_us", times->calls},
               {"step_waits_us", times->waits}, {"step_gpu_us", times->busy},
               {"total_us", times->total}};
    for (unsigned i = 0; i < sizeof row / sizeof *row && times->steps; i++)
        json_fixed(json, row[i].name, row[i].ns / 1000);
    cus_json_number(json, "typical_steps", times->typical);
    cus_json_number(json, "step_ops", times->step_ops);
}

static void json_ops(struct cus_json *json, const uint64_t *ops) {
    cus_json_open(json, "ops", '{');
    for (unsigned i = 0; i < CUS_OP_TYPES; i++)
        cus_json_number(json, cus_op_keys[i], ops[i]);
    cus_json_close(json, '}');
}

static void json_played(struct cus_json *json, const struct whatif_found *found, const char *key,
                        const struct whatif_played *played) {
    const struct cus_counters *c = &played->counters;
    cus_json_open(json, key, '{');
    cus_json_text(json, "mode", cus_mode_name((enum cus_mode)played->mode));
    json_ops(json, c->ops);
    cus_json_open(json, "issued", '{');
    cus_json_number(json, "in_graphs", c->in_graphs);
    cus_json_number(json, "eager", sum(c->eager_by, CUS_EAGERS));
    cus_json_close(json, '}');
    json_each(json, "eager_by", eager_name, c->eager_by, CUS_EAGERS, true);
    cus_json_number(json, "graph_launches", c->graph_launches);
    cus_json_number(json, "segments_formed", c->segments);
    cus_json_number(json, "built", c->built);
    cus_json_number(json, "runs", c->runs);
    cus_json_number(json, "steps", c->steps);
    cus_json_open(json, "signatures", '{');
    cus_json_number(json, "exact", c->sig_exact);
    cus_json_number(json, "patched", c->sig_patched);
    cus_json_number(json, "missed", c->sig_missed);
    cus_json_close(json, '}');
    cus_json_number(json, "patched_nodes", c->patched_nodes);
    json_each(json, "flushes", cause_name, c->flushes, CUS_CAUSES, false);
    json_each(json, "breaks", break_name, c->breaks, CUS_BREAKS, true);
    cus_json_open(json, "predicted", '{');
    json_fixed(json, "host_us_per_step", host_us(found, played));
    json_fixed(json, "gpu_us_per_step", gpu_us(found, played));
    json_fixed(json, "us_per_step", us(found, played));
    json_times(json, &played->times);
    json_curve(json, found, played);
    cus_json_close(json, '}');
    cus_json_close(json, '}');
}

static void json_recorded(struct cus_json *json, const struct whatif_found *found) {
    const struct whatif_recorded *r = &found->recorded;
    const struct whatif_times *times = &found->baseline.times;
    cus_json_open(json, "recorded", '{');
    json_ops(json, r->ops);
    cus_json_open(json, "issued", '{');
    cus_json_number(json, "in_graphs", r->in_graphs);
    cus_json_number(json, "eager", r->eager);
    cus_json_close(json, '}');
    cus_json_number(json, "graph_launches", r->graph_launches);
    cus_json_open(json, "signatures", '{');
    cus_json_number(json, "exact", r->exact);
    cus_json_number(json, "patched", r->patched);
    cus_json_close(json, '}');
    cus_json_number(json, "patched_nodes", r->patched_nodes);
    cus_json_number(json, "host_us", r->host_ns / 1000);
    if (times->steps) {
        json_fixed(json, "step_us", times->recorded_step / 1000);
        json_fixed(json, "step_p10_us", times->recorded_fast / 1000);
        json_fixed(json, "total_us", times->recorded_total / 1000);
        json_fixed(json, "first_ten_us", times->recorded_first / 1000);
    }
    json_fixed(json, "eager_launch_ns", found->known.recording.eager);
    json_fixed(json, "matched_launch_ns", found->known.recording.matched);
    json_fixed(json, "eager_ratio", found->known.timing.eager);
    json_fixed(json, "matched_ratio", found->known.timing.matched);
    json_fixed(json, "graph_ratio", found->known.timing.graph);
    json_fixed(json, "behind_eager_ns", found->known.timing.behind_eager);
    json_fixed(json, "behind_graph_ns", found->known.timing.behind_graph);
    cus_json_close(json, '}');
}

static void show_json(const struct whatif_found *found, const struct notes *notes) {
    struct cus_json top = json_to(stdout, CUS_JSON_INDENTED), *json = &top;
    cus_json_open(json, NULL, '{');
    cus_json_text(json, "trace", found->trace->path);
    cus_json_open(json, "notes", '[');
    for (unsigned i = 0; i < notes->n; i++)
        cus_json_text(json, NULL, notes->text[i]);
    cus_json_close(json, ']');
    cus_json_bool(json, "estimates", found->trace->lost_records > 0);
    cus_json_number(json, "gpu_measured", found->known.measured.ops);
    json_recorded(json, found);
    json_played(json, found, "baseline", &found->baseline);
    if (found->asked)
        json_played(json, found, "whatif", &found->hypothesis);
    if (found->tries) {
        cus_json_open(json, "sweep", '[');
        for (uint32_t i = 0; i < found->n_tries; i++) {
            cus_json_open(json, NULL, '{');
            cus_json_text(json, "kernel", found->tries[i].kernel->name);
            cus_json_text(json, "base_name", found->tries[i].kernel->base);
            cus_json_number(json, "calls", found->tries[i].kernel->calls);
            json_played(json, found, "counts", &found->tries[i].played);
            cus_json_close(json, '}');
        }
        cus_json_close(json, ']');
        cus_json_number(json, "kernels", found->kernels);
    }
    cus_json_close(json, '}');
    cus_json_end(json);
}

static void fold_note(const char *text, unsigned width) {
    fputs("note: ", stdout);
    clean_fold(stdout, text, 6, 6, width);
}

void cli_whatif_show(const struct whatif_found *found, enum table_format format, bool all) {
    struct notes notes = {.n = 0};
    static struct rows rows;
    gather_notes(found, &notes);
    if (format == TABLE_JSON) {
        show_json(found, &notes);
        return;
    }
    gather(found, &rows);
    if (format == TABLE_TEXTUAL && !all) {
        show_answer(found, cli_width());
        show_brief(found, &rows, false);
        show_brief(found, &rows, true);
    } else if (format != TABLE_CSV || !found->tries) {
        show_rows(found, &rows, format);
    }
    if (found->tries)
        show_tries(found, format, all ? 97 : cli_width());
    if (format == TABLE_CSV)
        return;
    putchar('\n');
    for (unsigned i = 0; i < notes.n; i++)
        if (format == TABLE_MD)
            print_md("- ", notes.text[i], "\n");
        else
            fold_note(notes.text[i], all ? 0 : cli_width());
}
