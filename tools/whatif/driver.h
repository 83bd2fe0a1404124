/*
 * A driver that does nothing, for the engine to play a recorded program on: every call succeeds,
 * questions are answered from the trace, graphs are lists of what was captured. What the engine
 * asks of it is counted.
 *
 * One thread at a time (player.c passes the turn on). Memory is never short: where there is none
 * the process ends with status WHATIF_NO_MEMORY, for it plays in a child of its own.
 */
#ifndef CUSPLICE_TOOLS_WHATIF_DRIVER_H
#define CUSPLICE_TOOLS_WHATIF_DRIVER_H

#include "shim/api/driver.h"
#include "shim/trace/reader.h"

enum { WHATIF_NO_MEMORY = 97 };

/* What the engine asked for. */
struct whatif_asked {
    uint64_t issued; /* withheld ops that went out one by one */
    uint64_t own;    /* the program's own calls */
    uint64_t captured;
    uint64_t graphs; /* instantiated */
    uint64_t graph_launches;
    uint64_t patched;
    uint64_t assumed; /* addresses that the trace says nothing of, taken for device memory */
};

/* The table of the driver for this trace. Once in a process. */
const struct cus_driver *whatif_driver_start(const struct cst_trace *trace);
extern struct whatif_asked whatif_asked;

/* Of a stream of the trace, and back. */
CUstream whatif_driver_stream(const struct cst_stream *stream);

/* What is true from now on: the context that is current, as the trace numbers it; the kind of the
 * op that is asked for (NULL: it is none), until when its call lasted, and what it returned. */
struct whatif_now {
    uint32_t context;
    const struct cst_kind *kind;
    uint64_t until;
    CUresult result;
};
void whatif_driver_now(const struct whatif_now *now);
/* The handle by which the engine knows the kind's function. */
CUfunction whatif_driver_function(const struct cst_kind *kind);
/* Its arguments lie where the kind says, and its ops have them. */
bool whatif_driver_readable(const struct cst_kind *kind);

/* The program's own calls: what cus_launch.real and its like point to. */
void *whatif_driver_launch(bool ex, bool cooperative);
void *whatif_driver_memset(uint32_t elem, bool two_d);
void *whatif_driver_copy(uint32_t form);

/* The stream captures for the program, or has ended to. */
void whatif_driver_captures(const struct cst_stream *stream, bool on);
/* It has work; it has been waited for (NULL: all of the current context have). */
void whatif_driver_busy(const struct cst_stream *stream, bool on);
/* Nothing of this stream is withheld, whatever its flags are. */
void whatif_driver_leave_alone(const struct cst_stream *stream);

/* ---- graphs.c ---- */

void whatif_graphs_fill(struct cus_driver *table);
/* The answer to a call of the program's own. */
CUresult whatif_driver_own(void);

/* ---- ranges.c ---- */

/* What the trace says of an address at `ns`, `*answer` as the driver told it then. False: nothing.
 */
bool whatif_range_find(uint32_t context, uint64_t address, uint64_t ns, struct cst_range *answer);
void whatif_range_start(const struct cst_trace *trace);

#endif
