/*
 * Makes the calls that need work afterwards: rows of the second group of enum cus_act. Each takes
 * at most six integer or pointer arguments (a test compares the table with cuda.h), so one function
 * makes them all. The bits above a narrow argument are passed on unchanged.
 *
 * Runs on the program's thread at depth 1, also during the real call: what the driver calls back
 * goes straight to the driver. Holds no lock over the real call.
 */
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <stddef.h>

#include "shim/base/clock.h"
#include "shim/base/hazard.h"
#include "shim/hook/around.h"
#include "shim/hook/guard.h"
#include "shim/hook/handles.h"
#include "shim/hook/lifecycle.h"
#include "shim/hook/load.h"
#include "shim/hook/primary.h"
#include "shim/hook/real.h"
#include "shim/hook/recording.h"
#include "shim/hook/runtime.h"
#include "shim/keep/keep.h"
#include "shim/stream/streams.h"

#include "shim/base/forbid.h"

/* Called after the host has waited. If the wait succeeded, returns the error of a deferred op,
 * if any. */
static CUresult waited(const struct call *call, CUresult result) {
    return result == CUDA_SUCCESS ? cus_engine_take_error(stream_of(call), call->row) : result;
}

static void leave_gate(const struct call *call) {
    if (call->guard->gated)
        cus_gate_leave();
    call->guard->gated = false;
}

/* The end of work on a per-thread stream is noted in a rest, too: only its thread can ask it. */
static bool is_own(const struct call *call) {
    return call->has_stream && cus_ref_is_per_thread(call->ref);
}

/* The step ends before the host waits: the work at its end costs no time while the host waits. */
static CUresult around_sync(const struct call *call) {
    bool copies = cus_api_rows[call->row].arg == CUS_ARG_NULL_STREAM;
    bool whole = call->row == CUS_ROW_cuCtxSynchronize;
    bool rests = cus_rests();
    if (rests && cus_lifecycle_tick(call->row) && !copies && !whole && !is_own(call))
        return pass_on(call);
    flush(call);
    if (call->row == CUS_ROW_cuEventSynchronize)
        cus_engine_event_seen((CUevent)(uintptr_t)call->a[0], call->row);
    cus_engine_step_end(stream_of(call));
    cus_recording_attend();
    if (!rests)
        cus_lifecycle_tick(call->row); /* what this thread deferred is issued */
    if (copies)
        cus_engine_copying(true);
    else
        leave_gate(call); /* a thread that only waits disturbs no other thread */
    uint32_t number = whole ? cus_engine_wait_begins() : 0;
    uint64_t began = cus_clock_ns();
    CUresult result = pass_on(call);
    cus_engine_wait_took(stream_of(call), cus_clock_ns() - began);
    if (copies)
        cus_engine_copying(false);
    if (whole && result == CUDA_SUCCESS) {
        cus_engine_wait_ended(number);
        cus_engine_pool_waited(number);
    }
    return waited(call, result);
}

static CUresult around_query(const struct call *call) {
    if (cus_rests() && !is_own(call))
        return pass_on(call);
    if (CUS_HAZARD(F8))
        flush(call);
    CUresult result = pass_on(call);
    if (result == CUDA_SUCCESS) {
        cus_engine_step_end(stream_of(call));
        cus_recording_attend();
    }
    if (result == CUDA_ERROR_NOT_READY)
        cus_engine_flush(CUS_SCOPE_T, stream_of(call), call->row);
    return waited(call, result);
}

/* True: the call writes a device address to where its first argument points. */
static bool gives_address(unsigned row) {
    switch (row) {
    case CUS_ROW_cuMemAlloc_v2:
    case CUS_ROW_cuMemAllocPitch_v2:
        return true;
    default:
        return false;
    }
}

/* 0: unknown, or the memory is not on the device alone. */
static uint64_t bytes_wanted(const struct call *call) {
    switch (call->row) {
    case CUS_ROW_cuMemAlloc_v2:
    case CUS_ROW_cuMemAllocAsync:
    case CUS_ROW_cuMemAllocAsync_ptsz:
    case CUS_ROW_cuMemAllocFromPoolAsync:
    case CUS_ROW_cuMemAllocFromPoolAsync_ptsz:
    case CUS_ROW_cuMemCreate:
        return call->a[1];
    default:
        return 0;
    }
}

