/*
 * How far a long verb is: one line on stderr that is written over, and erased before anything else
 * is said. Verbs and what they call use it, one thread at a time. It shows nothing where stderr is
 * no terminal that can erase a line, and nothing in the first half second.
 */
#ifndef CUSPLICE_TOOLS_TRACE_PROGRESS_H
#define CUSPLICE_TOOLS_TRACE_PROGRESS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* So many of so many are done of what the verb of this name does. Shown ten times a second at
 * most. */
void progress(const char *verb, uint64_t done, uint64_t of);
/* What follows is this part of the whole, from 0 to 1, also in a child process that is forked
 * now. */
void progress_part(double from, double to);
/* Shows nothing from now on: the verb itself writes to a terminal. */
void progress_off(void);
/* Erases the line. Before other output, and at the end. */
void progress_clear(void);

/* For each turn of a loop over events. */
static inline void progress_event(const char *verb, uint64_t done, uint64_t of) {
    if (done % 4096 == 0)
        progress(verb, done, of);
}

#ifdef __cplusplus
}
#endif

#endif
