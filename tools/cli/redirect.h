/*
 * -o of the verbs that print: what they print goes into a file, which gets its name when it is
 * whole. Verbs call it, on one thread, around what they print. No program may be started meanwhile.
 */
#ifndef CUSPLICE_TOOLS_CLI_REDIRECT_H
#define CUSPLICE_TOOLS_CLI_REDIRECT_H

#include <stdbool.h>

#include "tools/trace/beside.h"

struct cli_redirect {
    const char *path; /* of -o; NULL or "-": stdout */
    bool force;
    /* Private. */
    bool aside;
    int stdout_fd;
    struct beside beside;
};

/* Does it go into a file? Else it goes to stdout. */
bool cli_redirect_is_file(const struct cli_redirect *output);
/* Leads stdout into the file. `from`: what the file is made from, then NULL; may be NULL. False:
 * it cannot be written, which was said. */
bool cli_redirect_begin(struct cli_redirect *output, const char *const *from);
/* Leads stdout back. `whole`: all is printed, and the file gets its name; else it is removed.
 * False: it, or stdout, could not be written; that was said, but for a pipe that was closed. */
bool cli_redirect_end(struct cli_redirect *output, bool whole);

#endif
