/*
 * The one place of the library that opens files. Any thread, under any lock of its caller, also in
 * a signal handler of the program. No lock, no allocation, no stdio stream.
 *
 * State: the descriptors that the program was given, which note_all records once before main.
 */
#define _GNU_SOURCE
#include "shim/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "shim/base/thread.h"

enum { PATH_BYTES = 4096, LINKS = 40, NOTED = 8 };

/* ---- descriptors ---- */

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

/* If the program closed 0, 1 or 2, open may return this number, and the program's output would
 * go into the library's file. So the descriptor moves above 2. Another thread may have reused the
 * low number meanwhile; then the number is not closed. */
static int above(int fd) {
    struct cus_file_id id;
    if (fd < 0 || fd > STDERR_FILENO)
        return fd;
    bool known = cus_file_identify(fd, &id);
    int higher = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1), saved = errno;
    if (!known || cus_file_is(fd, &id))
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

/* Replaces strerror, which translates and hence takes locks and memory. */
const char *cus_file_why(const char *why) {
    static const struct {
        int error;
        const char *text;
    } texts[] = {
        {EACCES, "Permission denied"},
        {EAGAIN, "nobody reads it"},
        {EBADF, "Bad file descriptor"},
        {EDQUOT, "Disk quota exceeded"},
        {EEXIST, "File exists"},
        {EFBIG, "File too large"},
        {EIO, "Input/output error"},
        {EISDIR, "Is a directory"},
        {ELOOP, "Too many levels of symbolic links"},
        {EMFILE, "Too many open files"},
        {ENAMETOOLONG, "File name too long"},
        {ENFILE, "Too many open files in system"},
        {ENOENT, "No such file or directory"},
        {ENOSPC, "No space left on device"},
        {ENOTDIR, "Not a directory"},
        {EPERM, "Operation not permitted"},
        {EPIPE, "Broken pipe"},
        {EROFS, "Read-only file system"},
    };
    for (unsigned i = 0; !why && i < sizeof texts / sizeof *texts; i++)
        if (texts[i].error == errno)
            why = texts[i].text;
    return why ? why : "an error of the system";
}

static int refuse(int fd, const char **why, const char *reason) {
    if (fd >= 0)
        close(fd);
    *why = reason;
    errno = EPERM;
    return -1;
}

/* ---- the descriptors that the program was given ---- */

static struct {
    int fd;
    struct cus_file_id id;
} noted[NOTED];
static unsigned n_noted; /* complete when `noting` is done */
static pthread_once_t noting = PTHREAD_ONCE_INIT;

/* A descriptor that closes on exec belongs to a library that started before this one. */
static void note(int fd) {
    int flags = fcntl(fd, F_GETFD);
    if (flags >= 0 && !(flags & FD_CLOEXEC) && n_noted < NOTED &&
        cus_file_identify(fd, &noted[n_noted].id))
        noted[n_noted++].fd = fd;
}

/* The number N of /dev/fd/N or of another name of a descriptor; -1: no such name. */
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

/* Runs before main, hence before the program can close a descriptor or pin its main thread. */
__attribute__((constructor)) static void note_early(void) {
    pthread_once(&noting, note_all);
    cus_thread_note();
}

/* The file that descriptor `fd` was when the program began; NULL: it was closed. */
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

/* Programs redirect 0, 1 and 2 by dup2: into logs, and test frameworks into files that they
 * read. A socket or a descriptor that closes on exec was opened for another purpose. */
