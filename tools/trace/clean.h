/*
 * Makes text that others wrote (names, facts, files) safe for a terminal, CSV, Markdown, dot, XML
 * or JSON. Every verb prints such text by it. Any thread; no state. Control characters, marks that
 * turn the direction of writing, and invalid UTF-8 are never printed: '?' stands for them, or a \u
 * escape in JSON.
 */
#ifndef CUSPLICE_TOOLS_TRACE_CLEAN_H
#define CUSPLICE_TOOLS_TRACE_CLEAN_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

struct clean_character {
    unsigned bytes;   /* of the text; 1 where it is no UTF-8 */
    unsigned columns; /* that it takes on a terminal, as it is printed */
    bool utf8, shown; /* not shown: a '?' stands for it */
};

/* The character that `at` begins with, which is not the final NUL. */
struct clean_character clean_next(const char *at);

/* ---- terminals ---- */

/* The text as a part of a line. */
void clean_text(FILE *to, const char *text);
/* How many columns clean_text fills. */
size_t clean_columns(const char *text);
/* Cut to so many columns, the last two being `..`, or filled up with blanks. */
void clean_cell(FILE *to, const char *text, size_t columns);
/* The text in lines of `width` columns (0: no bound), folded between words. The first begins at
 * column `at`, the others at `indent`; each ends. No word is parted. */
void clean_fold(FILE *to, const char *text, size_t at, size_t indent, size_t width);
/* printf of a comment: the same, each line behind "# ". */
void clean_comment(FILE *to, size_t width, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* printf of one line or a part of it: only newlines at the end of `format` end it, whatever the
 * arguments hold. */
void clean_print(FILE *to, const char *format, ...) __attribute__((format(printf, 2, 3)));
void clean_vprint(FILE *to, const char *format, va_list args) __attribute__((format(printf, 2, 0)));

/* ---- files ---- */

/* A field of CSV (RFC 4180), with the quotes that it needs. What a spreadsheet would take for a
 * formula gets an apostrophe in front. */
void clean_csv(FILE *to, const char *text);
/* GitHub's Markdown, in a line or a cell of a table: reads as it is, and is no markup nor link. */
void clean_md(FILE *to, const char *text);
/* Between the quotes of a label of dot. */
void clean_dot(FILE *to, const char *text);
/* Text or the value of an attribute of XML; of more than `most` characters the first ones, and
 * three dots. */
void clean_xml(FILE *to, const char *text, unsigned most);

#ifdef __cplusplus
}
#endif

#endif
