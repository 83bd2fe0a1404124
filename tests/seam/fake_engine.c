/*
 * An engine that defers nothing: it logs each call of shim/stream/engine.h, and passes each op to
 * the real function at once.
 */
#define __CUDA_API_VERSION_INTERNAL
#include "shim/api/api.h"
#include "shim/stream/demotion.h"
#include "shim/stream/registry.h"
#include "shim/stream/state.h"
#include "tests/seam/seam_log.h"

static const char *abi_name(enum cus_abi abi) {
    return abi == CUS_ABI_PTSZ ? "ptsz" : "legacy";
}

static const char *stream_name(const struct cus_stream_ref *ref, char *text, size_t bytes) {
    if (!ref)
        return "-";
    snprintf(text, bytes, "%lx:%s", (unsigned long)ref->handle, abi_name(ref->abi));
    return text;
}

bool cus_engine_start(const struct cus_driver *driver) {
    bool needed = true;
#define CUS_OWN_NEEDED(name, ...) needed &= driver->name != NULL;
#include "shim/api/own.def"
    seam_log("engine start %d", needed);
    return needed;
}

void cus_engine_drain(void) {
    seam_log("engine drain");
}

void cus_engine_child(void) {
    seam_log("engine child");
}

void cus_engine_defer_off(const char *why) {
    seam_log("engine defer_off %s", why);
}

void cus_engine_opening(void) {
    seam_log("engine opening %u", cus_opening_threads());
}

void cus_engine_profiling(bool on) {
    seam_log("engine profiling %d", on);
}

static struct cus_counters counters;

static void count(enum cus_op_type type) {
    __atomic_fetch_add(&counters.ops[type], 1, __ATOMIC_RELAXED);
}

void cus_engine_counters(struct cus_counters *out) {
    for (unsigned type = 0; type < CUS_OP_TYPES; type++) {
        out->ops[type] = __atomic_load_n(&counters.ops[type], __ATOMIC_RELAXED);
        out->eager_by[CUS_EAGER_PASSTHROUGH] += out->ops[type];
    }
}

void cus_engine_unmet(void (*say)(const char *text)) {
    (void)say;
}
void cus_engine_report(struct cus_report *report, const struct cus_counters *sum,
                       const char *(*api_name)(unsigned row)) {
    (void)api_name;
    *report = (struct cus_report){.counters = sum, .mode = "fake"};
}

bool cus_engine_segment_list(char *text, size_t bytes) {
    snprintf(text, bytes, "[]");
    return false;
}

void cus_engine_force_break(unsigned cause) {
    seam_log("engine force_break %s", cause == CUS_CAUSE_APP ? "application" : "?");
}

void cus_engine_suspend(bool on) {
    seam_log("engine %s", on ? "suspend" : "resume");
}

unsigned cus_engine_steps(struct cus_stats_step steps[CUS_STATS_STEPS]) {
    (void)steps;
    return 0;
}

CUresult cus_engine_launch(const struct cus_launch *launch) {
    char stream[64];
    count(CUS_OP_LAUNCH);
    seam_log(
        "engine launch %d f=%lx stream=%s dims=%u,%u,%u,%u,%u,%u,%u attrs=%u params=%lx extra=%lx",
        launch->form, (unsigned long)launch->f, stream_name(&launch->stream, stream, sizeof stream),
        launch->dims[0], launch->dims[1], launch->dims[2], launch->dims[3], launch->dims[4],
        launch->dims[5], launch->dims[6], launch->n_attrs, (unsigned long)launch->params,
        (unsigned long)launch->extra);
    errno = 77; /* nothing of this reaches the program */
    if (getenv("SEAM_DEMOTED")) {
        static struct cus_context context;
        static struct cus_engine demoted = {.demoted = 1000, .context = &context};
        context.known_funcs[cus_kinds_slot(launch->f)] = launch->f;
        cus_process.n_contexts = 1;
        cus_thread_self.cached_engine = &demoted;
        cus_thread_self.ref = launch->stream;
    }
    const uint32_t *d = launch->dims;
    switch (launch->form) {
    case CUS_LAUNCH_PLAIN:
        return ((__typeof__(&cuLaunchKernel))launch->real)(launch->f, d[0], d[1], d[2], d[3], d[4],
                                                           d[5], d[6], launch->stream.handle,
                                                           launch->params, launch->extra);
    case CUS_LAUNCH_EX:
        return ((__typeof__(&cuLaunchKernelEx))launch->real)(launch->config, launch->f,
                                                             launch->params, launch->extra);
    default:
        return ((__typeof__(&cuLaunchCooperativeKernel))launch->real)(
            launch->f, d[0], d[1], d[2], d[3], d[4], d[5], d[6], launch->stream.handle,
            launch->params);
    }
}

