/*
 * The scanner's state and its small steps, for name.c and name_types.c only. name.c scans names and
 * keeps parts of them; name_types.c skips types and expressions.
 */
#ifndef CUSPLICE_PLAN_NAME_SCAN_H
#define CUSPLICE_PLAN_NAME_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

enum { CUS_SCAN_DEPTH_MAX = 200 };

/* A part of the text, or a constant. */
struct part {
    const char *text;
    size_t bytes;
};

struct scan {
    const char *at, *end;
    int depth;
    bool failed;
    /* Parts are kept only while `keeping`; template arguments and types switch it off. */
    bool keeping, qualified;
    struct part last; /* the component kept last, for constructors and the base name */
    char *out;
    size_t bytes, used;
};

/* name.c */
void cus_scan_name(struct scan *s);
void cus_scan_encoding(struct scan *s);
void cus_scan_identifier(struct scan *s, bool kept);
void cus_scan_arguments(struct scan *s);
void cus_scan_parameter(struct scan *s);
bool cus_scan_is_operator(const char *code);
/* name_types.c; the caller has switched `keeping` off */
void cus_scan_type(struct scan *s);
void cus_scan_expression(struct scan *s);

/* ---- small steps ---- */

static inline char peek(const struct scan *s) {
    return s->at < s->end ? *s->at : 0;
}

static inline char peek_next(const struct scan *s) {
    return s->at + 1 < s->end ? s->at[1] : 0;
}

static inline bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static inline bool is_lower(char c) {
    return c >= 'a' && c <= 'z';
}

/* Moves behind `word` if the text goes on with it. */
static inline bool take(struct scan *s, const char *word) {
    size_t bytes = strlen(word);
    if ((size_t)(s->end - s->at) < bytes || memcmp(s->at, word, bytes) != 0)
        return false;
    s->at += bytes;
    return true;
}

/* After a failure nothing moves: every loop ends at the end of the text. */
static inline void fail(struct scan *s) {
    s->failed = true;
    s->at = s->end;
}

static inline void need(struct scan *s, const char *word) {
    if (!take(s, word))
        fail(s);
}

static inline bool enter(struct scan *s) {
    if (++s->depth > CUS_SCAN_DEPTH_MAX)
        fail(s);
    return !s->failed;
}

static inline void leave(struct scan *s) {
    s->depth--;
}

static inline bool more(const struct scan *s) {
    return s->at < s->end && *s->at != 'E';
}

static inline void skip_digits(struct scan *s) {
    while (is_digit(peek(s)))
        s->at++;
}

#endif
