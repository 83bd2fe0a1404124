/* See the header. No state but the struct's. */
#include "tools/trace/jsonl.h"

#include <inttypes.h>

/* How many bytes of a UTF-8 character begin here; 0: none does. */
static unsigned character(const unsigned char *at) {
    if (at[0] < 0x80)
        return 1;
    unsigned n = at[0] >= 0xc2 && at[0] < 0xe0   ? 2
                 : at[0] >= 0xe0 && at[0] < 0xf0 ? 3
                 : at[0] >= 0xf0 && at[0] < 0xf5 ? 4
                                                 : 0;
    for (unsigned i = 1; i < n; i++)
        if ((at[i] & 0xc0) != 0x80)
            return 0;
    /* Over-long forms, surrogates, beyond the last one. */
    if ((at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xed && at[1] >= 0xa0) ||
        (at[0] == 0xf0 && at[1] < 0x90) || (at[0] == 0xf4 && at[1] >= 0x90))
        return 0;
    return n;
}

void jsonl_string(FILE *to, const char *text) {
    const unsigned char *at = (const unsigned char *)text;
    putc('"', to);
    while (*at) {
        unsigned n = character(at);
        if (*at == '"' || *at == '\\')
            fprintf(to, "\\%c", *at);
        else if (*at < 0x20)
            fprintf(to, "\\u%04x", *at);
        else if (n)
            fwrite(at, 1, n, to);
        else
            fputs("\xef\xbf\xbd", to);
        at += n ? n : 1;
    }
    putc('"', to);
}

static void begin(struct jsonl *json, const char *key) {
    if (json->follows)
        fputs(", ", json->to);
    if (key) {
        jsonl_string(json->to, key);
        fputs(": ", json->to);
    }
    json->follows = true;
}

void jsonl_open(struct jsonl *json, const char *key, char bracket) {
    begin(json, key);
    putc(bracket, json->to);
    json->follows = false;
}

void jsonl_close(struct jsonl *json, char bracket) {
    putc(bracket, json->to);
    json->follows = true;
}

void jsonl_text(struct jsonl *json, const char *key, const char *text) {
    begin(json, key);
    jsonl_string(json->to, text);
}

void jsonl_number(struct jsonl *json, const char *key, int64_t number) {
    begin(json, key);
    fprintf(json->to, "%" PRId64, number);
}

void jsonl_real(struct jsonl *json, const char *key, double number) {
    begin(json, key);
    fprintf(json->to, "%.6g", number);
}

void jsonl_bool(struct jsonl *json, const char *key, bool value) {
    begin(json, key);
    fputs(value ? "true" : "false", json->to);
}

void jsonl_raw(struct jsonl *json, const char *key, const char *value) {
    begin(json, key);
    fputs(value, json->to);
}

void jsonl_end(struct jsonl *json) {
    putc('\n', json->to);
    json->follows = false;
}
