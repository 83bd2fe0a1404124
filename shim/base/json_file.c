/* Writes JSON to a file descriptor through a small buffer. */
#include "shim/base/json_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/base/file.h"

static void drain(struct cus_json_file *w) {
    if (!w->error && !cus_file_write(w->fd, w->buffer, w->used, CUS_FILE_PATIENCE_MS))
        w->error = errno;
    w->used = 0;
}

static void put(void *to, const char *text, size_t bytes) {
    struct cus_json_file *w = to;
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

/* An earlier process with the same number may have left a file of this name. */
static int open_partial(struct cus_json_file *w) {
    int fd = cus_file_open_output(w->partial, CUS_FILE_NEW, &w->why);
    if (fd < 0 && errno == EEXIST && unlink(w->partial) == 0)
        fd = cus_file_open_output(w->partial, CUS_FILE_NEW, &w->why);
    return fd;
}

/* False: the path exists and is neither a regular file nor a link, so it is not replaced. */
static bool may_replace(struct cus_json_file *w) {
    struct stat info;
    if (lstat(w->target, &info) != 0 || S_ISREG(info.st_mode) || S_ISLNK(info.st_mode))
        return true;
    w->why = "what has its name is no regular file";
    errno = EPERM;
    return false;
}

bool cus_json_file_begin(struct cus_json_file *w, const char *path) {
    *w = (struct cus_json_file){.json = {.put = put, .to = w}, .fd = -1};
    w->special = cus_file_is_device(path);
    snprintf(w->target, sizeof w->target, "%s", path);
    snprintf(w->partial, sizeof w->partial, "%s.%ld.partial", path, (long)getpid());
    if (w->special)
        w->fd = cus_file_open_output(path, CUS_FILE_APPEND, &w->why);
    else if (may_replace(w))
        w->fd = open_partial(w);
    return w->fd >= 0;
}

bool cus_json_file_end(struct cus_json_file *w) {
    cus_json_end(&w->json);
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
