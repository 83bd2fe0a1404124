/*
 * Opens, renames or removes the partial file. Writers of tools call it, on one thread. It never
 * replaces a file unless told to, and its inputs never.
 */
#define _GNU_SOURCE
#include "tools/trace/beside.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/trace/budget.h"

enum { READ_WRITE = 0666, OWNER = 0600 };

mode_t beside_mode(const char *const *from) {
    mode_t mode = READ_WRITE, mask = umask(0);
    struct stat is;
    umask(mask);
    for (; from && *from; from++)
        mode &= stat(*from, &is) == 0 ? is.st_mode : OWNER;
    return mode & ~mask;
}

bool beside_is_one_of(const char *path, const char *const *from) {
    struct stat there, is;
    if (stat(path, &there) != 0)
        return false;
    for (; from && *from; from++)
        if (stat(*from, &is) == 0 && is.st_dev == there.st_dev && is.st_ino == there.st_ino)
            return true;
    return false;
}

static const char *base_of(const char *path, char folder[BESIDE_PATH]) {
    const char *slash = strrchr(path, '/');
    snprintf(folder, BESIDE_PATH, "%.*s", slash ? (int)(slash - path + 1) : 1, slash ? path : ".");
    return slash ? slash + 1 : path;
}

bool beside_same(const char *a, const char *b) {
    char folder_a[BESIDE_PATH], folder_b[BESIDE_PATH];
    struct stat x, y;
    if (strcmp(base_of(a, folder_a), base_of(b, folder_b)) != 0)
        return false;
    return strcmp(a, b) == 0 || (stat(folder_a, &x) == 0 && stat(folder_b, &y) == 0 &&
                                 x.st_dev == y.st_dev && x.st_ino == y.st_ino);
}

int beside_plan(struct beside *beside, const char *path, bool force, const char *const *from) {
    struct stat there;
    beside->force = force;
    beside->mode = beside_mode(from);
    if (strlen(path) >= sizeof beside->path)
        return ENAMETOOLONG;
    snprintf(beside->path, sizeof beside->path, "%s", path);
    snprintf(beside->partial, sizeof beside->partial, "%s.%d.partial", path, (int)getpid());
    if (beside_is_one_of(path, from) || beside_is_one_of(beside->partial, from))
        return BESIDE_INPUT;
    if (lstat(path, &there) == 0) {
        if (!force)
            return EEXIST;
        if (S_ISDIR(there.st_mode))
            return EISDIR;
    }
    unlink(beside->partial); /* of a process with this number that was killed */
    return 0;
}

int beside_open(struct beside *beside, const char *path, bool force, const char *const *from) {
    errno = beside_plan(beside, path, force, from);
    if (errno)
        return -1;
    /* Its owner can write it until it is whole, by its name too. */
    int fd = open(beside->partial, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                  beside->mode | OWNER);
    if (fd >= 0)
        budget_partial(beside->partial);
    return fd;
}

/* There are file systems without modes: a file is what it is there. */
static void set_mode(const struct beside *beside) {
    int fd = open(beside->partial, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return;
    int unused = fchmod(fd, beside->mode);
    (void)unused;
    close(fd);
}

int beside_name(struct beside *beside) {
    struct stat there;
    int error = 0;
    set_mode(beside);
    if (beside->force) {
        error = rename(beside->partial, beside->path) == 0 ? 0 : errno;
    } else if (renameat2(AT_FDCWD, beside->partial, AT_FDCWD, beside->path, RENAME_NOREPLACE) !=
               0) {
        /* Not every file system can promise that nothing is replaced. */
        error = errno;
        if (error == EINVAL || error == ENOSYS) {
            if (lstat(beside->path, &there) == 0)
                error = EEXIST;
            else
                error = rename(beside->partial, beside->path) == 0 ? 0 : errno;
        }
    }
    if (error)
        unlink(beside->partial);
    budget_whole(beside->partial);
    return error;
}

int beside_write(const char *path, bool force, const char *const *from, beside_fill_fn *fill,
                 const void *context) {
    struct beside beside;
    int fd = beside_open(&beside, path, force, from), error = 0;
    if (fd < 0)
        return errno;
    FILE *to = fdopen(fd, "w");
    errno = 0;
    if (!to || !fill(to, context) || fflush(to) != 0 || ferror(to))
        error = errno ? errno : ENOMEM;
    if ((to ? fclose(to) : close(fd)) != 0 && !error)
        error = errno;
    if (!error)
        return beside_name(&beside);
    beside_remove(&beside);
    return error;
}

void beside_remove(struct beside *beside) {
    unlink(beside->partial);
    budget_whole(beside->partial);
}

const char *beside_why(int error) {
    return error == EEXIST         ? "it is there already (--force replaces it)"
           : error == BESIDE_INPUT ? "it is what is read: name another file"
                                   : strerror(error);
}
