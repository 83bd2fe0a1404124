/*
 * Writes to files that a program or a user named: a pipe may have no reader, a terminal may be
 * stopped. Any thread, under any lock of its caller, also in a signal handler of the program. No
 * lock, no allocation, no signal.
 */
#include "shim/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "shim/base/clock.h"

enum { CHUNK = 4096 /* what a pipe takes at once */ };

/* Opens the same pipe or terminal without blocking; -1: this fails. The given descriptor is
 * shared with other processes, so its flags must not change. */
static int without_waiting(int fd, const struct stat *info) {
    char path[32];
    if (!S_ISFIFO(info->st_mode) && !isatty(fd))
        return -1;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return cus_file_open(path, O_WRONLY, 0);
}

/* Makes one write of what the file takes at once. 0: it took nothing in that time. */
static ssize_t write_some(int fd, const char *at, size_t bytes, bool socket, int wait_ms) {
    struct pollfd ready = {.fd = fd, .events = POLLOUT};
    size_t n = bytes < CHUNK ? bytes : CHUNK;
    int is = poll(&ready, 1, wait_ms);
    if (is <= 0)
        return is;
    return socket ? send(fd, at, n, MSG_DONTWAIT | MSG_NOSIGNAL) : write(fd, at, n);
}

/* Returns an errno. */
static int write_waiting(int fd, const char *at, size_t bytes, bool socket, int patience_ms) {
    const uint64_t start = cus_clock_real_ns(), patience = (uint64_t)patience_ms * 1000000u;
    while (bytes) {
        uint64_t gone = cus_clock_real_ns() - start;
        int wait_ms = gone < patience ? (int)((patience - gone) / 1000000u) : 0;
        ssize_t n = write_some(fd, at, bytes, socket, wait_ms);
        if (n > 0) {
            at += n;
            bytes -= (size_t)n;
        } else if (n == 0) {
            return EAGAIN;
        } else if (errno != EINTR && !(errno == EAGAIN && gone < patience)) {
            return errno;
        }
    }
    return 0;
}

static int write_file(int fd, const char *at, size_t bytes) {
    while (bytes) {
        ssize_t n = write(fd, at, bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n ? errno : EIO;
        at += n;
        bytes -= (size_t)n;
    }
    return 0;
}

/* Returns an errno. */
static int write_all(int fd, const char *at, size_t bytes, int patience_ms) {
    struct stat info;
    if (fstat(fd, &info) != 0)
        return errno;
    if (S_ISREG(info.st_mode))
        return write_file(fd, at, bytes);
    int other = without_waiting(fd, &info);
    int error =
        write_waiting(other >= 0 ? other : fd, at, bytes, S_ISSOCK(info.st_mode), patience_ms);
    if (other >= 0)
        close(other);
    return error;
}

bool cus_file_write(int fd, const void *data, size_t bytes, int patience_ms) {
    static const int numbers[] = {SIGPIPE, SIGXFSZ};
    sigset_t ours, blocked, before, pending;
    sigemptyset(&ours);
    for (int i = 0; i < 2; i++)
        sigaddset(&ours, numbers[i]);
    blocked = ours;
    sigaddset(&blocked, SIGTTOU); /* raised by a terminal that stops writers in the background */
    pthread_sigmask(SIG_BLOCK, &blocked, &before);
    /* A signal that was pending before belongs to the program and stays pending. */
    if (sigpending(&pending) == 0)
        for (int i = 0; i < 2; i++)
            if (sigismember(&pending, numbers[i]) == 1)
                sigdelset(&ours, numbers[i]);
    int error = write_all(fd, data, bytes, patience_ms);
    if (error == EPIPE || error == EFBIG) {
        const struct timespec now = {0, 0};
        sigtimedwait(&ours, NULL, &now);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = error;
    return !error;
}
