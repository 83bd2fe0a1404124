/*
 * What an event of the trace asks of the library's engine. player.c calls it, one thread at a time:
 * the one that plays the event's thread. It never decides which event comes next.
 */
#ifndef CUSPLICE_TOOLS_WHATIF_EVENTS_H
#define CUSPLICE_TOOLS_WHATIF_EVENTS_H

#include "tools/whatif/player.h"

/* Once the engine has started. `out` gets what the ops could not tell. */
void whatif_events_start(const struct cst_trace *trace, struct whatif_played *out);
/* `context`: where the thread is; the event may change it. */
void whatif_events_op(uint32_t *context, const struct cst_op *op);
void whatif_events_call(uint32_t *context, const struct cst_call *call);
/* True: one of the calls was the end of the program. */
bool whatif_events_drained(void);

#endif
