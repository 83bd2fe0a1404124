/*
 * The names of all kinds of a trace: mangled, base and demangled. verb_export.c calls it once. It
 * never asks for a name twice.
 */
#ifndef CUSPLICE_TOOLS_TRACE_KIND_NAMES_H
#define CUSPLICE_TOOLS_TRACE_KIND_NAMES_H

#include "tools/trace/reader.h"

#ifdef __cplusplus
extern "C" {
#endif

struct kind_name {
    const char *mangled; /* as the trace has it */
    char *base;          /* the function's own identifier */
    char *demangled; /* with template arguments and parameters; as it is where it is not mangled,
                        or would be too long (demangle.h) */
    bool own;        /* ... are freed with it: kinds of one name share them */
};

/* By kind, trace->n_kinds of them; entries of ids without a kind are zero. NULL: no memory. */
struct kind_name *kind_names_make(const struct cst_trace *trace);
void kind_names_free(struct kind_name *names, uint32_t n);

#ifdef __cplusplus
}
#endif

#endif
