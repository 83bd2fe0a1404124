/*
 * The one place of the library that opens files. Any thread, under any lock of its caller, also in
 * a signal handler of the program: no lock, no allocation, no stdio stream.
 *
 * State: which descriptors the program was given, noted once before main (note_all).
 */
#define _GNU_SOURCE
#include "shim/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "shim/base/clock.h"

enum { PATH_BYTES = 4096, LINKS = 16, NOTED = 8, CHUNK = 4096 /* what a pipe takes at once */ };

/* ---- descriptors ---- */

/* What opens as 0, 1 or 2 because the program closed those would get its output. */
static int above(int fd) {
    if (fd < 0 || fd > STDERR_FILENO)
        return fd;
    int higher = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1), saved = errno;
    close(fd);
    errno = saved;
    return higher;
}

int cus_file_open_at(int folder, const char *name, int flags, mode_t mode) {
    return above(openat(folder, name, flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, mode));
}

int cus_file_open(const char *path, int flags, mode_t mode) {
    return cus_file_open_at(AT_FDCWD, path, flags, mode);
}

const char *cus_file_why(const char *why) {
    return why ? why : strerror(errno);
}

static int refuse(int fd, const char **why, const char *reason) {
    if (fd >= 0)
        close(fd);
    *why = reason;
    errno = EPERM;
    return -1;
}

static bool same(const struct stat *a, const struct stat *b) {
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

bool cus_file_identify(int fd, struct cus_file_id *id) {
    struct stat info;
    if (fstat(fd, &info) != 0)
        return false;
    *id = (struct cus_file_id){info.st_dev, info.st_ino};
    return true;
}

bool cus_file_is(int fd, const struct cus_file_id *id) {
    struct cus_file_id now;
    return cus_file_identify(fd, &now) && now.device == id->device && now.inode == id->inode;
}

/* ---- the descriptors that the program was given ---- */

static struct {
    int fd;
    struct cus_file_id id;
} noted[NOTED];
static unsigned n_noted; /* set before `noting` is done */
static pthread_once_t noting = PTHREAD_ONCE_INIT;

static void note(int fd) {
    if (n_noted < NOTED && cus_file_identify(fd, &noted[n_noted].id))
        noted[n_noted++].fd = fd;
}

/* N of /dev/fd/N and the other names of a descriptor; -1: it is no such name. */
static int descriptor_of(const char *path) {
    static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};
    static const char *const names[] = {"/dev/stdin", "/dev/stdout", "/dev/stderr"};
    for (int i = 0; i < 3; i++)
        if (strcmp(path, names[i]) == 0)
            return i;
    for (int i = 0; i < 2; i++) {
        size_t bytes = strlen(folders[i]);
        if (strncmp(path, folders[i], bytes) != 0)
            continue;
        const char *digits = path + bytes;
        size_t n = strspn(digits, "0123456789");
        if (n && n < 8 && !digits[n])
            return atoi(digits);
    }
    return -1;
}

static void note_all(void) {
    extern char **environ;
    int saved = errno;
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        note(fd);
    for (char **entry = environ; entry && *entry; entry++) {
        const char *value = strncmp(*entry, "CUSPLICE_", 9) == 0 ? strchr(*entry, '=') : NULL;
        int fd = value ? descriptor_of(value + 1) : -1;
        if (fd > STDERR_FILENO)
            note(fd);
    }
    errno = saved;
}

/* Before main, and before the program can close anything. */
__attribute__((constructor)) static void note_early(void) {
    pthread_once(&noting, note_all);
}

/* Was it open when the program began, and what was it then? */
static const struct cus_file_id *given(int fd) {
    pthread_once(&noting, note_all);
    for (unsigned i = 0; i < n_noted; i++)
        if (noted[i].fd == fd)
            return &noted[i].id;
    return NULL;
}

static bool is_null(const struct stat *info) {
    return S_ISCHR(info->st_mode) && info->st_rdev == makedev(1, 3);
}

/* Programs lead 0, 1 and 2 elsewhere. What was not there from the beginning is written only where
 * it cannot be a file or a connection that the program reads back. */
static bool is_led_elsewhere(int fd) {
    struct stat info;
    int flags = fcntl(fd, F_GETFD);
    if (fd > STDERR_FILENO || flags < 0 || (flags & FD_CLOEXEC) || fstat(fd, &info) != 0)
        return false;
    if (S_ISREG(info.st_mode))
        return (fcntl(fd, F_GETFL) & O_ACCMODE) == O_WRONLY;
    return S_ISFIFO(info.st_mode) || is_null(&info) || isatty(fd);
}

