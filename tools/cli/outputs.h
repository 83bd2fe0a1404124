/*
 * Is a file that a run writes one of those that it reads? verb_run.c asks before the program
 * starts.
 */
#ifndef CUSPLICE_TOOLS_CLI_OUTPUTS_H
#define CUSPLICE_TOOLS_CLI_OUTPUTS_H

#include <stdbool.h>

#include "shim/base/options.h"

/* False, after saying so: a file of the settings is the program or a file of the configuration, or
 * two of them are one. */
bool cli_redirects_fit(const struct cus_options *options, const char *program);

#endif
