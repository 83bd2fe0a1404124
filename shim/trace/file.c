/*
 * The one place that writes trace files. Runs on the library's writer thread or in a tool. Takes no
 * lock and calls no driver.
 */
#define _GNU_SOURCE
#include "shim/trace/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include "xxhash.h"

enum { STRING_MAX = 65000 };

static void put(struct cst_out *out, const void *from, size_t bytes) {
    const char *at = from;
    /* If the program closes all descriptors, the number may now belong to one of its own files. */
    if (!out->error && !cus_file_is(out->fd, &out->id)) {
        out->error = EBADF;
        out->fd = -1;
    }
    while (!out->error && bytes) {
        ssize_t n = write(out->fd, at, bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            out->error = n ? errno : EIO;
            return;
        }
        at += n;
        bytes -= (size_t)n;
        out->bytes += (uint64_t)n;
    }
}

int cst_out_open(struct cst_out *out, const char *path) {
    memset(out, 0, sizeof *out);
    out->fd = -1;
    if (strlen(path) >= sizeof out->path)
        return out->error = ENAMETOOLONG;
    snprintf(out->path, sizeof out->path, "%s", path);
    snprintf(out->partial, sizeof out->partial, "%s.partial", path);
    struct stat there;
    if (lstat(path, &there) == 0)
        return out->error = EEXIST;
    out->fd = cus_file_open(out->partial, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    if (out->fd < 0 || !cus_file_identify(out->fd, &out->id))
        return out->error = errno;
    struct cst_file head = {.version = CST_VERSION, .mark = CST_MARK};
    memcpy(head.magic, CST_MAGIC, sizeof head.magic);
    put(out, &head, sizeof head);
    return out->error;
}

uint64_t cst_checksum(const void *at, size_t bytes) {
    return XXH3_64bits(at, bytes);
}

void cst_out_block(struct cst_out *out, uint32_t type, uint32_t flags, const void *payload,
                   size_t bytes, size_t raw) {
    static const char zeros[8];
    struct cst_block block = {.type = type, .flags = flags, .bytes = bytes, .raw = raw};
    block.check = XXH3_64bits_withSeed(payload, bytes, type + ((uint64_t)flags << 32));
    put(out, &block, sizeof block);
    put(out, payload, bytes);
    put(out, zeros, (8 - bytes % 8) % 8);
}

/* Closes the file, unless its number now belongs to a file of the program's. */
static bool release(struct cst_out *out) {
    bool ours = out->fd >= 0 && cus_file_is(out->fd, &out->id);
    int fd = out->fd;
    out->fd = -1;
    return !ours || close(fd) == 0;
}

int cst_out_close(struct cst_out *out) {
    cst_out_block(out, CST_BLOCK_END, 0, "", 0, 0);
    if (!release(out) && !out->error)
        out->error = errno;
    /* The rename must not replace a file that came meanwhile. If the file system cannot promise
     * this, the path is checked first. */
    if (!out->error &&
        renameat2(AT_FDCWD, out->partial, AT_FDCWD, out->path, RENAME_NOREPLACE) != 0) {
        struct stat there;
        if (errno != EINVAL && errno != ENOSYS)
            out->error = errno;
        else if (lstat(out->path, &there) == 0)
            out->error = EEXIST;
        else if (rename(out->partial, out->path) != 0)
            out->error = errno;
    }
    return out->error;
}

void cst_out_abandon(struct cst_out *out) {
    if (out->fd < 0)
        return;
    release(out);
    unlink(out->partial);
}

static bool is_full(const struct cst_sink *sink, size_t more) {
    return sink->used && sink->used + more > (sink->full ? sink->full : CST_SINK);
}

void cst_sink_flush(struct cst_sink *sink) {
    if (sink->used)
        cst_out_block(sink->out, CST_BLOCK_RECORDS, 0, sink->buffer, sink->used, sink->used);
    sink->used = 0;
}

void *cst_sink_add(struct cst_sink *sink, enum cst_type type, size_t bytes) {
    bytes = (bytes + 7) & ~(size_t)7;
    if (is_full(sink, bytes))
        cst_sink_flush(sink);
    struct cst_record *record = (struct cst_record *)(void *)(sink->buffer + sink->used);
    memset(record, 0, bytes);
    record->type = (uint8_t)type;
    record->words = (uint16_t)(bytes / 8);
    sink->used += bytes;
    return record;
}

void cst_sink_put(struct cst_sink *sink, const void *records, size_t bytes) {
    if (is_full(sink, bytes))
        cst_sink_flush(sink);
    if (bytes > CST_SINK) {
        cst_out_block(sink->out, CST_BLOCK_RECORDS, 0, records, bytes, bytes);
        return;
    }
    memcpy(sink->buffer + sink->used, records, bytes);
    sink->used += bytes;
}

void cst_sink_string(struct cst_sink *sink, uint32_t id, const char *text) {
    size_t bytes = strnlen(text, STRING_MAX);
    struct cst_string *string = cst_sink_add(sink, CST_STRING, sizeof *string + bytes);
    string->id = id;
    string->bytes = (uint32_t)bytes;
    memcpy(string + 1, text, bytes);
}
