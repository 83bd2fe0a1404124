/*
 * Writes a file of JSON without allocation and without stdio. The writer fills FILE.PID.partial and
 * then renames it, so that a reader sees a whole file or none. It writes to /dev/stderr, a pipe and
 * other devices directly.
 *
 * One thread at a time for each writer. Does not keep errno. cus_json_file_end returns the first
 * error.
 */
#ifndef CUSPLICE_BASE_JSON_FILE_H
#define CUSPLICE_BASE_JSON_FILE_H

#include "shim/base/json.h"

#ifdef __cplusplus
extern "C" {
#endif

struct cus_json_file {
    struct cus_json json; /* `to` is this struct, which must not move */
    int fd;
    int error;       /* errno of the first failure */
    const char *why; /* the file was refused: a reason that errno does not tell */
    bool special;    /* a device: nothing is renamed */
    size_t used;
    char target[4096], partial[4096 + 40];
    char buffer[2048];
};

/* `path` is already expanded (base/path.h); base/file.h says what it may lead to. False: the
 * file cannot be made; errno and w->why (cus_file_why) say why. */
bool cus_json_file_begin(struct cus_json_file *w, const char *path);
/* Ends the line, closes and renames. False with errno: not all could be written, and the file
 * was removed. */
bool cus_json_file_end(struct cus_json_file *w);

#ifdef __cplusplus
}
#endif

#endif
