/*
 * Tells a test which work ran (cusim_activity.h).
 *
 * Runs on the streams' threads without a lock. Whoever runs work sets, for its thread, the call
 * that the work belongs to.
 */
#include "harness/sim/cusim.h"
#include "harness/sim/cusim_activity.h"

#include <string.h>

static cusim_activity_fn *_Atomic listener;
static __thread uint64_t correlation_now, node_now;

__attribute__((visibility("default"))) CUresult cuSimActivity(cusim_activity_fn *tell);
CUresult cuSimActivity(cusim_activity_fn *tell) {
    CUSIM_ENTER_EARLY(cuSimActivity);
    listener = tell;
    return CUDA_SUCCESS;
}

void cusim_activity_call(uint64_t correlation) {
    correlation_now = correlation;
    node_now = 0;
}

void cusim_activity_node(uint64_t node) {
    node_now = node;
}

uint64_t cusim_activity_begin(void) {
    return listener ? cusim_now_ns() : 0;
}

void cusim_activity_end(const struct cusim_work *work, const struct cusim_stream *stream,
                        uint64_t began) {
    cusim_activity_fn *tell = listener;
    struct cusim_activity a = {.start_ns = began,
                               .device = (unsigned)stream->ctx->device->ordinal,
                               .context = stream->ctx->id,
                               .stream = stream->id,
                               .correlation = correlation_now,
                               .node = node_now};
    if (!tell || !began)
        return;
    a.end_ns = cusim_now_ns();
    switch (work->type) {
    case CUSIM_WORK_KERNEL:
        a.kind = CUSIM_ACTIVITY_KERNEL;
        a.name = work->kernel.kernel->name;
        memcpy(a.grid, work->kernel.grid, sizeof a.grid);
        memcpy(a.block, work->kernel.block, sizeof a.block);
        break;
    case CUSIM_WORK_MEMSET:
        a.kind = CUSIM_ACTIVITY_MEMSET;
        a.bytes = work->memset.width * work->memset.height * work->memset.element;
        break;
    case CUSIM_WORK_MEMCPY:
        a.kind = CUSIM_ACTIVITY_MEMCPY;
        a.bytes = work->memcpy.width * work->memcpy.height * work->memcpy.depth;
        break;
    default:
        return;
    }
    tell(&a);
}
