/*
 * The program's allocations and frees in stream order: what comes before what, and what is flushed.
 * pools.c knows which memory lives and what may be deferred. Runs on program threads inside hooks,
 * with no lock held.
 */
#include "shim/api/api.h"
#include "shim/base/hazard.h"
#include "shim/stream/flush.h"
#include "shim/stream/pools.h"
#include "shim/stream/ranges.h"
#include "shim/stream/registry.h"
#include "shim/stream/streams.h"
#include "shim/stream/trace.h"

static CUcontext current_context(void) {
    CUcontext context = NULL;
    return cus_process.driver->cuCtxGetCurrent(&context) == CUDA_SUCCESS ? context : NULL;
}

/* May anything be deferred, now or after a rest? */
static bool defers(void) {
    return __atomic_load_n(&cus_process.state, __ATOMIC_ACQUIRE) >= CUS_RESTING;
}

/* Memory of a side stream comes and goes by that stream's own calls. */
static void named_alone(struct cus_engine *engine, unsigned row) {
    __atomic_add_fetch(&engine->calls, 1, __ATOMIC_SEQ_CST);
    cus_flush_branch(engine, row);
}

enum cus_alloc cus_engine_alloc_begins(const struct cus_stream_ref *stream, CUmemoryPool named,
                                       uint64_t bytes, uint64_t *address) {
    struct cus_thread *thread = &cus_thread_self;
    CUcontext current = current_context();
    struct cus_engine *engine = defers() ? cus_registry_find(thread, *stream, current) : NULL;
    if (engine)
        named_alone(engine, CUS_ROW_cuMemAllocAsync);
    struct cus_pool *pool = engine ? cus_pools_find(engine->context, named) : NULL;
    if (!pool)
        return CUS_ALLOC_FLUSH;
    struct cus_pool_use use = cus_pools_use(pool, engine);
    /* What another stream has freed, the driver may give to this allocation. */
    if (use.others_free)
        cus_flush_everything(CUS_CAUSE_OTHER_STREAM, CUS_BREAK_OTHER_STREAM);
    if (!use.alone && CUS_HAZARD(C1))
        return CUS_ALLOC_FLUSH;
    bool again = use.may_reuse && __atomic_load_n(&engine->pending, __ATOMIC_ACQUIRE);
    if (again) {
        cus_lock_take(&engine->lock);
        again = cus_streams_current(thread) && cus_pools_reuse(engine, pool, bytes, address);
        cus_engine_unlock(engine);
        if (again)
            cus_pools_add(pool, *address, bytes);
    }
    if (again)
        return CUS_ALLOC_REUSED;
    return cus_pools_may_grow(pool, bytes) ? CUS_ALLOC_NOW : CUS_ALLOC_FLUSH;
}

void cus_engine_alloc_made(const struct cus_stream_ref *stream, CUmemoryPool named,
                           uint64_t address, uint64_t bytes) {
    struct cus_engine *engine =
        defers() ? cus_registry_find(&cus_thread_self, *stream, current_context()) : NULL;
    struct cus_pool *pool = engine ? cus_pools_find(engine->context, named) : NULL;
    /* An allocation that was captured belongs to the program's graph. */
    if (!pool || cus_program_captures(engine->context))
        return;
    cus_pools_took(pool, bytes);
    cus_pools_add(pool, address, bytes);
}

bool cus_engine_frees(void) {
    return __atomic_load_n(&cus_process.frees, __ATOMIC_ACQUIRE) != 0;
}

bool cus_engine_alloc_failed(unsigned row, bool deferred) {
    cus_pools_exhaust();
    if (cus_engine_frees()) {
        deferred = true;
        cus_engine_flush(CUS_SCOPE_P, NULL, row);
    }
    return deferred;
}

/* Engine lock held. A thread defers on one stream at a time (HAZARDS B6): a free on another one is
 * made now. */
static enum cus_free decide(struct cus_engine *engine, struct cus_pool *pool, uint64_t address,
                            uint64_t bytes) {
    if (!engine->pending || !CUS_HAZARD(C2))
        return CUS_FREE_NOW;
    const struct cus_engine *own = cus_thread_self.pending;
    if (!pool || (own && own != engine) || cus_thread_self.suspended ||
        cus_program_captures(engine->context) || !cus_pools_defer(engine, pool, address, bytes))
        return CUS_FREE_FLUSH;
    return CUS_FREE_DEFERRED;
}

/* `pool`: NULL if the memory is not known to live. */
static enum cus_free free_of(struct cus_pool *pool, const struct cus_stream_ref *stream,
                             uint64_t address, uint64_t bytes) {
    struct cus_thread *thread = &cus_thread_self;
    cus_exec_memory_goes();
    if (!pool) {
        cus_engine_memory_gone();
    } else if (cus_ranges_forget_at(address)) {
        CUS_TRACE(.what = CST_CALL_MEMORY_GONE);
    }
    struct cus_engine *engine;
    for (;;) {
        engine = defers() ? cus_registry_find(thread, *stream, current_context()) : NULL;
        bool another = engine && pool && cus_pools_note_use(pool, engine);
        if (!engine || !pool)
            cus_pools_note_unknown(engine);
        /* Another thread may be about to allocate, in front of what it deferred. */
        if (another)
            cus_flush_everything(CUS_CAUSE_OTHER_STREAM, CUS_BREAK_OTHER_STREAM);
        if (!engine)
            return CUS_FREE_FLUSH;
        named_alone(engine, CUS_ROW_cuMemFreeAsync);
        cus_flush_legacy(engine);
        cus_lock_take(&engine->lock);
        if (cus_streams_current(thread))
            break;
        cus_engine_unlock(engine);
    }
    enum cus_free how = decide(engine, pool, address, bytes);
    cus_engine_unlock(engine);
    if (how == CUS_FREE_DEFERRED)
        cus_thread_pends(thread, engine);
    return how;
}

enum cus_free cus_engine_free(const struct cus_stream_ref *stream, uint64_t address) {
    uint64_t bytes = 0;
    if (!address)
        return CUS_FREE_NOW; /* does nothing */
    struct cus_pool *pool = cus_pools_take_out(address, &bytes);
    enum cus_free how = free_of(pool, stream, address, bytes);
    if (pool)
        cus_pools_let_go(pool);
    return how;
}

void cus_engine_shows(unsigned row) {
    if (CUS_HAZARD(C2) && cus_engine_frees())
        cus_engine_flush(CUS_SCOPE_P, NULL, row);
}
