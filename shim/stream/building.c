/*
 * How much is built when, and who goes first meanwhile. Whether it may be built at all without
 * waiting for the GPU is room.c's.
 *
 * Runs on program threads; the build lock is innermost.
 */
#include <limits.h>

#include "shim/base/hazard.h"
#include "shim/base/lock.h"
#include "shim/base/log.h"
#include "shim/plan/account.h"
#include "shim/stream/trace.h"

void cus_engine_copying(bool begins) {
    CUS_TRACE(.what = CST_CALL_COPYING, .value = begins);
    __atomic_add_fetch(&cus_process.copiers, begins ? 1u : ~0u, __ATOMIC_ACQ_REL);
}

/* ---- beside others ----
 *
 * Each call of a build waits for the driver's lock, beside threads that launch, and where these are
 * many it hardly ever gets it: with 16 threads on an H200 a graph took 80 ms to build, a step 3.4 s
 * at worst, and in 400 steps 13 of 100 ops got into graphs (tests/gpu/RESULTS.md). So threads that
 * are about to issue an op or a complete segment, of streams that are demoted as well, let a build
 * go first: not for long, whoever it is that they wait for, and with no lock but that of their own
 * stream, which whoever builds does not take. Where hardly anybody waited for any of many builds
 * they have it only once they take long: whoever finds that one does gives it way, and says so to
 * the others.
 */

enum {
    CONTENDED_NS = 7500,   /* for a node: no driver takes so long by itself */
    CONTENDED_FROM = 8,    /* nodes of such a graph */
    CONTENDED_BUILDS = 64, /* that have priority from then on, as they have to begin with, */
    CROWD = 3,             /* and from the last one for which so many threads waited */
    YIELD_NS = 1000000,    /* for which an op waits at most, */
    YIELDS = 4             /* and so many ops of a thread, or graphs of a stream, for one build; all
                            while room is made, which has a bound of its own (room.c) */
};

void cus_build_start(void) {
    cus_process.contended = CONTENDED_BUILDS;
}

/* Longer than any driver takes by itself. */
static uint64_t long_ns(uint32_t nodes) {
    return (uint64_t)(nodes > CONTENDED_FROM ? nodes : CONTENDED_FROM) * CONTENDED_NS;
}

bool cus_build_takes_priority(uint32_t nodes) {
    bool now = cus_process.contended > 0;
    cus_process.contended -= now;
    uint32_t next = cus_process.build_number + CUS_PRIORITY_STEP;
    cus_process.build_number = next ? next : CUS_PRIORITY_STEP; /* 0 is none */
    __atomic_store_n(&cus_process.priority_from, cus_clock_ns() + long_ns(nodes), __ATOMIC_RELAXED);
    uint32_t flags = (now ? CUS_PRIORITY_NOW : 0) | (nodes ? 0 : CUS_PRIORITY_ROOM);
    __atomic_store_n(&cus_process.build_now, cus_process.build_number | flags, __ATOMIC_RELEASE);
    return now;
}

void cus_build_had_priority(bool now, uint32_t nodes, uint64_t ns) {
    __atomic_store_n(&cus_process.build_now, 0, __ATOMIC_RELEASE);
    cus_futex_wake(&cus_process.build_now, INT_MAX);
    bool crowd = __atomic_exchange_n(&cus_process.waited, 0, __ATOMIC_RELAXED) >= CROWD;
    if (crowd || (!now && nodes >= CONTENDED_FROM && ns > long_ns(nodes)))
        cus_process.contended = CONTENDED_BUILDS;
}

