/*
 * A text file on its way out, with a buffer and helpers for JSON. Exports call it, on one thread.
 * An error sticks until out_close tells it. A file that fails is never left behind.
 */
#ifndef CUSPLICE_TOOLS_TRACE_OUT_H
#define CUSPLICE_TOOLS_TRACE_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/trace/beside.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { OUT_BUFFER = 1 << 18 };

struct out {
    int fd;
    int error;    /* errno of what failed first */
    bool special; /* standard output: has no name to be given */
    uint64_t bytes;
    size_t used;
    struct beside beside;
    char buffer[OUT_BUFFER];
};

/* "-" is standard output. `from`: as for beside_open. Returns 0 or an errno. */
int out_open(struct out *out, const char *path, bool force, const char *const *from);
/* Writes what is left and gives the file its name. Returns 0 or the first error, with nothing
 * left of the file. */
int out_close(struct out *out);
void out_abandon(struct out *out);

void out_bytes(struct out *out, const char *text, size_t bytes);
void out_text(struct out *out, const char *text);
void out_number(struct out *out, uint64_t number);
void out_signed(struct out *out, int64_t number);
/* Microseconds of nanoseconds, exactly: 1234567 is 1234.567. */
void out_us(struct out *out, uint64_t ns);
/* A JSON string with its quotes. What is not UTF-8 in it becomes U+FFFD. */
void out_json(struct out *out, const char *text);
/* `"key":` and a value; a comma goes before it unless the last byte written opens an object or
 * array. A key is plain text. */
void out_key(struct out *out, const char *key);
void out_key_text(struct out *out, const char *key, const char *text);
void out_key_number(struct out *out, const char *key, uint64_t number);
void out_key_signed(struct out *out, const char *key, int64_t number);
void out_key_bool(struct out *out, const char *key, bool value);
/* The JSON object `text` without white space between its tokens; as a string where it is not one.
 */
void out_key_object(struct out *out, const char *key, const char *text);

#ifdef __cplusplus
}
#endif

#endif
