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
#include "shim/plan/account.h"
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

/* ---- how much ----
 *
 * A graph is built by the thread that completes its piece, in the call that does, since then its
 * ops are what they will be (HAZARDS A15). It is not built by a thread of its own: beside one that
 * launches each call waits for the driver's lock, 500 nodes take 2.1 ms to instantiate in place of
 * 0.9 and hold up the launches meanwhile (tests/gpu/RESULTS.md). So that none of the program's
 * steps is much longer than it would be, a step has a share of nodes and one of time, no piece is
 * formed that would be more than the share of a step, and what was built already is launched
 * meanwhile.
 *
 * A host that is ahead of its GPU gains nothing by building elsewhere, in front of a wait, say: the
 * GPU has work while a graph is built in any call. One that is not has no time to spare anywhere.
 */

/* On an H200 with driver 580 a graph of 500 nodes takes 0.31 ms to capture and 0.9 ms to
 * instantiate (tests/gpu/RESULTS.md). What it takes here is measured from there on. */
enum {
    STEP_OPS = 1000,   /* a longer step has as many shares as it has so many ops */
    NODE_NS = 2500,    /* the first estimate of what a node takes; */
    NODE_NS_MIN = 500, /* never less, */
    NODE_NS_MAX = 1000000,
    GRAPH_NS = 30000,  /* what a graph takes beside */
    MEASURED_FROM = 8, /* nodes of a graph that is measured */
    FASTER = 4,    /* weight of a measurement: one in so many where it is less than the estimate, */
    SLOWER = 2,    /* where it is more, */
    SLOWER_MAX = 4 /* which is not believed beyond so many times the estimate: a thread that had
                      to wait for a processor says nothing of the driver */
};

static uint64_t node_ns(void) {
    uint64_t ns = __atomic_load_n(&cus_process.build_node_ns, __ATOMIC_RELAXED);
    return ns ? ns : NODE_NS;
}

static uint64_t estimate(uint32_t nodes) {
    return GRAPH_NS + nodes * node_ns();
}

/* The graph is launched in the call that builds it: what that costs the step more than these ops by
 * themselves would have. */
static uint64_t beyond(uint32_t nodes, uint64_t ns) {
    uint64_t saved = (uint64_t)nodes * (CUS_COST_LAUNCH - CUS_COST_MATCHED);
    return ns > saved ? ns - saved : 0;
}

/* Engine lock held. */
static uint32_t nodes_in(const struct cus_engine *engine) {
    if (!engine->build_all_ns)
        return engine->build_all;
    uint64_t n =
        engine->build_all_ns > GRAPH_NS ? (engine->build_all_ns - GRAPH_NS) / node_ns() : 0;
    return n < engine->build_all ? (uint32_t)n + 1 : engine->build_all; /* 0 would mean any */
}

void cus_build_allow(struct cus_engine *engine) {
    const struct cus_counters *c = &engine->counters;
    uint64_t ops = c->ops[CUS_OP_LAUNCH] + c->ops[CUS_OP_MEMSET] + c->ops[CUS_OP_COPY];
    uint64_t length = ops - engine->allowed_at < STEP_OPS ? STEP_OPS : ops - engine->allowed_at;
    uint64_t nodes = cus_options()->build_nodes * length / STEP_OPS;
    engine->allowed_at = ops;
    engine->build_left = engine->build_all = nodes < UINT32_MAX ? (uint32_t)nodes : UINT32_MAX;
    engine->build_left_ns = engine->build_all_ns = cus_options()->build_us * length;
    engine->advised_left = length < UINT32_MAX ? (uint32_t)length : UINT32_MAX;
    engine->plan.share = nodes_in(engine);
}

/* Where an earlier run says that it pays, each op of a step may be built at once, or it would pay
 * late: such a node is not one of the share, and of its time counts what is beyond the launch. On
 * an H200 that is some 30 us a graph, so that a step is in graphs as a whole when it comes again;
 * where building is slower it is spread, too. */
bool cus_build_fits(const struct cus_engine *engine, uint32_t nodes, bool advised) {
    bool any = !engine->build_all_ns;
    if (advised && nodes <= engine->advised_left &&
        (any || beyond(nodes, estimate(nodes)) <= engine->build_left_ns))
        return true;
    if (engine->build_left == engine->build_all && engine->build_left_ns == engine->build_all_ns)
        return true;
    return nodes <= engine->build_left && (any || estimate(nodes) <= engine->build_left_ns);
}

/* One thread builds at a time; that two measure at once matters to nobody. */
void cus_build_took(struct cus_engine *engine, uint32_t nodes, uint64_t ns, bool advised) {
    uint64_t counts = ns;
    engine->built_nodes += nodes;
    if (advised && nodes <= engine->advised_left) {
        engine->advised_left -= nodes;
        /* A first build that set something up says nothing of those behind it. */
        uint64_t most = SLOWER_MAX * estimate(nodes);
        counts = beyond(nodes, ns < most ? ns : most);
    } else {
        engine->build_left -= nodes < engine->build_left ? nodes : engine->build_left;
    }
    engine->build_left_ns -= counts < engine->build_left_ns ? counts : engine->build_left_ns;
    if (nodes < MEASURED_FROM || !ns || engine->shadow)
        return;
    uint64_t before = node_ns(), each = ns > GRAPH_NS ? (ns - GRAPH_NS) / nodes : 0;
    if (each > SLOWER_MAX * before)
        each = SLOWER_MAX * before;
    uint64_t weight = each > before ? SLOWER : FASTER;
    uint64_t now = (before * (weight - 1) + each) / weight;
    if (now < NODE_NS_MIN)
        now = NODE_NS_MIN;
    __atomic_store_n(&cus_process.build_node_ns, now < NODE_NS_MAX ? now : NODE_NS_MAX,
                     __ATOMIC_RELAXED);
    engine->plan.share = nodes_in(engine);
}
