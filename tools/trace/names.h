/* The names of a trace's kinds in the forms that people read. */
#ifndef CUSPLICE_TOOLS_TRACE_NAMES_H
#define CUSPLICE_TOOLS_TRACE_NAMES_H

#include "shim/trace/reader.h"

#ifdef __cplusplus
extern "C" {
#endif

struct names {
    const char *mangled; /* as the trace has it */
    char *base;          /* the function's own identifier */
    char *demangled; /* with template arguments and parameters; as it is where it is not mangled */
};

/* By kind, trace->n_kinds of them; entries of ids without a kind are zero. NULL: no memory. */
struct names *names_make(const struct cst_trace *trace);
void names_free(struct names *names, uint32_t n);

#ifdef __cplusplus
}
#endif

#endif
