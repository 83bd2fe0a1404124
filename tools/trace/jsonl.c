/*
 * See the header. No state but the struct's. Traces are dumped by the million lines: hence the
 * calls without a lock, and a number's digits made here.
 */
#include "tools/trace/jsonl.h"

#include <string.h>

#include "tools/trace/clean.h"

static void put(FILE *to, const void *bytes, size_t n) {
    fwrite_unlocked(bytes, 1, n, to);
}

void jsonl_string(FILE *to, const char *text) {
    char escape[CLEAN_JSON];
    putc_unlocked('"', to);
    for (;;) {
        size_t plain = clean_json_plain(text);
        put(to, text, plain);
        text += plain;
        if (!*text)
            break;
        text += clean_json_escape(text, escape);
        put(to, escape, strlen(escape));
    }
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