static bool is_led_elsewhere(int fd) {
    struct stat info;
    int flags = fcntl(fd, F_GETFD);
    if (fd > STDERR_FILENO || flags < 0 || (flags & FD_CLOEXEC) || fstat(fd, &info) != 0)
        return false;
    return S_ISREG(info.st_mode) || S_ISFIFO(info.st_mode) || is_null(&info) || isatty(fd);
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

/* The kernel reports this owner for users outside the namespace, and for users that a server
 * squashes. */
enum { NOBODY = 65534 };

static bool is_ours(const struct stat *info) {
    return info->st_uid == 0 || (info->st_uid == geteuid() && info->st_uid != NOBODY);
}

bool cus_file_is_trusted(const struct stat *info) {
    return is_ours(info) && !(info->st_mode & (S_IWGRP | S_IWOTH));
}

/* NULL: the file may be trusted. */
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

/* ---- walking along a path ---- */

/* Links are followed one by one, since another user's link may lead anywhere. */
struct way {
    int folder;              /* a descriptor: the folder from which `rest` goes on */
    char rest[PATH_BYTES];   /* the rest of the path */
    char name[NAME_MAX + 1]; /* at the end: the file's name in `folder` */
    bool kernels;            /* `name` is a link of /proc's that leads to an open file */
    unsigned links;
};

static bool go_to(struct way *way, int folder) {
    if (way->folder >= 0)
        close(way->folder);
    way->folder = folder;
    return folder >= 0;
}

/* Takes the next name off the path into way->name. False: the name is too long, or there is
 * none. */
static bool next_name(struct way *way) {
    const char *at = way->rest + strspn(way->rest, "/");
    size_t bytes = strcspn(at, "/");
    if (!bytes || bytes > NAME_MAX) {
        errno = bytes ? ENAMETOOLONG : EISDIR;
        return false;
    }
    memcpy(way->name, at, bytes);
    way->name[bytes] = 0;
    memmove(way->rest, at + bytes, strlen(at + bytes) + 1);
    return true;
}

/* True: owners mean something. In a user namespace without root, all other users look like one. */
static bool owners_tell(void) {
    struct stat info;
    return stat("/", &info) == 0 && is_ours(&info);
}

/* Puts the link's target in front of the rest of the path. */
static bool follow(struct way *way, int link) {
    char target[PATH_BYTES];
    ssize_t n = readlinkat(link, "", target, sizeof target);
    size_t rest = strlen(way->rest);
    if (n <= 0 || (size_t)n + rest + 1 >= PATH_BYTES || ++way->links > LINKS) {
        errno = n < 0 ? errno : ELOOP;
        return false;
    }
    memmove(way->rest + n + 1, way->rest, rest + 1);
    memcpy(way->rest, target, (size_t)n);
    way->rest[n] = '/';
    return *target != '/' || go_to(way, above(open("/", O_PATH | O_DIRECTORY | O_CLOEXEC)));
}

/* way->name is a link. False: it must not be followed. */
static bool pass_link(struct way *way, int link, const struct stat *info, const char **why) {
    struct statfs system;
    if (!is_ours(info) && owners_tell()) {
        *why = "another user's link leads there";
        errno = EPERM;
        return false;
    }
    bool last = !way->rest[strspn(way->rest, "/")];
    bool kernels = fstatfs(link, &system) == 0 && system.f_type == PROC_SUPER_MAGIC;
    way->kernels = kernels && last;
    if (kernels)
        return last ||
               go_to(way, cus_file_open_at(way->folder, way->name, O_PATH | O_DIRECTORY, 0));
    return follow(way, link);
}

/* Walks along the path to the folder of the file; the caller closes the folder. False: *why, or
 * errno alone. */
static bool go_along(struct way *way, const char *path, const char **why) {
    *way = (struct way){.folder = -1};
    if (!*path || strlen(path) >= PATH_BYTES) {
        errno = *path ? ENAMETOOLONG : ENOENT;
        return false;
    }
    strcpy(way->rest, path);
    if (!go_to(way, above(open(*path == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC))))
        return false;
    while (next_name(way)) {
        struct stat info;
        bool last = !way->rest[strspn(way->rest, "/")];
        int fd = cus_file_open_at(way->folder, way->name, O_PATH | O_NOFOLLOW, 0);
        if (fd < 0)
            return last && errno == ENOENT; /* the open that follows will report it */
        bool link = fstat(fd, &info) == 0 && S_ISLNK(info.st_mode);
        if (link) {
            bool passed = pass_link(way, fd, &info, why);
            int error = errno;
            close(fd);
            errno = error;
            if (!passed || way->kernels)
                return passed;
        } else if (last) {
            close(fd);
            return true;
        } else {
            go_to(way, fd);
        }
    }
    return false;
}

int cus_file_open_settings(const char *path, const char **why) {
    struct stat info;
    struct way way;
    *why = NULL;
    int fd = -1;
    if (go_along(&way, path, why))
        fd = cus_file_open_at(way.folder, way.name, way.kernels ? O_RDONLY : O_RDONLY | O_NOFOLLOW,
                              0);
    int error = errno;
    if (way.folder >= 0)
        close(way.folder);
    errno = error;
    if (fd < 0)
        return errno == EISDIR ? refuse(-1, why, "it is no regular file") : -1;
    const char *reason = distrust(fd, &info);
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

/* Major numbers of terminals (Linux: admin-guide/devices): tty and serial lines, tty and
 * console, pseudo-terminals. Any other device may act as soon as it is opened. */
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

/* Below /dev no file is made, except in /dev/shm. */
static bool may_be_made(const char *path) {
    return strncmp(path, "/dev/", 5) != 0 || strncmp(path, "/dev/shm/", 9) == 0;
}

/* Opens a regular file that exists. */
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
    /* Tries twice, since the file may come or go meanwhile. */
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
        if (how == CUS_FILE_THERE || !may_be_made(path))
            return -1;
        int fd = cus_file_open(path, O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
        if (fd >= 0 || errno != EEXIST || how == CUS_FILE_NEW)
            return fd;
    }
    return -1;
}
