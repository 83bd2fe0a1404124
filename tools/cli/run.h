/*
 * Runs a program with the library preloaded, as `cusplice run` does. The verbs record, verify,
 * calibrate and bench call it with settings of their own. It never returns after a program that
 * ran, unless a judge asks for that.
 */
#ifndef CUSPLICE_TOOLS_CLI_RUN_H
#define CUSPLICE_TOOLS_CLI_RUN_H

#include "tools/cli/handshake.h"
#include "tools/cli/options.h"

/* As env(1) and timeout(1) have it: what goes wrong before the program runs is told from what the
 * program says. */
enum { CLI_EXIT_REFUSED = 125, CLI_EXIT_CANNOT_RUN = 126, CLI_EXIT_NOT_FOUND = 127 };

/* The environment variable that a key is short for; a path is made absolute. */
bool cli_run_set(const char *key, const char *value);
bool cli_run_set_path(const char *key, const char *path);
/* What an option of a table stores: the setting that `to` names (yes, where the option has no
 * value), and the same for a path. */
bool cli_run_take(const struct cli_option *self, const char *value);
bool cli_run_take_path(const struct cli_option *self, const char *value);
/* Reads the options of `cusplice run`, those in `own` (may be NULL) and the program. -1: go on;
 * else the exit status. */
int cli_run_read(const struct cli_verb *self, int argc, char **argv, const struct cli_option *own,
                 char ***program);

/* The exit status, where the program's own is 0. `seen`: the library saw launches. */
typedef int cli_run_judge(bool seen, const struct cli_verified *verified);
/* What is to be done when the program has ended, however it did. */
typedef void cli_run_then(void);
/* Checks the configuration, runs the program. Returns where it could not be run, and what `judge`
 * says (NULL: nobody); ends as the program ended in all other cases. A program that
 * is recorded or verified is offered no cache: what is found must not depend on earlier runs. */
int cli_run_start(char **argv, cli_run_then *then, cli_run_judge *judge);

#endif
