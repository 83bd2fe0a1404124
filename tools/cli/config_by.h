/*
 * Who includes a file of settings, for messages: the user may never have named that file. What
 * tells problems calls it, on the launcher's one thread. It keeps what it read first.
 */
#ifndef CUSPLICE_TOOLS_CLI_CONFIG_BY_H
#define CUSPLICE_TOOLS_CLI_CONFIG_BY_H

#include <stddef.h>

/* Only this file and those that it includes count from here on. Without it those of all sources
 * do. */
void cli_config_by_read(const char *root);
/* `A:1, by B:2`: A includes the file, and B includes A. "": nobody does. */
void cli_config_by(const char *file, char *out, size_t bytes);

#endif