CUresult cus_engine_memset(const struct cus_memset *m) {
    char stream[64];
    count(CUS_OP_MEMSET);
    seam_log(
        "engine memset dst=%lx pitch=%lu value=%x elem=%u width=%lu height=%lu 2d=%d stream=%s",
        (unsigned long)m->dst, m->pitch, m->value, m->elem, m->width, m->height, m->two_d,
        stream_name(&m->stream, stream, sizeof stream));
    CUstream s = m->stream.handle;
    if (m->two_d && m->elem == 1)
        return ((__typeof__(&cuMemsetD2D8Async))m->real)(m->dst, m->pitch, (unsigned char)m->value,
                                                         m->width, m->height, s);
    if (m->two_d && m->elem == 2)
        return ((__typeof__(&cuMemsetD2D16Async))m->real)(
            m->dst, m->pitch, (unsigned short)m->value, m->width, m->height, s);
    if (m->two_d)
        return ((__typeof__(&cuMemsetD2D32Async))m->real)(m->dst, m->pitch, m->value, m->width,
                                                          m->height, s);
    if (m->elem == 1)
        return ((__typeof__(&cuMemsetD8Async))m->real)(m->dst, (unsigned char)m->value, m->width,
                                                       s);
    if (m->elem == 2)
        return ((__typeof__(&cuMemsetD16Async))m->real)(m->dst, (unsigned short)m->value, m->width,
                                                        s);
    return ((__typeof__(&cuMemsetD32Async))m->real)(m->dst, m->value, m->width, s);
}

CUresult cus_engine_copy(const struct cus_copy *copy) {
    char stream[64];
    count(CUS_OP_COPY);
    seam_log("engine copy %d dst=%lx src=%lx bytes=%lu stream=%s", copy->form, copy->dst, copy->src,
             copy->bytes, stream_name(&copy->stream, stream, sizeof stream));
    /* Addresses of both sides travel as numbers of 64 bits. */
    return ((__typeof__(&cuMemcpyAsync))copy->real)(copy->dst, copy->src, copy->bytes,
                                                    copy->stream.handle);
}

/* What the hot path looks at: nothing is ever in the midst of a segment here. */
struct cus_process cus_process;
const char cus_no_stream;
__thread struct cus_thread cus_thread_self
    __attribute__((tls_model("initial-exec"))) = {.cached_stream = {CUS_NO_STREAM, CUS_NO_STREAM}};

bool cus_kinds_has_attrs(const struct cus_kind *kind, const CUlaunchAttribute *attrs,
                         uint32_t n_attrs) {
    (void)kind, (void)attrs, (void)n_attrs;
    return false;
}

bool cus_registry_turn(struct cus_thread *thread, struct cus_stream_ref ref) {
    (void)thread, (void)ref;
    return false;
}

void cus_demoted_repeats(struct cus_engine *engine, uint64_t left) {
    (void)engine, (void)left;
}

void cus_demoted_head(struct cus_engine *engine, uint64_t head) {
    (void)engine, (void)head;
}

void cus_engine_flush(enum cus_scope scope, const struct cus_stream_ref *ref, unsigned row) {
    static const char *const scopes[] = {"NONE", "S", "T", "C", "CT", "P"};
    char stream[64];
    const char *name = cus_api_name(row);
    seam_log("engine flush %s %s %s", scopes[scope],
             name                           ? name
             : row == CUS_CAUSE_UNKNOWN_API ? "unknown_api"
                                            : "?",
             stream_name(ref, stream, sizeof stream));
    errno = 77;
}

