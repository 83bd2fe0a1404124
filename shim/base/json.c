/*
 * Writes JSON to a file descriptor through a small buffer.
 */
#include "shim/base/json.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/base/clean.h"
#include "shim/base/file.h"

static void drain(struct cus_json *w) {
    if (!w->error && !cus_file_write(w->fd, w->buffer, w->used, CUS_FILE_PATIENCE_MS))
        w->error = errno;
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

/* The file is UTF-8, whatever the text is. */
static void put_string(struct cus_json *w, const char *text) {
    size_t left = strlen(text);
    put_text(w, "\"");
    while (left) {
        char escaped[8];
        unsigned char byte = (unsigned char)*text;
        size_t shown = cus_shown(text, left), n = shown ? shown : 1;
        if (byte == '"' || byte == '\\')
            snprintf(escaped, sizeof escaped, "\\%c", byte);
        else if (shown)
            snprintf(escaped, sizeof escaped, "%.*s", (int)shown, text);
        else
            snprintf(escaped, sizeof escaped, "\\u%04x", byte < 0x80 ? byte : 0xfffd);
        put_text(w, escaped);
        text += n;
        left -= n;
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

/* A file of this name may have been left by a process that had our number. */
static int open_partial(struct cus_json *w) {
    int fd = cus_file_open_output(w->partial, CUS_FILE_NEW, &w->why);
    if (fd < 0 && errno == EEXIST && unlink(w->partial) == 0)
        fd = cus_file_open_output(w->partial, CUS_FILE_NEW, &w->why);
    return fd;
}

/* What has the name is to be replaced: a file or a link is, nothing else. */
static bool may_replace(struct cus_json *w) {
    struct stat info;
    if (lstat(w->target, &info) != 0 || S_ISREG(info.st_mode) || S_ISLNK(info.st_mode))
        return true;
    w->why = "what has its name is no regular file";
    errno = EPERM;
    return false;
}

bool cus_json_begin(struct cus_json *w, const char *path) {
    *w = (struct cus_json){.fd = -1, .first = true};
    w->special = cus_file_is_device(path);
    snprintf(w->target, sizeof w->target, "%s", path);
    snprintf(w->partial, sizeof w->partial, "%s.%ld.partial", path, (long)getpid());
    if (w->special)
        w->fd = cus_file_open_output(path, CUS_FILE_APPEND, &w->why);
    else if (may_replace(w))
        w->fd = open_partial(w);
    return w->fd >= 0;
}

bool cus_json_end(struct cus_json *w) {
    put_text(w, "\n");
    drain(w);
    if (close(w->fd) != 0 && !w->error)
        w->error = errno;
    if (!w->error && !w->special && rename(w->partial, w->target) != 0)
        w->error = errno;
    if (w->error && !w->special)
        unlink(w->partial);
    errno = w->error;
    return !w->error;
}
