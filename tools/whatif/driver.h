/*
 * A driver that does nothing, on which the engine plays a recorded program. Calls succeed,
 * questions are answered from the trace, and requests are counted. player.c starts it in a child,
 * one thread at a time. Without memory it ends the process with WHATIF_NO_MEMORY. It never loads
 * libcuda.
 */
#ifndef CUSPLICE_TOOLS_WHATIF_DRIVER_H
#define CUSPLICE_TOOLS_WHATIF_DRIVER_H

#include <stdlib.h>

#include "shim/api/driver.h"
#include "tools/trace/reader.h"

enum { WHATIF_NO_MEMORY = 97 };

static inline void *whatif_need(void *memory) {
    if (!memory)
        _Exit(WHATIF_NO_MEMORY);
    return memory;
}

/* What the engine asked for. */
struct whatif_asked {
    uint64_t issued; /* deferred ops that went out one by one, waits among them */
    uint64_t own;    /* the program's own calls */
    uint64_t captured;
    uint64_t graphs; /* instantiated */
    uint64_t graph_launches;
    uint64_t graph_others;  /* nodes of those that are memsets or copies */
    uint64_t records;       /* of events, and waits for them, among `issued` and `own` */
    uint64_t graph_records; /* nodes of graphs launched that record the program's events */
    uint64_t patched;
    uint64_t assumed; /* addresses that the trace says nothing of, taken for device memory */
};

/* The table of the driver for this trace. Once in a process. */
const struct cus_driver *whatif_driver_start(const struct cst_trace *trace);
extern struct whatif_asked whatif_asked;

/* By what handle the engine knows a stream of the trace. Streams whose numbers differ have one
 * handle where the recording met the same stream again. */
CUstream whatif_driver_stream(const struct cst_stream *stream);
/* From now on this stream is what its handle means. */
void whatif_driver_use(const struct cst_stream *stream);

/* What is true from now on. */
struct whatif_now {
    uint32_t context;                  /* that is current, as the trace numbers it */
    const struct cst_kind *kind;       /* of the op that is asked for; NULL: it is none */
    uint64_t dst, src;                 /* of a memset or copy */
    uint64_t until;                    /* how long its call lasted */
    CUresult result;                   /* what the program's own calls return */
    const struct cst_stream *captures; /* this one, as long as that is so; NULL: see below */
};
void whatif_driver_now(const struct whatif_now *now);
/* A number that is no context's. */
uint32_t whatif_driver_elsewhere(void);

/* The handle by which the engine knows the kind's function, and a kind of that function whose
 * layout is known; NULL where there is none. */
CUfunction whatif_driver_function(const struct cst_kind *kind);
const struct cst_kind *whatif_driver_layout(const struct cst_kind *kind);

/* The program's own calls: what cus_launch.real and its like point to. */
void *whatif_driver_launch(bool ex, bool cooperative);
void *whatif_driver_memset(uint32_t elem, bool two_d);
void *whatif_driver_copy(uint32_t form);
void *whatif_driver_record(void);
void *whatif_driver_wait(void);

/* The stream captures for the program, or has ended to. Returns how many do. */
uint32_t whatif_driver_captures(const struct cst_stream *stream, bool on);
bool whatif_driver_is_capturing(const struct cst_stream *stream);
/* ---- graphs.c ---- */

void whatif_graphs_fill(struct cus_driver *table);
/* The answer to a call of the program's own. */
CUresult whatif_driver_own(void);

/* ---- ranges.c ---- */

/* What the trace says of an address at `ns`, `*answer` as the driver told it then. False: nothing.
 */
bool whatif_range_find(uint32_t context, uint64_t address, uint64_t ns, struct cst_range *answer);
void whatif_range_start(const struct cst_trace *trace);

struct whatif_timing;
/* What building and launching a graph of so many nodes takes now, ns (builds.c); 0: nothing is
 * known.
 */
uint64_t whatif_build_ns(uint32_t nodes);
/* `timing`: NULL: no costs are known. */
void whatif_builds_start(const struct cst_trace *trace, const struct whatif_timing *timing);

#endif
