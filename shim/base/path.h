/*
 * File names that options give: `{pid}` and `%p` stand for the process id.
 */
#ifndef CUSPLICE_BASE_PATH_H
#define CUSPLICE_BASE_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* `out` gets the path with the process id put in. False where it does not fit. *own is set where
 * there was something to put in, so that no other process writes the same file; own may be NULL. */
bool cus_path_expand(const char *path, char *out, size_t bytes, bool *own);

/* Opens a file that an option names, for writing; `flags` are O_APPEND, O_EXCL. A new file is the
 * user's alone (0600). A link in its place is not followed, for somebody else may have put it
 * there; except below /dev and /proc, where nothing is made and links are the system's. Never waits
 * for a pipe's reader. -1 with errno. */
int cus_path_open(const char *path, int flags);
/* write(2), except that a pipe without a reader is an error and no signal. */
ssize_t cus_path_write(int fd, const void *data, size_t bytes);
/* Is it below /dev or /proc: nothing that could be replaced? */
bool cus_path_is_system(const char *path);

#ifdef __cplusplus
}
#endif

#endif
