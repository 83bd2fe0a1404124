/*
 * Runs on any thread, holds no lock, allocates nothing.
 */
#include "shim/base/path.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "shim/base/process_rank.h"

bool cus_path_expand(const char *path, char *out, size_t bytes, bool *own) {
    static const char *const marks[] = {"{process}", "{pid}", "%p"};
    size_t used = 0;
    if (own)
        *own = false;
    if (!bytes)
        return false;
    while (*path) {
        char name[CUS_PROCESS_NAME];
        unsigned mark = 0;
        while (mark < 3 && strncmp(path, marks[mark], strlen(marks[mark])) != 0)
            mark++;
        if (mark == 0)
            cus_process_name(cus_process_rank(), getpid(), name);
        else if (mark < 3)
            snprintf(name, sizeof name, "%ld", (long)getpid());
        size_t add = mark < 3 ? strlen(name) : 1;
        if (used + add >= bytes)
            return false;
        memcpy(out + used, mark < 3 ? name : path, add);
        used += add;
        path += mark < 3 ? strlen(marks[mark]) : 1;
        if (mark < 3 && own)
            *own = true;
    }
    out[used] = 0;
    return true;
}
