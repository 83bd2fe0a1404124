/*
 * Acts before a call that the assembly then jumps to: rows of the first group of enum cus_act,
 * spare stubs, and the functions of CUPTI.
 *
 * Runs on the program's thread with its argument registers saved. Holds no lock. The depth is 0
 * again when the real function runs.
 */
#define __CUDA_API_VERSION_INTERNAL
#include <stdbool.h>
#include <stddef.h>

#include "shim/base/hazard.h"
#include "shim/hook/act.h"
#include "shim/hook/guard.h"
#include "shim/hook/handles.h"
#include "shim/hook/lifecycle.h"
#include "shim/hook/primary.h"
#include "shim/hook/real.h"
#include "shim/hook/recording.h"
#include "shim/hook/resolve.h"
#include "shim/hook/runtime.h"
#include "shim/keep/keep.h"

#include "shim/base/forbid.h"

bool cus_act_stream(unsigned row, const uint64_t *named, struct cus_stream_ref *ref) {
    int arg = cus_api_rows[row].arg;
    if (arg == CUS_ARG_NONE)
        return false;
    ref->handle = arg == CUS_ARG_NULL_STREAM ? NULL : (CUstream)(uintptr_t)*named;
    ref->abi = cus_api_rows[row].abi;
    return true;
}

void cus_act_flush(unsigned row, const struct cus_stream_ref *ref) {
    if (cus_keeping())
        cus_keep_saw((int)row);
    if (cus_api_rows[row].scope != CUS_SCOPE_NONE)
        cus_engine_flush(cus_api_rows[row].scope, ref, row);
}

static void forget_handles(void) {
    cus_settings_forget(NULL);
    cus_touch_forget();
    cus_runtime_forget();
}

void cus_act_context_goes(unsigned row) {
    cus_act_flush(row, NULL);
    cus_recording_context_goes();
    forget_handles();
    cus_engine_context_gone();
}

/* A core dump shows the launch that failed, and a debugger may examine the program. From here on
 * each kernel is launched when the program asks for it (HAZARDS G12). */
static void look_for_dumps(unsigned row, const struct cus_frame *frame) {
    int flags = cus_api_rows[row].arg;
    uint64_t attribute = flags < 0 ? (uint32_t)cus_frame_argument(frame, 0) : 0;
    bool on = false;
    if (flags >= 0) {
        on = cus_frame_argument(frame, flags) &
             (CU_CTX_COREDUMP_ENABLE | CU_CTX_USER_COREDUMP_ENABLE);
    } else if (attribute == CU_COREDUMP_ENABLE_ON_EXCEPTION ||
               attribute == CU_COREDUMP_ENABLE_USER_TRIGGER) {
        const bool *value = (const bool *)(uintptr_t)cus_frame_argument(frame, 1);
        on = value && *value;
    }
    if (CUS_HAZARD(G12) && on)
        cus_lifecycle_defer_off_later("core dumps of the GPU are switched on");
}

/* True: the program asks for the number of an allocation, which differs from that of memory at the
 * same address before. */
static bool asks_number(unsigned row, const struct cus_frame *frame) {
    if (row == CUS_ROW_cuPointerGetAttribute)
        return (uint32_t)cus_frame_argument(frame, 1) == CU_POINTER_ATTRIBUTE_BUFFER_ID;
    if (row != CUS_ROW_cuPointerGetAttributes)
        return false;
    uint32_t n = (uint32_t)cus_frame_argument(frame, 0);
    const CUpointer_attribute *ids =
        (const CUpointer_attribute *)(uintptr_t)cus_frame_argument(frame, 1);
    for (uint32_t i = 0; ids && i < n; i++)
        if (ids[i] == CU_POINTER_ATTRIBUTE_BUFFER_ID)
            return true;
    return false;
}

/* The most memory that a pool had: deferred frees would show (HAZARDS C2). A pool that another
 * process uses is no longer this one's alone (C1). */
