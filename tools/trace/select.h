/*
 * A part of a trace: steps A to B of one stream, and of every other stream the steps that begin in
 * that time. The verbs dump and trim call it. It never changes the trace.
 */
#ifndef CUSPLICE_TOOLS_TRACE_SELECT_H
#define CUSPLICE_TOOLS_TRACE_SELECT_H

#include "tools/trace/look.h"

struct selection {
    uint32_t stream;     /* whose steps were counted */
    uint8_t *steps;      /* by step of the model: it is one of them */
    bool ranged;         /* not all of the trace */
    uint64_t begin, end; /* the time that counts for what belongs to no step: [begin, end); the
                            largest end is none */
};

/* Is a record of that time in it that belongs to no step? */
static inline bool select_in_time(const struct selection *selection, uint64_t ns) {
    return ns >= selection->begin && (ns < selection->end || selection->end == UINT64_MAX);
}

/* `stream` 0: the busiest one. Without `ranged`, everything. False with a sentence in `error`
 * (which begins with the trace's path). */
bool select_steps(const struct look *look, uint32_t stream, bool ranged, uint32_t from, uint32_t to,
                  struct selection *selection, char *error, size_t bytes);
void select_free(struct selection *selection);

#endif