static bool is_for_output(int fd) {
    int saved = errno;
    const struct cus_file_id *id = given(fd);
    bool good = id && (cus_file_is(fd, id) || is_led_elsewhere(fd));
    errno = saved;
    return good;
}

int cus_file_stderr(void) {
    return is_for_output(STDERR_FILENO) ? STDERR_FILENO : -1;
}

/* ---- reading ---- */

static bool is_ours(const struct stat *info) {
    return info->st_uid == geteuid() || info->st_uid == 0;
}

bool cus_file_is_trusted(const struct stat *info) {
    return is_ours(info) && !(info->st_mode & (S_IWGRP | S_IWOTH));
}

/* NULL: it may be believed. */
static const char *distrust(int fd, struct stat *info) {
    if (fstat(fd, info) != 0)
        return "it cannot be looked at";
    if (is_null(info))
        return NULL; /* the usual name for no settings */
    if (!S_ISREG(info->st_mode))
        return "it is no regular file";
    if (!is_ours(info))
        return "it belongs to another user";
    if (!cus_file_is_trusted(info))
        return "others than its owner may write it (chmod go-w)";
    return info->st_size < CUS_FILE_SETTINGS_MAX ? NULL : "it is larger than 1 MiB";
}

/* Where the link that stands at `path` leads, into `path`. */
static bool follow(int fd, char *path) {
    char target[PATH_BYTES];
    ssize_t n = readlinkat(fd, "", target, sizeof target - 1);
    if (n <= 0)
        return false;
    target[n] = 0;
    char *slash = strrchr(path, '/');
    size_t kept = *target == '/' || !slash ? 0 : (size_t)(slash + 1 - path);
    if (kept + (size_t)n >= PATH_BYTES)
        return false;
    memcpy(path + kept, target, (size_t)n + 1);
    return true;
}

/* Links in the last place of the path, one after the other: whose are they, and do they lead to
 * this file? It is asked behind the opening, so that what was opened is what they lead to. */
static bool led_by_trusted_links(const char *path, const struct stat *file) {
    char at[PATH_BYTES];
    if (strlen(path) >= sizeof at)
        return false;
    strcpy(at, path);
    for (int i = 0; i < LINKS; i++) {
        struct stat info;
        struct statfs system;
        int fd = above(open(at, O_PATH | O_NOFOLLOW | O_CLOEXEC));
        bool known = fd >= 0 && fstat(fd, &info) == 0;
        bool link = known && S_ISLNK(info.st_mode);
        /* /proc/self/fd/N leads to what is open, not to a name. */
        bool magic = link && fstatfs(fd, &system) == 0 && system.f_type == PROC_SUPER_MAGIC;
        bool goes_on = link && is_ours(&info) && !magic && follow(fd, at);
        if (fd >= 0)
            close(fd);
        if (!goes_on)
            return known && (link ? magic && is_ours(&info) : same(&info, file));
    }
    return false;
}

int cus_file_open_settings(const char *path, const char **why) {
    struct stat info;
    *why = NULL;
    int fd = cus_file_open(path, O_RDONLY, 0);
    if (fd < 0)
        return -1;
    const char *reason = distrust(fd, &info);
    if (!reason && !led_by_trusted_links(path, &info))
        reason = "it is reached by another user's link";
    return reason ? refuse(fd, why, reason) : fd;
}

