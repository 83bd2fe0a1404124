/*
 * The signature cache of this process. It is read when the engine starts and filled from each
 * stream's segments when they go or the process ends. It is written at exit, and now and then by a
 * thread of its own (hook/lifecycle.c). A launch never touches a file. Entries are collected under
 * the engine's lock, then under kept_lock, which is innermost. Only at exit does this file wait for
 * an engine's lock.
 */
#include <string.h>

#include "shim/base/clock.h"
#include "shim/base/log.h"
#include "shim/base/mem.h"
#include "shim/base/version.h"
#include "shim/cache/cache.h"
#include "shim/plan/advice.h"
#include "shim/stream/access.h"
#include "shim/stream/advice.h"
#include "shim/stream/state.h"

enum {
    /* Segments of a stream that are read while the program runs: the stream waits meanwhile. */
    FEW = 1024,
    FIRST_ROOM = 1024,
    PATIENCE_NS = 2000000000
};

static bool on;                        /* set at start */
static struct cus_cache read_at_start; /* frozen after start */
static enum cus_cache_state read_state = CUS_CACHE_NONE;
static struct cus_advice advice; /* its marks and counts are atomics */
static bool have_advice;
static uint32_t built; /* atomic: graphs built because of advice */

static struct cus_lock kept_lock = CUS_LOCK_OF(CUS_RANK_INNERMOST);
static struct cus_cache_entry *kept; /* kept_lock: entries for the next run */
static uint32_t n_kept, kept_room;   /* kept_lock */
static bool kept_full;               /* kept_lock */

static struct cus_lock save_lock = CUS_LOCK_OF(CUS_RANK_STATS); /* only one thread saves */
static uint32_t saves;                                          /* atomic */
static uint32_t in_file; /* atomic: entries of the file when last written */

/* What is wrong with a cache that nobody asked for is nothing to warn of. */
static enum cus_level level(void) {
    return cus_options()->cache_offered ? CUS_INFO : CUS_WARN;
}

static uint32_t room(void) {
    return cus_cache_room((uint64_t)cus_options()->cache_mb << 20);
}

/* ---- reading ---- */

void cus_advice_load(void) {
    if (cus_virtual.on)
        return; /* what a recorded program would do does not depend on this user's cache */
    const char *folder = cus_options()->cache_dir, *why;
    on = *folder && cus_process.may_build;
    if (!on)
        return;
    read_state = cus_cache_read(folder, &read_at_start, &why);
    if (why)
        cus_log(level(), "cache", "%s/" CUS_CACHE_FILE " is not used: %s", folder, why);
    __atomic_store_n(&in_file, read_at_start.n, __ATOMIC_RELAXED);
    if (!read_at_start.n || !(advice.marks = cus_mem_alloc(read_at_start.n)))
        return;
    advice.entries = read_at_start.entries;
    advice.n = read_at_start.n;
    have_advice = true;
}

bool cus_advice_on(void) {
    return on;
}

struct cus_advice *cus_advice_get(void) {
    return have_advice ? &advice : NULL;
}

void cus_advice_built(void) {
    __atomic_add_fetch(&built, 1, __ATOMIC_RELAXED);
}

/* Describes the model, not the one GPU: another one of the same model launches the same kernels.
 * Context current. */
static uint64_t describe_gpu(void) {
    static const CUdevice_attribute asked[] = {
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
        CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
        CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH,
        CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE,
        CU_DEVICE_ATTRIBUTE_CLOCK_RATE,
    };
    enum { ASKED = sizeof asked / sizeof *asked };
    const struct cus_driver *driver = cus_process.driver;
    int values[ASKED + 1] = {0};
    CUdevice device;
    if (driver->cuDriverGetVersion)
        driver->cuDriverGetVersion(&values[ASKED]);
    if (driver->cuDeviceGetAttribute && driver->cuCtxGetDevice(&device) == CUDA_SUCCESS)
        for (unsigned i = 0; i < ASKED; i++)
            if (driver->cuDeviceGetAttribute(&values[i], asked[i], device) != CUDA_SUCCESS)
                values[i] = 0;
    return cus_cache_hash(values, sizeof values, 0);
}

uint64_t cus_advice_seed(struct cus_context *context, const struct cus_plan_limits *limits) {
    if (!on)
        return 0;
    uint64_t gpu = __atomic_load_n(&context->gpu, __ATOMIC_RELAXED);
    if (!gpu) {
        gpu = describe_gpu() | 1;
        __atomic_store_n(&context->gpu, gpu, __ATOMIC_RELAXED);
    }
    const uint64_t words[] = {
        gpu,         limits->warmup, limits->segment_first, limits->segment_max, limits->segment_ns,
        limits->mode};
    return cus_cache_hash(words, sizeof words,
                          cus_cache_hash(CUSPLICE_VERSION, strlen(CUSPLICE_VERSION), 0));
}

/* ---- gathering ---- */

/* False: the table is full. kept_lock held. */
static bool have_room(void) {
    uint32_t most = room();
    if (n_kept < kept_room || kept_full)
        return n_kept < kept_room;
    if (kept_room) {
        n_kept = cus_cache_sort(kept, n_kept); /* streams that come and go add equal entries */
        if (n_kept <= kept_room / 2)
            return true;
    }
    uint32_t more = kept_room ? kept_room * 2 : FIRST_ROOM;
    if (more > most)
        more = most;
    struct cus_cache_entry *grown = more > kept_room ? cus_mem_alloc(more * sizeof *grown) : NULL;
    if (!grown) {
        kept_full = true; /* so it is not sorted at each entry */
        return n_kept < kept_room;
    }
    if (n_kept)
        memcpy(grown, kept, n_kept * sizeof *kept);
    cus_mem_free(kept);
    kept = grown;
    kept_room = more;
    return true;
}

