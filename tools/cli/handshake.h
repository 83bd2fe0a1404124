/*
 * What the library said of itself while the child ran. verb_run.c makes the file that
 * CUSPLICE_HANDSHAKE names, and reads it when the child has ended. It never tells the library
 * anything.
 */
#ifndef CUSPLICE_TOOLS_CLI_HANDSHAKE_H
#define CUSPLICE_TOOLS_CLI_HANDSHAKE_H

#include <stdbool.h>
#include <stddef.h>

/*
 * The lines of the file; several processes may append to it.
 *
 *   PID there             the dynamic loader took the library into the first of the processes
 *   PID absent            the process asked for libcuda, and the dynamic loader did not find it
 *   PID loaded            the process asked for CUDA, and the library was there
 *   PID on [RANK] | PID off   cuInit succeeded; the engine started (RANK: the rank + 1, if one is
 *                         known), or mode is off
 *   PID ran RANK MS OPS IN PROGRAM<tab>BREAK   with why = yes: what the table of a run shows
 *   PID verified N BAD    mode verify: graph launches verified, and how many of them differed
 *   PID exit OPS GRAPHS   ops seen, and the program's own cuGraphLaunch calls
 *   PID front | behind FILE   another interposer stands in front of the library, or behind it
 *   PID led FILE          an object was bound past the library, and is led to it
 *   PID passes WHY        nothing is deferred any more
 *   PID unmet TEXT        what the user asked for and the program gave no occasion to
 *   PID steps HAD FROM    recording was to begin with step FROM; the program had so many
 */

#define CUS_UNMET_OWN "; "         /* as in shim/stream/engine.h */
enum { CUS_HANDSHAKE_LINE = 576 }; /* bytes of a line at most, as in shim/hook/handshake.h */

/* Makes the file in `folder` (NULL: that of temporary files) and names it in the environment.
 * False: there is none, and nothing can be said afterwards. */
bool cli_handshake_begin(const char *folder);
/* Reads and removes it; says on stderr what was found beside the library, and, if so, that the
 * library never came up or saw nothing, and why. False: so it is, or there was no file. */
struct cli_verified {
    unsigned long long launches, different;
    bool missed;    /* the steps that were to be recorded never came */
    unsigned exits; /* processes that left their counters */
};
bool cli_handshake_report(const char *program, bool mode_off, struct cli_verified *verified);
/* Removes it, silently: the program was never started. */
void cli_handshake_drop(void);

#endif
