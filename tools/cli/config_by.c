/*
 * Tells who includes a file of settings, for messages. main.c and config_check.c call it, on one
 * thread. It reads the files once, and keeps what it found.
 */
#include "tools/cli/config_by.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/base/config.h"

enum { FILES = 128 /* of three sources */, DEEP = 8 };

static struct {
    char *path, *by;
    int line;
} files[FILES];
static unsigned n_files;

static void take_file(void *root, const char *path, const char *by, int line) {
    (void)root;
    if (by && n_files < FILES) {
        files[n_files].path = strdup(path);
        files[n_files].by = strdup(by);
        files[n_files++].line = line;
    }
}

/* Where it stands in the list; n_files: it is included by none. */
static unsigned place_of(const char *path) {
    unsigned i = 0;
    while (i < n_files && !(files[i].path && files[i].by && strcmp(files[i].path, path) == 0))
        i++;
    return i;
}

void cli_config_by_read(const char *root) {
    static bool read;
    for (int source = CUS_SOURCE_SYSTEM; source <= CUS_SOURCE_NAMED && !read && !root; source++)
        cus_config_list_files((enum cus_source)source, take_file, NULL);
    while (root && n_files) {
        free(files[--n_files].path);
        free(files[n_files].by);
    }
    if (root)
        cus_config_list_named(root, take_file, NULL);
    read = true;
}

void cli_config_by(const char *file, char *out, size_t bytes) {
    size_t used = 0;
    *out = 0;
    cli_config_by_read(NULL);
    for (unsigned at = place_of(file), deep = 0; at < n_files && deep < DEEP && used < bytes;
         at = place_of(files[at].by), deep++)
        used += (size_t)snprintf(out + used, bytes - used, "%s%s:%d", used ? ", by " : "",
                                 files[at].by, files[at].line);
}
