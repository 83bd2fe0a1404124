/*
 * Writes JSON to a file descriptor through a small buffer.
 */
#include "shim/base/json.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/base/path.h"

static void drain(struct cus_json *w) {
    size_t done = 0;
    while (done < w->used && !w->failed) {
        ssize_t got = cus_path_write(w->fd, w->buffer + done, w->used - done);
        if (got > 0)
            done += (size_t)got;
        else if (got == 0 || errno != EINTR)
            w->failed = true;
    }
    w->used = 0;
}

static void put(struct cus_json *w, const char *text, size_t bytes) {
    while (bytes) {
        size_t room = sizeof w->buffer - w->used, part = bytes < room ? bytes : room;
        memcpy(w->buffer + w->used, text, part);
        w->used += part;
        text += part;
        bytes -= part;
        if (w->used == sizeof w->buffer)
            drain(w);
    }
}

static void put_text(struct cus_json *w, const char *text) {
    put(w, text, strlen(text));
}

/* Bytes above 0x7f go through as they are: file names are UTF-8 almost always. */
static void put_string(struct cus_json *w, const char *text) {
    put_text(w, "\"");
    for (; *text; text++) {
        char escaped[8];
        unsigned char byte = (unsigned char)*text;
        if (byte == '"' || byte == '\\')
            snprintf(escaped, sizeof escaped, "\\%c", byte);
        else if (byte < 0x20)
            snprintf(escaped, sizeof escaped, "\\u%04x", byte);
        else
            snprintf(escaped, sizeof escaped, "%c", byte);
        put_text(w, escaped);
    }
    put_text(w, "\"");
}

static void new_line(struct cus_json *w) {
    put_text(w, "\n");
    for (int i = 0; i < w->depth; i++)
        put_text(w, "  ");
}

static void put_key(struct cus_json *w, const char *key) {
    if (w->depth) {
        if (!w->first)
            put_text(w, ",");
        new_line(w);
    }
    w->first = false;
    if (key) {
        put_string(w, key);
        put_text(w, ": ");
    }
}

void cus_json_open(struct cus_json *w, const char *key, char bracket) {
    put_key(w, key);
    put(w, &bracket, 1);
    w->first = true;
    w->depth++;
}

void cus_json_close(struct cus_json *w, char bracket) {
    w->depth--;
    if (!w->first)
        new_line(w);
    put(w, &bracket, 1);
    w->first = false;
}

void cus_json_number(struct cus_json *w, const char *key, uint64_t value) {
    char text[24];
    put_key(w, key);
    snprintf(text, sizeof text, "%llu", (unsigned long long)value);
    put_text(w, text);
}

void cus_json_text(struct cus_json *w, const char *key, const char *value) {
    put_key(w, key);
    if (value)
        put_string(w, value);
    else
        put_text(w, "null");
}

void cus_json_raw(struct cus_json *w, const char *key, const char *json) {
    put_key(w, key);
    put_text(w, json);
}

/* ---- the file ---- */

/* /dev/stderr, a pipe: there is nothing to rename. A link is no such thing: it is replaced. */
static bool is_special(const char *path) {
    struct stat info;
    return cus_path_is_system(path) ||
           (lstat(path, &info) == 0 && !S_ISREG(info.st_mode) && !S_ISLNK(info.st_mode));
}

/* A file of this name may have been left by a process that had our number. */
static int open_partial(const char *path) {
    int fd = cus_path_open(path, O_EXCL);
    if (fd < 0 && errno == EEXIST && unlink(path) == 0)
        fd = cus_path_open(path, O_EXCL);
    return fd;
}

bool cus_json_begin(struct cus_json *w, const char *path) {
    *w = (struct cus_json){.fd = -1, .first = true};
    w->special = is_special(path);
    snprintf(w->target, sizeof w->target, "%s", path);
    if (w->special)
        snprintf(w->partial, sizeof w->partial, "%s", path);
    else
        snprintf(w->partial, sizeof w->partial, "%s.%ld.partial", path, (long)getpid());
    w->fd = w->special ? cus_path_open(w->partial, O_APPEND) : open_partial(w->partial);
    return w->fd >= 0;
}

bool cus_json_end(struct cus_json *w) {
    put_text(w, "\n");
    drain(w);
    bool closed = close(w->fd) == 0;
    if (closed && !w->failed && (w->special || rename(w->partial, w->target) == 0))
        return true;
    if (!w->special) {
        int why = errno;
        unlink(w->partial);
        errno = why;
    }
    return false;
}
