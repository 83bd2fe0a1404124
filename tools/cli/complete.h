/*
 * What completion knows of an option, and one function for each shell. complete.c and its shells
 * share it, on one thread. No state.
 */
#ifndef CUSPLICE_TOOLS_CLI_COMPLETE_H
#define CUSPLICE_TOOLS_CLI_COMPLETE_H

#include "tools/cli/pages.h"

enum cli_value {
    CLI_VALUE_NONE,  /* the option takes no value */
    CLI_VALUE_ANY,   /* nothing to offer */
    CLI_VALUE_WORDS, /* one of *words */
    CLI_VALUE_FILE,
    CLI_VALUE_CONFIG, /* a file, or the name of a preset */
    CLI_VALUE_SETTING /* KEY=VALUE */
};

enum cli_value cli_value_of(const struct cli_option *row, const char *const **words);
/* The first clause of a text, without what a shell would take for its own. */
void cli_clause(const char *text, char *out, size_t bytes);
/* Each row of the tables that the help has. NULL: there are no more. */
const struct cli_option *cli_next_option(const struct cli_option *const **tables,
                                         const struct cli_option *row);
/* Has each verb call `printer` with its tables. */
void cli_each_verb(const struct cli_verb *const *verbs, cli_help_fn *printer);

void cli_complete_bash(const struct cli_verb *const *verbs);
void cli_complete_zsh(const struct cli_verb *const *verbs);
void cli_complete_fish(const struct cli_verb *const *verbs);

#endif
