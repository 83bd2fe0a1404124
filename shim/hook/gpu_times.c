/*
 * GPU times for the trace: CUPTI's activity records of kernels, copies and memsets. The file loads
 * CUPTI by name when the trace begins, without its headers. It calls CUPTI directly and not by the
 * exports that notice a program's profiler, so graphs stay graphs. CUPTI's threads ask for buffers
 * and return them, and write into the trace as any thread. Only one client at a time gets these
 * records: if the program profiles itself, the trace has no GPU times from then on.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <string.h>

#include "shim/base/clock.h"
#include "shim/base/log.h"
#include "shim/base/mem.h"
#include "shim/hook/recording.h"
#include "shim/hook/resolve.h"
#include "shim/stream/engine.h"
#include "shim/trace/record.h"

#include "shim/base/forbid.h"

enum {
    BUFFER = 1 << 20,
    /* CUpti_ActivityKind */
    KIND_MEMCPY = 1,
    KIND_MEMSET = 2,
    KIND_KERNEL = 3,
    KIND_CONCURRENT_KERNEL = 10,
    FLUSH_FORCED = 1,
    ERROR_MAX_LIMIT_REACHED = 12 /* CUptiResult: no more records */
};

/* The common beginning of the records of all versions since CUDA 11.1, as in cupti_activity.h. */
struct kernel {
    uint32_t kind;
    uint8_t a[12];
    uint64_t start, end;
    uint8_t b[8];
    uint32_t device, context, stream;
    int32_t grid[3], block[3];
    uint8_t c[16];
    uint32_t correlation;
    uint8_t d[8];
    const char *name;
    uint8_t e[32];
    uint64_t node;
};
_Static_assert(offsetof(struct kernel, device) == 40 && offsetof(struct kernel, grid) == 52 &&
                   offsetof(struct kernel, correlation) == 92 &&
                   offsetof(struct kernel, name) == 104 && offsetof(struct kernel, node) == 144,
               "CUpti_ActivityKernel5 and later");
struct transfer { /* memcpy, memset */
    uint32_t kind, a;
    uint64_t bytes;
    uint64_t start, end;
    uint32_t device, context, stream, correlation;
    uint8_t b[16];
    uint64_t node;
};
_Static_assert(offsetof(struct transfer, device) == 32 && offsetof(struct transfer, node) == 64,
               "CUpti_ActivityMemcpy4, CUpti_ActivityMemset3 and later");

typedef void request_fn(uint8_t **buffer, size_t *bytes, size_t *most);
typedef void complete_fn(void *context, uint32_t stream, uint8_t *buffer, size_t bytes,
                         size_t valid);

/* CUPTI's functions by name; they return 0 for success. */
static struct {
    int (*cuptiActivityRegisterCallbacks)(request_fn *, complete_fn *);
    int (*cuptiActivityEnable)(int kind);
    int (*cuptiActivityDisable)(int kind);
    int (*cuptiActivityGetNextRecord)(uint8_t *buffer, size_t valid, void **record);
    int (*cuptiActivityFlushAll)(uint32_t flag);
    int (*cuptiGetTimestamp)(uint64_t *timestamp);
    int (*cuptiGetStreamIdEx)(void *context, void *stream, uint8_t per_thread, uint32_t *id);
    int (*cuptiGetContextId)(void *context, uint32_t *id);
} cupti;

static const int kinds[] = {KIND_CONCURRENT_KERNEL, KIND_MEMCPY, KIND_MEMSET};
static int64_t ahead; /* CUPTI's clock minus the host's; written before the first record */
static uint32_t said; /* atomic: a failed call was logged */

/* True: the call failed. The first failure is logged. The records before it stay in the trace. */
static bool failed(const char *call, int error) {
    if (error && !__atomic_exchange_n(&said, 1, __ATOMIC_RELAXED))
        cus_log(CUS_WARN, "trace", "GPU times are missing: %s failed, error %d", call, error);
    return error != 0;
}
#define FAILED(call, arguments) failed(#call, cupti.call arguments)

static void request(uint8_t **buffer, size_t *bytes, size_t *most) {
    *buffer = cus_mem_alloc(BUFFER);
    *bytes = *buffer ? BUFFER : 0;
    *most = 0;
}

/* NULL: this time is not recorded, or there is no room. */
static struct cst_gpu *begin(uint64_t start, uint64_t end, enum cst_gpu_what what, uint32_t name) {
    uint64_t ns = start - (uint64_t)ahead;
    if (!start || !cus_record_covers(ns))
        return NULL;
    struct cst_gpu *record = cus_record_begin(CST_GPU, sizeof *record, ns);
    if (!record)
        return NULL;
    record->head.flags = (uint8_t)what;
    record->gpu_ns = end - start;
    record->name = name;
    return record;
}

