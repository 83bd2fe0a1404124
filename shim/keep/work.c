/*
 * What the program had the GPU do: launches, memsets, copies, events, and where the program waited.
 * A call is recorded after it succeeded, with the time that the thread spent by itself before the
 * call. What a copy reads from the host is kept as it is at the call. If an unfinished copy may
 * still write there, the copy cannot be replayed.
 */
#define __CUDA_API_VERSION_INTERNAL
#include "shim/keep/inner.h"

#include "shim/base/uthash.h"
#include "shim/trace/file.h"

#include "shim/base/forbid.h"
#include "shim/stream/streams.h"

enum {
    WRITES = 1024,    /* copies to the host for which the program has not waited */
    INPUTS = 4096,    /* slots of inputs that may come again */
    SAME = 256 << 10, /* the largest input that is looked up, in bytes */
    WORK_MOST = 48 << 10
};

#undef uthash_nonfatal_oom
#define uthash_nonfatal_oom(element) (added = false)

/* ---- streams ---- */

struct lane_key {
    const void *handle;
    uint64_t thread; /* of per-thread streams; else 0 */
};
struct lane {
    struct lane_key key;
    uint32_t id;
    UT_hash_handle hh;
};
static struct lane *lanes; /* guarded by lock */
static uint32_t n_lanes;   /* guarded by lock */

static uint32_t lane_of(CUstream stream, enum cus_abi abi) {
    struct cus_stream_ref ref = {stream, abi};
    bool own = cus_ref_is_per_thread(ref), legacy = cus_ref_is_legacy(ref), added = true;
    struct lane_key key;
    struct lane *lane;
    memset(&key, 0, sizeof key);
    key.handle = own ? CU_STREAM_PER_THREAD : legacy ? CU_STREAM_LEGACY : stream;
    key.thread = own ? cus_record_thread() : 0;
    cus_lock_take(&cus_keep_lock);
    HASH_FIND(hh, lanes, &key, sizeof key, lane);
    bool fresh = !lane;
    if (fresh && (lane = cus_mem_alloc(sizeof *lane))) {
        lane->key = key;
        lane->id = ++n_lanes;
        HASH_ADD(hh, lanes, key, sizeof lane->key, lane);
    }
    uint32_t id = lane ? lane->id : 0;
    if (!added)
        cus_mem_free(lane);
    cus_lock_give(&cus_keep_lock);
    if (!fresh)
        return id;
    struct cst_lane record = {.head = {.type = CST_LANE, .words = sizeof record / 8}, .id = id};
    record.kind = own ? CST_STREAM_PER_THREAD : legacy ? CST_STREAM_LEGACY : CST_STREAM_CREATED;
    if (!own && !legacy) {
        int priority = 0;
        unsigned flags = 0;
        cus_keep_real.cuStreamGetFlags(stream, &flags);
        cus_keep_real.cuStreamGetPriority(stream, &priority);
        record.flags = flags;
        record.priority = priority;
    }
    cus_record_define(&record.head);
    return id;
}

CUresult cus_keep_cuStreamDestroy_v2(CUstream stream) {
    struct lane_key key;
    struct lane *lane;
    CUresult result = cus_keep_real.cuStreamDestroy_v2(stream);
    if (result != CUDA_SUCCESS)
        return result;
    memset(&key, 0, sizeof key);
    key.handle = stream;
    cus_lock_take(&cus_keep_lock);
    HASH_FIND(hh, lanes, &key, sizeof key, lane);
    if (lane) {
        HASH_DEL(lanes, lane);
        cus_mem_free(lane);
    }
    cus_lock_give(&cus_keep_lock);
    return result;
}

/* ---- time ---- */

static __thread struct {
    uint64_t ended; /* end of the thread's last call; 0: none yet */
    uint64_t spent; /* ns that the library has spent since then */
    uint64_t polls; /* ns before the first of successive queries that answered no; 0: no such
                     * queries */
} mine __attribute__((tls_model("initial-exec")));

