/*
 * The settings and rules of a recording, as the text of a configuration file. The verbs that play
 * traces call it. It never takes settings that name files or bound memory, since a trace may be a
 * stranger's.
 */
#ifndef CUSPLICE_TOOLS_WHATIF_FACTS_H
#define CUSPLICE_TOOLS_WHATIF_FACTS_H

#include <stddef.h>

#include "tools/trace/reader.h"

/* What a configuration file would say that has the options and (`rules`) the rules of the
 * recording; the caller's to free. Options that name files, bound memory, say or record something
 * or trust a driver are not taken: a trace may be a stranger's. Where the facts have no rules they
 * are read off what became of the ops (`*guessed`). NULL: the facts have no options, or there is no
 * memory. */
char *whatif_facts_config(const struct cst_trace *trace, bool rules, bool *guessed);

/* The bounds of memory that the recording had other than built in and that are not taken, as
 * "graph_mb = 64, host_mb = 16". False: none. */
bool whatif_facts_not_taken(const struct cst_trace *trace, char *out, size_t bytes);

/* ---- for tests ---- */

/* Tells `each` the entries of the object or array `key` of a JSON object; names are "" in arrays.
 * What is neither text, number, true nor false is left out. False: there is none, or this is no
 * JSON. */
typedef void whatif_facts_fn(void *context, const char *name, const char *value);
bool whatif_facts_read(const char *json, const char *key, whatif_facts_fn *each, void *context);

#endif
