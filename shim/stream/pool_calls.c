/*
 * The program's allocations and frees in stream order: what comes before what, and what is flushed.
 * pools.c knows which memory lives and what may be deferred. Runs on program threads inside hooks,
 * with no lock held.
 */
#include "shim/base/hazard.h"
#include "shim/stream/check_launch.h"
#include "shim/stream/flush.h"
#include "shim/stream/pools.h"
#include "shim/stream/ranges.h"
#include "shim/stream/registry.h"
#include "shim/stream/streams.h"

static CUcontext current_context(void) {
    CUcontext context = NULL;
    return cus_process.driver->cuCtxGetCurrent(&context) == CUDA_SUCCESS ? context : NULL;
}

/* May anything be deferred? */
static bool defers(void) {
    return __atomic_load_n(&cus_process.state, __ATOMIC_ACQUIRE) == CUS_DEFER && !cus_check_on();
}

enum cus_alloc cus_engine_alloc_begins(const struct cus_stream_ref *stream, CUmemoryPool named,
                                       uint64_t bytes, uint64_t *address) {
    struct cus_thread *thread = &cus_thread_self;
    CUcontext current = current_context();
    struct cus_engine *engine = defers() ? cus_registry_find(thread, *stream, current) : NULL;
    struct cus_pool *pool = engine ? cus_pools_find(engine->context, named) : NULL;
    if (!pool)
        return CUS_ALLOC_FLUSH;
    struct cus_pool_use use = cus_pools_use(pool, engine);
    /* What another stream has freed, the driver may give to this allocation. */
    if (use.others_free)
        cus_flush_everything(CUS_CAUSE_OTHER_STREAM, CUS_BREAK_OTHER_STREAM);
    if (!__atomic_load_n(&engine->pending, __ATOMIC_ACQUIRE))
        return CUS_ALLOC_NOW;
    bool again = use.may_reuse;
    if (again) {
        cus_lock_take(&engine->lock);
        again = cus_streams_current(thread) && cus_pools_reuse(engine, pool, bytes, address);
        cus_engine_unlock(engine);
        if (again)
            cus_pools_add(pool, *address, bytes);
    }
    if (again)
        return CUS_ALLOC_REUSED;
    return use.alone || !CUS_HAZARD(C1) ? CUS_ALLOC_NOW : CUS_ALLOC_FLUSH;
}

void cus_engine_alloc_made(const struct cus_stream_ref *stream, CUmemoryPool named,
                           uint64_t address, uint64_t bytes) {
    struct cus_engine *engine =
        defers() ? cus_registry_find(&cus_thread_self, *stream, current_context()) : NULL;
    struct cus_pool *pool = engine ? cus_pools_find(engine->context, named) : NULL;
    if (pool)
        cus_pools_add(pool, address, bytes);
}

bool cus_engine_alloc_failed(unsigned row) {
    cus_pools_exhaust();
    bool deferred = __atomic_load_n(&cus_process.frees, __ATOMIC_ACQUIRE) != 0;
    if (deferred)
        cus_engine_flush(CUS_SCOPE_P, NULL, row);
    return deferred;
}

static enum cus_free decide(struct cus_engine *engine, struct cus_pool *pool, uint64_t address,
                            uint64_t bytes) {
    if (!engine->pending || !CUS_HAZARD(C2))
        return CUS_FREE_NOW;
    if (!pool || cus_thread_self.suspended || cus_program_captures(engine->context) ||
        !cus_pools_defer(engine, pool, address, bytes))
        return CUS_FREE_FLUSH;
    return CUS_FREE_DEFERRED;
}

enum cus_free cus_engine_free(const struct cus_stream_ref *stream, uint64_t address) {
    struct cus_thread *thread = &cus_thread_self;
    uint64_t bytes = 0;
    struct cus_engine *engine =
        defers() ? cus_registry_find(thread, *stream, current_context()) : NULL;
    struct cus_pool *pool = cus_pools_take_out(address, &bytes);
    if (pool)
        cus_ranges_forget_at(address);
    else
        cus_ranges_forget();
    if (!engine || !pool)
        cus_pools_note_unknown(engine);
    if (!engine)
        return CUS_FREE_FLUSH;
    cus_flush_ties(thread, engine);
    cus_lock_take(&engine->lock);
    if (!cus_streams_current(thread)) {
        cus_engine_unlock(engine);
        return CUS_FREE_FLUSH;
    }
    if (pool)
        cus_pools_note_use(pool, engine);
    enum cus_free how = decide(engine, pool, address, bytes);
    cus_engine_unlock(engine);
    if (how == CUS_FREE_DEFERRED)
        cus_thread_pends(thread, engine);
    return how;
}

void cus_engine_shows(unsigned row) {
    if (CUS_HAZARD(C2) && __atomic_load_n(&cus_process.frees, __ATOMIC_ACQUIRE))
        cus_engine_flush(CUS_SCOPE_P, NULL, row);
}