static void look_at_pool(unsigned row, const struct cus_frame *frame) {
    uint64_t a[2] = {cus_frame_argument(frame, 0), cus_frame_argument(frame, 1)};
    uint32_t attribute = (uint32_t)a[1];
    if (row == CUS_ROW_cuMemPoolGetAttribute && (attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH ||
                                                 attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH))
        cus_engine_pool_watched((CUmemoryPool)(uintptr_t)a[0]);
    if (row == CUS_ROW_cuMemPoolExportToShareableHandle)
        cus_engine_pool_shared((CUmemoryPool)(uintptr_t)a[1]);
}

/* The event that a launch attribute of this id names. */
static CUevent event_of_attribute(CUlaunchAttributeID id, const CUlaunchAttributeValue *value) {
    if (!value)
        return NULL;
    if (id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT)
        return value->programmaticEvent.event;
    return id == CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT ? value->launchCompletionEvent.event
                                                             : NULL;
}

static CUevent event_of_params(const CUgraphNodeParams *params) {
    if (!params)
        return NULL;
    if (params->type == CU_GRAPH_NODE_TYPE_EVENT_RECORD)
        return params->eventRecord.event;
    return params->type == CU_GRAPH_NODE_TYPE_WAIT_EVENT ? params->eventWait.event : NULL;
}

/* The event that a call of act EVENT_OWN names; NULL: none. */
static CUevent event_named(unsigned row, const struct cus_frame *frame) {
    uint64_t a[5];
    for (int i = 0; i < 5; i++)
        a[i] = cus_frame_argument(frame, i);
    switch (row) {
    case CUS_ROW_cuGraphEventRecordNodeSetEvent:
    case CUS_ROW_cuGraphEventWaitNodeSetEvent:
    case CUS_ROW_cuIpcGetEventHandle:
        return (CUevent)(uintptr_t)a[1];
    case CUS_ROW_cuGraphExecEventRecordNodeSetEvent:
    case CUS_ROW_cuGraphExecEventWaitNodeSetEvent:
        return (CUevent)(uintptr_t)a[2];
    case CUS_ROW_cuGraphAddEventRecordNode:
    case CUS_ROW_cuGraphAddEventWaitNode:
        return (CUevent)(uintptr_t)a[4];
    case CUS_ROW_cuGraphNodeSetParams:
        return event_of_params((const CUgraphNodeParams *)(uintptr_t)a[1]);
    case CUS_ROW_cuGraphExecNodeSetParams:
        return event_of_params((const CUgraphNodeParams *)(uintptr_t)a[2]);
    case CUS_ROW_cuGraphAddNode:
        return event_of_params((const CUgraphNodeParams *)(uintptr_t)a[4]);
    case CUS_ROW_cuGraphAddNode_v2:
        return event_of_params((const CUgraphNodeParams *)(uintptr_t)cus_frame_argument(frame, 5));
    case CUS_ROW_cuGraphKernelNodeSetAttribute:
        return event_of_attribute((CUlaunchAttributeID)a[1],
                                  (const CUlaunchAttributeValue *)(uintptr_t)a[2]);
    default:
        return NULL;
    }
}

/* The driver knows nothing of a record that is deferred: it comes first (HAZARDS B16). */
static void before_event(unsigned row, const struct cus_frame *frame) {
    CUevent event = event_named(row, frame);
    if (event)
        cus_engine_event_named(event, row);
}

