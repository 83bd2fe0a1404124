/*
 * Puts the page together: template, styles, scripts, tables, totals and facts. verb_report.c calls
 * it. It never writes a text of the trace outside JSON.
 */
#include "tools/trace/html.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "shim/base/options.h"
#include "shim/stats/tally.h"
#include "tools/trace/beside.h"
#include "tools/trace/facts.h"
#include "tools/trace/json.h"
#include "tools/trace/page.inc" /* page_html, page_css, page_js: each ends with a NUL */
#include "tools/trace/report.h"
#include "tools/trace/text_file.h"

/* ---- JSON in a page ---- */

bool html_json(FILE *to, const char *id, html_json_fn *fill, const struct look *look,
               const void *context) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *memory = text_file_open(&text, &bytes);
    if (!memory)
        return false;
    bool made = fill(memory, look, context);
    made = text_file_close(memory, &text) && made;
    fprintf(to, "<script type=\"application/json\" id=\"%s\">", id);
    /* '<' is in texts alone, where it may be written so. */
    for (size_t i = 0; made && i < bytes; i++)
        if (text[i] == '<')
            fputs("\\u003c", to);
        else
            putc(text[i], to);
    fputs("</script>\n", to);
    free(text);
    return made;
}

static const char *const units[] = {"count", "percent", "ns", "bytes", "text"};

/* What `report NAME --format json` prints, and what its columns are that say something. */
static bool put_table(FILE *to, const struct look *look, const void *context) {
    struct table *table = (struct table *)context;
    struct table_view view = {.format = TABLE_JSON, .top = HTML_ROWS_MAX};
    struct cus_json json = json_to(to, CUS_JSON_SPACED);
    (void)look;
    cus_json_open(&json, NULL, '{');
    cus_json_open(&json, "columns", '[');
    for (unsigned i = 0; i < table->n_columns; i++) {
        if (table->idle >> i & 1)
            continue;
        cus_json_open(&json, NULL, '[');
        cus_json_text(&json, NULL, table->columns[i].key);
        cus_json_text(&json, NULL, units[table->columns[i].unit]);
        cus_json_close(&json, ']');
    }
    cus_json_close(&json, ']');
    cus_json_integer(&json, "all", (int64_t)table->n_rows);
    cus_json_raw(&json, "report", "");
    table_print(table, &view, to);
    cus_json_close(&json, '}');
    return !table->failed;
}

/* ---- totals and facts ---- */

struct counted {
    size_t kernels, signatures;
};

static unsigned there(const void *const *at, uint32_t n) {
    unsigned count = 0;
    for (uint32_t i = 0; i < n; i++)
        count += at[i] != NULL;
    return count;
}

/* Under the names of `about` in reports, where they are there. */
static bool put_totals(FILE *to, const struct look *look, const void *context) {
    const struct counted *counted = context;
    const struct model *model = look->model;
    const struct cst_trace *trace = look->trace;
    struct cus_json json = json_to(to, CUS_JSON_SPACED);
    cus_json_open(&json, NULL, '{');
    cus_json_integer(&json, "ops", model->n_ops);
    cus_json_integer(&json, "in_graphs", (int64_t)model->in_graphs);
    cus_json_integer(&json, "eager", (int64_t)model->eager);
    cus_json_integer(&json, "flushed", (int64_t)model->flushed);
    cus_json_integer(&json, "open", (int64_t)model->open);
    cus_json_integer(&json, "graph_launches", (int64_t)model->graph_launches);
    cus_json_integer(&json, "steps", model->n_steps);
    cus_json_integer(&json, "kernels", (int64_t)counted->kernels);
    cus_json_integer(&json, "signatures", (int64_t)counted->signatures);
    cus_json_integer(&json, "streams",
                     there((const void *const *)trace->streams, trace->n_streams));
    cus_json_integer(&json, "threads",
                     there((const void *const *)trace->threads, trace->n_threads));
    cus_json_integer(&json, "lost_records", (int64_t)trace->lost_records);
    cus_json_integer(&json, "lost_ops", (int64_t)trace->lost_ops);
    cus_json_integer(&json, "torn_bytes", (int64_t)trace->torn);
    cus_json_bool(&json, "closed", trace->closed);
    if (facts_imported(look->facts))
        cus_json_text(&json, "imported", FACTS_IMPORT);
    cus_json_integer(&json, "duration_ns", (int64_t)(trace->end_ns - trace->begin_ns));
    cus_json_close(&json, '}');
    return true;
}