/* The program's streams and graphs take memory of the driver's pools, as the library's do. */
static void note_room(unsigned row) {
    switch (row) {
    case CUS_ROW_cuStreamCreate:
    case CUS_ROW_cuStreamCreateWithPriority:
        cus_engine_room_taken(false);
        break;
    case CUS_ROW_cuGraphInstantiate:
    case CUS_ROW_cuGraphInstantiate_v2:
    case CUS_ROW_cuGraphInstantiateWithFlags:
    case CUS_ROW_cuGraphInstantiateWithParams:
    case CUS_ROW_cuGraphInstantiateWithParams_ptsz:
        cus_engine_room_taken(true);
        break;
    default:
        break;
    }
}

/* The program's memory has priority over the library's (HAZARDS C14). */
static CUresult around_alloc(const struct call *call) {
    flush(call);
    if (call->row == CUS_ROW_cuMemAlloc_v2 && call->a[0] && cus_engine_cannot_fit(call->a[1]))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = pass_on(call);
    if (CUS_HAZARD(C14) && result == CUDA_ERROR_OUT_OF_MEMORY &&
        cus_engine_give_memory_back(bytes_wanted(call)))
        result = pass_on(call);
    if (result == CUDA_SUCCESS)
        note_room(call->row);
    if (result == CUDA_SUCCESS && gives_address(call->row) && call->a[0])
        cus_engine_memory_made(*(const CUdeviceptr *)(uintptr_t)call->a[0]);
    return result;
}

/* ---- stream-ordered memory ---- */

static CUmemoryPool pool_named(const struct call *call) {
    bool named = call->row == CUS_ROW_cuMemAllocFromPoolAsync ||
                 call->row == CUS_ROW_cuMemAllocFromPoolAsync_ptsz;
    return named ? (CUmemoryPool)(uintptr_t)call->a[2] : NULL;
}

static CUresult around_alloc_async(const struct call *call) {
    CUmemoryPool pool = pool_named(call);
    CUdeviceptr *out = (CUdeviceptr *)(uintptr_t)call->a[0];
    uint64_t reused = 0;
    enum cus_alloc how = out && call->a[1]
                             ? cus_engine_alloc_begins(&call->ref, pool, call->a[1], &reused)
                             : CUS_ALLOC_FLUSH;
    if (how == CUS_ALLOC_FLUSH)
        flush(call);
    else if (cus_keeping())
        cus_keep_saw((int)call->row);
    if (how == CUS_ALLOC_REUSED) {
        *out = reused;
        return CUDA_SUCCESS;
    }
    bool deferred = cus_engine_frees();
    CUresult result = pass_on(call);
    if (result == CUDA_ERROR_OUT_OF_MEMORY && cus_engine_alloc_failed(call->row, deferred))
        result = pass_on(call);
    if (CUS_HAZARD(C14) && result == CUDA_ERROR_OUT_OF_MEMORY &&
        cus_engine_give_memory_back(bytes_wanted(call)))
        result = pass_on(call);
    if (result == CUDA_SUCCESS && out) {
        cus_engine_memory_made(*out);
        cus_engine_alloc_made(&call->ref, pool, *out, call->a[1]);
    }
    return result;
}

static CUresult around_free_async(const struct call *call) {
    enum cus_free how = cus_engine_free(&call->ref, call->a[0]);
    if (how == CUS_FREE_FLUSH)
        flush(call);
    else if (cus_keeping())
        cus_keep_saw((int)call->row);
    if (how == CUS_FREE_DEFERRED)
        return CUDA_SUCCESS;
    cus_engine_memory_going(call->a[0]);
    return pass_on(call);
}

static CUresult around_pool_made(const struct call *call) {
    flush(call);
    CUresult result = pass_on(call);
    if (result == CUDA_SUCCESS)
        cus_engine_pool_made(*(const CUmemoryPool *)(uintptr_t)call->a[0],
                             (const CUmemPoolProps *)(uintptr_t)call->a[1]);
    return result;
}

/* ---- setters ---- */

static void put_value(struct cus_setting_call *setting, const void *value, uint32_t bytes) {
    memcpy(setting->value, value, bytes);
    setting->bytes = bytes;
}