static uint64_t look; /* ns that one look at the clock takes; set before the first call is kept */

void cus_keep_clock(void) {
    look = UINT64_MAX;
    for (int i = 0; i < 64; i++) {
        uint64_t before = cus_clock_ns(), ns = cus_clock_ns() - before;
        look = ns < look ? ns : look;
    }
}

void cus_keep_spent(uint64_t ns) {
    mine.spent += ns;
}

/* Half of the look at each end belongs to the library. */
static uint64_t gap_until(uint64_t now) {
    uint64_t busy = mine.ended + mine.spent + look;
    return mine.ended && now > busy ? now - busy : 0;
}

static void call_ended(void) {
    mine.ended = cus_clock_ns();
    mine.spent = mine.polls = 0;
}

static bool wanted(void) {
    return __atomic_load_n(&cus_keep_recording, __ATOMIC_ACQUIRE) && cus_keep_context();
}

/* Records one call. call_ended follows. */
static void put(struct cst_work *work, enum cst_work_what what, uint64_t began) {
    if (!work->head.words)
        work->head.words = sizeof *work / 8;
    work->head.type = CST_WORK;
    work->head.flags = (uint8_t)what;
    work->head.thread = cus_record_thread();
    work->head.ns = began;
    work->gap_ns = mine.polls && what == CST_WORK_SYNC ? mine.polls : gap_until(began);
    cus_record_define(&work->head);
}

/* ---- copies that the program has not waited for ---- */

static struct {
    uint64_t address, bytes, number;
    uint32_t lane;
} writes[WRITES];         /* guarded by lock: copies to the host */
static uint32_t n_writes; /* guarded by lock */
static bool too_many;     /* guarded by lock: there are more */
static uint64_t n_ops;    /* guarded by lock */

struct event {
    const void *handle;
    uint64_t number; /* the number of ops when it was last recorded */
    uint32_t lane;
    UT_hash_handle hh;
};
static struct event *events; /* guarded by lock. A handle that is reused is recorded anew before
                              * it matters */

static void note_write(uint64_t address, uint64_t bytes, uint32_t lane) {
    cus_lock_take(&cus_keep_lock);
    too_many |= n_writes == WRITES;
    if (n_writes < WRITES) {
        writes[n_writes].address = address;
        writes[n_writes].bytes = bytes;
        writes[n_writes].lane = lane;
        writes[n_writes++].number = ++n_ops;
    }
    cus_lock_give(&cus_keep_lock);
}

static bool may_be_written(uint64_t address, uint64_t bytes) {
    cus_lock_take(&cus_keep_lock);
    bool may = too_many;
    for (uint32_t i = 0; i < n_writes; i++)
        may |= address < writes[i].address + writes[i].bytes && writes[i].address < address + bytes;
    cus_lock_give(&cus_keep_lock);
    return may;
}

/* Forgets the copies of one lane (0: of all) up to that number. Lock held. */
static void forget_writes(uint32_t lane, uint64_t number) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n_writes; i++)
        if ((lane && writes[i].lane != lane) || writes[i].number > number)
            writes[kept++] = writes[i];
    n_writes = kept;
    too_many &= lane != 0;
}

static void waited_for(uint32_t lane, const void *handle) {
    struct event *event = NULL;
    cus_lock_take(&cus_keep_lock);
    if (handle)
        HASH_FIND_PTR(events, &handle, event);
    if (!handle)
        forget_writes(lane, n_ops);
    else if (event)
        forget_writes(event->lane, event->number);
    cus_lock_give(&cus_keep_lock);
}

static void recorded(const void *handle, uint32_t lane) {
    struct event *event;
    bool added = true;
    cus_lock_take(&cus_keep_lock);
    HASH_FIND_PTR(events, &handle, event);
    if (!event && (event = cus_mem_alloc(sizeof *event))) {
        event->handle = handle;
        HASH_ADD_PTR(events, handle, event);
        if (!added) {
            cus_mem_free(event);
            event = NULL;
        }
    }
    if (event) {
        event->lane = lane;
        event->number = n_ops;
    }
    cus_lock_give(&cus_keep_lock);
}