static bool is_own_folder(int fd) {
    struct stat info;
    return fstat(fd, &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == geteuid();
}

int cus_file_open_own_settings(const char *folder, const char *below, const char *name,
                               const char **why) {
    struct stat info;
    *why = NULL;
    const int flags = O_PATH | O_DIRECTORY;
    int outer = cus_file_open(folder, flags, 0);
    int inner = outer < 0 ? -1 : cus_file_open_at(outer, below, flags, 0);
    bool own = inner >= 0 && is_own_folder(outer) && is_own_folder(inner);
    if (outer >= 0)
        close(outer);
    bool there = inner >= 0 && fstatat(inner, name, &info, AT_SYMLINK_NOFOLLOW) == 0;
    int fd = there && own ? cus_file_open_at(inner, name, O_RDONLY | O_NOFOLLOW, 0) : -1;
    int error = errno;
    if (inner >= 0)
        close(inner);
    if (there && !own)
        return refuse(-1, why, "its folder belongs to another user");
    if (fd < 0 && error == ELOOP)
        return refuse(-1, why, "it is a link");
    errno = error == ENOTDIR ? ENOENT : error;
    if (fd < 0)
        return -1;
    const char *reason = distrust(fd, &info);
    return reason ? refuse(fd, why, reason) : fd;
}

/* ---- writing ---- */

/* Major numbers of terminals (Linux: admin-guide/devices): tty and serial lines, tty and console,
 * pseudo-terminals. Another device may act as soon as it is opened. */
static bool is_terminal(const struct stat *info) {
    unsigned kind = major(info->st_rdev);
    bool ptmx = kind == 5 && minor(info->st_rdev) == 2;
    return S_ISCHR(info->st_mode) && !ptmx &&
           (kind == 4 || kind == 5 || (kind >= 136 && kind <= 143));
}

bool cus_file_is_device(const char *path) {
    struct stat info;
    return descriptor_of(path) >= 0 || (lstat(path, &info) == 0 && S_ISCHR(info.st_mode));
}

static int open_device(const char *path, const struct stat *before, const char **why) {
    struct stat info;
    if (!is_null(before) && !is_terminal(before))
        return refuse(-1, why, "it is a device, and neither /dev/null nor a terminal");
    int fd = cus_file_open(path, O_WRONLY | O_NOFOLLOW, 0);
    if (fd >= 0 && (fstat(fd, &info) != 0 || info.st_rdev != before->st_rdev))
        return refuse(fd, why, "it is another device by now");
    return fd;
}

/* A regular file that is there. */
static int open_there(const char *path, const char **why) {
    struct stat info;
    int fd = cus_file_open(path, O_WRONLY | O_APPEND | O_NOFOLLOW, 0);
    if (fd < 0)
        return errno == ELOOP ? refuse(-1, why, "it is a link") : -1;
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode))
        return refuse(fd, why, "it is no regular file");
    if (info.st_uid != geteuid())
        return refuse(fd, why, "it belongs to another user");
    if (info.st_nlink != 1)
        return refuse(fd, why, "it has more than one name");
    return fd;
}

int cus_file_open_output(const char *path, enum cus_file_how how, const char **why) {
    struct stat info;
    *why = NULL;
    int given_fd = descriptor_of(path);
    if (given_fd >= 0)
        return is_for_output(given_fd)
                   ? fcntl(given_fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1)
                   : refuse(-1, why, "that descriptor is not what the program was given");
    /* Twice, for a file may come or go meanwhile. */
    for (int tries = 0; tries < 2; tries++) {
        if (lstat(path, &info) == 0) {
            if (how == CUS_FILE_NEW) {
                errno = EEXIST;
                return -1;
            }
            if (S_ISCHR(info.st_mode))
                return open_device(path, &info, why);
            if (S_ISLNK(info.st_mode))
                return refuse(-1, why, "it is a link");
            if (!S_ISREG(info.st_mode))
                return refuse(-1, why, "it is no regular file");
            int fd = open_there(path, why);
            if (fd >= 0 || errno != ENOENT)
                return fd;
        }
        if (how == CUS_FILE_THERE)
            return -1;
        int fd = cus_file_open(path, O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
        if (fd >= 0 || errno != EEXIST || how == CUS_FILE_NEW)
            return fd;
    }
    return -1;
}

/* One write to a pipe, a terminal or a socket, of what it takes at once. 0: nothing, in that time.
 */
static ssize_t write_some(int fd, const char *at, size_t bytes, int wait_ms) {
    struct pollfd ready = {.fd = fd, .events = POLLOUT};
    size_t n = bytes < CHUNK ? bytes : CHUNK;
    int is = poll(&ready, 1, wait_ms);
    if (is <= 0)
        return is;
    ssize_t sent = send(fd, at, n, MSG_DONTWAIT | MSG_NOSIGNAL);
    return sent < 0 && errno == ENOTSOCK ? write(fd, at, n) : sent;
}

/* Returns an errno. */
static int write_all(int fd, const char *at, size_t bytes, int patience_ms) {
    const uint64_t start = cus_clock_ns(), patience = (uint64_t)patience_ms * 1000000u;
    struct stat info;
    bool waits = fstat(fd, &info) != 0 || !S_ISREG(info.st_mode);
    while (bytes) {
        uint64_t gone = waits ? cus_clock_ns() - start : 0;
        int wait_ms = gone < patience ? (int)((patience - gone) / 1000000u) : 0;
        ssize_t n = waits ? write_some(fd, at, bytes, wait_ms) : write(fd, at, bytes);
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

bool cus_file_write(int fd, const void *data, size_t bytes, int patience_ms) {
    static const int numbers[] = {SIGPIPE, SIGXFSZ};
    sigset_t ours, before, pending;
    sigemptyset(&ours);
    for (int i = 0; i < 2; i++)
        sigaddset(&ours, numbers[i]);
    pthread_sigmask(SIG_BLOCK, &ours, &before);
    /* One that waits for the program already stays the program's. */
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
