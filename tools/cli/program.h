/*
 * Which file is this program, and can a library be preloaded into it? handshake.c asks when the
 * library did not come up, outputs.c and verb_bench.c before the program starts, tools/doctor for
 * its report.
 */
#ifndef CUSPLICE_TOOLS_CLI_PROGRAM_H
#define CUSPLICE_TOOLS_CLI_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>

/* The program's file, as execvp would find it. False: there is none. */
bool cli_program_find(const char *name, char *out, size_t bytes);
/* Puts the interpreter in the place of a script, as often as it takes. False: there is none. */
bool cli_program_interpreter(char *path, size_t bytes);
/* The reason why the dynamic loader will not preload anything into `name` (looked up in PATH;
 * scripts: their interpreter), as half a sentence into `out`; "" where there is none. */
void cli_program_obstacle(const char *name, char *out, size_t bytes);

#endif
