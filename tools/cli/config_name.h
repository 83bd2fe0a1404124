/*
 * The option -c of several verbs: files of settings and presets, the later one stronger. The verbs
 * call it, on the launcher's one thread. It never reads a file.
 */
#ifndef CUSPLICE_TOOLS_CLI_CONFIG_NAME_H
#define CUSPLICE_TOOLS_CLI_CONFIG_NAME_H

#include <stddef.h>

#include "tools/cli/options.h"

/* For a table: -c FILE, or -c PRESET. What a verb adds is MORE. */
bool cli_take_config(const struct cli_option *self, const char *name);
#define CLI_CONFIG(MORE)                                                                           \
    CLI_OPTION("config", 'c', cli_take_config, NULL, "FILE",                                       \
               "settings and rules: a file, or the name of a preset (vllm, nccl). May be given "   \
               "several times: all rules hold, and of two files the later one is stronger" MORE)

/* The list that was given so, as CUSPLICE_CONFIG has it; NULL: none. */
const char *cli_config_given(void);
/* Puts it in the place of what CUSPLICE_CONFIG held, if any was given. False: no memory. */
bool cli_config_use(void);

/* The path of the file or preset. False, having said that there is neither. */
bool cli_config_path(const char *option, const char *name, char *out, size_t bytes);

#endif
