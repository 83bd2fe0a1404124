/*
 * The driver's table: streams, contexts, functions, memory and attributes, as the trace has them.
 * The engine calls it, one thread at a time. It never loads libcuda, and executes nothing.
 */
#include "tools/whatif/driver.h"

#include <stdlib.h>
#include <string.h>

#include "shim/base/uthash.h"
#include "shim/graph/issue.h"
#include "tools/whatif/clock.h"

enum {
    FIRST_CONTEXT = 0x1000,
    CONTEXTS_KEPT = 16,
    HANDLES = 64,
    ARGUMENTS_MAX = CUS_ISSUE_PARAMS_MAX
};

/* Handles of streams: 0 to 2 are the driver's own; those of the trace are told apart by their
 * contexts; those that no program has. */
#define CONTEXT_BITS(context) ((uintptr_t)((context)&0x7fff) << 48)
#define NAMELESS ((uintptr_t)1 << 63)
#define OWN (NAMELESS | (uintptr_t)1 << 62)

/* What a handle means now. */
struct named {
    CUstream handle;
    const struct cst_stream *stream;
    UT_hash_handle hh;
};

/* A function: kinds with one handle, one name and one layout. */
struct function {
    const struct cst_kind *kind; /* with the layout, if any of them has it */
    CUfunction handle;
    struct function *next; /* of the same handle in the trace */
    uint64_t recorded;     /* that handle */
    UT_hash_handle hh;
};

struct stream {
    bool used, captures;
};

static struct {
    const struct cst_trace *trace;
    struct stream *streams; /* by id */
    struct named *named;
    struct function **functions; /* by kind */
    struct function *by_handle;
    uint32_t n_capturing;
    uint32_t *devices; /* of contexts, by number */
    uint32_t n_contexts;
    uintptr_t made; /* streams of the engine's own */
    struct whatif_now now;
    uint32_t pushed[CONTEXTS_KEPT], n_pushed;
    CUstreamCaptureMode mode;
} here;

/* ---- contexts and streams ---- */

static CUcontext context_of(uint32_t number) {
    return number ? (CUcontext)((uintptr_t)FIRST_CONTEXT * number) : NULL;
}

CUstream whatif_driver_stream(const struct cst_stream *stream) {
    bool unknown = stream->kind == CST_STREAM_UNKNOWN;
    if (stream->kind == CST_STREAM_LEGACY || (unknown && stream->handle < 2))
        return CU_STREAM_LEGACY;
    if (stream->kind == CST_STREAM_PER_THREAD || (unknown && stream->handle == 2))
        return CU_STREAM_PER_THREAD;
    if (stream->handle <= 2 || stream->handle >> 48)
        return (CUstream)(NAMELESS | (uintptr_t)stream->id << 4);
    return (CUstream)((uintptr_t)stream->handle | CONTEXT_BITS(stream->context));
}

/* NULL: the engine's own, or a default stream. */
static const struct cst_stream *recorded(CUstream handle) {
    struct named *entry;
    HASH_FIND_PTR(here.named, &handle, entry);
    return entry ? entry->stream : NULL;
}

void whatif_driver_use(const struct cst_stream *stream) {
    CUstream handle = whatif_driver_stream(stream);
    struct named *entry;
    if (here.streams[stream->id].used || (uintptr_t)handle <= 2)
        return;
    here.streams[stream->id].used = true;
    HASH_FIND_PTR(here.named, &handle, entry);
    if (!entry) {
        entry = whatif_need(calloc(1, sizeof *entry));
        entry->handle = handle;
#undef uthash_nonfatal_oom
#define uthash_nonfatal_oom(element) (_Exit(WHATIF_NO_MEMORY))
        HASH_ADD_PTR(here.named, handle, entry);
    }
    entry->stream = stream;
}

static CUresult ctx_get_current(CUcontext *context) {
    *context = context_of(here.now.context);
    return CUDA_SUCCESS;
}

static CUresult ctx_push(CUcontext context) {
    if (here.n_pushed == CONTEXTS_KEPT)
        return CUDA_ERROR_INVALID_CONTEXT;
    here.pushed[here.n_pushed++] = here.now.context;
    here.now.context = (uint32_t)((uintptr_t)context / FIRST_CONTEXT);
    return CUDA_SUCCESS;
}

static CUresult ctx_pop(CUcontext *context) {
    *context = context_of(here.now.context);
    if (!here.n_pushed)
        return CUDA_ERROR_INVALID_CONTEXT;
    here.now.context = here.pushed[--here.n_pushed];
    return CUDA_SUCCESS;
}

static CUresult ctx_get_device(CUdevice *device) {
    *device = here.now.context < here.n_contexts ? (CUdevice)here.devices[here.now.context] : 0;
    return CUDA_SUCCESS;
}

