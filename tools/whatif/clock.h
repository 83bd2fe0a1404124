/*
 * How long a recorded program would take. While it is played, a clock of each thread and one of
 * each stream advance by what things cost (cost.h). player.c, events.c and driver.c call it, one
 * thread at a time. Before whatif_clock_start, no function does anything.
 */
#ifndef CUSPLICE_TOOLS_WHATIF_CLOCK_H
#define CUSPLICE_TOOLS_WHATIF_CLOCK_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/base/curve.h"
#include "tools/trace/reader.h"

/*
 * The model is simpler than a GPU:
 * - Streams run side by side as if each had a GPU of its own. Only the order of the legacy stream
 *   and of blocking streams holds.
 * - A wait for an event waits for the record of an event that was issued last. A wait that names
 *   no stream is for the stream that was used last.
 * - Branches of a graph run side by side as streams do.
 * - Queues never fill up. A program that polls asks as often as it did.
 * - A thread goes on behind what another thread did, as far as it was recorded behind it.
 * - What the engine would hand to its second thread counts as submitted, though a recorded
 *   program hands nothing over. That costs the program nothing until it wants the next one out.
 *   The second thread has a processor of its own, and one graph at a time.
 */

struct whatif_cost;

/* Nodes of a graph; of them, memsets and copies; of them, records of events; of these, of the
 * engine's own events. */
struct whatif_nodes {
    uint32_t all, others, records, own;
};

enum { WHATIF_NOT_MEASURED = UINT32_MAX };

/* What is known of the program besides its trace. */
struct whatif_timing {
    const struct whatif_cost *cost;
    const uint32_t *gpu_ns; /* by event: how long that op ran on the GPU, or
                               WHATIF_NOT_MEASURED; NULL: of none it is known */
    /* How many times as long as in the calibration it takes here to issue an op, to defer one,
     * and to patch and launch graphs: other code uses the processor's caches as well, and the same
     * processor is faster and slower by the hour. 0: as long. */
    double eager, matched, graph;
    /* How much longer the program takes up to its next call where the driver issued an op, or a
     * graph, than where the op was merely deferred: nanoseconds. */
    double behind_eager, behind_graph;
};

/* Steps: from the end of one wait to the end of the next, if something was asked for meanwhile. The
 * typical ones are those with as many ops as most ops are in; of them the later half, behind what
 * is learned, counts here. Nanoseconds, below 0 where there is none. */
struct whatif_times {
    uint64_t steps, typical, step_ops; /* all; the typical ones; their ops */
    double step, recorded_step;        /* medians */
    double fast, recorded_fast;        /* what the fastest tenth keep */
    double total, recorded_total;      /* of all steps */
    /* Of the typical ones, on average: */
    double own, calls, waits; /* the host: the program itself, calls, waiting */
    double busy;              /* the GPU */
    /* Those that were played first of all, whatever half they are in; and the time of the first
     * CUS_CURVE_FIRST of them, or of all if there are fewer. */
    uint64_t curve[CUS_CURVE_MAX], n_curve;
    double first, recorded_first;
};

void whatif_clock_start(const struct cst_trace *trace, const struct whatif_timing *timing);
/* The event is played now. */
void whatif_clock_event(size_t index);
/* It is an op. It only captures; the host waits for it (a copy to pageable memory). */
void whatif_clock_op(bool captures, bool waits);
/* It is a call that may be taken for an op of this stream. It was not. */
void whatif_clock_call_op(uint32_t stream, enum cst_op_type op);
void whatif_clock_call_drop(void);
/* It has been played: what was not issued is deferred. */
void whatif_clock_event_end(void);
/* The library acts by itself at that time of the recording, until the next event. */
void whatif_clock_background(uint64_t ns);

/* What the driver is asked for. */
void whatif_clock_own(void);
void whatif_clock_issued(CUstream stream, enum cst_op_type op);
void whatif_clock_waits(void);
void whatif_clock_captured(void);
void whatif_clock_patched(void);
void whatif_clock_graph(CUstream stream, struct whatif_nodes nodes);

void whatif_clock_end(struct whatif_times *times);

#endif