/* ---- inputs ---- */

static struct {
    uint64_t check, bytes;
    uint32_t id;          /* 0: none */
} inputs[INPUTS];         /* guarded by lock */
static uint32_t n_inputs; /* guarded by lock */

/* The id of these bytes, which are in the trace from now on. */
static uint32_t input_of(const void *at, uint64_t bytes) {
    uint64_t check = bytes <= SAME ? cst_checksum(at, bytes) : 0;
    unsigned slot = (unsigned)(check % INPUTS);
    cus_lock_take(&cus_keep_lock);
    bool same =
        check && inputs[slot].id && inputs[slot].check == check && inputs[slot].bytes == bytes;
    uint32_t id = same ? inputs[slot].id : ++n_inputs;
    if (check && !same) {
        inputs[slot].check = check;
        inputs[slot].bytes = bytes;
        inputs[slot].id = id;
    }
    cus_lock_give(&cus_keep_lock);
    if (!same)
        cus_record_data(CST_DATA_INPUT, id, 0, at, bytes);
    return id;
}

/* ---- copies and memsets ---- */

static void put_copy(uint64_t to, uint64_t from, uint64_t bytes, uint32_t lane, bool sync,
                     const char *call, uint64_t began) {
    if (!bytes)
        return;
    struct cst_work work = {
        .lane = lane, .sync = sync, .to = to, .from = from, .width = bytes, .height = 1};
    enum cus_keep_place_of source = cus_keep_where(from), target = cus_keep_where(to);
    if (target == CUS_KEEP_HOST && !sync)
        note_write(to, bytes, lane);
    if (source == CUS_KEEP_HOST && target == CUS_KEEP_HOST)
        return;
    if (source == CUS_KEEP_HOST && !sync && may_be_written(from, bytes))
        cus_keep_cannot(call, "reads host memory that another copy may not have written yet");
    if (source == CUS_KEEP_ELSEWHERE || target == CUS_KEEP_ELSEWHERE)
        cus_keep_cannot(call, "touches memory that a replay cannot make");
    work.to_host = target == CUS_KEEP_HOST;
    if (source == CUS_KEEP_HOST)
        work.input = input_of((const void *)(uintptr_t)from, bytes);
    put(&work, CST_WORK_COPY, began);
}

static void put_memset(uint64_t to, uint32_t elem, uint32_t value, uint64_t width, uint64_t height,
                       uint64_t pitch, uint32_t lane, bool sync, uint64_t began) {
    struct cst_work work = {.lane = lane,
                            .elem = elem,
                            .value = value,
                            .sync = sync,
                            .to = to,
                            .width = width,
                            .height = height,
                            .pitch = pitch};
    if (!width || !height)
        return;
    if (cus_keep_where(to) != CUS_KEEP_DEVICE)
        cus_keep_cannot("cuMemset", "touches memory that a replay cannot make");
    put(&work, CST_WORK_MEMSET, began);
}

#define COPY(symbol, abi, to_type, from_type)                                                      \
    CUresult cus_keep_##symbol(to_type to, from_type from, size_t bytes) {                         \
        uint64_t began = cus_clock_ns();                                                           \
        CUresult result = cus_keep_real.symbol(to, from, bytes);                                   \
        if (result == CUDA_SUCCESS && wanted()) {                                                  \
            uint32_t lane = lane_of(NULL, abi);                                                    \
            put_copy((uint64_t)to, (uint64_t)from, bytes, lane, true, #symbol, began);             \
            waited_for(lane, NULL);                                                                \
        }                                                                                          \
        call_ended();                                                                              \
        return result;                                                                             \
    }