static CUresult stream_get_flags(CUstream handle, unsigned *flags) {
    const struct cst_stream *stream = recorded(handle);
    *flags = stream ? stream->flags : 0;
    return CUDA_SUCCESS;
}

static CUresult stream_get_priority(CUstream handle, int *priority) {
    const struct cst_stream *stream = recorded(handle);
    *priority = stream ? stream->priority : 0;
    return CUDA_SUCCESS;
}

static CUresult stream_get_id(CUstream handle, unsigned long long *id) {
    *id = (unsigned long long)(uintptr_t)handle;
    return CUDA_SUCCESS;
}

static CUresult stream_get_ctx(CUstream handle, CUcontext *context) {
    const struct cst_stream *stream = recorded(handle);
    *context = context_of(stream ? stream->context : here.now.context);
    return CUDA_SUCCESS;
}

/* While a blocking stream captures, the legacy stream must not be asked. */
static CUresult stream_is_capturing(CUstream handle, CUstreamCaptureStatus *status) {
    const struct cst_stream *stream = recorded(handle);
    *status = CU_STREAM_CAPTURE_STATUS_NONE;
    if (stream && (here.streams[stream->id].captures || stream == here.now.captures))
        *status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
    if (stream || !here.n_capturing || handle != CU_STREAM_LEGACY)
        return CUDA_SUCCESS;
    for (uint32_t id = 0; id < here.trace->n_streams; id++) {
        const struct cst_stream *other = here.trace->streams[id];
        if (other && here.streams[id].captures && other->context == here.now.context &&
            (other->kind != CST_STREAM_CREATED || !(other->flags & CU_STREAM_NON_BLOCKING)))
            return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
    return CUDA_SUCCESS;
}

/* When the GPU had nothing to do is not recorded: as with trust_driver there is always room. */
static CUresult stream_query(CUstream handle) {
    (void)handle;
    return CUDA_SUCCESS;
}

static CUresult stream_create(CUstream *handle, unsigned flags, int priority) {
    (void)flags, (void)priority;
    *handle = (CUstream)(OWN | ++here.made << 4);
    return CUDA_SUCCESS;
}

static CUresult stream_destroy(CUstream handle) {
    (void)handle;
    return CUDA_SUCCESS;
}

static CUresult exchange_mode(CUstreamCaptureMode *mode) {
    CUstreamCaptureMode before = here.mode;
    here.mode = *mode;
    *mode = before;
    return CUDA_SUCCESS;
}

uint32_t whatif_driver_captures(const struct cst_stream *stream, bool on) {
    struct stream *it = &here.streams[stream->id];
    if (it->captures != on)
        here.n_capturing += on ? 1 : -1u;
    it->captures = on;
    return here.n_capturing;
}

bool whatif_driver_is_capturing(const struct cst_stream *stream) {
    return here.streams[stream->id].captures || stream == here.now.captures;
}

void whatif_driver_now(const struct whatif_now *now) {
    here.now = *now;
    here.n_pushed = 0;
}

uint32_t whatif_driver_elsewhere(void) {
    return here.n_contexts + 1;
}

/* ---- functions ---- */

/* Do its ops have params, where the kind says? */
static bool readable(const struct cst_kind *kind) {
    if (kind->flags & CST_KIND_OPAQUE || kind->n_arguments >= ARGUMENTS_MAX)
        return false;
    const struct cst_argument *arguments = cst_kind_arguments(kind);
    for (uint32_t i = 0; i < kind->n_arguments; i++)
        if ((uint64_t)arguments[i].offset + arguments[i].bytes > kind->param_bytes)
            return false;
    return true;
}

/* What nothing is known of may be anything. */
static bool same_function(const struct cst_kind *a, const struct cst_kind *b) {
    if (a->name && b->name && a->name != b->name)
        return false;
    if (!readable(a) || !readable(b))
        return true;
    return a->n_arguments == b->n_arguments &&
           memcmp(cst_kind_arguments(a), cst_kind_arguments(b),
                  a->n_arguments * sizeof(struct cst_argument)) == 0;
}

/* An imported trace has names alone. */
static uint64_t recorded_handle(const struct cst_kind *kind) {
    return kind->handle ? kind->handle : NAMELESS | (uint64_t)kind->name << 4;
}

static struct function *find_function(const struct cst_kind *kind) {
    struct function *first, *function;
    uint64_t recorded = recorded_handle(kind);
    HASH_FIND(hh, here.by_handle, &recorded, sizeof recorded, first);
    unsigned looked = 0; /* a handle is not given out again so often */
    for (function = first; function && looked++ < HANDLES; function = function->next)
        if (same_function(function->kind, kind))
            return function;
    function = whatif_need(calloc(1, sizeof *function));
    function->kind = kind;
    function->recorded = recorded;
    function->handle = (CUfunction)(uintptr_t)recorded;
    if (first) { /* the handle was given out again, for another function */
        function->handle = (CUfunction)(OWN | (uintptr_t)kind->id << 4);
        function->next = first->next;
        first->next = function;
    } else {
        HASH_ADD(hh, here.by_handle, recorded, sizeof function->recorded, function);
    }
    return function;
}

/* Those with a layout first. */
static void find_functions(void) {
    here.functions = whatif_need(calloc(here.trace->n_kinds + 1, sizeof *here.functions));
    for (int pass = 0; pass < 2; pass++)
        for (uint32_t id = 0; id < here.trace->n_kinds; id++) {
            const struct cst_kind *kind = here.trace->kinds[id];
            if (kind && kind->op == CST_OP_LAUNCH && readable(kind) == (pass == 0))
                here.functions[id] = find_function(kind);
        }
}

CUfunction whatif_driver_function(const struct cst_kind *kind) {
    return here.functions[kind->id]->handle;
}

const struct cst_kind *whatif_driver_layout(const struct cst_kind *kind) {
    const struct cst_kind *known = here.functions[kind->id]->kind;
    return readable(known) ? known : NULL;
}

/* The kind that is asked about, if it is of this sort. */
static const struct cst_kind *asked_about(const void *handle, bool kernel) {
    const struct cst_kind *kind = here.now.kind;
    if (!kind || kind->op != CST_OP_LAUNCH || whatif_driver_function(kind) != handle)
        return NULL;
    kind = here.functions[kind->id]->kind;
    return !(kind->flags & CST_KIND_KERNEL) == !kernel ? kind : NULL;
}

static CUresult get_name(const char **name, const void *handle, bool kernel) {
    const struct cst_kind *kind = asked_about(handle, kernel);
    if (!kind)
        return CUDA_ERROR_INVALID_HANDLE;
    *name = cst_string(here.trace, kind->name);
    return CUDA_SUCCESS;
}

static CUresult kernel_get_name(const char **name, CUkernel kernel) {
    return get_name(name, kernel, true);
}

static CUresult func_get_name(const char **name, CUfunction function) {
    return get_name(name, function, false);
}

static CUresult get_param(const void *handle, bool kernel, size_t i, size_t *offset, size_t *size) {
    const struct cst_kind *kind = asked_about(handle, kernel);
    if (!kind)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!readable(kind) || i >= kind->n_arguments)
        return CUDA_ERROR_INVALID_VALUE;
    *offset = cst_kind_arguments(kind)[i].offset;
    *size = cst_kind_arguments(kind)[i].bytes;
    return CUDA_SUCCESS;
}

