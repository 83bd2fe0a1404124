/*
 * Finds where files for a while go. Any verb calls it, on the launcher's one thread. It makes
 * nothing.
 */
#include "tools/cli/temporary.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

bool cli_temporary(char *out, size_t bytes, const char *name) {
    const char *folder = getenv("TMPDIR");
    int used = snprintf(out, bytes, "%s/%s", folder && *folder == '/' ? folder : "/tmp", name);
    if (used >= 0 && (size_t)used < bytes)
        return true;
    errno = ENAMETOOLONG;
    return false;
}
