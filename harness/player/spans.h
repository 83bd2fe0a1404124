/*
 * Tells what an address was in at a moment: host memory, a variable of a module, or something that
 * a replay cannot make. player_memory_has answers for device memory.
 */
#ifndef CUSPLICE_PLAYER_SPANS_H
#define CUSPLICE_PLAYER_SPANS_H

#include "tools/trace/reader.h"

enum { SPANS_MAX = 1 << 16 }; /* at a time, because a new span moves those after it */

struct spans {
    const struct cst_trace *trace;
    size_t next;                   /* the first of the trace's spans that has not begun */
    const struct cst_span **alive; /* by address */
    size_t n;
    bool too_many; /* some spans were left out */
};

/* False: not enough memory. */
bool spans_begin(struct spans *spans, const struct cst_trace *trace);
/* Moves on to a time, which must not be earlier. */
void spans_move(struct spans *spans, uint64_t ns);
/* NULL: the address is in no span. */
const struct cst_span *spans_find(const struct spans *spans, uint64_t address);
void spans_end(struct spans *spans);

#endif