static CUresult kernel_get_param(CUkernel kernel, size_t i, size_t *offset, size_t *size) {
    return get_param(kernel, true, i, offset, size);
}

static CUresult func_get_param(CUfunction function, size_t i, size_t *offset, size_t *size) {
    return get_param(function, false, i, offset, size);
}

static CUresult kernel_get_function(CUfunction *function, CUkernel kernel) {
    *function = (CUfunction)(uintptr_t)kernel;
    return CUDA_SUCCESS;
}

/* What a block may have on any GPU: threads, and bytes of dynamic shared memory. */
enum { BLOCK_MOST = 1024, SHARED_MOST = 1 << 20 };

/* Of the cluster that the kind has, what no attribute of its launches says is the function's. */
static CUresult func_get_attribute(int *value, CUfunction_attribute attribute,
                                   CUfunction function) {
    const struct cst_kind *kind = here.now.kind;
    *value = 0;
    if (!kind || kind->op != CST_OP_LAUNCH || whatif_driver_function(kind) != function)
        return CUDA_ERROR_INVALID_HANDLE;
    for (uint32_t i = 0; i < kind->n_attributes; i++)
        if (cst_kind_attributes(kind)[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
            return CUDA_SUCCESS;
    switch (attribute) {
    /* Every recorded shape ran, so it was within the limits. */
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        *value = BLOCK_MOST;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        *value = SHARED_MOST;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
        *value = (int)kind->cluster[attribute - CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH];
        *value = *value > 1 ? *value : 0;
        return CUDA_SUCCESS;
    default:
        return CUDA_SUCCESS;
    }
}

/* ---- memory ---- */

/* The recording may have begun behind the moment at which the engine asked; what it has the params
 * of is of memory that was known. Otherwise what must be device memory is. */
static bool assume(uint64_t address, struct cst_range *range) {
    const struct cst_kind *kind = here.now.kind;
    enum { DTOD = 1, HTOD = 2, DTOH = 3 };
    if (!address || !kind || kind->op == CST_OP_LAUNCH)
        return false;
    bool copies = kind->op == CST_OP_COPY,
         host = copies && ((kind->form == HTOD && address == here.now.src) ||
                           (kind->form == DTOH && address == here.now.dst));
    if (copies && kind->form != DTOD && kind->flags & CST_KIND_OPAQUE)
        return false;
    whatif_asked.assumed++;
    *range = (struct cst_range){.start = address,
                                .size = (uint64_t)1 << 40,
                                .type = host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE};
    ctx_get_device(&range->device);
    range->own = 1;
    return true;
}

static CUresult pointer_attributes(unsigned n, CUpointer_attribute *ids, void **values,
                                   CUdeviceptr address) {
    struct cst_range range;
    if (!whatif_range_find(here.now.context, address, here.now.until, &range) &&
        !assume(address, &range))
        return CUDA_ERROR_INVALID_VALUE;
    if (range.result)
        return (CUresult)range.result;
    for (unsigned i = 0; i < n; i++)
        switch (ids[i]) {
        case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
            *(unsigned *)values[i] = range.type;
            break;
        case CU_POINTER_ATTRIBUTE_IS_MANAGED:
            *(unsigned *)values[i] = range.managed;
            break;
        case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
            *(int *)values[i] = range.device;
            break;
        case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
            *(uint64_t *)values[i] = range.start;
            break;
        case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
            *(size_t *)values[i] = range.size;
            break;
        case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
            *(CUmemoryPool *)values[i] = range.own == 2 ? (CUmemoryPool)&here : NULL;
            break;
        case CU_POINTER_ATTRIBUTE_CONTEXT:
            *(CUcontext *)values[i] = range.own == 1 ? context_of(here.now.context) : NULL;
            break;
        case CU_POINTER_ATTRIBUTE_MAPPED:
            *(unsigned *)values[i] = range.own == 3;
            break;
        case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
            *(unsigned *)values[i] = CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE;
            break;
        case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
            *(uint64_t *)values[i] = range.start;
            break;
        case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
            *(size_t *)values[i] = range.size;
            break;
        default:
            return CUDA_ERROR_INVALID_VALUE;
        }
    return CUDA_SUCCESS;
}

/* ---- the table ---- */

static struct cus_driver table = {
    .cuCtxGetDevice = ctx_get_device,
    .cuCtxGetCurrent = ctx_get_current,
    .cuCtxPushCurrent_v2 = ctx_push,
    .cuCtxPopCurrent_v2 = ctx_pop,
    .cuStreamGetFlags = stream_get_flags,
    .cuStreamGetPriority = stream_get_priority,
    .cuStreamGetId = stream_get_id,
    .cuStreamGetCtx = stream_get_ctx,
    .cuStreamIsCapturing = stream_is_capturing,
    .cuStreamQuery = stream_query,
    .cuStreamCreateWithPriority = stream_create,
    .cuStreamDestroy_v2 = stream_destroy,
    .cuThreadExchangeStreamCaptureMode = exchange_mode,
    .cuPointerGetAttributes = pointer_attributes,
    .cuFuncGetName = func_get_name,
    .cuKernelGetName = kernel_get_name,
    .cuFuncGetParamInfo = func_get_param,
    .cuKernelGetParamInfo = kernel_get_param,
    .cuKernelGetFunction = kernel_get_function,
    .cuFuncGetAttribute = func_get_attribute,
};

const struct cus_driver *whatif_driver_start(const struct cst_trace *trace) {
    here.trace = trace;
    here.streams = whatif_need(calloc(trace->n_streams + 1, sizeof *here.streams));
    for (uint32_t id = 0; id < trace->n_streams; id++)
        if (trace->streams[id] && trace->streams[id]->context >= here.n_contexts)
            here.n_contexts = trace->streams[id]->context + 1;
    if (here.n_contexts > 65536)
        here.n_contexts = 65536; /* of a corrupt trace; the others are on device 0 */
    here.devices = whatif_need(calloc(here.n_contexts + 1, sizeof *here.devices));
    for (uint32_t id = 0; id < trace->n_streams; id++)
        if (trace->streams[id] && trace->streams[id]->context < here.n_contexts)
            here.devices[trace->streams[id]->context] = trace->streams[id]->device;
    find_functions();
    whatif_range_start(trace);
    whatif_graphs_fill(&table);
    return &table;
}

CUresult whatif_driver_own(void) {
    whatif_asked.own++;
    whatif_asked.records +=
        here.now.kind && (here.now.kind->op == CST_OP_RECORD || here.now.kind->op == CST_OP_WAIT);
    whatif_clock_own();
    return here.now.result;
}
