/*
 * A stand-in of libcupti.so for the simulated driver: the functions that shim/hook/gpu_times.c
 * looks up, and activity records of what the simulator ran (harness/sim/cusim_activity.h).
 *
 * As in CUPTI, times come from a clock of its own, streams are numbered by context, and threads of
 * the driver request and return buffers. A record lasts 1000 ns plus 1 ns for each earlier record
 * of its stream, so a test can tell which record an op got. CUPTI_STANDIN_FAIL=FUNCTION:CODE[:N]:
 * FUNCTION answers CODE from call N (1) on.
 */
#include <cuda.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "harness/sim/cusim_activity.h"

enum {
    KIND_MEMCPY = 1,
    KIND_MEMSET = 2,
    KIND_CONCURRENT_KERNEL = 10,
    KINDS = 64,
    STREAMS = 256,
    FIRST_STREAM = 7,
    MANY = 32, /* records that wait at most */
    ERROR_INVALID_PARAMETER = 1,
    ERROR_MAX_LIMIT_REACHED = 12,
    LONG = 1000
};

static const uint64_t ahead = 123456789012345; /* of CLOCK_MONOTONIC */

/* Both as long as those of CUPTI 13.0, with the fields that matter where they are there. */
union record {
    uint32_t kind;
    struct {
        uint32_t kind, a[3];
        uint64_t start, end, b;
        uint32_t device, context, stream;
        int32_t grid[3], block[3];
        uint32_t c[4], correlation;
        uint64_t d;
        const char *name;
        uint64_t e[4], node;
    } kernel;
    struct {
        uint32_t kind, a;
        uint64_t bytes, start, end;
        uint32_t device, context, stream, correlation;
        uint64_t b[2], node;
    } transfer;
    uint8_t bytes[216];
};
_Static_assert(offsetof(union record, kernel.correlation) == 92 &&
                   offsetof(union record, kernel.name) == 104 &&
                   offsetof(union record, kernel.node) == 144 &&
                   offsetof(union record, transfer.node) == 64,
               "CUpti_ActivityKernel10, CUpti_ActivityMemcpy6, CUpti_ActivityMemset4");

typedef void request_fn(uint8_t **buffer, size_t *bytes, size_t *most);
typedef void complete_fn(void *context, uint32_t stream, uint8_t *buffer, size_t bytes,
                         size_t valid);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* all below */
static request_fn *request;
static complete_fn *complete;
static bool enabled[KINDS];
static union record waiting[MANY];
static size_t n_waiting;
static struct {
    uint64_t context, id;
    uint32_t number, ran;
} streams[STREAMS];
static size_t n_streams;

extern CUresult cuSimActivity(cusim_activity_fn *tell);

/* What the function is to answer instead of doing its work; 0: nothing. */
static int planted(const char *function) {
    static int calls;
    const char *fail = getenv("CUPTI_STANDIN_FAIL");
    size_t length = strlen(function);
    int code = 0, from = 1;
    if (!fail || strncmp(fail, function, length) != 0 || fail[length] != ':')
        return 0;
    sscanf(fail + length + 1, "%d:%d", &code, &from);
    return __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED) >= from ? code : 0;
}
#define PLANTED()                                                                                  \
    do {                                                                                           \
        int code_ = planted(__func__);                                                             \
        if (code_)                                                                                 \
            return code_;                                                                          \
    } while (0)

static size_t bytes_of(uint32_t kind) {
    return kind == KIND_CONCURRENT_KERNEL ? 216 : kind == KIND_MEMCPY ? 96 : 88;
}

/* Lock held. */
static size_t find_stream(uint64_t context, uint64_t id) {
    uint32_t number = FIRST_STREAM;
    for (size_t i = 0; i < n_streams; i++) {
        if (streams[i].context == context && streams[i].id == id)
            return i;
        number += streams[i].context == context;
    }
    if (n_streams == STREAMS)
        abort();
    streams[n_streams].context = context;
    streams[n_streams].id = id;
    streams[n_streams].number = number;
    return n_streams++;
}

/* Lock held: another thread may be about to add to a full list. */
static size_t take(union record records[MANY]) {
    size_t n = n_waiting;
    memcpy(records, waiting, n * sizeof *records);
    n_waiting = 0;
    return n;
}

static void hand_over(const union record *records, size_t n) {
    size_t at = 0;
    while (at < n) {
        uint8_t *buffer = NULL;
        size_t bytes = 0, most = 0, valid = 0;
        request(&buffer, &bytes, &most);
        if (!buffer)
            return;
        for (; at < n && valid + bytes_of(records[at].kind) <= bytes; at++) {
            memcpy(buffer + valid, &records[at], bytes_of(records[at].kind));
            valid += bytes_of(records[at].kind);
        }
        complete(NULL, 0, buffer, bytes, valid);
    }
}

