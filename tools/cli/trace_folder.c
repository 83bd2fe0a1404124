/*
 * Lists the traces of a folder, on the verb's one thread. It never reads a trace and follows no
 * folder below.
 */
#include "tools/cli/trace_folder.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tools/cli/verb.h"

bool cli_is_folder(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static bool is_trace(const char *path, const char *name) {
    struct stat info;
    size_t bytes = strlen(name);
    return bytes > 4 && strcmp(name + bytes - 4, ".cst") == 0 && stat(path, &info) == 0 &&
           S_ISREG(info.st_mode);
}

/* rank-2 before rank-10. */
static int compare(const void *a, const void *b) {
    return strverscmp(*(char *const *)a, *(char *const *)b);
}

/* NULL: all are listed. */
static const char *list(const char *path, struct cli_traces *traces) {
    DIR *folder = opendir(path);
    const char *wrong = NULL;
    struct dirent *entry;
    if (!folder)
        return strerror(errno);
    traces->paths = calloc(CLI_FOLDER_TRACES + 1, sizeof *traces->paths);
    if (!traces->paths)
        wrong = "not enough memory";
    while (!wrong && (entry = readdir(folder))) {
        char *one = NULL;
        const char *slash = path[strlen(path) - 1] == '/' ? "" : "/";
        if (asprintf(&one, "%s%s%s", path, slash, entry->d_name) < 0)
            wrong = "not enough memory";
        else if (!is_trace(one, entry->d_name))
            free(one);
        else if (traces->n == CLI_FOLDER_TRACES) {
            free(one);
            wrong = "more than 1024 traces are in it";
        } else
            traces->paths[traces->n++] = one;
    }
    closedir(folder);
    return wrong ? wrong : traces->n ? NULL : "no trace (*.cst) is in it";
}

bool cli_traces_list(const char *folder, struct cli_traces *traces) {
    *traces = (struct cli_traces){NULL, 0};
    const char *wrong = list(folder, traces);
    if (wrong) {
        cli_say("%s: %s", folder, wrong);
        cli_traces_free(traces);
        return false;
    }
    qsort(traces->paths, traces->n, sizeof *traces->paths, compare);
    return true;
}

void cli_traces_free(struct cli_traces *traces) {
    for (unsigned i = 0; traces->paths && i < traces->n; i++)
        free(traces->paths[i]);
    free(traces->paths);
    *traces = (struct cli_traces){NULL, 0};
}
