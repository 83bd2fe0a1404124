/*
 * Brings a file into memory: maps it, or copies what comes through a pipe into memory without a
 * name first. A pipe that nobody writes to is waited for a moment only, and a device never.
 * reader.c calls it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/trace/reader_inside.h"

enum { UNPACK_LEAST = 64 << 20, UNPACK_TIMES = 100, WRITER_MS = 100, CHUNK = 1 << 16 };

static bool write_all(int fd, const char *from, size_t bytes) {
    while (bytes) {
        ssize_t n = write(fd, from, bytes);
        if (n < 0 && errno != EINTR)
            return false;
        from += n > 0 ? n : 0;
        bytes -= n > 0 ? (size_t)n : 0;
    }
    return true;
}

/* All that comes, up to the writer's end. Returns how much, or UINT64_MAX with a sentence. */
static uint64_t copy_pipe(struct reading *r, int from, int to, uint64_t most) {
    struct pollfd there = {.fd = from, .events = POLLIN};
    char chunk[CHUNK];
    uint64_t bytes = 0;
    /* The writer of a pipe with a name may open it a moment later. */
    poll(&there, 1, WRITER_MS);
    for (;;) {
        ssize_t n = read(from, chunk, sizeof chunk);
        if (n == 0)
            return bytes;
        if (n < 0 && errno == EAGAIN)
            poll(&there, 1, -1);
        else if (n < 0 && errno != EINTR)
            return cst_fail(r, "%s", strerror(errno)), UINT64_MAX;
        if (n <= 0)
            continue;
        bytes += (uint64_t)n;
        if (bytes > most)
            return cst_fail(r, "more than %" PRIu64 " MiB come through the pipe%s%s", most >> 20,
                            r->trace->raise ? ": " : "", r->trace->raise ? r->trace->raise : ""),
                   UINT64_MAX;
        if (!write_all(to, chunk, (size_t)n))
            return cst_no_memory(r), UINT64_MAX;
    }
}

static bool map(struct reading *r, int fd, uint64_t bytes) {
    void *at = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    if (at == MAP_FAILED)
        return cst_fail(r, "cannot be mapped: %s", strerror(errno));
    r->memory->map = at;
    r->memory->map_bytes = bytes;
    r->trace->file_bytes = bytes;
    if (!r->trace->unpack_max)
        r->trace->unpack_max = UNPACK_LEAST + UNPACK_TIMES * bytes;
    return true;
}

static bool map_pipe(struct reading *r, int fd, uint64_t most) {
    int copy = memfd_create("cusplice-pipe", MFD_CLOEXEC);
    if (copy < 0)
        return cst_fail(r, "%s", strerror(errno));
    uint64_t bytes = copy_pipe(r, fd, copy, most);
    bool mapped = bytes != UINT64_MAX && bytes >= sizeof(struct cst_file) && map(r, copy, bytes);
    close(copy);
    if (bytes == 0)
        return cst_fail(r, "not a trace of cusplice: it is no regular file, and nothing comes "
                           "through that pipe");
    if (bytes < sizeof(struct cst_file))
        return cst_fail(r, "not a trace of cusplice: what comes through the pipe is too short");
    return mapped;
}

static bool map_opened(struct reading *r, int fd, uint64_t pipe_most) {
    struct cst_trace *trace = r->trace;
    struct stat is;
    if (fd < 0 || fstat(fd, &is) != 0)
        return cst_fail(r, "%s", strerror(errno));
    trace->owner = is.st_uid;
    trace->mode = is.st_mode;
    if (pipe_most && S_ISFIFO(is.st_mode))
        return map_pipe(r, fd, pipe_most);
    if (S_ISDIR(is.st_mode))
        return cst_fail(r,
                        "not a trace of cusplice: it is a folder; name a trace in it (report, and "
                        "export --perfetto, take a folder of traces)");
    if (!S_ISREG(is.st_mode))
        return cst_fail(r, "not a trace of cusplice: it is no regular file");
    if ((uint64_t)is.st_size < sizeof(struct cst_file))
        return cst_fail(r, "not a trace of cusplice: it is %s", is.st_size ? "too short" : "empty");
    return map(r, fd, (uint64_t)is.st_size);
}

bool cst_map_file(struct reading *r, uint64_t pipe_most) {
    int fd = open(r->trace->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    bool mapped = map_opened(r, fd, pipe_most);
    if (fd >= 0)
        close(fd);
    return mapped;
}