static void take_kernel(const struct kernel *k) {
    uint32_t name = cus_record_string(k->name);
    struct cst_gpu *record = begin(k->start, k->end, CST_GPU_KERNEL, name);
    if (!record)
        return;
    record->device = k->device;
    record->context = k->context;
    record->gpu_stream = k->stream;
    record->correlation = k->correlation;
    record->node = k->node;
    for (int i = 0; i < 3; i++)
        record->grid[i] = (uint32_t)k->grid[i];
    cus_record_commit();
}

static void take_transfer(const struct transfer *t) {
    enum cst_gpu_what what = t->kind == KIND_MEMCPY ? CST_GPU_MEMCPY : CST_GPU_MEMSET;
    struct cst_gpu *record = begin(t->start, t->end, what, 0);
    if (!record)
        return;
    record->device = t->device;
    record->context = t->context;
    record->gpu_stream = t->stream;
    record->correlation = t->correlation;
    record->node = t->node;
    record->bytes = t->bytes;
    cus_record_commit();
}

static void complete(void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid) {
    (void)context;
    (void)stream;
    (void)bytes;
    void *record = NULL;
    int error = 0;
    while (valid && (error = cupti.cuptiActivityGetNextRecord(buffer, valid, &record)) == 0) {
        uint32_t kind = *(const uint32_t *)record;
        if (kind == KIND_KERNEL || kind == KIND_CONCURRENT_KERNEL)
            take_kernel(record);
        else if (kind == KIND_MEMCPY || kind == KIND_MEMSET)
            take_transfer(record);
    }
    if (error != ERROR_MAX_LIMIT_REACHED)
        failed("cuptiActivityGetNextRecord", error);
    cus_mem_free(buffer);
}

static void tell_stream(uint32_t number, void *context, void *handle, bool per_thread) {
    struct cst_gpu_stream stream = {.head = {.type = CST_GPU_STREAM, .words = sizeof stream / 8},
                                    .stream = number};
    struct cst_gpu_context of = {.head = {.type = CST_GPU_CONTEXT, .words = sizeof of / 8},
                                 .stream = number};
    if (FAILED(cuptiGetContextId, (context, &of.context)) ||
        FAILED(cuptiGetStreamIdEx, (context, handle, per_thread, &stream.gpu_stream)))
        return;
    cus_record_define(&stream.head);
    cus_record_define(&of.head);
}

/* NULL: success; else what is missing. */
static const char *load(void) {
    static const char *const names[] = {"libcupti.so.13", "libcupti.so.12", "libcupti.so"};
    void *(*look)(void *, const char *) = (void *(*)(void *, const char *))cus_dlsym_find();
    void *library = NULL;
    for (size_t i = 0; !library && i < sizeof names / sizeof *names; i++)
        library = dlopen(names[i], RTLD_LAZY | RTLD_LOCAL);
    if (!library || !look)
        return "libcupti.so was not found (it comes with the CUDA toolkit)";
#define FIND(name)                                                                                 \
    if (!(*(void **)&cupti.name = look(library, #name)))                                           \
        return "libcupti.so has no " #name;
    FIND(cuptiActivityRegisterCallbacks)
    FIND(cuptiActivityEnable)
    FIND(cuptiActivityDisable)
    FIND(cuptiActivityGetNextRecord)
    FIND(cuptiActivityFlushAll)
    FIND(cuptiGetTimestamp)
    FIND(cuptiGetStreamIdEx)
    FIND(cuptiGetContextId)
#undef FIND
    return NULL;
}

/* Compares CUPTI's clock with the middle of two readings of the host's. The closest of several
 * pairs counts. */
static int set_clock(void) {
    uint64_t closest = ~0ull;
    for (int i = 0; i < 16; i++) {
        uint64_t before = cus_clock_ns(), now;
        int error = cupti.cuptiGetTimestamp(&now);
        if (error)
            return error;
        uint64_t after = cus_clock_ns();
        if (after - before < closest) {
            closest = after - before;
            ahead = (int64_t)(now - (before + (after - before) / 2));
        }
    }
    return 0;
}

bool cus_gpu_times_start(void) {
    const char *why = load();
    if (why) {
        cus_log(CUS_WARN, "trace", "no GPU times: %s", why);
        return false;
    }
    size_t enabled = 0;
    int error = set_clock();
    if (error || (error = cupti.cuptiActivityRegisterCallbacks(request, complete)))
        why = "CUPTI refuses (another profiler uses it, or it does not know this driver)";
    for (; !why && enabled < sizeof kinds / sizeof *kinds; enabled += !why)
        if ((error = cupti.cuptiActivityEnable(kinds[enabled])))
            why = "CUPTI does not record here (permission to read GPU counters?)";
    if (why) {
        cus_log(CUS_WARN, "trace", "no GPU times: %s, error %d", why, error);
        while (enabled > 0)
            cupti.cuptiActivityDisable(kinds[--enabled]);
        return false;
    }
    cus_record_on_stream = tell_stream;
    cus_engine_nodes_timed(true);
    return true;
}

void cus_gpu_times_end(void) {
    FAILED(cuptiActivityFlushAll, (FLUSH_FORCED));
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        FAILED(cuptiActivityDisable, (kinds[i]));
    cus_engine_nodes_timed(false);
}
