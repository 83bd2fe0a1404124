/*
 * Beginning and end of the recording, and what cannot be kept.
 */
#define __CUDA_API_VERSION_INTERNAL
#include "shim/keep/inner.h"

#include <errno.h>

#include "shim/api/api.h"
#include "shim/base/uthash.h"

#include "shim/base/forbid.h"

struct cus_keep_real cus_keep_real;
struct cus_lock cus_keep_lock = CUS_LOCK_OF(CUS_RANK_KEEP);
uint32_t cus_keep_on, cus_keep_recording;

#define CUS_CAPTURED(symbol, parameters, arguments) CUresult cus_keep_##symbol parameters;
#include "shim/keep/kept.def"

/* The assembly jumps to some of these after the guard has restored errno, so errno is kept here. */
#define CUS_CAPTURED(symbol, parameters, arguments)                                                \
    static CUresult enter_##symbol parameters {                                                    \
        int error = errno;                                                                         \
        CUresult result = cus_keep_##symbol arguments;                                             \
        errno = error;                                                                             \
        return result;                                                                             \
    }
#include "shim/keep/kept.def"

const struct cus_keep_place cus_keep_places[] = {
#define CUS_CAPTURED(symbol, parameters, arguments)                                                \
    {CUS_ROW_##symbol, (void *)enter_##symbol, (void **)(void *)&cus_keep_real.symbol},
#include "shim/keep/kept.def"
};
const unsigned cus_keep_n_places = sizeof cus_keep_places / sizeof *cus_keep_places;

#define CUS_KEEP_NEED(name) {CUS_ROW_##name, (void **)(void *)&cus_keep_real.name},
const struct cus_keep_need cus_keep_needs[] = {CUS_KEEP_NEEDED(CUS_KEEP_NEED)};
const unsigned cus_keep_n_needs = sizeof cus_keep_needs / sizeof *cus_keep_needs;

static CUcontext context; /* set once, by compare-and-swap; atomic */
static uint32_t finished; /* atomic */

/* ---- what a replay cannot do again ---- */

struct told {
    const char *call, *why; /* constants */
    struct told *next;
};
static struct told *told; /* guarded by told_lock */
static struct cus_lock told_lock = CUS_LOCK_OF(CUS_RANK_INNERMOST);

void cus_keep_cannot(const char *call, const char *why) {
    cus_lock_take(&told_lock);
    struct told *one = told;
    while (one && (strcmp(one->call, call) != 0 || strcmp(one->why, why) != 0))
        one = one->next;
    bool fresh = !one && (one = cus_mem_alloc(sizeof *one));
    if (fresh) {
        *one = (struct told){call, why, told};
        told = one;
    }
    cus_lock_give(&told_lock);
    if (!fresh)
        return;
    struct cst_obstacle record = {
        .head = {.type = CST_OBSTACLE, .words = sizeof record / 8},
        .call = cus_record_string(call),
        .why = cus_record_string(why),
    };
    cus_record_define(&record.head);
    CUS_LOG_ONCE(CUS_WARN, "keep", "the trace cannot be replayed: %s: %s", call, why);
}

/* Judges calls by the beginnings of their names; the longest that fits counts. `harmless`: a
 * replay need not make the call, or makes it itself. A replay cannot repeat a call that fits
 * none. */
static const struct {
    const char *begins;
    bool harmless;
} judged[] = {
    {"cuArray3DGet", true},
    {"cuArrayGet", true},
    {"cuCtx", true},
    {"cuCtxFromGreenCtx", false},
    {"cuCtxRecordEvent", false},
    {"cuCtxWaitEvent", false},
    {"cuCtxEnablePeerAccess", false},
    {"cuDevice", true},
    {"cuEvent", true},
    {"cuFunc", true},
    {"cuFuncSetBlockShape", false},
    {"cuFuncSetSharedSize", false},
    {"cuGetProcAddress", true},
    {"cuGraph", true}, /* harmless as long as the graph is not launched */
    {"cuGraphLaunch", false},
    {"cuGraphics", false},
    {"cuInit", true},
    {"cuKernel", true},
    {"cuLaunchKernel", true},
    {"cuLaunchCooperativeKernel", true},
    {"cuLaunchCooperativeKernelMultiDevice", false},
    {"cuLibrary", true},
    {"cuLibraryGetManaged", false},
    {"cuMemAddress", true},
    {"cuMemAdvise", true},
    {"cuMemAlloc", true}, /* foreign memory is recognised by its addresses */
    {"cuMemCreate", true},
    {"cuMemFree", true},
    {"cuMemGet", true},
    {"cuMemHost", true},
    {"cuMemMap", true},
    {"cuMemMapArrayAsync", false},
    {"cuMemPool", true},
    {"cuMemPoolImport", false},
    {"cuMemPrefetch", true},
    {"cuMemRange", true},
    {"cuMemRelease", true},
    {"cuMemRetain", true},
    {"cuMemSet", true},
    {"cuMemUnmap", true},
    {"cuMemcpyAsync", true},
    {"cuMemcpyDtoDAsync_v2", true},
    {"cuMemcpyHtoDAsync_v2", true},
    {"cuMemcpyDtoHAsync_v2", true},
    {"cuMemsetD8Async", true},
    {"cuMemsetD16Async", true},
    {"cuMemsetD32Async", true},
    {"cuMemsetD2D8Async", true},
    {"cuMemsetD2D16Async", true},
    {"cuMemsetD2D32Async", true},
    {"cuModule", true},
    {"cuModuleGetSurfRef", false},
    {"cuModuleGetTexRef", false},
    {"cuOccupancy", true},
    {"cuPointerSetAttribute", true},
    {"cuProfiler", true},
    {"cuStreamCreate", true},
    {"cuStreamDestroy", true},
    {"cuStreamGet", true},
    {"cuStreamSetAttribute", true},
    {"cuStreamCopyAttributes", true},
    {"cuStreamQuery", true},
    {"cuStreamSynchronize", true},
    {"cuStreamWaitEvent", true},
    {"cuUserObject", true},
};

static bool is_kept(unsigned row) {
    for (unsigned i = 0; i < cus_keep_n_places; i++)
        if (cus_keep_places[i].row == row)
            return true;
    return false;
}

static bool is_harmless(unsigned row) {
    const char *name = cus_api_name(row);
    size_t longest = 0;
    bool harmless = is_kept(row);
    for (unsigned i = 0; !harmless && i < sizeof judged / sizeof *judged; i++) {
        size_t n = strlen(judged[i].begins);
        if (n > longest && strncmp(name, judged[i].begins, n) == 0)
            longest = n;
    }
    for (unsigned i = 0; longest && i < sizeof judged / sizeof *judged; i++)
        if (strlen(judged[i].begins) == longest && strncmp(name, judged[i].begins, longest) == 0)
            harmless = judged[i].harmless;
    return harmless;
}

/* True: the call brings memory of others, which outlives the call. It therefore counts before
 * the recording begins, too. */
static bool brings_memory(const char *name) {
    return strncmp(name, "cuIpcOpen", 9) == 0 || strncmp(name, "cuImport", 8) == 0 ||
           strncmp(name, "cuExternalMemory", 16) == 0 || strncmp(name, "cuGraphics", 10) == 0 ||
           strncmp(name, "cuMulticast", 11) == 0;
}

/* Ends the recording. The program's memory stays where it is. */
static void stop(void) {
    __atomic_store_n(&cus_keep_recording, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&finished, 1, __ATOMIC_RELEASE);
    __atomic_store_n(&cus_keep_on, 0, __ATOMIC_RELEASE);
}

void cus_keep_saw(int row) {
    bool recording = __atomic_load_n(&cus_keep_recording, __ATOMIC_ACQUIRE);
    const char *name = row < 0 ? NULL : cus_api_name((unsigned)row);
    bool captures = !name || strncmp(name, "cuStreamBeginCapture", 20) == 0;
    if (!captures && ((!recording && !brings_memory(name)) || is_harmless((unsigned)row)))
        return;
    cus_keep_cannot(name ? name : "a function that the library does not know",
                    "a replay cannot make this call again");
    /* While the program captures, the driver forbids what the recording would ask. An unknown
     * function may have begun a capture. */
    if (captures)
        stop();
}

/* ---- the context ---- */

CUcontext cus_keep_of(void) {
    return __atomic_load_n(&context, __ATOMIC_ACQUIRE);
}

bool cus_keep_context(void) {
    CUcontext now = NULL, none = NULL;
    if (cus_keep_real.cuCtxGetCurrent(&now) != CUDA_SUCCESS || !now)
        return false;
    if (now == cus_keep_of() ||
        __atomic_compare_exchange_n(&context, &none, now, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE) ||
        none == now)
        return true;
    cus_keep_cannot("cuCtxSetCurrent", "the program works in more than one context");
    return false;
}

/* ---- the recording ---- */

bool cus_keep_start(bool from_the_start) {
    for (unsigned i = 0; i < cus_keep_n_needs; i++) {
        if (*cus_keep_needs[i].real)
            continue;
        cus_keep_cannot(cus_api_name(cus_keep_needs[i].row), "this driver does not have it");
        return false;
    }
    cus_keep_clock();
    __atomic_store_n(&cus_keep_recording, from_the_start, __ATOMIC_RELEASE);
    __atomic_store_n(&cus_keep_on, 1, __ATOMIC_RELEASE);
    return true;
}

/* Calls `what` in the kept context, after all work there has completed. */
static void in_context(void (*what)(void)) {
    CUcontext before = NULL, now = cus_keep_of();
    if (!now || cus_keep_real.cuCtxPushCurrent_v2(now) != CUDA_SUCCESS)
        return;
    if (cus_keep_real.cuCtxSynchronize() == CUDA_SUCCESS)
        what();
    else
        cus_keep_cannot("cuCtxSynchronize", "the context was lost");
    cus_keep_real.cuCtxPopCurrent_v2(&before);
}

void cus_keep_begin(void) {
    if (!cus_keeping())
        return;
    if (__atomic_load_n(&finished, __ATOMIC_ACQUIRE))
        return;
    in_context(cus_keep_memory_save);
    cus_record_data_written(); /* otherwise the writer would slow down the recorded steps */
    __atomic_store_n(&cus_keep_recording, 1, __ATOMIC_RELEASE);
}

void cus_keep_end(void) {
    cus_keep_finish();
    stop();
}

void cus_keep_finish(void) {
    if (!cus_keeping() || !__atomic_exchange_n(&cus_keep_recording, 0, __ATOMIC_ACQ_REL) ||
        __atomic_exchange_n(&finished, 1, __ATOMIC_ACQ_REL))
        return;
    in_context(cus_keep_memory_check);
}