COPY(cuMemcpy, CUS_ABI_LEGACY, CUdeviceptr, CUdeviceptr)
COPY(cuMemcpy_ptds, CUS_ABI_PTSZ, CUdeviceptr, CUdeviceptr)
COPY(cuMemcpyHtoD_v2, CUS_ABI_LEGACY, CUdeviceptr, const void *)
COPY(cuMemcpyHtoD_v2_ptds, CUS_ABI_PTSZ, CUdeviceptr, const void *)
COPY(cuMemcpyDtoH_v2, CUS_ABI_LEGACY, void *, CUdeviceptr)
COPY(cuMemcpyDtoH_v2_ptds, CUS_ABI_PTSZ, void *, CUdeviceptr)
COPY(cuMemcpyDtoD_v2, CUS_ABI_LEGACY, CUdeviceptr, CUdeviceptr)
COPY(cuMemcpyDtoD_v2_ptds, CUS_ABI_PTSZ, CUdeviceptr, CUdeviceptr)

#define MEMSET(symbol, abi, type)                                                                  \
    CUresult cus_keep_##symbol(CUdeviceptr to, type value, size_t n) {                             \
        uint64_t began = cus_clock_ns();                                                           \
        CUresult result = cus_keep_real.symbol(to, value, n);                                      \
        if (result == CUDA_SUCCESS && wanted())                                                    \
            put_memset(to, sizeof value, value, n, 1, 0, lane_of(NULL, abi), true, began);         \
        call_ended();                                                                              \
        return result;                                                                             \
    }
MEMSET(cuMemsetD8_v2, CUS_ABI_LEGACY, unsigned char)
MEMSET(cuMemsetD8_v2_ptds, CUS_ABI_PTSZ, unsigned char)
MEMSET(cuMemsetD16_v2, CUS_ABI_LEGACY, unsigned short)
MEMSET(cuMemsetD16_v2_ptds, CUS_ABI_PTSZ, unsigned short)
MEMSET(cuMemsetD32_v2, CUS_ABI_LEGACY, unsigned)
MEMSET(cuMemsetD32_v2_ptds, CUS_ABI_PTSZ, unsigned)

/* ---- launches ---- */

/* True: the attribute's value means the same in another process. */
static bool attribute_is_plain(CUlaunchAttributeID id) {
    switch ((int)id) {
    case CU_LAUNCH_ATTRIBUTE_IGNORE:
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
    case CUS_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
    case CUS_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        return true;
    default:
        return false;
    }
}

/* False: the arguments could not be found. */
static bool put_params(const struct cus_launch *launch, const struct cus_keep_code *code,
                       uint8_t *to) {
    const uint8_t *flat = NULL;
    size_t bytes = 0;
    for (void **extra = launch->extra; extra && *extra; extra += 2) {
        if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER)
            flat = extra[1];
        else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE)
            bytes = *(const size_t *)extra[1];
    }
    for (uint32_t i = 0; i < code->n; i++) {
        const struct cst_argument *argument = &code->arguments[i];
        if (launch->params)
            memcpy(to + argument->offset, launch->params[i], argument->bytes);
        else if (flat && argument->offset + argument->bytes <= bytes)
            memcpy(to + argument->offset, flat + argument->offset, argument->bytes);
        else
            return false;
    }
    return true;
}