/* Fills in the function, the attribute, the device or context, and the value of a setter's call. */
static void function_setting(const struct call *call, struct cus_setting_call *setting) {
    const uint64_t *a = call->a;
    uint64_t attribute = 0, value = 0;
    CUcontext context = NULL;
    switch (call->row) {
    case CUS_ROW_cuFuncSetAttribute: /* function, attribute, value */
        attribute = a[1], value = a[2];
        break;
    case CUS_ROW_cuKernelSetAttribute: /* attribute, value, kernel, device */
        attribute = a[0], value = a[1];
        break;
    default: /* function or kernel, value; for a kernel then its device */
        value = a[1];
        break;
    }
    if (call->row == CUS_ROW_cuKernelSetAttribute) {
        setting->place = a[3] & 0xffffffffu;
    } else if (call->row == CUS_ROW_cuKernelSetCacheConfig) {
        setting->place = a[2] & 0xffffffffu;
    } else {
        CUS_REAL(cuCtxGetCurrent)(&context);
        setting->place = (uint64_t)(uintptr_t)context;
    }
    uint32_t low = (uint32_t)value;
    setting->handle = (const void *)(uintptr_t)a[cus_api_rows[call->row].arg];
    setting->attribute = (uint64_t)call->row << 32 | (attribute & 0xffffffffu);
    put_value(setting, &low, sizeof low);
}

static CUresult around_set_function(const struct call *call) {
    struct cus_setting_call setting = {0};
    function_setting(call, &setting);
    if (cus_settings_same(&setting))
        return pass_on(call);
    cus_act_flush(call->row, NULL);
    CUresult result = pass_on(call);
    if (result == CUDA_SUCCESS) {
        cus_settings_remember(&setting);
        cus_engine_function_changed(setting.handle);
    }
    return result;
}

/* The rest of the union is undefined, so only the attribute's own bytes are compared. 0: an
 * unknown attribute, which always counts as new. */
static uint32_t attribute_bytes(CUstreamAttrID id) {
    const CUstreamAttrValue *value = NULL;
    switch (id) {
    case CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW:
        return sizeof value->accessPolicyWindow;
    case CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY:
        return sizeof value->syncPolicy;
    case CU_STREAM_ATTRIBUTE_PRIORITY:
        return sizeof value->priority;
    case CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
        return sizeof value->memSyncDomainMap;
    case CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN:
        return sizeof value->memSyncDomain;
    default:
        return 0;
    }
}

static CUresult around_set_stream(const struct call *call) {
    const CUstreamAttrValue *value = (const CUstreamAttrValue *)(uintptr_t)call->a[2];
    CUstreamAttrID id = (CUstreamAttrID)call->a[1];
    struct cus_setting_call setting = {0};
    uint32_t bytes = value ? attribute_bytes(id) : 0;
    /* Handles up to 2 mean another stream in each context, and the per-thread handle means
     * another stream in each thread. Hence nothing is remembered of them. */
    if (bytes && bytes <= sizeof setting.value && call->a[0] > 2) {
        setting.handle = (const void *)(uintptr_t)call->a[0];
        setting.attribute = (uint64_t)CUS_ROW_cuStreamSetAttribute << 32 | (uint32_t)id;
        put_value(&setting, value, bytes);
    }
    if (cus_settings_same(&setting))
        return pass_on(call);
    flush(call);
    CUresult result = pass_on(call);
    if (result == CUDA_SUCCESS) {
        cus_settings_remember(&setting);
        cus_engine_stream_changed(stream_of(call));
    }
    return result;
}

static CUresult around_copy_stream(const struct call *call) {
    flush(call);
    CUresult result = pass_on(call);
    if (result == CUDA_SUCCESS) {
        if (call->a[0])
            cus_settings_forget((const void *)(uintptr_t)call->a[0]);
        cus_engine_stream_changed(stream_of(call));
    }
    return result;
}

static void note_pools(const struct call *call) {
    CUmemPool_attribute attribute = (CUmemPool_attribute)call->a[1];
    if (call->row == CUS_ROW_cuDeviceSetMemPool || call->row == CUS_ROW_cuMemSetMemPool)
        cus_engine_pool_set();
    if (call->row == CUS_ROW_cuMemPoolSetAttribute &&
        (attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH ||
         attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH))
        cus_engine_pool_watched((CUmemoryPool)(uintptr_t)call->a[0]);
}

static CUresult around_epoch(const struct call *call) {
    flush(call);
    CUresult result = pass_on(call);
    if (result == CUDA_SUCCESS) {
        cus_engine_function_changed(NULL);
        cus_engine_limits_changed();
        note_pools(call);
    }
    return result;
}

