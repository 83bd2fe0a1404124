/*
 * Traces of other people: the question before a verb runs the code in one. The verbs bench, replay
 * and whatif call it. It never takes silence for consent.
 */
#ifndef CUSPLICE_TOOLS_CLI_TRUST_H
#define CUSPLICE_TOOLS_CLI_TRUST_H

#include <stdbool.h>

#include "tools/trace/reader.h"

/* May the code of this trace be run? Where it belongs to another user, or others may write it, the
 * user has said so by --trust (`*trusted`), or is asked on a terminal, which sets that. False,
 * having said why not. */
bool cli_trust(const struct cst_trace *trace, bool *trusted);

/* Says which settings of the recording are not taken (whatif_facts_config), if they were not those
 * that are built in: they may be why its graphs were others. */
void cli_say_not_taken(const struct cst_trace *trace);

#endif
