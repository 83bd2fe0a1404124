/*
 * JSON on one line, to any file: one call per value, commas and quotes are seen to. Text is
 * cleaned (clean.h): a byte that is no UTF-8 becomes U+FFFD.
 */
#ifndef CUSPLICE_TOOLS_TRACE_JSONL_H
#define CUSPLICE_TOOLS_TRACE_JSONL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct jsonl {
    FILE *to;
    bool follows; /* something stands before on this level */
};

/* `key` is NULL in arrays and at the top. Nothing ends the line but jsonl_end. */
void jsonl_open(struct jsonl *json, const char *key, char bracket);
void jsonl_close(struct jsonl *json, char bracket);
void jsonl_text(struct jsonl *json, const char *key, const char *text);
void jsonl_number(struct jsonl *json, const char *key, int64_t number);
void jsonl_real(struct jsonl *json, const char *key, double number); /* finite */
void jsonl_bool(struct jsonl *json, const char *key, bool value);
void jsonl_raw(struct jsonl *json, const char *key, const char *value); /* is JSON itself */
void jsonl_end(struct jsonl *json);

/* The text with its quotes. */
void jsonl_string(FILE *to, const char *text);

#endif
