/*
 * The only writer of JSON: commas, quotes, escapes and indentation. The caller says where the bytes
 * go. Files of the library (json_file.h), the head of a trace, the tools and the player use it. No
 * allocation, no stdio, and no state but the struct's. Any thread; one thread at a time for each
 * writer.
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
    CUS_JSON_INDENTED, /* one value per line */
    CUS_JSON_SPACED,   /* all on one line, with blanks */
    CUS_JSON_TIGHT,    /* all on one line, without blanks; each byte beyond ASCII becomes \u00XX,
                        * because a path need not be UTF-8 */
};

struct cus_json {
    cus_json_put *put;
    void *to;
    enum cus_json_form form;
    bool follows; /* the innermost object or array has a value already */
    int depth;
    unsigned used; /* bytes in `buffer`; 0 between calls. Hence most calls make one `put` */
    char buffer[116];
};

/* `key` is NULL in arrays and at the top. */
void cus_json_open(struct cus_json *w, const char *key, char bracket);
void cus_json_close(struct cus_json *w, char bracket);
void cus_json_number(struct cus_json *w, const char *key, uint64_t value);
void cus_json_integer(struct cus_json *w, const char *key, int64_t value);
void cus_json_bool(struct cus_json *w, const char *key, bool value);
void cus_json_text(struct cus_json *w, const char *key, const char *value); /* NULL: null */
/* Inserts text that is JSON already. */
void cus_json_raw(struct cus_json *w, const char *key, const char *json);
/* Ends the line after the value at the top. */
void cus_json_end(struct cus_json *w);

/* ---- strings ---- */

/* The text in quotes, as in the first two forms. Characters that may not be shown (clean.h) are
 * escaped. A byte that is no UTF-8 becomes U+FFFD. */
void cus_json_string(cus_json_put *put, void *to, const char *text);

enum { CUS_JSON_ESCAPE = 16 };
/* How many bytes of the text a string holds unchanged. They end at the final NUL or at a
 * character that cus_json_escape replaces. */
size_t cus_json_plain(const char *at);
/* Returns how many bytes of the text `escape` replaces. */
size_t cus_json_escape(const char *at, char escape[CUS_JSON_ESCAPE]);

#ifdef __cplusplus
}
#endif

#endif
