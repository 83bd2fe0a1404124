/*
 * Runs on any thread, holds no lock, allocates nothing.
 */
#include "shim/base/path.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool cus_path_expand(const char *path, char *out, size_t bytes, bool *own) {
    char pid[24];
    size_t pid_bytes = (size_t)snprintf(pid, sizeof pid, "%ld", (long)getpid());
    size_t used = 0;
    if (own)
        *own = false;
    if (!bytes)
        return false;
    while (*path) {
        size_t skip = strncmp(path, "{pid}", 5) == 0 ? 5 : strncmp(path, "%p", 2) == 0 ? 2 : 0;
        size_t add = skip ? pid_bytes : 1;
        if (used + add >= bytes)
            return false;
        memcpy(out + used, skip ? pid : path, add);
        used += add;
        path += skip ? skip : 1;
        if (skip && own)
            *own = true;
    }
    out[used] = 0;
    return true;
}
