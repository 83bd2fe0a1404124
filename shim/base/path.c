/*
 * Runs on any thread, holds no lock, allocates nothing.
 */
#include "shim/base/path.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

bool cus_path_expand(const char *path, char *out, size_t bytes, bool *own) {
    char pid[24];
    size_t pid_bytes = (size_t)snprintf(pid, sizeof pid, "%ld", (long)getpid());
    size_t used = 0;
    if (own)
        *own = false;
    if (!bytes)
        return false;
    while (*path) {
        size_t skip = strncmp(path, "{pid}", 5) == 0 ? 5 : strncmp(path, "%p", 2) == 0 ? 2 : 0;
        size_t add = skip ? pid_bytes : 1;
        if (used + add >= bytes)
            return false;
        memcpy(out + used, skip ? pid : path, add);
        used += add;
        path += skip ? skip : 1;
        if (skip && own)
            *own = true;
    }
    out[used] = 0;
    return true;
}

bool cus_path_is_system(const char *path) {
    return strncmp(path, "/dev/", 5) == 0 || strncmp(path, "/proc/", 6) == 0;
}

int cus_path_open(const char *path, int flags) {
    flags |= O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
    flags |= cus_path_is_system(path) ? 0 : O_CREAT | O_NOFOLLOW;
    if (!(flags & O_CREAT))
        flags &= ~O_EXCL;
    int fd = open(path, flags, 0600);
    if (fd >= 0)
        fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
    return fd;
}

ssize_t cus_path_write(int fd, const void *data, size_t bytes) {
    sigset_t pipes, before, pending;
    sigemptyset(&pipes);
    sigaddset(&pipes, SIGPIPE);
    /* One that waits for the program already stays the program's. */
    bool waits = sigpending(&pending) == 0 && sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &pipes, &before);
    ssize_t written = write(fd, data, bytes);
    int why = errno;
    if (written < 0 && why == EPIPE && !waits) {
        const struct timespec now = {0, 0};
        sigtimedwait(&pipes, NULL, &now);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = why;
    return written;
}
