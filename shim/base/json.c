#include "shim/base/json.h"

#include <stdio.h>
#include <string.h>

#include "shim/base/clean.h"

enum { CHARACTER = 4 }; /* the longest character in UTF-8, in bytes; a final NUL ends it sooner */

/* ---- bytes ---- */

static void drain(struct cus_json *w) {
    w->put(w->to, w->buffer, w->used);
    w->used = 0;
}

static inline void put_byte(struct cus_json *w, char byte) {
    if (w->used == sizeof w->buffer)
        drain(w);
    w->buffer[w->used++] = byte;
}

static void put_text(struct cus_json *w, const char *text) {
    while (*text)
        put_byte(w, *text++);
}

/* ---- strings ---- */

static bool is_plain(unsigned char byte) {
    return byte >= 0x20 && byte < 0x7f && byte != '"' && byte != '\\';
}

size_t cus_json_plain(const char *at) {
    const char *from = at;
    for (;;) {
        unsigned char byte = (unsigned char)*at;
        size_t bytes = is_plain(byte) ? 1 : byte < 0x80 ? 0 : cus_shown(at, CHARACTER);
        if (!bytes)
            return (size_t)(at - from);
        at += bytes;
    }
}

size_t cus_json_escape(const char *at, char escape[CUS_JSON_ESCAPE]) {
    uint32_t code;
    size_t bytes = cus_utf8(at, CHARACTER, &code);
    if (!bytes)
        memcpy(escape, "\xef\xbf\xbd", 4); /* U+FFFD */
    else if (cus_is_shown(code))
        snprintf(escape, CUS_JSON_ESCAPE, "\\%c", *at);
    else if (code <= 0xffff)
        snprintf(escape, CUS_JSON_ESCAPE, "\\u%04x", code);
    else /* a pair, as in UTF-16 */
        snprintf(escape, CUS_JSON_ESCAPE, "\\u%04x\\u%04x", 0xd7c0 + (code >> 10),
                 0xdc00 + (code & 0x3ff));
    return bytes ? bytes : 1;
}

/* Writes one character that is no plain ASCII. Returns its length in bytes. */
static size_t put_other(struct cus_json *w, const char *at) {
    char escape[CUS_JSON_ESCAPE];
    unsigned char byte = (unsigned char)*at;
    size_t bytes = 1;
    if (w->form == CUS_JSON_TIGHT && byte != '"' && byte != '\\') {
        snprintf(escape, sizeof escape, "\\u%04x", byte);
    } else if (byte >= 0x80 && (bytes = cus_shown(at, CHARACTER))) {
        memcpy(escape, at, bytes);
        escape[bytes] = 0;
    } else {
        bytes = cus_json_escape(at, escape);
    }
    put_text(w, escape);
    return bytes;
}

static void put_string(struct cus_json *w, const char *text) {
    put_byte(w, '"');
    while (*text)
        if (is_plain((unsigned char)*text))
            put_byte(w, *text++);
        else
            text += put_other(w, text);
    put_byte(w, '"');
}

void cus_json_string(cus_json_put *put, void *to, const char *text) {
    struct cus_json w = {.put = put, .to = to};
    put_string(&w, text);
    drain(&w);
}

/* ---- values ---- */

static void new_line(struct cus_json *w) {
    put_byte(w, '\n');
    for (int i = 0; i < w->depth; i++)
        put_text(w, "  ");
}

static void begin(struct cus_json *w, const char *key) {
    if (w->depth && w->follows) {
        put_byte(w, ',');
        if (w->form == CUS_JSON_SPACED)
            put_byte(w, ' ');
    }
    if (w->depth && w->form == CUS_JSON_INDENTED)
        new_line(w);
    if (key) {
        put_string(w, key);
        put_byte(w, ':');
        if (w->form != CUS_JSON_TIGHT)
            put_byte(w, ' ');
    }
    w->follows = true;
}

void cus_json_open(struct cus_json *w, const char *key, char bracket) {
    begin(w, key);
    put_byte(w, bracket);
    drain(w);
    w->follows = false;
    w->depth++;
}

void cus_json_close(struct cus_json *w, char bracket) {
    w->depth--;
    if (w->follows && w->form == CUS_JSON_INDENTED)
        new_line(w);
    put_byte(w, bracket);
    drain(w);
    w->follows = true;
}

/* The digits are made in their place in the buffer, since a dump of a trace has millions of
 * lines. */
static void put_digits(struct cus_json *w, uint64_t value) {
    unsigned n = 1;
    for (uint64_t rest = value; rest >= 10; rest /= 10)
        n++;
    if (n > sizeof w->buffer - w->used)
        drain(w);
    w->used += n;
    for (char *at = w->buffer + w->used; n--; value /= 10)
        *--at = (char)('0' + value % 10);
    drain(w);
}

void cus_json_number(struct cus_json *w, const char *key, uint64_t value) {
    begin(w, key);
    put_digits(w, value);
}

void cus_json_integer(struct cus_json *w, const char *key, int64_t value) {
    begin(w, key);
    if (value < 0)
        put_byte(w, '-');
    put_digits(w, value < 0 ? -(uint64_t)value : (uint64_t)value);
}

void cus_json_bool(struct cus_json *w, const char *key, bool value) {
    cus_json_raw(w, key, value ? "true" : "false");
}

void cus_json_text(struct cus_json *w, const char *key, const char *value) {
    begin(w, key);
    if (value)
        put_string(w, value);
    else
        put_text(w, "null");
    drain(w);
}

void cus_json_raw(struct cus_json *w, const char *key, const char *json) {
    begin(w, key);
    drain(w);
    w->put(w->to, json, strlen(json)); /* may be long */
}

void cus_json_end(struct cus_json *w) {
    put_text(w, "\n");
    drain(w);
    w->follows = false;
}
