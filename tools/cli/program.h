/*
 * Can a library be preloaded into this program's file? handshake.c asks when the library did not
 * come up.
 */
#ifndef CUSPLICE_TOOLS_CLI_PROGRAM_H
#define CUSPLICE_TOOLS_CLI_PROGRAM_H

#include <stddef.h>

/* The reason why the dynamic loader will not preload anything into `name` (looked up in PATH;
 * scripts: their interpreter), as half a sentence into `out`; "" where there is none. */
void cli_program_obstacle(const char *name, char *out, size_t bytes);

#endif
