/*
 * A trace as one HTML page, for `cusplice report --html`. verb_report.c calls it. The page is
 * page.html with page.css and page*.js, and the data. It needs no network and no other file. Every
 * '<' of the data is written \u003c and scripts set texts as text, so no text of a trace becomes
 * HTML.
 */
#ifndef CUSPLICE_TOOLS_TRACE_HTML_H
#define CUSPLICE_TOOLS_TRACE_HTML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "tools/trace/look.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    HTML_OPS_MAX = 5000000, /* more makes a page that no browser likes to open */
    HTML_ROWS_MAX = 5000,   /* of a table; the page says where rows were left out */
};

/* Writes OUT (beside.h). A file that is there is an error, unless `force`. 0, or 1 with a sentence
 * in `error` (path, what is wrong, what to do). */
int trace_html(const struct look *look, const char *out, bool force, char *error, size_t bytes);

/* ---- between html.c and html_data.c ---- */

/* JSON made by `fill` as a script element of that id; false without memory. */
typedef bool html_json_fn(FILE *to, const struct look *look, const void *context);
bool html_json(FILE *to, const char *id, html_json_fn *fill, const struct look *look,
               const void *context);

/* What the strip is made from. False without memory. */
bool html_data(FILE *to, const struct look *look);

#ifdef __cplusplus
}
#endif

#endif
