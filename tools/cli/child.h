/*
 * Starts a program and ends this process as the program ended. verb_run.c calls it, also for the
 * verbs that run a program their own way.
 */
#ifndef CUSPLICE_TOOLS_CLI_CHILD_H
#define CUSPLICE_TOOLS_CLI_CHILD_H

#include <stdbool.h>

/* Puts LD_PRELOAD = `preload`, and what goes with it, into the environment of this process, for the
 * program that it becomes. False: no memory. */
bool cli_child_preload(const char *preload);

/*
 * Starts argv[0] (looked up in PATH) with LD_PRELOAD = `preload`, hands on the signals that are
 * sent to this process, waits. Returns 0 and the status of waitpid in *status, or the errno that
 * kept the program from starting.
 */
int cli_child_run(char **argv, const char *preload, int *status);

/* Ends this process the way the child ended: with its exit status, or by the same signal (a shell
 * shows 128 + its number). */
_Noreturn void cli_child_end_like(int status);

#endif
