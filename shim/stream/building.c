/*
 * What forbids building, which may wait for the GPU or for whoever sleeps in the driver (HAZARDS
 * A16): kernels that may wait for others, those that a rule never defers, while one may be running;
 * and copies of pageable memory, whose thread sleeps under a lock that building takes.
 *
 * Whether such a kernel has ended is asked of the driver, by the thread that wants to build and
 * then only. Runs on program threads; the build lock is innermost. A stream that is asked lives:
 * whoever is about to let it die takes its mark away first, under that lock.
 */
#include "shim/base/hazard.h"
#include "shim/base/log.h"
#include "shim/stream/tap.h"

/* On a stream of which nothing is known: nobody can be asked when it ends, so it never does. */
static void began_somewhere(void) {
    if (__atomic_exchange_n(&cus_process.lone_spinner, true, __ATOMIC_ACQ_REL))
        return;
    cus_lock_take(&cus_process.build_lock);
    __atomic_add_fetch(&cus_process.spinners, 1, __ATOMIC_ACQ_REL);
    cus_lock_give(&cus_process.build_lock);
    cus_fallback(CUS_FALLBACK_SPINNER);
    CUS_LOG_ONCE(
        CUS_WARN, "stream",
        "a kernel of a never_defer rule runs on a stream that is left alone (per-thread, or of "
        "another context): no more graphs are built");
}

void cus_spinner_began(struct cus_engine *engine) {
    if (!engine) {
        began_somewhere();
        return;
    }
    cus_lock_take(&cus_process.build_lock);
    engine->spin_calls++;
    if (!engine->spinning)
        __atomic_add_fetch(&cus_process.spinners, 1, __ATOMIC_ACQ_REL);
    engine->spinning = true;
    cus_lock_give(&cus_process.build_lock);
}

void cus_spinner_issued(struct cus_engine *engine) {
    if (!engine)
        return;
    cus_lock_take(&cus_process.build_lock);
    engine->spin_calls -= engine->spin_calls > 0;
    cus_lock_give(&cus_process.build_lock);
}

/* Build lock held. */
static void ended(struct cus_engine *engine) {
    engine->spinning = false;
    __atomic_sub_fetch(&cus_process.spinners, 1, __ATOMIC_ACQ_REL);
}

void cus_spinner_forget(struct cus_engine *engine) {
    cus_lock_take(&cus_process.build_lock);
    if (engine->spinning)
        ended(engine);
    engine->spin_calls = 0;
    cus_lock_give(&cus_process.build_lock);
}

/* A stream that captures, or that another one's capture concerns, is asked nothing else (D7). */
static bool complete(const struct cus_engine *engine) {
    const struct cus_driver *driver = cus_process.driver;
    CUstreamCaptureStatus status;
    bool pushed;
    if (!cus_context_enter(engine->context->handle, &pushed))
        return false;
    bool done = driver->cuStreamIsCapturing(engine->handle, &status) == CUDA_SUCCESS &&
                status == CU_STREAM_CAPTURE_STATUS_NONE &&
                driver->cuStreamQuery(engine->handle) == CUDA_SUCCESS;
    cus_context_leave(pushed);
    return done;
}

void cus_engine_copying(bool begins) {
    CUS_TAP(.what = CST_CALL_COPYING, .value = begins);
    __atomic_add_fetch(&cus_process.copiers, begins ? 1u : ~0u, __ATOMIC_ACQ_REL);
}

bool cus_build_safe(void) {
    if (__atomic_load_n(&cus_process.copiers, __ATOMIC_ACQUIRE))
        return false;
    if (!CUS_HAZARD(A16) || !__atomic_load_n(&cus_process.spinners, __ATOMIC_ACQUIRE))
        return true;
    uint32_t n = __atomic_load_n(&cus_process.n_engines, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < n; i++) {
        struct cus_engine *engine = cus_process.engines[i];
        if (engine->spinning && !engine->spin_calls && complete(engine))
            ended(engine);
    }
    return !__atomic_load_n(&cus_process.spinners, __ATOMIC_ACQUIRE);
}

/* ---- how much ---- */

/* What building takes, about twice what a launch does, is spread over steps: `build_nodes` for each
 * step, and more for a long one, which would not be done in a hundred otherwise. */
enum {
    OPS_PER_NODE = 16,
    ADVISED_NODES = 16384 /* on top of that, where an earlier run says that it pays: done at once,
                             or it would pay late; this long a step is not noticed behind the first
                             one, in which code is loaded */
};

void cus_build_allow(struct cus_engine *engine) {
    const struct cus_counters *c = &engine->counters;
    uint64_t ops = c->ops[CUS_OP_LAUNCH] + c->ops[CUS_OP_MEMSET] + c->ops[CUS_OP_COPY];
    uint64_t nodes = (ops - engine->allowed_at) / OPS_PER_NODE;
    uint32_t least = cus_options()->build_nodes;
    engine->allowed_at = ops;
    engine->build_left = engine->build_all = nodes > least ? (uint32_t)nodes : least;
    engine->advised_left = ADVISED_NODES;
}

void cus_build_take(struct cus_engine *engine, uint32_t nodes, bool advised) {
    if (advised && nodes <= engine->advised_left)
        engine->advised_left -= nodes;
    else
        engine->build_left -= nodes < engine->build_left ? nodes : engine->build_left;
}

bool cus_build_fits(const struct cus_engine *engine, uint32_t nodes, bool advised) {
    if (advised && nodes <= engine->advised_left)
        return true;
    return nodes <= engine->build_left || engine->build_left == engine->build_all;
}