void cus_engine_flush_event(const struct cus_stream_ref *ref, CUevent event, unsigned row) {
    seam_log("engine flush_event %llx", (unsigned long long)(uintptr_t)event);
    cus_engine_flush(cus_api_rows[row].scope, ref, row);
}

void cus_engine_step_end(const struct cus_stream_ref *ref) {
    char stream[64];
    seam_log("engine step_end %s", stream_name(ref, stream, sizeof stream));
}

void cus_engine_getter(unsigned row) {
    seam_log("engine getter %s", cus_api_name(row));
}

void cus_engine_copying(bool begins) {
    seam_log("engine copying %d", begins);
}

static uint32_t waits; /* by one thread alone */

uint32_t cus_engine_wait_begins(void) {
    seam_log("engine wait_begins");
    return ++waits;
}

void cus_engine_wait_ended(uint32_t number) {
    seam_log("engine wait_ended %u", number);
}

void cus_engine_room_taken(bool graph) {
    seam_log("engine room_taken by a %s", graph ? "graph" : "stream");
}

/* SEAM_RESTS: the process rests from the first tick on. */
bool cus_engine_tick(unsigned row) {
    if (!getenv("SEAM_RESTS"))
        return false;
    seam_log("engine tick %s", cus_api_name(row));
    cus_process.resting = 1;
    return true;
}

bool cus_engine_wait_passes(const struct cus_wait *wait) {
    char stream[64];
    if (cus_process.resting)
        seam_log("engine wait_passes %lx %s", (unsigned long)wait->event,
                 stream_name(&wait->stream, stream, sizeof stream));
    return cus_process.resting;
}

/* The fake driver answers at once. */
void cus_engine_wait_took(const struct cus_stream_ref *ref, uint64_t ns) {
    char stream[64];
    seam_log("engine wait_took %s%s", stream_name(ref, stream, sizeof stream),
             ns < 1000000000000 ? "" : " for ever");
}

CUresult cus_engine_take_error(const struct cus_stream_ref *ref, unsigned row) {
    char stream[64];
    seam_log("engine take_error %s %s", cus_api_name(row), stream_name(ref, stream, sizeof stream));
    const char *error = getenv("SEAM_LATE_ERROR");
    return error ? (CUresult)atoi(error) : CUDA_SUCCESS;
}

void cus_engine_failed(CUresult result) {
    seam_log("engine failed %d", (int)result);
}

void cus_engine_stream_gone(const struct cus_stream_ref *ref) {
    char stream[64];
    seam_log("engine stream_gone %s", stream_name(ref, stream, sizeof stream));
}

void cus_engine_context_gone(void) {
    seam_log("engine context_gone");
}

bool cus_engine_context_goes(CUcontext context) {
    seam_log("engine context_goes %lx", (unsigned long)(uintptr_t)context);
    return (uintptr_t)context != 0xbad;
}

void cus_engine_context_stays(CUcontext context) {
    seam_log("engine context_stays %lx", (unsigned long)(uintptr_t)context);
}

void cus_engine_context_ended(CUcontext context) {
    seam_log("engine context_ended %lx", (unsigned long)(uintptr_t)context);
}

void cus_engine_code_gone(void) {
    seam_log("engine code_gone");
}

void cus_engine_nodes_timed(bool on) {
    seam_log("engine nodes_timed %d", on);
}

void cus_engine_memory_gone(void) {
    seam_log("engine memory_gone");
}

bool cus_engine_cannot_fit(uint64_t bytes) {
    return bytes > UINT64_MAX / 2;
}

/* What the program takes of 0x100 bytes is memory that it freed, and 0x200 bytes may come early. */

