/*
 * Names of files and folders that a verb makes for a while. Any thread; no state.
 */
#ifndef CUSPLICE_TOOLS_CLI_TEMPORARY_H
#define CUSPLICE_TOOLS_CLI_TEMPORARY_H

#include <stdbool.h>
#include <stddef.h>

/* Writes FOLDER/NAME for mkstemp or mkdtemp: NAME ends in XXXXXX, FOLDER is $TMPDIR if that is an
 * absolute path, else /tmp. False: it does not fit, and errno says so. */
bool cli_temporary(char *out, size_t bytes, const char *name);

#endif
