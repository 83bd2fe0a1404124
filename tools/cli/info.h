/*
 * The facts of a trace in words, for people. verb_info.c calls it. One thread; no state.
 */
#ifndef CUSPLICE_TOOLS_CLI_INFO_H
#define CUSPLICE_TOOLS_CLI_INFO_H

#include "tools/trace/look.h"

enum { CLI_INFO_NAME = 16 }; /* columns of what stands in front of each value */

/* A line `  name   text`, folded. */
void cli_info_line(unsigned width, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Each fact on lines of its own, on stdout, `width` columns wide (0: no bound). Settings that are
 * as built in are left out, and rules and steps are written as in a file. */
void cli_info_facts(const struct look *look, unsigned width);

#endif
