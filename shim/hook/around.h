/*
 * A call that needs work afterwards, and what all such calls share. Private to around.c and
 * around_events.c.
 */
#ifndef CUSPLICE_HOOK_AROUND_H
#define CUSPLICE_HOOK_AROUND_H

#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <stddef.h>

#include "shim/hook/act.h"
#include "shim/hook/guard.h"

typedef CUresult six_fn(uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4,
                        uint64_t a5);

struct call {
    unsigned row;
    const uint64_t *a; /* six arguments */
    six_fn *real;
    bool has_stream;
    struct cus_stream_ref ref; /* valid if has_stream */
    struct cus_guard *guard;
};

static inline CUresult pass_on(const struct call *call) {
    const uint64_t *a = call->a;
    return call->real(a[0], a[1], a[2], a[3], a[4], a[5]);
}

static inline const struct cus_stream_ref *stream_of(const struct call *call) {
    return call->has_stream ? &call->ref : NULL;
}

static inline void flush(const struct call *call) {
    cus_act_flush(call->row, stream_of(call));
}

/* ---- around_events.c ---- */

CUresult cus_around_event_made(const struct call *call);
CUresult cus_around_event_goes(const struct call *call);
CUresult cus_around_record(const struct call *call);
CUresult cus_around_wait(const struct call *call);
CUresult cus_around_poll(const struct call *call);

#endif
