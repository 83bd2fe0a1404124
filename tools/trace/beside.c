/* Runs in tools alone, on one thread. */
#define _GNU_SOURCE
#include "tools/trace/beside.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/trace/budget.h"

int beside_plan(struct beside *beside, const char *path, bool force) {
    struct stat there;
    beside->force = force;
    if (strlen(path) >= sizeof beside->path)
        return ENAMETOOLONG;
    snprintf(beside->path, sizeof beside->path, "%s", path);
    snprintf(beside->partial, sizeof beside->partial, "%s.%d.partial", path, (int)getpid());
    if (lstat(path, &there) == 0) {
        if (!force)
            return EEXIST;
        if (S_ISDIR(there.st_mode))
            return EISDIR;
    }
    unlink(beside->partial); /* of a process with this number that was killed */
    return 0;
}

int beside_open(struct beside *beside, const char *path, bool force) {
    errno = beside_plan(beside, path, force);
    if (errno)
        return -1;
    int fd = open(beside->partial, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd >= 0)
        budget_partial(beside->partial);
    return fd;
}

int beside_name(struct beside *beside) {
    struct stat there;
    int error = 0;
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

void beside_remove(struct beside *beside) {
    unlink(beside->partial);
    budget_whole(beside->partial);
}

const char *beside_why(int error) {
    return error == EEXIST ? "it is there already (--force replaces it)" : strerror(error);
}
