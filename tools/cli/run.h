/*
 * Running a program with the library preloaded: what `cusplice run` does, for the verbs that do it
 * with settings of their own.
 */
#ifndef CUSPLICE_TOOLS_CLI_RUN_H
#define CUSPLICE_TOOLS_CLI_RUN_H

#include "tools/cli/handshake.h"
#include "tools/cli/verb.h"

/* As env(1) and timeout(1) have it: what goes wrong before the program runs is told from what the
 * program says. */
enum { CLI_EXIT_REFUSED = 125, CLI_EXIT_CANNOT_RUN = 126, CLI_EXIT_NOT_FOUND = 127 };

/* The environment variable that a key is short for; a path is made absolute. */
bool cli_run_set(const char *key, const char *value);
bool cli_run_set_path(const char *key, const char *path);
/* An option that takes a value: `--name value`, `--name=value` or `-n value`. 1: taken, 0: another
 * option, -1: the value is missing, which is said. */
int cli_run_value(char **argv, int *at, const char *name, const char *brief, const char **value);
/* One of the options of `cusplice run`; the same three answers. */
int cli_run_option(char **argv, int *at);

/* Options that a verb has beside those; the same three answers. */
typedef int cli_run_own(char **argv, int *at);
/* Reads all options up to the program, at argv[*at]. `names`: those that there are, for one that is
 * not. False where there is nothing to run: *status says how to end. */
bool cli_run_options(const struct cli_verb *self, int argc, char **argv, cli_run_own *own,
                     const char *const *names, int *at, int *status);

/* The exit status, where the program's own is 0. `seen`: the library saw launches. */
typedef int cli_run_judge(bool seen, const struct cli_verified *verified);
/* What is to be done when the program has ended, however it did. */
typedef void cli_run_then(void);
/* Checks the configuration, runs the program. Returns where it could not be run, and what `judge`
 * says (NULL: nobody); ends as the program ended in all other cases. */
int cli_run_start(char **argv, cli_run_then *then, cli_run_judge *judge);

#endif