static void put_launch(const struct cus_launch *launch, uint64_t began) {
    struct cus_keep_code code;
    uint32_t n = launch->form == CUS_LAUNCH_EX && launch->attrs ? launch->n_attrs : 0;
    if (!cus_keep_code_of(launch->f, &code)) {
        cus_keep_cannot("cuLaunchKernel", "launches a function of which the driver says nothing");
        return;
    }
    size_t bytes =
        (sizeof(struct cst_work) + n * sizeof(struct cst_attribute) + code.param_bytes + 7) &
        ~(size_t)7;
    struct cst_work *work = bytes <= WORK_MOST ? cus_mem_alloc(bytes) : NULL;
    if (!work) {
        cus_record_give_up("no memory");
        return;
    }
    struct cst_attribute *attribute = (struct cst_attribute *)(void *)(work + 1);
    work->head.words = (uint16_t)(bytes / 8);
    work->lane = lane_of(launch->stream.handle, launch->stream.abi);
    work->code = code.id;
    work->n_attributes = n;
    work->cooperative = launch->form == CUS_LAUNCH_COOPERATIVE;
    memcpy(work->dims, launch->dims, sizeof work->dims);
    for (uint32_t i = 0; i < n; i++, attribute++) {
        attribute->id = launch->attrs[i].id;
        attribute->bytes = sizeof attribute->value;
        memcpy(attribute->value, &launch->attrs[i].value, sizeof attribute->value);
        if (!attribute_is_plain(launch->attrs[i].id))
            cus_keep_cannot("cuLaunchKernelEx", "launches with an attribute that names an object");
    }
    if (put_params(launch, &code, (uint8_t *)attribute))
        put(work, CST_WORK_LAUNCH, began);
    else
        cus_keep_cannot("cuLaunchKernel", "launches with arguments of an unknown form");
    cus_mem_free(work);
}
_Static_assert(sizeof((struct cst_attribute){0}.value) == sizeof(CUlaunchAttributeValue),
               "a value as it stands");

void cus_keep_op(const struct cus_call *call, int result) {
    /* A record is kept where the program's own call is made. */
    if (result == CUDA_SUCCESS && call->type != CUS_OP_RECORD && wanted()) {
        if (call->type == CUS_OP_LAUNCH) {
            put_launch(call->launch, call->began);
        } else {
            uint32_t lane = lane_of(call->stream.handle, call->stream.abi);
            const struct cus_memset *set = call->memset;
            const struct cus_copy *copy = call->copy;
            if (call->type == CUS_OP_MEMSET)
                put_memset(set->dst, set->elem, set->value, set->width, set->height, set->pitch,
                           lane, false, call->began);
            else if (call->type == CUS_OP_COPY) /* a record is kept by its own hook */
                put_copy(copy->dst, copy->src, copy->bytes, lane, false, "cuMemcpyAsync",
                         call->began);
        }
    }
    call_ended();
}

/* ---- events and waiting ---- */

static void put_sync(uint32_t lane, CUevent event, bool step, uint64_t began) {
    struct cst_work work = {.lane = lane, .sync = step, .event = (uint64_t)(uintptr_t)event};
    put(&work, CST_WORK_SYNC, began);
    waited_for(lane, event);
}

void cus_keep_waited_all(void) {
    if (wanted())
        put_sync(0, NULL, false, cus_clock_ns());
    call_ended();
}

/* Called when the host has waited, or was told that there is nothing to wait for. */
static CUresult synced(CUresult result, CUstream stream, enum cus_abi abi, bool all, CUevent event,
                       bool step, uint64_t began) {
    if (result == CUDA_SUCCESS && wanted())
        put_sync(all || event ? 0 : lane_of(stream, abi), event, step, began);
    call_ended();
    return result;
}

/* While the answer is no, the thread only waits. */
static bool polled(CUresult result, uint64_t began) {
    if (result != CUDA_ERROR_NOT_READY)
        return true;
    if (!mine.polls)
        mine.polls = gap_until(began) + 1;
    return false;
}

CUresult cus_keep_cuStreamSynchronize(CUstream stream) {
    uint64_t began = cus_clock_ns();
    return synced(cus_keep_real.cuStreamSynchronize(stream), stream, CUS_ABI_LEGACY, false, NULL,
                  true, began);
}

CUresult cus_keep_cuStreamSynchronize_ptsz(CUstream stream) {
    uint64_t began = cus_clock_ns();
    return synced(cus_keep_real.cuStreamSynchronize_ptsz(stream), stream, CUS_ABI_PTSZ, false, NULL,
                  true, began);
}

