/*
 * Calls about events: records and waits that may be ops, and what must be issued before an event is
 * looked at. around.c calls it, on the program's thread at depth 1, with no lock held.
 */
#include "shim/hook/around.h"

#include "shim/base/hazard.h"
#include "shim/keep/keep.h"

#include "shim/base/forbid.h"

CUresult cus_around_event_made(const struct call *call) {
    CUresult result = pass_on(call);
    /* The record of an event that another process may use shows there. */
    if (result == CUDA_SUCCESS && !((unsigned)call->a[1] & CU_EVENT_INTERPROCESS))
        cus_engine_event_made(*(const CUevent *)(uintptr_t)call->a[0]);
    return result;
}

CUresult cus_around_event_goes(const struct call *call) {
    if (cus_api_rows[call->row].kind != CUS_CLASS_EVENT)
        flush(call);
    bool later = cus_engine_event_goes((CUevent)(uintptr_t)call->a[0], call->row);
    return later ? CUDA_SUCCESS : pass_on(call);
}

/* Before the own call, which names an event. */
static void flush_for(const struct call *call, CUevent event) {
    if (cus_keeping())
        cus_keep_saw((int)call->row);
    cus_engine_flush_event(&call->ref, event, call->row);
}

CUresult cus_around_record(const struct call *call) {
    bool with_flags = call->row == CUS_ROW_cuEventRecordWithFlags ||
                      call->row == CUS_ROW_cuEventRecordWithFlags_ptsz;
    struct cus_record record = {.stream = call->ref,
                                .event = (CUevent)(uintptr_t)call->a[0],
                                .with_flags = with_flags,
                                .real = (void *)call->real};
    unsigned flags = with_flags ? (unsigned)call->a[2] : 0;
    bool may = cus_engine_record_begins(&record, flags, call->row);
    if (may && !cus_keeping())
        return cus_engine_record(&record);
    flush_for(call, flags ? NULL : record.event);
    CUresult result = pass_on(call);
    if (result == CUDA_SUCCESS)
        cus_engine_recorded(&record);
    return result;
}

CUresult cus_around_wait(const struct call *call) {
    struct cus_wait wait = {.stream = call->ref,
                            .event = (CUevent)(uintptr_t)call->a[1],
                            .real = (void *)call->real,
                            .row = call->row};
    bool plain = !(uint32_t)call->a[2];
    CUresult result;
    if (plain && cus_engine_wait_passes(&wait))
        return pass_on(call);
    if (plain && !cus_keeping() && cus_engine_wait(&wait, &result))
        return result;
    if (plain) {
        flush_for(call, wait.event);
        cus_engine_event_seen(wait.event, call->row);
    } else { /* the wait becomes a node of a graph that the program captures */
        flush(call);
        cus_engine_event_named(wait.event, call->row);
    }
    result = pass_on(call);
    if (plain && result == CUDA_SUCCESS)
        cus_engine_waited(&wait);
    return result;
}

/* The driver knows nothing of a record that is deferred: it comes first. */
CUresult cus_around_poll(const struct call *call) {
    bool times =
        call->row == CUS_ROW_cuEventElapsedTime || call->row == CUS_ROW_cuEventElapsedTime_v2;
    if (!times && cus_engine_event_withheld((CUevent)(uintptr_t)call->a[0])) {
        flush(call);
        return CUDA_ERROR_NOT_READY;
    }
    cus_engine_event_seen((CUevent)(uintptr_t)call->a[times], call->row);
    if (times)
        cus_engine_event_seen((CUevent)(uintptr_t)call->a[2], call->row);
    CUresult result = pass_on(call);
    if (!CUS_HAZARD(B11) || result == CUDA_ERROR_NOT_READY)
        flush(call);
    return result;
}
