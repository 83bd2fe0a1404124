/*
 * The state of the process, and what engines call that does not matter for the order of accesses.
 */
#include "tests/order/engine.h"

#include <stdlib.h>

#include "shim/base/file.h"
#include "shim/base/log.h"
#include "shim/stream/access.h"
#include "shim/stream/fallback.h"
#include "shim/stream/trace.h"

struct cus_process cus_process;
__thread struct cus_thread cus_thread_self;
const char cus_no_stream;

static struct cus_context context = {.handle = (CUcontext)1};
static struct cus_options options = {.runtime_fast_path = true};
enum { ENGINES = 3 };
static struct cus_engine engines[ENGINES];
static struct cus_driver functions;

uint32_t order_threads;

/* The library's threads call this once, at depth 1. */
static CUresult exchange_mode(CUstreamCaptureMode *mode) {
    (void)mode;
    if (cus_thread_self.depth)
        order_threads++;
    return CUDA_SUCCESS;
}

static CUresult get_context(CUcontext *current) {
    *current = context.handle;
    return CUDA_SUCCESS;
}

static CUresult is_capturing(CUstream stream, CUstreamCaptureStatus *status) {
    (void)stream;
    *status = CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
}

void order_engines(uint32_t n) {
    functions.cuStreamIsCapturing = is_capturing;
    functions.cuThreadExchangeStreamCaptureMode = exchange_mode;
    functions.cuCtxGetCurrent = get_context;
    cus_process.driver = &functions;
    cus_process.state = CUS_DEFER;
    cus_process.may_build = true;
    cus_process.n_engines = n;
    for (uint32_t i = 0; i < ENGINES; i++) {
        engines[i].number = i;
        engines[i].context = &context;
        cus_process.engines[i] = &engines[i];
    }
}

const struct cus_options *cus_options(void) {
    return &options;
}

bool cus_context_enter(CUcontext wanted, bool *pushed) {
    (void)wanted;
    *pushed = false;
    return true;
}
void cus_context_leave(bool pushed) {
    (void)pushed;
}
void cus_log(enum cus_level level, const char *domain, const char *fmt, ...) {
    (void)level;
    (void)domain;
    (void)fmt;
}
bool cus_log_on(enum cus_level level, const char *domain) {
    (void)domain;
    (void)level;
    return false;
}
bool cus_log_first(unsigned *said) {
    (void)said;
    return false;
}
void cus_fallback(enum cus_fallback why) {
    (void)why;
}

uint32_t cus_record_on;
struct cus_lock cus_registry_lock = CUS_LOCK_OF(CUS_RANK_REGISTRY);
struct cus_shadow *cus_check_new(void) {
    return NULL;
}
void cus_plan_accept(struct cus_plan *plan, const struct cus_op *op, uint32_t epoch) {
    (void)plan;
    (void)op;
    (void)epoch;
}
/* The tests make all engines that they use. */
size_t cus_plan_bytes(void) {
    return 0;
}
void *cus_mem_lines(size_t bytes) {
    (void)bytes;
    abort();
}
int cus_file_open(const char *path, int flags, mode_t mode) {
    (void)path;
    (void)flags;
    (void)mode;
    return -1;
}
void cus_trace_segment(struct cus_engine *engine, const struct cus_segment *segment) {
    (void)engine;
    (void)segment;
}
