/*
 * Runs on any thread, holds no lock, allocates nothing.
 */
#include "shim/base/path.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "shim/base/process_rank.h"

bool cus_path_expand(const char *path, char *out, size_t bytes, bool *own) {
    static const char *const marks[] = {"{process}", "{host}", "{pid}", "%p"};
    enum { PROCESS, HOST, MARKS = sizeof marks / sizeof *marks };
    size_t used = 0;
    if (own)
        *own = false;
    if (!bytes)
        return false;
    while (*path) {
        char name[CUS_PROCESS_HOST]; /* longer than that of a process */
        unsigned mark = 0;
        while (mark < MARKS && strncmp(path, marks[mark], strlen(marks[mark])) != 0)
            mark++;
        if (mark == PROCESS)
            cus_process_name(cus_process_rank(), getpid(), name);
        else if (mark == HOST)
            cus_process_host(name);
        else if (mark < MARKS)
            snprintf(name, sizeof name, "%ld", (long)getpid());
        size_t add = mark < MARKS ? strlen(name) : 1;
        if (used + add >= bytes)
            return false;
        memcpy(out + used, mark < MARKS ? name : path, add);
        used += add;
        path += mark < MARKS ? strlen(marks[mark]) : 1;
        if (mark < MARKS && mark != HOST && own)
            *own = true;
    }
    out[used] = 0;
    return true;
}

const char *cus_path_shown(const char *path, char *out, size_t bytes) {
    size_t length = strlen(path);
    bool whole = length < bytes;
    if (!whole)
        path += length - (bytes - 1 - strlen("..."));
    while (!whole && (*path & 0xc0) == 0x80)
        path++;
    snprintf(out, bytes, "%s%s", whole ? "" : "...", path);
    return out;
}
