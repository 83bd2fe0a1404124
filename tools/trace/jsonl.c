/*
 * See the header. No state but the struct's. Traces are dumped by the million lines: hence the
 * calls without a lock, and a number's digits made here.
 */
#include "tools/trace/jsonl.h"

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

static void put(FILE *to, const void *bytes, size_t n) {
    fwrite_unlocked(bytes, 1, n, to);
}

void jsonl_string(FILE *to, const char *text) {
    const unsigned char *at = (const unsigned char *)text, *from = at;
    putc_unlocked('"', to);
    while (*at) {
        unsigned n = character(at);
        if (n && *at >= 0x20 && *at != '"' && *at != '\\') {
            at += n;
            continue;
        }
        put(to, from, (size_t)(at - from));
        if (!n)
            put(to, "\xef\xbf\xbd", 3);
        else if (*at < 0x20)
            fprintf(to, "\\u%04x", *at);
        else
            putc_unlocked('\\', to), putc_unlocked(*at, to);
        from = ++at;
    }
    put(to, from, (size_t)(at - from));
    putc_unlocked('"', to);
}

static void begin(struct jsonl *json, const char *key) {
    if (json->follows)
        put(json->to, ", ", 2);
    if (key) {
        jsonl_string(json->to, key);
        put(json->to, ": ", 2);
    }
    json->follows = true;
}

void jsonl_open(struct jsonl *json, const char *key, char bracket) {
    begin(json, key);
    putc_unlocked(bracket, json->to);
    json->follows = false;
}

void jsonl_close(struct jsonl *json, char bracket) {
    putc_unlocked(bracket, json->to);
    json->follows = true;
}

void jsonl_text(struct jsonl *json, const char *key, const char *text) {
    begin(json, key);
    jsonl_string(json->to, text);
}

void jsonl_number(struct jsonl *json, const char *key, int64_t number) {
    begin(json, key);
    char digits[24], *at = digits + sizeof digits;
    uint64_t rest = number < 0 ? -(uint64_t)number : (uint64_t)number;
    do
        *--at = (char)('0' + rest % 10);
    while (rest /= 10);
    if (number < 0)
        *--at = '-';
    put(json->to, at, (size_t)(digits + sizeof digits - at));
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
    putc_unlocked('\n', json->to);
    json->follows = false;
}
