/*
 * The segment list of a step. The plan fills it under the engine's lock; it is formatted at exit.
 * No stdio, since this runs in the program's process.
 */
#include "shim/plan/segment_list.h"

#include <string.h>

void cus_segment_list_add(struct cus_segment_list *segments, const char *eager, uint32_t ops) {
    segments->graphs |= !eager;
    struct cus_segment_entry *last = segments->n ? &segments->list[segments->n - 1] : NULL;
    if (last && !segments->dropped && last->eager == eager) {
        last->ops += ops;
    } else if (segments->n < CUS_SEGMENT_LIST_MAX) {
        segments->list[segments->n++] = (struct cus_segment_entry){eager, ops};
    } else {
        segments->dropped++;
    }
}

void cus_segment_list_copy(struct cus_segment_list *to, const struct cus_segment_list *from) {
    memcpy(to, from, offsetof(struct cus_segment_list, list) + from->n * sizeof from->list[0]);
}

struct text {
    char *at, *end;
};

static void put(struct text *text, const char *word) {
    while (*word && text->at < text->end)
        *text->at++ = *word++;
}

/* Kernel names hold no control characters. Quotes and backslashes are escaped, to be safe. */
static void put_escaped(struct text *text, const char *word) {
    for (; *word && text->at < text->end; word++) {
        if (*word == '"' || *word == '\\')
            put(text, "\\");
        char one[2] = {(unsigned char)*word < 0x20 ? '?' : *word, 0};
        put(text, one);
    }
}

static void put_number(struct text *text, uint32_t number) {
    char digits[12];
    char *at = digits + sizeof digits;
    *--at = 0;
    do
        *--at = (char)('0' + number % 10);
    while ((number /= 10) != 0);
    put(text, at);
}

bool cus_segment_list_json(const struct cus_segment_list *segments, char *text, size_t bytes) {
    if (bytes < 3)
        return false;
    struct text out = {text, text + bytes - 1};
    put(&out, "[");
    for (uint32_t i = 0; i < segments->n; i++) {
        const struct cus_segment_entry *segment = &segments->list[i];
        put(&out, i ? ", \"" : "\"");
        if (!segment->eager) {
            put(&out, "graph ");
            put_number(&out, segment->ops);
        } else {
            put(&out, "eager ");
            put_escaped(&out, segment->eager);
            if (segment->ops > 1) {
                put(&out, " x ");
                put_number(&out, segment->ops);
            }
        }
        put(&out, "\"");
    }
    put(&out, "]");
    if (out.at == out.end) {
        strcpy(text, "[]");
        return false;
    }
    *out.at = 0;
    return true;
}