/* ---- handles ---- */

/* A function or module comes from the code of the handle from which it was made. */
static void note_origin(const void *made, uint64_t from) {
    if (made && cus_engine_asks_library())
        cus_engine_code_made(made, (const void *)(uintptr_t)from);
}

static void note_first(const struct call *call, enum cus_handle kind) {
    void *const *made = (void *const *)(uintptr_t)call->a[0];
    if (made && *made) {
        cus_engine_note_handle(*made, kind);
        note_origin(*made, call->a[1]);
    }
}

/* The driver writes as many entries as there are, and no more than there is room for. */
static void note_list(const struct call *call, enum cus_handle kind) {
    void *const *made = (void *const *)(uintptr_t)call->a[0];
    unsigned room = (unsigned)call->a[1], count = 0;
    CUresult result = CUDA_ERROR_NOT_FOUND;
    if (kind == CUS_HANDLE_FUNCTION && cus_real_has(CUS_ROW_cuModuleGetFunctionCount))
        result = CUS_REAL(cuModuleGetFunctionCount)(&count, (CUmodule)(uintptr_t)call->a[2]);
    else if (kind == CUS_HANDLE_KERNEL && cus_real_has(CUS_ROW_cuLibraryGetKernelCount))
        result = CUS_REAL(cuLibraryGetKernelCount)(&count, (CUlibrary)(uintptr_t)call->a[2]);
    for (unsigned i = 0; result == CUDA_SUCCESS && made && i < room && i < count; i++) {
        cus_engine_note_handle(made[i], kind);
        note_origin(made[i], call->a[2]);
    }
}

static CUresult around_handles(const struct call *call, enum cus_act act) {
    if (act != CUS_ACT_KERNEL_FUNCTION || cus_touch_first((const void *)(uintptr_t)call->a[1]))
        cus_act_flush(call->row, NULL);
    CUresult result = pass_on(call);
    if (result != CUDA_SUCCESS)
        return result;
    if (act == CUS_ACT_LIST_FUNCTIONS)
        note_list(call, CUS_HANDLE_FUNCTION);
    else if (act == CUS_ACT_LIST_KERNELS)
        note_list(call, CUS_HANDLE_KERNEL);
    else if (act == CUS_ACT_NOTE_MODULE)
        note_origin(*(void *const *)(uintptr_t)call->a[0], call->a[1]);
    else
        note_first(call, act == CUS_ACT_NOTE_KERNEL ? CUS_HANDLE_KERNEL : CUS_HANDLE_FUNCTION);
    return result;
}

/* ---- primary contexts ---- */

/* The call may make the context, which may wait (HAZARDS C5). If the context exists, the call
 * returns at once, as measured. */
static CUresult around_retain(const struct call *call) {
    struct cus_primary before = cus_primary_retains((CUdevice)call->a[1]);
    if (before.state != CUS_PRIMARY_ACTIVE)
        flush(call);
    CUresult result = pass_on(call);
    const CUcontext *context = (const CUcontext *)(uintptr_t)call->a[0];
    if (result == CUDA_SUCCESS && context)
        cus_primary_retained(&before, *context);
    return result;
}

/* Of the calls that end a context, one names it. */
static CUresult around_context(const struct call *call) {
    bool known = false;
    CUcontext named = (CUcontext)(uintptr_t)call->a[0];
    if (call->row == CUS_ROW_cuDevicePrimaryCtxReset ||
        call->row == CUS_ROW_cuDevicePrimaryCtxReset_v2)
        cus_primary_forget((CUdevice)call->a[0]);
    cus_act_context_goes(call->row);
    if (call->row == CUS_ROW_cuCtxDestroy || call->row == CUS_ROW_cuCtxDestroy_v2)
        known = cus_engine_context_goes(named);
    leave_gate(call); /* it may wait for the GPU */
    CUresult result = pass_on(call);
    if (known && result != CUDA_SUCCESS)
        cus_engine_context_stays(named);
    return result;
}

/* A release was expected to leave the context, yet the context ended: somebody released a hold
 * unseen. */
static void has_ended(CUcontext context) {
    cus_settings_forget(NULL);
    cus_touch_forget();
    cus_runtime_forget();
    cus_engine_context_ended(context);
}