static void deliver(void) {
    union record records[MANY];
    pthread_mutex_lock(&lock);
    size_t n = take(records);
    pthread_mutex_unlock(&lock);
    hand_over(records, n);
}

static void hear(const struct cusim_activity *a) {
    union record full[MANY];
    size_t n_full = 0;
    uint32_t kind = a->kind == CUSIM_ACTIVITY_KERNEL   ? KIND_CONCURRENT_KERNEL
                    : a->kind == CUSIM_ACTIVITY_MEMSET ? KIND_MEMSET
                                                       : KIND_MEMCPY;
    union record r;
    memset(&r, 0, sizeof r);
    r.kind = kind;
    pthread_mutex_lock(&lock);
    size_t of = find_stream(a->context, a->stream);
    uint64_t start = a->start_ns + ahead, end = start + LONG + streams[of].ran++;
    if (!complete || !enabled[kind]) {
        pthread_mutex_unlock(&lock);
        return;
    }
    if (kind == KIND_CONCURRENT_KERNEL) {
        r.kernel.start = start;
        r.kernel.end = end;
        r.kernel.device = a->device;
        r.kernel.context = (uint32_t)a->context;
        r.kernel.stream = streams[of].number;
        r.kernel.correlation = (uint32_t)a->correlation;
        r.kernel.name = a->name;
        r.kernel.node = a->node;
        for (int i = 0; i < 3; i++) {
            r.kernel.grid[i] = (int32_t)a->grid[i];
            r.kernel.block[i] = (int32_t)a->block[i];
        }
    } else {
        r.transfer.start = start;
        r.transfer.end = end;
        r.transfer.bytes = a->bytes;
        r.transfer.device = a->device;
        r.transfer.context = (uint32_t)a->context;
        r.transfer.stream = streams[of].number;
        r.transfer.correlation = (uint32_t)a->correlation;
        r.transfer.node = a->node;
    }
    waiting[n_waiting++] = r;
    if (n_waiting == MANY)
        n_full = take(full);
    pthread_mutex_unlock(&lock);
    hand_over(full, n_full);
}

/* ---- what is exported ---- */

int cuptiActivityRegisterCallbacks(request_fn *ask, complete_fn *give) {
    PLANTED();
    pthread_mutex_lock(&lock);
    request = ask;
    complete = give;
    pthread_mutex_unlock(&lock);
    return 0;
}

static int enable(int kind, bool on) {
    if (kind < 0 || kind >= KINDS)
        return ERROR_INVALID_PARAMETER;
    pthread_mutex_lock(&lock);
    enabled[kind] = on;
    bool any = enabled[KIND_CONCURRENT_KERNEL] || enabled[KIND_MEMCPY] || enabled[KIND_MEMSET];
    pthread_mutex_unlock(&lock);
    cuSimActivity(any ? hear : NULL);
    return 0;
}

int cuptiActivityEnable(int kind) {
    PLANTED();
    return enable(kind, true);
}

int cuptiActivityDisable(int kind) {
    PLANTED();
    return enable(kind, false);
}

int cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, void **record) {
    PLANTED();
    uint8_t *next = buffer;
    if (*record)
        next = (uint8_t *)*record + bytes_of(*(uint32_t *)*record);
    if (next >= buffer + valid)
        return ERROR_MAX_LIMIT_REACHED;
    *record = next;
    return 0;
}

int cuptiActivityFlushAll(uint32_t flag) {
    (void)flag;
    PLANTED();
    deliver();
    return 0;
}

int cuptiGetTimestamp(uint64_t *timestamp) {
    struct timespec now;
    PLANTED();
    clock_gettime(CLOCK_MONOTONIC, &now);
    *timestamp = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec + ahead;
    return 0;
}

int cuptiGetStreamIdEx(CUcontext context, CUstream stream, uint8_t per_thread, uint32_t *number) {
    unsigned long long context_id = 0, id = 0;
    PLANTED();
    if (per_thread && (!stream || stream == CU_STREAM_LEGACY))
        stream = CU_STREAM_PER_THREAD;
    if (cuCtxGetId(context, &context_id) != CUDA_SUCCESS ||
        cuStreamGetId(stream, &id) != CUDA_SUCCESS)
        return ERROR_INVALID_PARAMETER;
    pthread_mutex_lock(&lock);
    *number = streams[find_stream(context_id, id)].number;
    pthread_mutex_unlock(&lock);
    return 0;
}

int cuptiGetContextId(CUcontext context, uint32_t *number) {
    unsigned long long id = 0;
    PLANTED();
    if (cuCtxGetId(context, &id) != CUDA_SUCCESS)
        return ERROR_INVALID_PARAMETER;
    *number = (uint32_t)id;
    return 0;
}