CUresult cus_keep_cuStreamQuery(CUstream stream) {
    uint64_t began = cus_clock_ns();
    CUresult result = cus_keep_real.cuStreamQuery(stream);
    return polled(result, began) ? synced(result, stream, CUS_ABI_LEGACY, false, NULL, true, began)
                                 : result;
}

CUresult cus_keep_cuStreamQuery_ptsz(CUstream stream) {
    uint64_t began = cus_clock_ns();
    CUresult result = cus_keep_real.cuStreamQuery_ptsz(stream);
    return polled(result, began) ? synced(result, stream, CUS_ABI_PTSZ, false, NULL, true, began)
                                 : result;
}

CUresult cus_keep_cuEventSynchronize(CUevent event) {
    uint64_t began = cus_clock_ns();
    return synced(cus_keep_real.cuEventSynchronize(event), NULL, CUS_ABI_LEGACY, false, event, true,
                  began);
}

CUresult cus_keep_cuEventQuery(CUevent event) {
    uint64_t began = cus_clock_ns();
    CUresult result = cus_keep_real.cuEventQuery(event);
    return polled(result, began) ? synced(result, NULL, CUS_ABI_LEGACY, false, event, false, began)
                                 : result;
}

CUresult cus_keep_cuCtxSynchronize(void) {
    uint64_t began = cus_clock_ns();
    return synced(cus_keep_real.cuCtxSynchronize(), NULL, CUS_ABI_LEGACY, true, NULL, true, began);
}

CUresult cus_keep_cuCtxSynchronize_v2(CUcontext context) {
    uint64_t began = cus_clock_ns();
    return synced(cus_keep_real.cuCtxSynchronize_v2(context), NULL, CUS_ABI_LEGACY, true, NULL,
                  true, began);
}

static CUresult event_recorded(CUresult result, CUevent event, CUstream stream, enum cus_abi abi,
                               uint64_t began) {
    if (result == CUDA_SUCCESS && wanted()) {
        struct cst_work work = {.lane = lane_of(stream, abi), .event = (uint64_t)(uintptr_t)event};
        put(&work, CST_WORK_RECORD, began);
        recorded(event, work.lane);
    }
    call_ended();
    return result;
}

static CUresult event_waited(CUresult result, CUevent event, CUstream stream, enum cus_abi abi,
                             uint64_t began) {
    if (result == CUDA_SUCCESS && wanted()) {
        struct cst_work work = {.lane = lane_of(stream, abi), .event = (uint64_t)(uintptr_t)event};
        put(&work, CST_WORK_WAIT, began);
    }
    call_ended();
    return result;
}

#define EVENT(symbol, parameters, arguments, abi, then)                                            \
    CUresult cus_keep_##symbol parameters {                                                        \
        uint64_t began = cus_clock_ns();                                                           \
        return then(cus_keep_real.symbol arguments, event, stream, abi, began);                    \
    }
EVENT(cuEventRecord, (CUevent event, CUstream stream), (event, stream), CUS_ABI_LEGACY,
      event_recorded)
EVENT(cuEventRecord_ptsz, (CUevent event, CUstream stream), (event, stream), CUS_ABI_PTSZ,
      event_recorded)
EVENT(cuEventRecordWithFlags, (CUevent event, CUstream stream, unsigned flags),
      (event, stream, flags), CUS_ABI_LEGACY, event_recorded)
EVENT(cuEventRecordWithFlags_ptsz, (CUevent event, CUstream stream, unsigned flags),
      (event, stream, flags), CUS_ABI_PTSZ, event_recorded)
EVENT(cuStreamWaitEvent, (CUstream stream, CUevent event, unsigned flags), (stream, event, flags),
      CUS_ABI_LEGACY, event_waited)
EVENT(cuStreamWaitEvent_ptsz, (CUstream stream, CUevent event, unsigned flags),
      (stream, event, flags), CUS_ABI_PTSZ, event_waited)
