/*
 * Files that the library opens in somebody else's process. Options, variables and folders may lead
 * anywhere, and other users may have put something there first: no file is believed, followed,
 * waited for or written before it was looked at.
 *
 * Any thread, no lock, no allocation. Every descriptor is above 2 and closes on exec.
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
    CUS_FILE_SETTINGS_MAX = 1 << 20, /* bytes of a file of settings */
    CUS_FILE_PATIENCE_MS = 1000,     /* how long a write waits for a reader at most */
};

/* open(2), with O_CLOEXEC, O_NOCTTY and O_NONBLOCK: no FIFO and no terminal holds the caller up. */
int cus_file_open(const char *path, int flags, mode_t mode);
int cus_file_open_at(int folder, const char *name, int flags, mode_t mode);

/* What every function below says where it refuses: a reason to be shown, or NULL, and errno holds
 * it. This makes one text of both. */
const char *cus_file_why(const char *why);

/* ---- reading ---- */

/* Is it the effective user's or root's, and may nobody else write it? What belongs to 65534, who
 * stands for unknown users, is nobody's. */
bool cus_file_is_trusted(const struct stat *info);

/* Opens a file that says what is to be done: settings, rules, costs. It must be a regular file that
 * is trusted and not too large, or /dev/null. All links on the way to it must be the effective
 * user's or root's. -1: *why. */
int cus_file_open_settings(const char *path, const char **why);
/* The same for FOLDER/below/NAME, of which `folder` and `folder/below` must be the effective user's
 * own, and NAME no link. Where NAME is not there: -1, *why is NULL and errno is ENOENT. */
int cus_file_open_own_settings(const char *folder, const char *below, const char *name,
                               const char **why);

/* ---- writing ---- */

enum cus_file_how {
    CUS_FILE_APPEND, /* made where it is not there, else written behind its end */
    CUS_FILE_NEW,    /* must not be there */
    CUS_FILE_THERE,  /* must be there; written behind its end */
};

/* Opens a file that an option names. A new file is the user's alone (0600). One that is there must
 * be a regular file of the effective user's with one name, and no link. Of devices there are
 * /dev/null, terminals, /dev/stdin, stdout and stderr, and /dev/fd/N or /proc/self/fd/N where
 * descriptor N was open when the program began and is the same. -1: *why (which may be NULL). */
int cus_file_open_output(const char *path, enum cus_file_how how, const char **why);
/* Does the path name such a device: nothing that could be made or replaced? */
bool cus_file_is_device(const char *path);

/* Descriptor 2, where it is what the program uses to tell of errors: -1 where it was closed when
 * the program began, or where a socket, or what closes on exec, stands there now. */
int cus_file_stderr(void);

/* Writes all of it, within `patience_ms` where a pipe, a socket or a terminal takes nothing. False
 * with errno. No signal comes of it (SIGPIPE, SIGXFSZ, SIGTTOU). Without /proc another process that
 * fills the same pipe at the same moment may be waited for. */
bool cus_file_write(int fd, const void *data, size_t bytes, int patience_ms);

/* A descriptor that stays open: the program may close it, and have the number again for a file of
 * its own. */
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
