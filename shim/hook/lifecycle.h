/*
 * The life of the library in a process: cold, starting, on, off. See guard.h for what each state
 * means to a hook.
 */
#ifndef CUSPLICE_HOOK_LIFECYCLE_H
#define CUSPLICE_HOOK_LIFECYCLE_H

#include <stdint.h>

/* The driver works: cuInit, or a launch, has succeeded. Starts the engine once; everybody else
 * returns at once. */
void cus_lifecycle_start(void);
/* Inside a hook: nothing is deferred any more, for the reason given (which stays). */
void cus_lifecycle_defer_off(const char *why);
/* For look-ups, which must not wait for the GPU: the next hook defers nothing any more, for the
 * reason given (which stays). */
void cus_lifecycle_defer_off_later(const char *why);
/* The next hook has something to do first. */
void cus_lifecycle_call_attention(void);
/* The program launched a graph of its own. */
void cus_lifecycle_count_graph_launch(void);

#endif
