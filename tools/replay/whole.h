/* Refusing a trace before a player is started. */
#ifndef CUSPLICE_TOOLS_REPLAY_WHOLE_H
#define CUSPLICE_TOOLS_REPLAY_WHOLE_H

#include "shim/trace/reader.h"
#include "tools/replay/run.h"

/* Is the trace whole, contents and all? False, having said what it lacks. A trace that has nothing
 * for a replay is: the player says so, and what else stands in its way. */
bool replay_whole(const struct cst_trace *trace, replay_say_fn *say);

#endif
