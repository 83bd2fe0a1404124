/* A checker of JSON (RFC 8259) that copies what it accepts. It nests 64 deep at most. */
#include "tools/trace/facts.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

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
    keep(s, (size_t)(at + 1 - s->at));
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

char *facts_line(const char *facts) {
    char *line = malloc(strlen(facts) + 1);
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
