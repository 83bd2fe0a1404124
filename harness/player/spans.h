/*
 * Tells what an address was in at a moment: host memory, a variable of a module, or something that
 * a replay cannot make. player_memory_has answers for device memory.
 */
#ifndef CUSPLICE_PLAYER_SPANS_H
#define CUSPLICE_PLAYER_SPANS_H

#include "tools/trace/reader.h"

enum { SPANS_MAX = 1 << 16 }; /* at a time: each that comes moves those behind it */

struct spans {
    const struct cst_trace *trace;
    size_t next;                   /* of the trace's spans: the first that has not begun */
    const struct cst_span **alive; /* by address */
    size_t n;
    bool too_many; /* some were left out */
};

/* False: not enough memory. */
bool spans_begin(struct spans *spans, const struct cst_trace *trace);
/* Moves on to that time, which must not go back. */
void spans_move(struct spans *spans, uint64_t ns);
/* NULL: in none of them. */
const struct cst_span *spans_find(const struct spans *spans, uint64_t address);
void spans_end(struct spans *spans);

#endif