/* Has this build way by now? Whoever finds that it takes long gives it that, unless it ended. */
static bool has_priority(uint32_t *build) {
    if (*build & CUS_PRIORITY_NOW)
        return true;
    if (!*build || cus_clock_ns() < __atomic_load_n(&cus_process.priority_from, __ATOMIC_RELAXED))
        return false;
    uint32_t with = *build | CUS_PRIORITY_NOW;
    bool gave = __atomic_compare_exchange_n(&cus_process.build_now, build, with, false,
                                            __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    *build = gave ? with : *build;
    return *build & CUS_PRIORITY_NOW;
}

bool cus_build_wait(struct cus_build_waits *build_waits, uint64_t most_ns) {
    uint32_t build = __atomic_load_n(&cus_process.build_now, __ATOMIC_ACQUIRE);
    if (!most_ns || !has_priority(&build))
        return false;
    if (build_waits->build != build) {
        *build_waits = (struct cus_build_waits){.build = build};
        __atomic_add_fetch(&cus_process.waited, 1, __ATOMIC_RELAXED);
    }
    if (build_waits->n++ >= YIELDS && !(build & CUS_PRIORITY_ROOM))
        return false;
    cus_futex_wait(&cus_process.build_now, build, most_ns < YIELD_NS ? most_ns : YIELD_NS);
    return true;
}

/* ---- how much ----
 *
 * A graph is built by the thread that completes its segment, in the call that does, since then its
 * ops are what they will be (HAZARDS A15). It is not built by a thread of its own: beside one that
 * launches each call waits for the driver's lock, 500 nodes take 2.1 ms to instantiate in place of
 * 0.9 and hold up the launches meanwhile (tests/gpu/RESULTS.md). So that none of the program's
 * steps is much longer than it would be without graphs, a step has a share of nodes and one of
 * time, to which is added what its graphs have saved so far, and from which is taken what looking
 * at its ops has cost; no segment is formed that would be more than the share of a step; and what
 * was built already is launched meanwhile.
 *
 * A host that is ahead of its GPU gains nothing by building elsewhere, in front of a wait, say: the
 * GPU has work while a graph is built in any call. One that is not has no time to spare anywhere.
 */

/* On an H200 with driver 580 a graph of 500 nodes takes 0.31 ms to capture and 0.9 ms to
 * instantiate (tests/gpu/RESULTS.md). What it takes here is measured from there on. */
enum {
    STEP_OPS = 1000,   /* a step has a share for each so many of its ops, and one to begin with */
    FADE = 8,          /* what is longest lately gets shorter by so much of it with each step */
    NODE_NS = 2500,    /* the first estimate of what a node takes; */
    NODE_NS_MIN = 500, /* never less, */
    NODE_NS_MAX = 1000000,
    GRAPH_NS = 30000,   /* what a graph takes beside */
    MEASURED_FROM = 8,  /* nodes of a graph that is measured: a step may always build so many */
    STALE_STEPS = 64,   /* in which nothing was measured: what was is believed less from then on, or
                           one bad moment would keep graphs small for good */
    ADVISED_TIMES = 20, /* what an earlier run advises may take so many times the share of time: it
                           is done once, behind a first step in which code is loaded */
    PARTS = 4,          /* of the estimate: the last graph is one of them where it was faster, */
    SLOWER_PARTS = 3,   /* and so many where it was slower, */
    SLOWER_MAX = 4 /* which is not believed beyond so many times the estimate: a thread that had
                      to wait for a processor says nothing of the driver */
};

static uint64_t node_ns(void) {
    uint64_t ns = __atomic_load_n(&cus_process.build_node_ns, __ATOMIC_RELAXED);
    return ns ? ns : NODE_NS;
}

/* As long as nothing was measured, it may be slower; where an earlier run says that it pays, that
 * is taken upon oneself. */
static uint64_t estimate(uint32_t nodes, bool advised) {
    bool unknown = !__atomic_load_n(&cus_process.build_node_ns, __ATOMIC_RELAXED);
    uint64_t wait = __atomic_load_n(&cus_process.build_wait_ns, __ATOMIC_RELAXED);
    return GRAPH_NS + wait + nodes * node_ns() * (unknown && !advised ? SLOWER_MAX : 1);
}

/* The graph is launched in the call that builds it: what that costs the step more than these ops by
 * themselves would have. */
static uint64_t beyond(uint32_t nodes, uint64_t ns) {
    uint64_t saved = (uint64_t)nodes * (CUS_COST_LAUNCH - CUS_COST_MATCHED);
    return ns > saved ? ns - saved : 0;
}

/* Engine lock held, here and below. */
static uint64_t nodes_of(uint64_t ops) {
    return cus_options()->build_nodes * ops / STEP_OPS;
}

/* Nodes of a graph that is the share of a step with so many ops. */
static uint32_t nodes_in(uint64_t ops) {
    uint64_t nodes = nodes_of(ops), ns = cus_options()->build_us * ops;
    uint64_t each = beyond(1, node_ns());
    if (cus_options()->build_us && each) {
        uint64_t n = ns > GRAPH_NS ? (ns - GRAPH_NS) / each + 1 : 0;
        n = n > MEASURED_FROM ? n : MEASURED_FROM;
        nodes = n < nodes ? n : nodes;
    }
    return nodes < UINT32_MAX ? (uint32_t)nodes : UINT32_MAX;
}

/* It comes nearer to what it is taken for where nothing was measured. */
static void doubt(struct cus_building *building) {
    uint64_t ns = node_ns();
    if (++building->unmeasured < STALE_STEPS || ns <= NODE_NS)
        return;
    building->unmeasured = 0;
    __atomic_store_n(&cus_process.build_node_ns, (ns + NODE_NS) / 2, __ATOMIC_RELAXED);
}

void cus_build_allow(struct cus_engine *engine) {
    struct cus_building *building = &engine->building;
    struct cus_account now = cus_demotion_account(engine);
    uint64_t ops = now.ops - building->began.ops;
    uint64_t lately = building->length - building->length / FADE;
    uint64_t length = ops > lately ? ops : lately;
    building->length = length > STEP_OPS ? length : STEP_OPS;
    building->began = now;
    building->nodes = building->advised = 0;
    building->ns = 0;
    doubt(building);
    engine->plan.build_quota = nodes_in(building->length);
}

/* What an earlier run says that it pays is beside the share: each op of a step may be built at
 * once, or it would pay late. Only where that takes many times the share is it spread, too. */
bool cus_build_fits(const struct cus_engine *engine, uint32_t nodes, bool advised) {
    const struct cus_building *building = &engine->building;
    struct cus_account step = cus_account_since(cus_demotion_account(engine), building->began);
    uint64_t ops = step.ops < STEP_OPS ? STEP_OPS : step.ops;
    if (!building->nodes && !building->advised)
        return true;
    step.built = step.anew = 0; /* its time is counted here */
    uint64_t whole = building->length > ops ? building->length : ops;
    uint64_t build_quota = cus_options()->build_us * (advised ? ADVISED_TIMES * whole : ops);
    int64_t ns = (int64_t)build_quota + cus_account_balance(&step);
    int64_t then = (int64_t)(building->ns + beyond(nodes, estimate(nodes, advised)));
    if (cus_options()->build_us && then > ns)
        return false;
    return advised ? building->advised <= ops : building->nodes + nodes <= nodes_of(ops);
}

static void note_wait(uint64_t waited) {
    uint64_t before = __atomic_load_n(&cus_process.build_wait_ns, __ATOMIC_RELAXED);
    uint64_t most = SLOWER_MAX * (before + GRAPH_NS);
    uint64_t now = (before * (PARTS - 1) + (waited < most ? waited : most)) / PARTS;
    __atomic_store_n(&cus_process.build_wait_ns, now, __ATOMIC_RELAXED);
}

/* One that takes much longer than is thought says nothing of this step. */
static void spend(struct cus_engine *engine, uint32_t nodes, uint64_t ns, bool advised) {
    struct cus_building *building = &engine->building;
    uint64_t most = SLOWER_MAX * estimate(nodes, true);
    engine->built_nodes += nodes;
    *(advised ? &building->advised : &building->nodes) += nodes;
    building->ns += ns < most ? ns : most;
}

void cus_build_failed(struct cus_engine *engine, uint32_t nodes, uint64_t ns, bool advised) {
    spend(engine, nodes, ns, advised);
}

/* One thread builds at a time; that two measure at once matters to nobody. */
void cus_build_took(struct cus_engine *engine, uint32_t nodes, uint64_t ns, uint64_t waited_ns,
                    bool advised) {
    uint64_t before = node_ns();
    bool first = !__atomic_load_n(&cus_process.build_node_ns, __ATOMIC_RELAXED);
    spend(engine, nodes, ns, advised);
    if (engine->shadow)
        return;
    note_wait(waited_ns);
    if (nodes < MEASURED_FROM)
        return;
    engine->building.unmeasured = 0;
    uint64_t each = ns > GRAPH_NS + waited_ns ? (ns - waited_ns - GRAPH_NS) / nodes : 0;
    if (each > SLOWER_MAX * before)
        each = SLOWER_MAX * before;
    uint64_t parts = first ? PARTS : each > before ? SLOWER_PARTS : 1;
    uint64_t now = (before * (PARTS - parts) + each * parts) / PARTS;
    if (now < NODE_NS_MIN)
        now = NODE_NS_MIN;
    __atomic_store_n(&cus_process.build_node_ns, now < NODE_NS_MAX ? now : NODE_NS_MAX,
                     __ATOMIC_RELAXED);
    engine->plan.build_quota = nodes_in(engine->building.length);
}
