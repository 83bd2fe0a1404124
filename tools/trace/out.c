/*
 * Fills the buffer, writes it, and gives the file its name. Exports call it, on one thread. It
 * never writes after the first error.
 */
#include "tools/trace/out.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim/base/json.h"
#include "tools/trace/facts.h"
#include "tools/trace/progress.h"

static void drain(struct out *out) {
    const char *at = out->buffer;
    while (!out->error && out->used) {
        ssize_t n = write(out->fd, at, out->used);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            out->error = n ? errno : EIO;
            break;
        }
        at += n;
        out->used -= (size_t)n;
        out->bytes += (uint64_t)n;
    }
    out->used = 0;
}

int out_open(struct out *out, const char *path, bool force, const char *const *from) {
    out->error = 0;
    out->bytes = out->used = 0;
    out->special = strcmp(path, "-") == 0;
    if (out->special)
        progress_off();
    out->fd = out->special ? STDOUT_FILENO : beside_open(&out->beside, path, force, from);
    return out->error = out->fd < 0 ? errno : 0;
}

int out_close(struct out *out) {
    drain(out);
    if (out->special)
        return out->error;
    if (close(out->fd) != 0 && !out->error)
        out->error = errno;
    if (out->error)
        beside_remove(&out->beside);
    else
        out->error = beside_name(&out->beside);
    return out->error;
}

void out_abandon(struct out *out) {
    if (out->special)
        return;
    close(out->fd);
    beside_remove(&out->beside);
}

void out_bytes(struct out *out, const char *text, size_t bytes) {
    while (bytes) {
        if (out->used == sizeof out->buffer)
            drain(out);
        size_t n = sizeof out->buffer - out->used;
        n = n < bytes ? n : bytes;
        memcpy(out->buffer + out->used, text, n);
        out->used += n;
        text += n;
        bytes -= n;
    }
}

void out_text(struct out *out, const char *text) {
    out_bytes(out, text, strlen(text));
}

void out_number(struct out *out, uint64_t number) {
    char digits[20];
    size_t at = sizeof digits;
    do
        digits[--at] = (char)('0' + number % 10);
    while (number /= 10);
    out_bytes(out, digits + at, sizeof digits - at);
}

void out_signed(struct out *out, int64_t number) {
    if (number < 0)
        out_bytes(out, "-", 1);
    out_number(out, number < 0 ? 0 - (uint64_t)number : (uint64_t)number);
}

void out_us(struct out *out, uint64_t ns) {
    uint64_t rest = ns % 1000;
    char digits[4] = {'.', (char)('0' + rest / 100), (char)('0' + rest / 10 % 10),
                      (char)('0' + rest % 10)};
    out_number(out, ns / 1000);
    if (rest)
        out_bytes(out, digits, sizeof digits);
}

static void put(void *out, const char *bytes, size_t n) {
    out_bytes(out, bytes, n);
}

void out_json(struct out *out, const char *text) {
    cus_json_string(put, out, text);
}

void out_key(struct out *out, const char *key) {
    /* The buffer is drained only to put more in, so its last byte is the last that was written. */
    char last = out->used ? out->buffer[out->used - 1] : '{';
    if (last != '{' && last != '[')
        out_bytes(out, ",", 1);
    out_bytes(out, "\"", 1);
    out_text(out, key);
    out_bytes(out, "\":", 2);
}

void out_key_text(struct out *out, const char *key, const char *text) {
    out_key(out, key);
    out_json(out, text);
}

void out_key_number(struct out *out, const char *key, uint64_t number) {
    out_key(out, key);
    out_number(out, number);
}

void out_key_signed(struct out *out, const char *key, int64_t number) {
    out_key(out, key);
    out_signed(out, number);
}

void out_key_bool(struct out *out, const char *key, bool value) {
    out_key(out, key);
    out_text(out, value ? "true" : "false");
}

void out_key_object(struct out *out, const char *key, const char *text) {
    char *line = facts_line(text);
    out_key(out, key);
    if (line)
        out_text(out, line);
    else
        out_json(out, text);
    free(line);
}
