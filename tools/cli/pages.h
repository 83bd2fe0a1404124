/*
 * What `cusplice help --man PAGE` and `cusplice help --completion SHELL` print: manual pages and
 * completion, made from the tables of verbs, options and settings. The packages' files come from
 * here (//tools:man, //tools:completion). main.c calls it, on one thread. It reads no
 * configuration.
 */
#ifndef CUSPLICE_TOOLS_CLI_PAGES_H
#define CUSPLICE_TOOLS_CLI_PAGES_H

#include <stddef.h>

#include "tools/cli/options.h"

/* The rows of a text of struct cli_page: thing, tab, text, newline. False: there are no more. */
struct cli_row {
    const char *thing, *text;
    size_t thing_bytes, text_bytes;
};
bool cli_row_next(const char **rows, struct cli_row *row);
/* The next word of a list with blanks between. False: there are no more. */
bool cli_word_next(const char **words, const char **word, size_t *bytes);

/* `verbs`: then NULL. `whole`: what the command itself is; its name is empty. The exit status. */
int cli_man(const struct cli_verb *whole, const struct cli_verb *const *verbs, const char *page);
int cli_complete(const struct cli_verb *const *verbs, const char *shell);

/* cusplice.conf(5); man_conf.c. */
void cli_man_conf(void);

#endif
