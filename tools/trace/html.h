/*
 * A trace as one page: the file that `report --html` writes. It needs nothing but a browser: no
 * network, no other file.
 *
 * The page is page.html with page.css and the page*.js files in it, which the build turns into C,
 * and the data: tables as `report --format json` prints them, ops and graph launches as columns of
 * variable-length numbers in base64 (html_data.c). Every text of a trace stands in JSON in which
 * '<' is written \u003c, so that nothing in it can end the element that it stands in; the scripts
 * only ever set it as text.
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

/* What the timeline and the strip are made from. False without memory. */
bool html_data(FILE *to, const struct look *look);

#ifdef __cplusplus
}
#endif

#endif
