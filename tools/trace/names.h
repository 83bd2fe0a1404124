/*
 * Names of kinds in one form, made when first asked for and kept until the end. Reports call it,
 * on one thread. It never returns NULL for a kind.
 */
#ifndef CUSPLICE_TOOLS_TRACE_NAMES_H
#define CUSPLICE_TOOLS_TRACE_NAMES_H

#include "tools/trace/reader.h"

#ifdef __cplusplus
extern "C" {
#endif

enum names_form { NAMES_BASE, NAMES_DEMANGLED, NAMES_MANGLED };
extern const char *const names_forms[]; /* in the order of the enumeration, then NULL */

struct names;

/* NULL without memory. The trace must stay. */
struct names *names_make(const struct cst_trace *trace, enum names_form form);
void names_free(struct names *names);

/* Of a kind of the trace; of other ops the call. Never NULL. */
const char *names_of(struct names *names, uint32_t kind);

#ifdef __cplusplus
}
#endif

#endif
