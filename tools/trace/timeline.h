/*
 * When each op ran on the GPU, in ns since the trace began.
 *
 * As CUPTI measured it, where the trace has that (cusplice record --gpu-times); ops of which it
 * knows nothing came to nothing, and take no time behind the one ahead. Otherwise it is estimated:
 * an op starts where it was issued (by its LAUNCH, its FLUSH, or the end of its own call), never
 * before the op ahead of it on its stream, and lasts 1 us, less where the next issue on the stream
 * comes sooner. Either way the ops of a stream never overlap and stand in their order.
 */
#ifndef CUSPLICE_TOOLS_TRACE_TIMELINE_H
#define CUSPLICE_TOOLS_TRACE_TIMELINE_H

#include "tools/trace/model.h"

#ifdef __cplusplus
extern "C" {
#endif

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
