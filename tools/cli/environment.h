/*
 * What a verb changed in the environment of this process, as commands for a shell: `cusplice run
 * --print-env`. verb_run.c calls it, on the launcher's one thread. It changes nothing.
 */
#ifndef CUSPLICE_TOOLS_CLI_ENVIRONMENT_H
#define CUSPLICE_TOOLS_CLI_ENVIRONMENT_H

#include <stdbool.h>

struct cli_environment {
    char **entries; /* NAME=VALUE, then NULL. Allocated, its texts are not; NULL: no memory */
};

/* The environment as it is now. */
struct cli_environment cli_environment_keep(void);
/* On stdout: `export NAME='VALUE'` for each variable that came or changed since then, and `unset
 * NAME` for each that went. False, after saying so: it cannot be written. */
bool cli_environment_print(const struct cli_environment *before);

#endif
