/*
 * When each op ran on the GPU, in ns since the trace began: measured by CUPTI or estimated.
 * verb_export.c calls it, and the export_*.c files read the spans. Spans of one stream never
 * overlap.
 */
#ifndef CUSPLICE_TOOLS_TRACE_TIMELINE_H
#define CUSPLICE_TOOLS_TRACE_TIMELINE_H

#include "tools/trace/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A trace of cusplice record --gpu-times has measured times. Ops of which CUPTI knows nothing took
 * no time, behind the op ahead. In other traces an op starts where it was issued (by its LAUNCH,
 * its FLUSH, or the end of its own call), never before the op ahead of it on its stream. It lasts
 * 1 us, less where the next issue on the stream comes sooner.
 */

/* How the times were had, for those who read them. */
const char *timeline_gpu_times(const struct model *model);

struct timeline_span {
    uint64_t start; /* TIMELINE_NEVER: it was not issued before the trace ended */
    uint64_t end;
};

#define TIMELINE_NEVER UINT64_MAX

/* Times beyond this cannot be told in microseconds by a double: 104 days. */
#define TIMELINE_MOST ((uint64_t)1 << 53)

/* By op of the model. NULL: no memory. */
struct timeline_span *timeline_make(const struct model *model);
/* Can all times of the trace be told? */
bool timeline_fits(const struct cst_trace *trace);

#ifdef __cplusplus
}
#endif

#endif
