/*
 * Plays one configuration in a child process, since settings, rules and engine exist once in a
 * process. verb_whatif.c calls it while it has one thread. It never plays in the caller's process.
 */
#ifndef CUSPLICE_TOOLS_WHATIF_RUN_H
#define CUSPLICE_TOOLS_WHATIF_RUN_H

#include "tools/whatif/player.h"

struct whatif_setup {
    const char *recorded; /* a configuration file's text, in place of files and environment; NULL:
                             those hold */
    const char *config;   /* a file, stronger than those; NULL: none */
    const char *const *names; /* settings, stronger than all */
    const char *const *values;
    unsigned n_settings;
    const char *eager; /* patterns, with ';' between them, in front of all rules; NULL: none */
    const struct whatif_timing *timing; /* NULL: nothing is said of times */
};

/* False, and one sentence in `error`: it could not be played. Called while the process has one
 * thread, and has never asked for its options. Problems of the configuration are told on stderr. */
bool whatif_run(const struct cst_trace *trace, const struct whatif_setup *setup,
                struct whatif_played *out, char *error, size_t bytes);

#endif
