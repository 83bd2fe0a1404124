/*
 * The graphs of an engine: built from deferred ops, kept within the memory budget, destroyed. Runs
 * on the thread that completes a segment or flushes, with the engine's lock held and its context
 * current; builds hold the build lock too. Calls the driver.
 */
#include "shim/stream/graphs.h"
#include "shim/base/cancel.h"
#include "shim/base/clock.h"
#include "shim/base/hazard.h"
#include "shim/base/mem.h"
#include "shim/base/options.h"
#include "shim/graph/relax.h"
#include "shim/stream/advice.h"
#include "shim/stream/events.h"
#include "shim/stream/fallback.h"
#include "shim/stream/news.h"
#include "shim/stream/state.h"

/* ---- the memory budget ---- */

bool cus_graphs_fit(uint32_t nodes) {
    uint64_t limit = (uint64_t)cus_options()->graph_mb << 20;
    return !CUS_HAZARD(A19) ||
           __atomic_load_n(&cus_process.graph_bytes, __ATOMIC_RELAXED) + cus_exec_estimate(nodes) <=
               limit;
}

/* Drops this engine's graphs until `bytes` more fit. False: they do not fit. */
static bool make_room(struct cus_engine *engine, uint64_t bytes) {
    uint64_t limit = (uint64_t)cus_options()->graph_mb << 20;
    while (CUS_HAZARD(A19) &&
           __atomic_load_n(&cus_process.graph_bytes, __ATOMIC_RELAXED) + bytes > limit) {
        engine->dropping = "graph_mb is used up";
        bool dropped = cus_plan_drop_oldest(cus_engine_plan(engine));
        engine->dropping = NULL;
        if (!dropped) {
            __atomic_store_n(&cus_process.wanting, true, __ATOMIC_RELAXED);
            return false;
        }
        cus_fallback(CUS_FALLBACK_BUDGET);
    }
    return true;
}

/* ---- building ---- */

/* The driver's call may sleep while another thread copies pageable memory (HAZARDS A16). */
void cus_graphs_destroy_events(void) {
    CUevent old[CUS_EVENTS_OLD];
    unsigned n = CUS_EVENTS_OLD;
    while (n == CUS_EVENTS_OLD && !cus_somebody_copies()) {
        n = cus_events_take_old(old);
        for (unsigned i = 0; i < n; i++)
            cus_process.driver->cuEventDestroy_v2(old[i]);
    }
}

void cus_graphs_drop_stream(struct cus_engine *engine) {
    if (engine->capture_stream && !engine->buried) {
        int cancel = cus_cancel_off();
        struct cus_relaxed relaxed = cus_relax(cus_process.driver);
        cus_process.driver->cuStreamDestroy_v2(engine->capture_stream);
        cus_relax_end(cus_process.driver, relaxed);
        cus_cancel_back(cancel);
        __atomic_add_fetch(&engine->freed.graphs, 1,
                           __ATOMIC_RELAXED); /* the driver keeps streams and graphs in one pool */
    }
    engine->capture_stream = NULL;
    engine->capture_refused = false;
}

bool cus_graphs_capture_stream(struct cus_engine *engine) {
    const struct cus_driver *driver = cus_process.driver;
    if (engine->capture_stream || engine->capture_refused)
        return engine->capture_stream != NULL;
    struct cus_relaxed relaxed = cus_relax(driver);
    int priority = 0;
    bool made = driver->cuStreamGetPriority(engine->handle, &priority) == CUDA_SUCCESS &&
                driver->cuStreamCreateWithPriority(&engine->capture_stream,
                                                   CUS_HAZARD(D1) ? CU_STREAM_NON_BLOCKING
                                                                  : CU_STREAM_DEFAULT,
                                                   CUS_HAZARD(A6) ? priority : 0) == CUDA_SUCCESS;
    /* It is unknown whether drivers can copy attributes from the legacy stream. So the driver is
     * asked for that only if the program has set attributes there. */
    bool attributes =
        !engine->legacy || __atomic_load_n(&engine->context->legacy_attributes, __ATOMIC_ACQUIRE);
    if (CUS_HAZARD(A7) && made && attributes && driver->cuStreamCopyAttributes &&
        driver->cuStreamCopyAttributes(engine->capture_stream, engine->handle) != CUDA_SUCCESS) {
        driver->cuStreamDestroy_v2(engine->capture_stream);
        made = false;
    }
    cus_relax_end(driver, relaxed);
    if (!made) {
        engine->capture_stream = NULL;
        engine->capture_refused = true;
    }
    return made;
}

