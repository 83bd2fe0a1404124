/*
 * The traces of a folder, as cusplice record -o FOLDER/ leaves them. The verbs report, export
 * and diff call it. It opens none of them.
 */
#ifndef CUSPLICE_TOOLS_CLI_TRACE_FOLDER_H
#define CUSPLICE_TOOLS_CLI_TRACE_FOLDER_H

#include <stdbool.h>

enum { CLI_FOLDER_TRACES = 1024 };

struct cli_traces {
    char **paths; /* by name, numbers in them by their size; NULL behind the last */
    unsigned n;
};

/* Is it a folder? */
bool cli_is_folder(const char *path);
/* Lists the regular files *.cst. False, after saying so: there are none, too many, or the folder
 * cannot be read. */
bool cli_traces_list(const char *folder, struct cli_traces *traces);
void cli_traces_free(struct cli_traces *traces);

#endif