static void keep(const struct cus_engine *engine, uint32_t most) {
    struct cus_cache_entry entry;
    if (!on)
        return;
    cus_lock_take(&kept_lock);
    for (const struct cus_segment *segment = engine->view.segments; segment && most;
         segment = segment->next) {
        most--;
        if (cus_advice_of(segment, &entry) && have_room())
            kept[n_kept++] = entry;
    }
    cus_lock_give(&kept_lock);
}

void cus_advice_keep(const struct cus_engine *engine) {
    keep(engine, UINT32_MAX);
}

static void gather(bool ends) {
    uint32_t n = __atomic_load_n(&cus_process.n_engines, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < n; i++) {
        struct cus_engine *engine = cus_process.engines[i];
        if (ends ? !cus_engine_take_in_time(engine) : !cus_lock_try(&engine->lock))
            continue;
        if (!engine->closed)
            keep(engine, ends ? UINT32_MAX : FEW);
        cus_engine_unlock(engine);
    }
}

/* ---- writing ---- */

/* A sorted copy of the kept entries, which stay. NULL: none, or no memory. */
static struct cus_cache_entry *copy_kept(uint32_t *n) {
    struct cus_cache_entry *copy = NULL;
    cus_lock_take(&kept_lock);
    *n = n_kept = cus_cache_sort(kept, n_kept);
    if (n_kept && (copy = cus_mem_alloc(n_kept * sizeof *copy)))
        memcpy(copy, kept, n_kept * sizeof *copy);
    cus_lock_give(&kept_lock);
    if (!copy)
        *n = 0;
    return copy;
}

/* Advice that was followed and led to nothing. Advice for segments that are only cut elsewhere now
 * stays: another program may begin with the same ops. */
static struct cus_cache_entry *find_bad(uint32_t *n) {
    struct cus_cache_entry *drop = NULL;
    *n = 0;
    uint32_t bad = __atomic_load_n(&advice.bad, __ATOMIC_RELAXED);
    if (!bad || !(drop = cus_mem_alloc(bad * sizeof *drop)))
        return NULL;
    for (uint32_t i = 0; i < advice.n && *n < bad; i++)
        if (__atomic_load_n(&advice.marks[i], __ATOMIC_RELAXED) & CUS_ADVICE_BAD)
            drop[(*n)++] = advice.entries[i];
    return drop;
}

void cus_engine_cache_save(bool ends) {
    if (!on)
        return;
    /* At exit, a disk that no longer answers is not waited for. */
    if (!(ends ? cus_lock_take_for(&save_lock, PATIENCE_NS) : cus_lock_try(&save_lock)))
        return;
    gather(ends);
    uint32_t n_good, n_drop = 0, n;
    bool wrote = false;
    struct cus_cache_entry *good = copy_kept(&n_good);
    struct cus_cache_entry *drop = find_bad(&n_drop);
    const char *folder = cus_options()->cache_dir, *why = NULL;
    enum cus_cache_state state = CUS_CACHE_GOOD;
    if (n_good || n_drop) {
        state = cus_cache_update(folder, room(), good, n_good, drop, n_drop, &n, &wrote, &why);
        if (state == CUS_CACHE_GOOD)
            __atomic_store_n(&in_file, n, __ATOMIC_RELAXED);
    }
    __atomic_add_fetch(&saves, wrote, __ATOMIC_RELAXED);
    cus_mem_free(good);
    cus_mem_free(drop);
    if (why)
        CUS_LOG_ONCE(level(), "cache", "%s/" CUS_CACHE_FILE " is not written: %s", folder, why);
    else if (state == CUS_CACHE_BUSY)
        cus_log(CUS_INFO, "cache", "another process writes %s/" CUS_CACHE_FILE, folder);
    cus_lock_give(&save_lock);
}

void cus_advice_facts(struct cus_stats_cache *out) {
    if (!on)
        return;
    *out = (struct cus_stats_cache){
        .state = cus_cache_state_name(read_state),
        .entries = read_at_start.n,
        .met = __atomic_load_n(&advice.reached, __ATOMIC_RELAXED),
        .used = __atomic_load_n(&advice.formed, __ATOMIC_RELAXED),
        .built = __atomic_load_n(&built, __ATOMIC_RELAXED),
        .written = __atomic_load_n(&saves, __ATOMIC_RELAXED),
        .in_file = __atomic_load_n(&in_file, __ATOMIC_RELAXED),
    };
}

void cus_advice_drop(void) {
    cus_mem_free(read_at_start.entries);
    cus_mem_free(advice.marks);
    cus_mem_free(kept);
    read_at_start = (struct cus_cache){0};
    read_state = CUS_CACHE_NONE;
    advice = (struct cus_advice){0};
    kept = NULL;
    on = have_advice = kept_full = false;
    built = n_kept = kept_room = saves = in_file = 0;
}

/* ---- is the identity of code asked for? ---- */

bool cus_engine_asks_code(void) {
    return cus_advice_on();
}

bool cus_engine_asks_library(void) {
    return cus_advice_on() || cus_rules_have(cus_rules(), CUS_PATTERN_LIB);
}
