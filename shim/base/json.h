/*
 * The one writer of JSON: commas, quotes, escapes and indentation; the caller says where the bytes
 * go. For files of the library (json_file.h), the head of a trace, the tools and the player. No
 * allocation, no stdio, no state but the struct's: any thread, one at a time for each writer.
 */
#ifndef CUSPLICE_BASE_JSON_H
#define CUSPLICE_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef void cus_json_put(void *to, const char *bytes, size_t n);

enum cus_json_form {
    CUS_JSON_INDENTED, /* a value on a line */
    CUS_JSON_SPACED,   /* all on one line, with blanks */
    CUS_JSON_TIGHT,    /* on one line without; each byte beyond ASCII is \u00XX: a path need not be
                          UTF-8, and is read as it was */
};

struct cus_json {
    cus_json_put *put;
    void *to;
    enum cus_json_form form;
    bool follows; /* something stands before in the innermost object or array */
    int depth;
    unsigned used; /* of `buffer`, which is empty between calls: so a call is one `put` or few */
    char buffer[116];
};

/* `key` is NULL in arrays and at the top. */
void cus_json_open(struct cus_json *w, const char *key, char bracket);
void cus_json_close(struct cus_json *w, char bracket);
void cus_json_number(struct cus_json *w, const char *key, uint64_t value);
void cus_json_integer(struct cus_json *w, const char *key, int64_t value);
void cus_json_bool(struct cus_json *w, const char *key, bool value);
void cus_json_text(struct cus_json *w, const char *key, const char *value); /* NULL: null */
/* JSON that is there already, put in as it is. */
void cus_json_raw(struct cus_json *w, const char *key, const char *json);
/* Ends the line behind the value at the top. */
void cus_json_end(struct cus_json *w);

/* ---- strings ---- */

/* The text in its quotes, as in the first two forms. What may not be shown (clean.h) is escaped; a
 * byte that is no UTF-8 becomes U+FFFD. */
void cus_json_string(cus_json_put *put, void *to, const char *text);

enum { CUS_JSON_ESCAPE = 16 };
/* How many bytes of the text stand as they are in a string; behind them is the final NUL or a
 * character for which cus_json_escape has the text. */
size_t cus_json_plain(const char *at);
/* Returns how many bytes of the text `escape` stands for. */
size_t cus_json_escape(const char *at, char escape[CUS_JSON_ESCAPE]);

#ifdef __cplusplus
}
#endif

#endif