static uint64_t clock_ns(void) {
    return cus_clock_ns();
}

struct cus_variant *cus_graphs_build(struct cus_engine *engine, bool *no_room) {
    struct cus_plan *plan = cus_engine_plan(engine);
    uint32_t n = engine->view.segment->n;
    struct cus_exec_op *ops = cus_mem_alloc(n * sizeof *ops);
    for (uint32_t i = 0; ops && i < n; i++) {
        const struct cus_kind *kind = engine->view.segment->places[i].kind;
        ops[i] = (struct cus_exec_op){.kind = (struct cus_kind *)(uintptr_t)kind,
                                      .values = cus_plan_values(plan, i),
                                      .absent = cus_plan_is_absent(plan, i)};
    }
    bool advised = engine->view.segment->advised;
    engine->view.segment->advised = false; /* advice is tried once */
    enum cus_fallback why = ops ? CUS_FALLBACK_BUDGET : CUS_FALLBACK_NO_MEMORY;
    struct cus_exec *exec;
    uint64_t start = cus_clock_ns();
    cus_graphs_destroy_dropped(engine, false);
    bool room = ops && make_room(engine, cus_exec_estimate(n));
    if (room)
        why = CUS_FALLBACK_CAPTURE;
    CUevent ends[CUS_BRANCHES + 1];
    for (unsigned b = 0; b <= CUS_BRANCHES; b++)
        ends[b] = engine->branches[b].end;
    bool built =
        room && cus_graphs_capture_stream(engine) &&
        cus_exec_build(cus_process.driver, (struct cus_exec_target){engine->capture_stream, ends},
                       ops, n, clock_ns, &exec, &why);
    cus_mem_free(ops);
    uint64_t took = cus_clock_ns() - start;
    engine->counters.build_ns += took;
    *no_room = !built && (!room || why == CUS_FALLBACK_NO_MEMORY);
    if (!built) {
        if (why != CUS_FALLBACK_NO_MEMORY) /* a lack of memory counts itself */
            cus_fallback(why);
        return NULL;
    }
    struct cus_variant *variant = cus_plan_built(plan, exec);
    if (!variant) {
        *no_room = true;
        cus_exec_destroy(cus_process.driver, exec);
        return NULL;
    }
    engine->counters.built++;
    cus_news_built(engine, exec, took);
    if (advised)
        cus_advice_built();
    engine->graph_bytes += cus_exec_bytes(exec);
    if (engine->graph_bytes > engine->counters.graph_bytes)
        engine->counters.graph_bytes = engine->graph_bytes;
    /* One thread builds at a time. */
    uint64_t now =
        __atomic_add_fetch(&cus_process.graph_bytes, cus_exec_bytes(exec), __ATOMIC_RELAXED);
    if (now > __atomic_load_n(&cus_process.graph_bytes_most, __ATOMIC_RELAXED))
        __atomic_store_n(&cus_process.graph_bytes_most, now, __ATOMIC_RELAXED);
    return variant;
}

/* ---- destroying ---- */

void cus_graphs_drop(struct cus_engine *engine, struct cus_exec *exec) {
    uint64_t bytes = cus_exec_bytes(exec);
    cus_news_dropped(engine, exec);
    engine->graph_bytes -= bytes;
    __atomic_sub_fetch(&cus_process.graph_bytes, bytes, __ATOMIC_RELAXED);
    cus_exec_put_off(&engine->dropped, exec);
    cus_graphs_destroy_dropped(engine, false);
}

/* A thread that destroys a graph while another one sleeps in a copy would sleep too, in the middle
 * of a launch (HAZARDS A16). */
void cus_graphs_destroy_dropped(struct cus_engine *engine, bool must) {
    if (!engine->dropped || (!must && cus_somebody_copies()))
        return;
    bool alive =
        !engine->buried && __atomic_load_n(&cus_process.state, __ATOMIC_ACQUIRE) != CUS_OFF;
    __atomic_store_n(&cus_process.pools_hold, true, __ATOMIC_RELAXED);
    for (struct cus_exec *exec = engine->dropped; exec; exec = cus_exec_next(exec)) {
        __atomic_add_fetch(&engine->freed.graphs, 1, __ATOMIC_RELAXED);
        engine->freed.nodes += cus_exec_nodes(exec);
    }
    int cancel = cus_cancel_off();
    cus_exec_destroy_list(alive ? cus_process.driver : NULL, &engine->dropped);
    cus_cancel_back(cancel);
}
