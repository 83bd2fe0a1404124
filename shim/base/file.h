/*
 * Opens files in the program's process. Settings, variables and folders may lead anywhere, and
 * other users may have put something there first. So each function examines a file before it reads,
 * follows, writes or waits for it.
 *
 * Any thread, no lock, no allocation. Each descriptor is above 2 and closes on exec.
 */
#ifndef CUSPLICE_BASE_FILE_H
#define CUSPLICE_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    CUS_FILE_SETTINGS_MAX = 1 << 20, /* the largest file of settings, in bytes */
    CUS_FILE_PATIENCE_MS = 1000,     /* how long a write waits for a reader at most */
};

/* open(2) with O_CLOEXEC, O_NOCTTY and O_NONBLOCK, so that no FIFO and no terminal holds the
 * caller up. */
int cus_file_open(const char *path, int flags, mode_t mode);
int cus_file_open_at(int folder, const char *name, int flags, mode_t mode);

/* The text of an error. Each function below that refuses a file sets *why to a reason, or to
 * NULL if errno holds the reason. */
const char *cus_file_why(const char *why);

/* ---- reading ---- */

/* True: the file belongs to the effective user or to root, and nobody else may write it. A file
 * of user 65534, who stands for unknown users, never counts. */
bool cus_file_is_trusted(const struct stat *info);

/* Opens a file that tells the library what to do: settings, rules, costs. It must be /dev/null,
 * or a regular file that is trusted and not too large. Every link on the path must belong to the
 * effective user or to root. -1: *why. */
int cus_file_open_settings(const char *path, const char **why);
/* The same for FOLDER/below/NAME. The effective user must own `folder` and `folder/below`, and
 * NAME must be no link. If NAME does not exist: -1, *why is NULL and errno is ENOENT. */
int cus_file_open_own_settings(const char *folder, const char *below, const char *name,
                               const char **why);

/* ---- writing ---- */

enum cus_file_how {
    CUS_FILE_APPEND, /* created if absent, else appended to */
    CUS_FILE_NEW,    /* must not exist */
    CUS_FILE_THERE,  /* must exist; appended to */
};

/* Opens a file that a setting names, for writing. A new file has mode 0600. An existing file
 * must be a regular file of the effective user, with one name, and no link. Allowed devices are
 * /dev/null, terminals, /dev/stdin, /dev/stdout and /dev/stderr. /dev/fd/N and /proc/self/fd/N
 * are allowed if descriptor N was open when the program began and is still the same file. -1:
 * *why. */
int cus_file_open_output(const char *path, enum cus_file_how how, const char **why);
/* True: the path names such a device, which nobody can create or replace. */
bool cus_file_is_device(const char *path);

/* Descriptor 2 if the program reports its errors there. -1 if it was closed when the program
 * began, or if it is now a socket or closes on exec. */
int cus_file_stderr(void);

/* Writes all of the data. A pipe, a socket or a terminal that takes nothing has `patience_ms` in
 * all. False: errno. The write raises no signal (SIGPIPE, SIGXFSZ, SIGTTOU). Without /proc, the
 * call may wait for another process that fills the same pipe at that moment. */
bool cus_file_write(int fd, const void *data, size_t bytes, int patience_ms);

/* Identifies a file whose descriptor stays open: the program may close the descriptor and
 * receive its number for another file. */
struct cus_file_id {
    dev_t device;
    ino_t inode;
};
bool cus_file_identify(int fd, struct cus_file_id *id);
bool cus_file_is(int fd, const struct cus_file_id *id);

#ifdef __cplusplus
}
#endif

#endif
