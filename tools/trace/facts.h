/*
 * The facts of a trace: a JSON object that somebody else wrote. It is checked, made one line, and
 * told member by member. The verbs and the player call it. Any thread; it never trusts the text.
 */
#ifndef CUSPLICE_TOOLS_TRACE_FACTS_H
#define CUSPLICE_TOOLS_TRACE_FACTS_H

#include <stdbool.h>
#include <stddef.h>

/* The object without the space between its parts, on one line; the caller frees it. NULL where it
 * is no JSON object, or without memory. Its strings are cleaned (clean.h); half a surrogate pair
 * becomes U+FFFD. */
char *facts_line(const char *facts);

/* Tells each member of an object that facts_line gave, in order; `key` and `value` are JSON, not
 * terminated. */
typedef void facts_fn(void *context, const char *key, size_t key_bytes, const char *value,
                      size_t value_bytes);
void facts_each(const char *line, facts_fn *tell, void *context);

/* Does such an object say that cusplice import made the trace? FACTS_IMPORT: what the trace then
 * lacks, behind "imported". */
bool facts_imported(const char *line);
#define FACTS_IMPORT "from a profile, which says nothing of graphs"

#endif
