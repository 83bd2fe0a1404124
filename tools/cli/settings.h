/*
 * The options --set and --eager of `cusplice whatif`, `cusplice replay` and `cusplice bench`. These
 * verbs call it, on one thread. It never applies a setting to this process.
 */
#ifndef CUSPLICE_TOOLS_CLI_SETTINGS_H
#define CUSPLICE_TOOLS_CLI_SETTINGS_H

#include "tools/cli/options.h"
#include "tools/trace/reader.h"

enum { CLI_SETTINGS = 64, CLI_PATTERNS = 16384 };

struct cli_settings {
    char *names[CLI_SETTINGS];
    const char *values[CLI_SETTINGS];
    unsigned n;
    char eager[CLI_PATTERNS]; /* patterns with ';' between */
};

/* For a table, with `to` a struct cli_settings: --set KEY=VALUE (eager=PATTERN is --eager), and
 * --eager PATTERN. */
bool cli_take_set(const struct cli_option *self, const char *value);
bool cli_take_eager(const struct cli_option *self, const char *value);
/* --set of a verb that plays a trace: neither the mode, which is a strategy, nor a recording. */
bool cli_take_set_played(const struct cli_option *self, const char *value);
/* A setting of its own option: key_bytes of `key`. False, having said why. */
bool cli_settings_add(struct cli_settings *to, const char *option, const char *key,
                      size_t key_bytes, const char *value);

/* Does each pattern of --eager match something in the trace? False, having said which does not. */
bool cli_settings_match(const struct cli_settings *settings, const struct cst_trace *trace);
void cli_settings_free(struct cli_settings *settings);

#endif
