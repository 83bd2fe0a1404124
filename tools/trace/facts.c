/*
 * A checker of JSON (RFC 8259) that copies what it accepts. The verbs and the player call it. It
 * never nests deeper than 64.
 */
#include "tools/trace/facts.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "shim/base/json.h"
#include "tools/trace/clean.h"

enum { DEPTH = 64 };

struct scan {
    const char *at;
    char *to; /* NULL: nothing is kept */
    unsigned depth;
};

static void keep(struct scan *s, size_t bytes) {
    if (s->to) {
        memcpy(s->to, s->at, bytes);
        s->to += bytes;
    }
    s->at += bytes;
}

static void space(struct scan *s) {
    s->at += strspn(s->at, " \t\r\n");
}

static unsigned escaped(const char *at) {
    char hex[5] = {at[2], at[3], at[4], at[5], 0};
    return (unsigned)strtoul(hex, NULL, 16);
}

/* How many bytes an escape has; one that is half a pair is written as U+FFFD. */
static size_t put_escape(struct scan *s) {
    bool four = s->at[1] == 'u';
    unsigned code = four ? escaped(s->at) : 0;
    bool pair = code >= 0xd800 && code < 0xdc00 && s->at[6] == '\\' && s->at[7] == 'u' &&
                escaped(s->at + 6) >= 0xdc00 && escaped(s->at + 6) < 0xe000;
    size_t bytes = pair ? 12 : four ? 6 : 2;
    memcpy(s->to, !pair && code >= 0xd800 && code < 0xe000 ? "\\ufffd" : s->at, bytes);
    s->to += bytes;
    return bytes;
}

/* A string that is sound up to `end`, cleaned. */
static void keep_string(struct scan *s, const char *end) {
    char escape[CUS_JSON_ESCAPE];
    while (s->to && s->at < end) {
        size_t plain = cus_json_plain(s->at);
        if (plain || *s->at == '"') {
            keep(s, plain ? plain : 1);
        } else if (*s->at == '\\') {
            s->at += put_escape(s);
        } else {
            s->at += cus_json_escape(s->at, escape);
            s->to = stpcpy(s->to, escape);
        }
    }
    s->at = end;
}

static bool string(struct scan *s) {
    const char *at = s->at;
    if (*at++ != '"')
        return false;
    while (*at != '"') {
        if ((unsigned char)*at < 0x20)
            return false;
        if (*at == '\\') {
            at++;
            if (*at == 'u') {
                for (unsigned i = 1; i <= 4; i++)
                    if (!isxdigit((unsigned char)at[i]))
                        return false;
                at += 4;
            } else if (!*at || !strchr("\"\\/bfnrt", *at)) {
                return false;
            }
        }
        at++;
    }
    keep_string(s, at + 1);
    return true;
}

static bool digits(const char **at) {
    const char *from = *at;
    while (isdigit((unsigned char)**at))
        ++*at;
    return *at > from;
}

static bool number(struct scan *s) {
    const char *at = s->at;
    at += *at == '-';
    if (*at == '0')
        at++;
    else if (!digits(&at))
        return false;
    if (*at == '.') {
        at++;
        if (!digits(&at))
            return false;
    }
    if (*at == 'e' || *at == 'E') {
        at++;
        at += *at == '+' || *at == '-';
        if (!digits(&at))
            return false;
    }
    keep(s, (size_t)(at - s->at));
    return true;
}

static bool word(struct scan *s, const char *text) {
    if (strncmp(s->at, text, strlen(text)) != 0)
        return false;
    keep(s, strlen(text));
    return true;
}

static bool value(struct scan *s);

static bool parts(struct scan *s, char end, bool keyed) {
    keep(s, 1);
    space(s);
    if (*s->at == end) {
        keep(s, 1);
        return true;
    }
    for (;;) {
        space(s);
        if (keyed) {
            if (!string(s))
                return false;
            space(s);
            if (*s->at != ':')
                return false;
            keep(s, 1);
        }
        if (!value(s))
            return false;
        if (*s->at != ',' && *s->at != end)
            return false;
        bool last = *s->at == end;
        keep(s, 1);
        if (last)
            return true;
    }
}

/* And the space on both sides of it. */
static bool value(struct scan *s) {
    space(s);
    if (++s->depth > DEPTH)
        return false;
    bool good = *s->at == '{'   ? parts(s, '}', true)
                : *s->at == '[' ? parts(s, ']', false)
                : *s->at == '"' ? string(s)
                : *s->at == 't' ? word(s, "true")
                : *s->at == 'f' ? word(s, "false")
                : *s->at == 'n' ? word(s, "null")
                                : number(s);
    s->depth--;
    space(s);
    return good;
}

/* Bytes that the line has at most. */
static size_t room(const char *facts) {
    size_t bytes = 1;
    while (*facts) {
        struct clean_character c = clean_next(facts);
        bytes += c.shown ? c.bytes : CUS_JSON_ESCAPE;
        facts += c.bytes;
    }
    return bytes;
}

char *facts_line(const char *facts) {
    char *line = malloc(room(facts));
    struct scan s = {.at = facts, .to = line};
    space(&s);
    if (!line || *s.at != '{' || !value(&s) || *s.at) {
        free(line);
        return NULL;
    }
    *s.to = 0;
    return line;
}

void facts_each(const char *line, facts_fn *tell, void *context) {
    struct scan s = {.at = line + 1};
    while (*s.at == '"' || *s.at == ',') {
        s.at += *s.at == ',';
        const char *key = s.at;
        string(&s);
        size_t key_bytes = (size_t)(s.at - key);
        const char *from = ++s.at;
        if (!value(&s))
            return;
        tell(context, key, key_bytes, from, (size_t)(s.at - from));
    }
}

static void take_imported(void *context, const char *key, size_t key_bytes, const char *value,
                          size_t value_bytes) {
    if (key_bytes == 10 && memcmp(key, "\"imported\"", 10) == 0)
        *(bool *)context = value_bytes == 4 && memcmp(value, "true", 4) == 0;
}

bool facts_imported(const char *line) {
    bool imported = false;
    facts_each(line, take_imported, &imported);
    return imported;
}
