/* Runs in tools alone. */
#include "tools/trace/out.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

int out_open(struct out *out, const char *path, bool force) {
    out->error = 0;
    out->bytes = out->used = 0;
    out->special = strcmp(path, "-") == 0;
    out->fd = out->special ? STDOUT_FILENO : beside_open(&out->beside, path, force);
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

/* Bytes of the UTF-8 character at `at`; 0: it is none. */
static size_t utf8(const unsigned char *at) {
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t bytes = at[0] < 0xc2 ? 0 : at[0] < 0xe0 ? 2 : at[0] < 0xf0 ? 3 : at[0] < 0xf5 ? 4 : 0;
    if (!bytes)
        return 0;
    uint32_t value = at[0] & (0xffu >> (bytes + 1));
    for (size_t i = 1; i < bytes; i++) {
        if ((at[i] & 0xc0) != 0x80)
            return 0;
        value = value << 6 | (at[i] & 0x3f);
    }
    bool sound = value >= least[bytes] && value <= 0x10ffff && (value < 0xd800 || value > 0xdfff);
    return sound ? bytes : 0;
}

void out_json(struct out *out, const char *text) {
    static const char hex[] = "0123456789abcdef";
    const unsigned char *at = (const unsigned char *)text, *from = at;
    out_bytes(out, "\"", 1);
    while (*at) {
        size_t bytes = *at < 0x80 ? 1 : utf8(at);
        if (bytes > 1 || (bytes == 1 && *at >= 0x20 && *at != '"' && *at != '\\' && *at != 0x7f)) {
            at += bytes;
            continue;
        }
        out_bytes(out, (const char *)from, (size_t)(at - from));
        if (!bytes) {
            out_text(out, "\xef\xbf\xbd");
        } else {
            char escape[6] = {'\\', 'u', '0', '0', hex[*at >> 4], hex[*at & 15]};
            out_bytes(out, escape, sizeof escape);
        }
        from = ++at;
    }
    out_bytes(out, (const char *)from, (size_t)(at - from));
    out_bytes(out, "\"", 1);
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
    char *compact = malloc(strlen(text) + 1);
    out_key(out, key);
    if (compact && json_compact(text, compact))
        out_text(out, compact);
    else
        out_json(out, text);
    free(compact);
}

/* ---- JSON that came from elsewhere ---- */

struct scan {
    const char *at;
    char *to;
};

static void skip(struct scan *scan) {
    scan->at += strspn(scan->at, " \t\r\n");
}

static bool take(struct scan *scan, char byte) {
    if (*scan->at != byte)
        return false;
    *scan->to++ = *scan->at++;
    return true;
}

static bool take_string(struct scan *scan) {
    if (!take(scan, '"'))
        return false;
    while (*scan->at != '"') {
        const unsigned char *byte = (const unsigned char *)scan->at;
        size_t bytes = *byte < 0x80 ? 1 : utf8(byte);
        if (*byte < 0x20 || !bytes)
            return false;
        if (*byte == '\\') {
            bytes = 2;
            if (!byte[1] || !strchr("\"\\/bfnrtu", byte[1]))
                return false;
            if (byte[1] == 'u') {
                bytes = 6;
                if (strspn(scan->at + 2, "0123456789abcdefABCDEF") < 4)
                    return false;
            }
        }
        memcpy(scan->to, scan->at, bytes);
        scan->to += bytes;
        scan->at += bytes;
    }
    return take(scan, '"');
}

static size_t take_digits(struct scan *scan) {
    size_t n = strspn(scan->at, "0123456789");
    memcpy(scan->to, scan->at, n);
    scan->to += n;
    scan->at += n;
    return n;
}

static bool take_number(struct scan *scan) {
    take(scan, '-');
    bool zero = *scan->at == '0';
    size_t n = take_digits(scan);
    if (!n || (zero && n > 1) || (take(scan, '.') && !take_digits(scan)))
        return false;
    if (!take(scan, 'e') && !take(scan, 'E'))
        return true;
    if (!take(scan, '+'))
        take(scan, '-');
    return take_digits(scan);
}

static bool take_value(struct scan *scan, unsigned depth) {
    static const char *const words[] = {"true", "false", "null"};
    skip(scan);
    if (*scan->at == '"')
        return take_string(scan);
    if (*scan->at != '{' && *scan->at != '[') {
        for (unsigned i = 0; i < 3; i++) {
            size_t n = strlen(words[i]);
            if (strncmp(scan->at, words[i], n) == 0) {
                memcpy(scan->to, words[i], n);
                scan->to += n;
                scan->at += n;
                return true;
            }
        }
        return take_number(scan);
    }
    char end = *scan->at == '{' ? '}' : ']';
    if (depth > 64)
        return false;
    *scan->to++ = *scan->at++;
    skip(scan);
    if (take(scan, end))
        return true;
    for (;;) {
        if (end == '}') {
            skip(scan);
            if (!take_string(scan))
                return false;
            skip(scan);
            if (!take(scan, ':'))
                return false;
        }
        if (!take_value(scan, depth + 1))
            return false;
        skip(scan);
        if (take(scan, end))
            return true;
        if (!take(scan, ','))
            return false;
    }
}

bool json_compact(const char *text, char *to) {
    struct scan scan = {text, to};
    skip(&scan);
    bool sound = *scan.at == '{' && take_value(&scan, 0);
    skip(&scan);
    *scan.to = 0;
    return sound && !*scan.at;
}
