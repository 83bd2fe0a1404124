/*
 * What a run left behind that its processes would have put away, or that one wrote over another's.
 * verb_run.c calls it when the program and the hand-shake are done.
 */
#ifndef CUSPLICE_TOOLS_CLI_RUN_LEFT_H
#define CUSPLICE_TOOLS_CLI_RUN_LEFT_H

/* Removes the pages for `cusplice top` of processes that ended without their exit handlers. */
void cli_left_pages(void);
/* Names the traces of such processes; `record`: the setting. */
void cli_left_traces(const char *record);
/* Says that several processes wrote one stats file; `stats`: its name. */
void cli_left_stats(const char *stats, unsigned processes);

#endif