/* The trace's own facts, what the options are where nobody sets them, and what the reasons mean. */
static bool put_facts(FILE *to, const struct look *look, const void *context) {
    const struct cst_trace *trace = look->trace;
    const struct cus_option_row *row;
    struct cus_json json = json_to(to, CUS_JSON_SPACED);
    (void)context;
    cus_json_open(&json, NULL, '{');
    cus_json_text(&json, "trace", trace->path);
    cus_json_integer(&json, "version", trace->version);
    cus_json_integer(&json, "begin_ns", (int64_t)trace->begin_ns);
    cus_json_raw(&json, "facts", look->facts);
    cus_json_open(&json, "defaults", '{');
    for (unsigned i = 0; (row = cus_options_row(i)); i++)
        cus_json_text(&json, row->key, row->value);
    cus_json_close(&json, '}');
    cus_json_open(&json, "why", '{');
    for (unsigned i = 0; i < CUS_WHYS; i++) {
        cus_json_open(&json, cus_why_key(i), '[');
        cus_json_text(&json, NULL, cus_why_what(i));
        cus_json_text(&json, NULL, cus_why_advice(i));
        cus_json_close(&json, ']');
    }
    cus_json_close(&json, '}');
    cus_json_close(&json, '}');
    return true;
}

static bool put_data(FILE *to, const struct look *look) {
    static const char *const shown[] = {"kernels", "breaks", "cache", "segments"};
    struct table tables[4] = {0};
    bool made = true;
    for (unsigned i = 0; i < 4; i++)
        for (const struct report *report = report_list; report->name; report++)
            if (strcmp(report->name, shown[i]) == 0)
                report->fill(look, &tables[i]);
    struct counted counted = {tables[0].n_rows, tables[2].n_rows};
    made = html_json(to, "totals", put_totals, look, &counted) &&
           html_json(to, "facts", put_facts, look, NULL);
    for (unsigned i = 0; i < 4; i++) {
        char id[32];
        snprintf(id, sizeof id, "table-%s", shown[i]);
        made = made && !tables[i].failed && html_json(to, id, put_table, look, &tables[i]);
        table_free(&tables[i]);
    }
    return made && html_data(to, look);
}

/* ---- the page ---- */

/* The template, with what stands for `@css@`, `@data@` and `@js@` in their places. */
static bool put_page(FILE *to, const void *look) {
    const char *at = (const char *)page_html;
    bool made = true;
    while (*at && made) {
        size_t plain = strcspn(at, "@");
        fwrite(at, 1, plain, to);
        at += plain;
        if (strncmp(at, "@css@", 5) == 0) {
            fputs((const char *)page_css, to);
            at += 5;
        } else if (strncmp(at, "@js@", 4) == 0) {
            fputs((const char *)page_js, to);
            at += 4;
        } else if (strncmp(at, "@data@", 6) == 0) {
            made = put_data(to, look);
            at += 6;
        } else if (*at) {
            putc(*at++, to);
        }
    }
    return made;
}

/* ---- the file ---- */

int trace_html(const struct look *look, const char *out, bool force, char *error, size_t bytes) {
    const char *const from[] = {look->trace->path, NULL};
    if (look->model->n_ops > HTML_OPS_MAX) {
        snprintf(error, bytes,
                 "%s: it has %u ops, and a page holds %d: cusplice trim --steps A-B makes a part "
                 "of it",
                 look->trace->path, look->model->n_ops, HTML_OPS_MAX);
        return 1;
    }
    int number = beside_write(out, force, from, put_page, look);
    if (number)
        snprintf(error, bytes, "%s: cannot be written: %s%s", out, beside_why(number),
                 number == ENOMEM ? " (cusplice trim --steps A-B makes a smaller trace)" : "");
    return number != 0;
}
