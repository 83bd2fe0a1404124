/*
 * A file of JSON, written without allocation and without stdio: to FILE.PID.partial, then renamed,
 * so that a reader sees a whole file or none. /dev/stderr, a pipe and their like are written as
 * they are.
 *
 * One thread at a time for each writer; errno is not kept. An error sticks and is told by
 * cus_json_file_end.
 */
#ifndef CUSPLICE_BASE_JSON_FILE_H
#define CUSPLICE_BASE_JSON_FILE_H

#include "shim/base/json.h"

#ifdef __cplusplus
extern "C" {
#endif

struct cus_json_file {
    struct cus_json json; /* `to` is the file itself, which is not moved */
    int fd;
    int error;       /* errno of what failed first */
    const char *why; /* it was refused: a reason that errno does not tell */
    bool special;    /* nothing is renamed */
    size_t used;
    char target[4096], partial[4096 + 40];
    char buffer[2048];
};

/* `path` as base/path.h has expanded it; base/file.h says what it may lead to. False with errno and
 * w->why (cus_file_why): the file cannot be made. */
bool cus_json_file_begin(struct cus_json_file *w, const char *path);
/* Ends the line, closes and renames. False with errno: not all of it could be written, and nothing
 * is left. */
bool cus_json_file_end(struct cus_json_file *w);

#ifdef __cplusplus
}
#endif

#endif
