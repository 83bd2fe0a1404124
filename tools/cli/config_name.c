/*
 * Makes the list of CUSPLICE_CONFIG out of the options -c. The verbs call it, on the launcher's one
 * thread. Paths become absolute, since the program may start in another folder.
 */
#include "tools/cli/config_name.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim/base/config.h"

static char *given;

bool cli_config_path(const char *option, const char *name, char *out, size_t bytes) {
    char nearest[CUS_PRESET_BYTES];
    if (!*name)
        cli_say("%s: the name of a file or preset is expected", option);
    else if (cus_config_find(name, "", out, (unsigned)bytes, nearest))
        return true;
    else if (*nearest)
        cli_say("%s %s: there is no such file and no such preset; the nearest preset is %s", option,
                name, nearest);
    else
        cli_say("%s %s: there is no such file, and no presets are installed", option, name);
    return false;
}

/* Appends a path, with a '\' in front of what has a meaning in a list. */
static void append(char *list, const char *path) {
    char *to = list + strlen(list);
    for (; *path; path++) {
        if (*path == ':' || *path == '\\')
            *to++ = '\\';
        *to++ = *path;
    }
    *to = 0;
}

bool cli_take_config(const struct cli_option *self, const char *name) {
    char path[PATH_MAX], here[PATH_MAX];
    (void)self;
    if (!cli_config_path("--config", name, path, sizeof path))
        return false;
    bool relative = *path != '/' && getcwd(here, sizeof here);
    size_t before = given ? strlen(given) : 0;
    char *list = realloc(given, before + 2 * (strlen(path) + sizeof here) + 3);
    if (!list)
        return false;
    given = list;
    snprintf(given + before, 2, "%s", before ? ":" : "");
    if (relative) {
        append(given, here);
        append(given, "/");
    }
    append(given, path);
    return true;
}

const char *cli_config_given(void) {
    return given;
}

bool cli_config_use(void) {
    return !given || setenv("CUSPLICE_CONFIG", given, 1) == 0;
}