/* A release that does not end the context changes nothing. */
static CUresult around_release(const struct call *call) {
    CUdevice device = (CUdevice)call->a[0];
    bool others = cus_primary_releases(device);
    if (!others)
        cus_act_context_goes(call->row);
    CUresult result = pass_on(call);
    CUcontext ended = cus_primary_released(device, result == CUDA_SUCCESS);
    if (others && ended)
        has_ended(ended);
    return result;
}

static CUresult around_load(const struct call *call) {
    bool by_name = call->row == CUS_ROW_cuModuleLoad;
    const void *source = (const void *)(uintptr_t)call->a[1];
    cus_load_begins(call->row);
    CUresult result = pass_on(call);
    if (result == CUDA_SUCCESS)
        cus_load_ended(*(void *const *)(uintptr_t)call->a[0], by_name ? NULL : source,
                       by_name ? source : NULL);
    return result;
}

static CUresult around(const struct call *call) {
    CUresult result;
    enum cus_act act = cus_api_rows[call->row].act;
    switch (act) {
    case CUS_ACT_SYNC:
        return around_sync(call);
    case CUS_ACT_QUERY:
        return around_query(call);
    case CUS_ACT_POLL:
        return cus_around_poll(call);
    case CUS_ACT_EVENT_MADE:
        return cus_around_event_made(call);
    case CUS_ACT_EVENT_GOES:
        return cus_around_event_goes(call);
    case CUS_ACT_POOL_MADE:
        return around_pool_made(call);
    case CUS_ACT_RECORD:
    case CUS_ACT_RECORD_FLAGS:
        return cus_around_record(call);
    case CUS_ACT_WAIT:
        return cus_around_wait(call);
    case CUS_ACT_ALLOC:
        return around_alloc(call);
    case CUS_ACT_ALLOC_ASYNC:
        return around_alloc_async(call);
    case CUS_ACT_FREE_ASYNC:
        return around_free_async(call);
    case CUS_ACT_EPOCH:
        return around_epoch(call);
    case CUS_ACT_SET_FUNCTION:
        return around_set_function(call);
    case CUS_ACT_SET_STREAM:
        return around_set_stream(call);
    case CUS_ACT_COPY_STREAM:
        return around_copy_stream(call);
    case CUS_ACT_NOTE_FUNCTION:
    case CUS_ACT_NOTE_KERNEL:
    case CUS_ACT_KERNEL_FUNCTION:
    case CUS_ACT_NOTE_MODULE:
    case CUS_ACT_LIST_FUNCTIONS:
    case CUS_ACT_LIST_KERNELS:
        return around_handles(call, act);
    case CUS_ACT_LOAD:
        return around_load(call);
    case CUS_ACT_RETAIN:
        return around_retain(call);
    case CUS_ACT_CONTEXT:
        return around_context(call);
    case CUS_ACT_RELEASE:
        return around_release(call);
    case CUS_ACT_BEGIN:
        flush(call);
        cus_engine_capture_begins();
        result = pass_on(call);
        cus_engine_capture_tried();
        if (result == CUDA_SUCCESS)
            cus_engine_capture_began(stream_of(call));
        return result;
    case CUS_ACT_END:
        result = pass_on(call);
        cus_engine_capture_ended(stream_of(call));
        return result;
    default:
        flush(call);
        return pass_on(call);
    }
}

unsigned cus_entry_around(uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4,
                          uint64_t a5, uint64_t row) {
    if (!cus_real_find())
        return cus_real_absent();
    const uint64_t a[6] = {a0, a1, a2, a3, a4, a5};
    struct call call = {
        .row = (unsigned)row,
        .a = a,
        .real = (six_fn *)__atomic_load_n(&cus_real_functions[row], __ATOMIC_RELAXED),
    };
    struct cus_guard guard;
    if (!cus_guard_enter(&guard)) {
        if (cus_api_rows[row].act == CUS_ACT_RELEASE)
            cus_primary_forget((CUdevice)a0);
        return pass_on(&call);
    }
    call.guard = &guard;
    int arg = cus_api_rows[row].arg;
    if (cus_api_rows[row].act < CUS_ACT_LOAD || cus_api_rows[row].act > CUS_ACT_LIST_KERNELS)
        call.has_stream = cus_act_stream(call.row, arg >= 0 ? &a[arg] : NULL, &call.ref);
    unsigned result = around(&call);
    if (result != CUDA_SUCCESS)
        cus_engine_failed((CUresult)result);
    cus_guard_leave(&guard);
    return result;
}