static void before_row(unsigned row, const struct cus_frame *frame) {
    int arg = cus_api_rows[row].arg;
    uint64_t named = arg >= 0 ? cus_frame_argument(frame, arg) : 0;
    void *handle = (void *)(uintptr_t)named;
    struct cus_stream_ref ref;
    enum cus_act act = cus_api_rows[row].act;

    if (act == CUS_ACT_TOUCH) {
        if (cus_touch_first(handle))
            cus_act_flush(row, NULL);
        return;
    }
    if (act == CUS_ACT_GETTER) {
        cus_engine_getter(row);
        return;
    }
    if (act == CUS_ACT_SHOWS) {
        cus_engine_shows(row);
        if (asks_number(row, frame))
            cus_engine_pool_numbers();
        return;
    }
    if (act == CUS_ACT_TAINT) {
        cus_act_flush(row, NULL);
        cus_engine_taint(handle);
        return;
    }
    if (act == CUS_ACT_DUMPS) {
        cus_act_flush(row, NULL);
        return;
    }
    bool named_stream = cus_act_stream(row, &named, &ref);
    cus_act_flush(row, named_stream ? &ref : NULL);
    look_at_pool(row, frame);
    if (row == CUS_ROW_cuPointerSetAttribute) /* new memory has none of its attributes */
        cus_engine_pool_numbers();
    switch (act) {
    case CUS_ACT_MEMORY:
        cus_engine_memory_gone();
        if (row == CUS_ROW_cuMemPoolDestroy) {
            cus_engine_pool_goes((CUmemoryPool)(uintptr_t)cus_frame_argument(frame, 0));
        } else {
            cus_engine_memory_going(cus_frame_argument(frame, 0));
            cus_engine_pool_memory_gone(cus_frame_argument(frame, 0));
        }
        break;
    case CUS_ACT_CODE:
        forget_handles();
        cus_engine_code_gone();
        if (cus_engine_asks_library())
            cus_engine_code_unloaded((void *)(uintptr_t)cus_frame_argument(frame, 0));
        break;
    case CUS_ACT_GONE:
        cus_settings_forget(handle);
        cus_engine_stream_gone(&ref);
        break;
    case CUS_ACT_EVENT_OWN:
        before_event(row, frame);
        break;
    case CUS_ACT_COUNT:
        cus_lifecycle_count_graph_launch();
        cus_lifecycle_tick(row);
        break;
    case CUS_ACT_GRAPHICS:
        cus_lifecycle_defer_off("a graphics API shares memory with the program");
        break;
    default:
        break;
    }
}

static void before_spare(unsigned index) {
    if (cus_keeping())
        cus_keep_saw(-1);
    cus_engine_flush(CUS_SCOPE_P, NULL, CUS_CAUSE_UNKNOWN_API);
    cus_engine_unknown_call();
    if (cus_spare_kind(index) == CUS_SPARE_GRAPHICS)
        cus_lifecycle_defer_off("a graphics API shares memory with the program");
}

/* The thread does not come back here after the real call, so it leaves the gate now. */
static void pass_gate(struct cus_guard *guard) {
    if (guard->gated)
        cus_gate_pass();
    guard->gated = false;
}

void *cus_entry_before(uint32_t entry, const struct cus_frame *frame) {
    if (entry >= CUS_ENTRY_CUPTI_FIRST) {
        int which = (int)(entry - CUS_ENTRY_CUPTI_FIRST);
        void *real = cus_cupti_real(which, (const void *)(uintptr_t)frame->return_address);
        cus_cupti_before(which, frame);
        return real;
    }
    if (entry >= CUS_ENTRY_SPARE_FIRST) {
        unsigned index = entry - CUS_ENTRY_SPARE_FIRST, kind = cus_spare_kind(index);
        struct cus_guard guard;
        /* Programs look functions up before cuInit, too. */
        if (kind == CUS_SPARE_LOOK_UP)
            cus_lifecycle_defer_off_later(
                "the program looks functions up by a call that this library does not know");
        if (kind >= CUS_SPARE_CUPTI_FIRST) {
            cus_cupti_before((int)(kind - CUS_SPARE_CUPTI_FIRST), frame);
        } else if (cus_guard_enter(&guard)) {
            before_spare(index);
            pass_gate(&guard);
            cus_guard_leave(&guard);
        }
        return cus_spare_function(index);
    }
    if (!cus_real_find())
        return (void *)cus_real_absent;
    /* The program may set global attributes before cuInit. */
    if (cus_api_rows[entry].act == CUS_ACT_DUMPS)
        look_for_dumps(entry, frame);
    struct cus_guard guard;
    /* A row that is called and not jumped to comes here only while the library is not on. */
    if (cus_api_rows[entry].act < CUS_ACT_FIRST_CALL && cus_guard_enter(&guard)) {
        before_row(entry, frame);
        pass_gate(&guard);
        cus_guard_leave(&guard);
    }
    return __atomic_load_n(&cus_real_functions[entry], __ATOMIC_RELAXED);
}
