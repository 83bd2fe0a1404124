/*
 * A file of JSON, written without allocation and without stdio: to FILE.PID.partial, then renamed,
 * so that a reader sees a whole file or none. /dev/stderr, a pipe and their like are written as
 * they are.
 *
 * One thread at a time for each writer; errno is not kept. An error sticks and is told by
 * cus_json_end. `key` is NULL in arrays and at the top.
 */
#ifndef CUSPLICE_BASE_JSON_H
#define CUSPLICE_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cus_json {
    int fd;
    int error;       /* errno of what failed first */
    const char *why; /* it was refused: a reason that errno does not tell */
    bool special;    /* nothing is renamed */
    bool first;      /* nothing in the innermost object or array yet */
    int depth;
    size_t used;
    char target[4096], partial[4096 + 40];
    char buffer[2048];
};

/* `path` as base/path.h has expanded it; base/file.h says what it may lead to. False with errno and
 * w->why (cus_file_why): the file cannot be made. */
bool cus_json_begin(struct cus_json *w, const char *path);
/* Ends the line, closes and renames. False with errno: not all of it could be written, and nothing
 * is left. */
bool cus_json_end(struct cus_json *w);

void cus_json_open(struct cus_json *w, const char *key, char bracket);
void cus_json_close(struct cus_json *w, char bracket);
void cus_json_number(struct cus_json *w, const char *key, uint64_t value);
void cus_json_text(struct cus_json *w, const char *key, const char *value); /* NULL: null */
/* JSON that is there already, put in as it is. */
void cus_json_raw(struct cus_json *w, const char *key, const char *json);

#endif