enum cus_alloc cus_engine_alloc_begins(const struct cus_stream_ref *stream, CUmemoryPool pool,
                                       uint64_t bytes, uint64_t *address) {
    if (bytes == 0x100)
        *address = 0x7100;
    seam_log("engine alloc_begins %llu %llx:%s%s", (unsigned long long)bytes,
             (unsigned long long)(uintptr_t)stream->handle,
             stream->abi == CUS_ABI_PTSZ ? "ptsz" : "legacy", pool ? " of a pool" : "");
    return bytes == 0x100 ? CUS_ALLOC_REUSED : bytes == 0x200 ? CUS_ALLOC_NOW : CUS_ALLOC_FLUSH;
}
void cus_engine_alloc_made(const struct cus_stream_ref *stream, CUmemoryPool pool, uint64_t address,
                           uint64_t bytes) {
    char text[64];
    seam_log("engine alloc_made %llx %llu %s%s", (unsigned long long)address,
             (unsigned long long)bytes, stream_name(stream, text, sizeof text),
             pool ? " of a pool" : "");
}

static bool frees; /* a free was deferred; by one thread alone */

bool cus_engine_frees(void) {
    return frees;
}
void cus_engine_pool_waited(uint32_t number) {
    seam_log("engine pool_waited %u", number);
}
bool cus_engine_alloc_failed(unsigned row, bool deferred) {
    seam_log("engine alloc_failed %s%s", cus_api_name(row), deferred ? " frees" : "");
    frees = false;
    return deferred;
}
/* The free of address 0x7100 is deferred, and that of 0x7200 may come early. */
enum cus_free cus_engine_free(const struct cus_stream_ref *stream, uint64_t address) {
    seam_log("engine free %llx %llx:%s", (unsigned long long)address,
             (unsigned long long)(uintptr_t)stream->handle,
             stream->abi == CUS_ABI_PTSZ ? "ptsz" : "legacy");
    frees |= address == 0x7100;
    return address == 0x7100   ? CUS_FREE_DEFERRED
           : address == 0x7200 ? CUS_FREE_NOW
                               : CUS_FREE_FLUSH;
}
void cus_engine_event_made(CUevent event) {
    seam_log("engine event_made %llx", (unsigned long long)(uintptr_t)event);
}
void cus_engine_event_seen(CUevent event, unsigned row) {
    seam_log("engine event_seen %llx %s", (unsigned long long)(uintptr_t)event, cus_api_name(row));
}
void cus_engine_event_named(CUevent event, unsigned row) {
    seam_log("engine event_named %llx %s", (unsigned long long)(uintptr_t)event, cus_api_name(row));
}
/* A node holds event 0x777d. */
bool cus_engine_event_goes(CUevent event, unsigned row) {
    seam_log("engine event_goes %llx %s", (unsigned long long)(uintptr_t)event, cus_api_name(row));
    return (uintptr_t)event == 0x777d;
}
bool cus_engine_event_withheld(CUevent event) {
    return (uintptr_t)event == 0x777f;
}
/* Events 0x7770 to 0x777f may be deferred. */
bool cus_engine_record_begins(struct cus_record *record, unsigned flags, unsigned row) {
    char text[64];
    seam_log("engine record_begins %llx %s %s flags %u",
             (unsigned long long)(uintptr_t)record->event, cus_api_name(row),
             stream_name(&record->stream, text, sizeof text), flags);
    return (uintptr_t)record->event >> 4 == 0x777 && !flags;
}
CUresult cus_engine_record(const struct cus_record *record) {
    char text[64];
    seam_log("engine record %llx %s%s", (unsigned long long)(uintptr_t)record->event,
             stream_name(&record->stream, text, sizeof text),
             record->with_flags ? " with_flags" : "");
    count(CUS_OP_RECORD);
    return CUDA_SUCCESS;
}
void cus_engine_recorded(const struct cus_record *record) {
    seam_log("engine recorded %llx", (unsigned long long)(uintptr_t)record->event);
}
/* A wait for event 0x7774 is an op. */
bool cus_engine_wait(const struct cus_wait *wait, CUresult *result) {
    char text[64];
    bool may = (uintptr_t)wait->event == 0x7774;
    seam_log("engine wait %llx %s %s%s", (unsigned long long)(uintptr_t)wait->event,
             cus_api_name(wait->row), stream_name(&wait->stream, text, sizeof text),
             may ? "" : " refused");
    *result = CUDA_SUCCESS;
    if (may)
        count(CUS_OP_WAIT);
    return may;
}
void cus_engine_waited(const struct cus_wait *wait) {
    seam_log("engine waited %llx", (unsigned long long)(uintptr_t)wait->event);
}
void cus_engine_shows(unsigned row) {
    seam_log("engine shows %s", cus_api_name(row));
}
void cus_engine_pool_numbers(void) {
    seam_log("engine pool_numbers");
}
void cus_engine_pool_memory_gone(uint64_t address) {
    seam_log("engine pool_memory_gone %llx", (unsigned long long)address);
}
void cus_engine_pool_gone(void) {
    seam_log("engine pool_gone");
}
void cus_engine_pool_made(CUmemoryPool pool, const CUmemPoolProps *props) {
    seam_log("engine pool_made %llx %d", (unsigned long long)(uintptr_t)pool, props->location.id);
}
void cus_engine_pool_goes(CUmemoryPool pool) {
    seam_log("engine pool_goes %llx", (unsigned long long)(uintptr_t)pool);
}
void cus_engine_pool_shared(CUmemoryPool pool) {
    seam_log("engine pool_shared %llx", (unsigned long long)(uintptr_t)pool);
}
void cus_engine_pool_set(void) {
    seam_log("engine pool_set");
}
void cus_engine_pool_watched(CUmemoryPool pool) {
    seam_log("engine pool_watched %llx", (unsigned long long)(uintptr_t)pool);
}

