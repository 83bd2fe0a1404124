/*
 * By which options and rules a trace was recorded, as a configuration file.
 */
#ifndef CUSPLICE_TOOLS_WHATIF_FACTS_H
#define CUSPLICE_TOOLS_WHATIF_FACTS_H

#include "shim/trace/reader.h"

/* What a configuration file would say that has the options and (`rules`) the rules of the
 * recording; the caller's to free. Where the facts have no rules they are read off what became of
 * the ops
 * (`*guessed`). NULL: the facts have no options, or there is no memory. */
char *whatif_facts_config(const struct cst_trace *trace, bool rules, bool *guessed);

/* ---- for tests ---- */

/* Tells `each` the entries of the object or array `key` of a JSON object; names are "" in arrays.
 * What is neither text, number, true nor false is left out. False: there is none, or this is no
 * JSON. */
typedef void whatif_facts_fn(void *context, const char *name, const char *value);
bool whatif_facts_read(const char *json, const char *key, whatif_facts_fn *each, void *context);

#endif
