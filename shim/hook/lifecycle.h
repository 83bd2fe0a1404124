/*
 * The states of the library in a process: cold, starting, on, off. guard.h says what each state
 * means to a hook.
 */
#ifndef CUSPLICE_HOOK_LIFECYCLE_H
#define CUSPLICE_HOOK_LIFECYCLE_H

#include <stdbool.h>
#include <stdint.h>

/* Called after cuInit or a launch has succeeded, hence the driver works. Starts the engine once.
 * All other calls return at once. */
void cus_lifecycle_start(void);
/* Called inside a hook. The library defers nothing any more. `why` must stay valid. */
void cus_lifecycle_defer_off(const char *why);
/* For look-ups, which must not wait for the GPU: from the next hook on, the library defers
 * nothing. `why` must stay valid. */
void cus_lifecycle_defer_off_later(const char *why);
/* Makes the next hook call cus_lifecycle_attend. */
void cus_lifecycle_call_attention(void);
/* The program is about to wait for the GPU, or launches a graph of its own. True: calls pass for a
 * while (stream/rest.c). */
bool cus_lifecycle_tick(unsigned row);
/* Called when the program launches a graph of its own. */
void cus_lifecycle_count_graph_launch(void);

#endif
