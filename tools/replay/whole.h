/* Refuses a damaged trace before a player is started. The verbs replay and bench call it. */
#ifndef CUSPLICE_TOOLS_REPLAY_WHOLE_H
#define CUSPLICE_TOOLS_REPLAY_WHOLE_H

#include "tools/replay/run.h"
#include "tools/trace/reader.h"

/* Is the trace whole, contents and all? False, having said what it lacks. What the program did that
 * cannot be done again is for the player to say. */
bool replay_whole(const struct cst_trace *trace, replay_say_fn *say);

#endif
