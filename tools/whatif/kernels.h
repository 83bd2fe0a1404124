/*
 * The kernels of a trace by name, and what a pattern matches among them. The verbs whatif, replay
 * and bench call it. It never changes the trace.
 */
#ifndef CUSPLICE_TOOLS_WHATIF_KERNELS_H
#define CUSPLICE_TOOLS_WHATIF_KERNELS_H

#include "tools/trace/reader.h"

struct whatif_kernel {
    const char *name; /* mangled */
    char base[256];
    uint64_t calls;
};

/* Most often launched first. The caller's to free; NULL without memory. */
struct whatif_kernel *whatif_kernels(const struct cst_trace *trace, uint32_t *n);

/* The same of what a replayable trace plays again. */
struct whatif_kernel *whatif_replayed(const struct cst_trace *trace, uint32_t *n);

/* Does the pattern name any kernel, or memset, copy or record, of the trace? False: one sentence in
 * `error`. */
bool whatif_matches(const struct cst_trace *trace, const char *pattern, char *error, size_t bytes);

#endif