bool cus_engine_give_memory_back(uint64_t bytes) {
    seam_log("engine give_memory_back %llu", (unsigned long long)bytes);
    return getenv("SEAM_GIVES_BACK") != NULL;
}

void cus_engine_function_changed(const void *handle) {
    seam_log("engine function_changed %lx", (unsigned long)handle);
}

void cus_engine_limits_changed(void) {
    seam_log("engine limits_changed");
}

void cus_engine_stream_changed(const struct cus_stream_ref *ref) {
    char stream[64];
    seam_log("engine stream_changed %s", stream_name(ref, stream, sizeof stream));
}

void cus_engine_taint(const void *handle) {
    seam_log("engine taint %lx", (unsigned long)handle);
}

void cus_engine_capture_begins(void) {
    seam_log("engine capture_begins");
}

void cus_engine_capture_tried(void) {
    seam_log("engine capture_tried");
}

void cus_engine_capture_began(const struct cus_stream_ref *ref) {
    char stream[64];
    seam_log("engine capture_began %s", stream_name(ref, stream, sizeof stream));
}

void cus_engine_capture_ended(const struct cus_stream_ref *ref) {
    char stream[64];
    seam_log("engine capture_ended %s", stream_name(ref, stream, sizeof stream));
}

void cus_engine_unknown_call(void) {
    seam_log("engine unknown_call");
}

void cus_engine_note_handle(const void *handle, enum cus_handle kind) {
    seam_log("engine note_handle %lx %s", (unsigned long)handle,
             kind == CUS_HANDLE_KERNEL ? "kernel" : "function");
}

void cus_engine_memory_made(uint64_t address) {
    seam_log("engine memory_made %llx", (unsigned long long)address);
}

void cus_engine_memory_going(uint64_t address) {
    seam_log("engine memory_going %llx", (unsigned long long)address);
}

bool cus_engine_verify_end(uint64_t *verified, uint64_t *different) {
    *verified = *different = 0;
    return false;
}

bool cus_engine_asks_library(void) {
    return getenv("SEAM_ASKS_LIBRARY") != NULL;
}

bool cus_engine_asks_code(void) {
    return false;
}

void cus_engine_cache_save(bool ends) {
    (void)ends;
}

void cus_engine_code_loaded(const void *code, const char *file, uint64_t hash) {
    (void)hash;
    seam_log("engine code_loaded %lx %s", (unsigned long)code, file ? file : "-");
}

void cus_engine_code_made(const void *made, const void *from) {
    seam_log("engine code_made %lx %lx", (unsigned long)made, (unsigned long)from);
}

void cus_engine_code_unloaded(const void *code) {
    seam_log("engine code_unloaded %lx", (unsigned long)code);
}

#ifdef CUS_CHECKS
/* Nothing is promised of an engine that is not there. */
void cus_engine_check(const struct cus_engine *engine) {
    (void)engine;
}
#endif
