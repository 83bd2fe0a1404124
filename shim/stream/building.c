/*
 * Build quota: how many nodes each step may build, so that no step is much longer for it. room.c
 * decides whether a graph can be built without a wait for the GPU, and priority.c lets a build go
 * first. Program threads call this file with the engine's lock held. It never calls the driver.
 */
#include "shim/stream/building.h"
#include "shim/base/clock.h"
#include "shim/base/hazard.h"
#include "shim/base/lock.h"
#include "shim/base/log.h"
#include "shim/plan/account.h"
#include "shim/stream/trace.h"

/* ---- build quota ----
 *
 * The thread that completes a segment builds its graph, in that same call: only then are all ops of
 * the graph known (HAZARDS A15). A separate build thread would be slower: beside a thread that
 * launches, 500 nodes take 2.1 ms to instantiate in place of 0.9 ms, and the launches wait
 * meanwhile (tests/gpu/RESULTS.md).
 *
 * To keep every step about as long as without graphs, a step may build a number of nodes (the build
 * quota) and spend an amount of time. What the graphs of the step saved is added to that time, and
 * what matching its ops cost is subtracted. If one part in TIME_PART of the time that the step has
 * taken so far is more than that, it may be spent on any number of nodes: a slow host's steps take
 * long, and builds add little to them. No segment is formed that needs more than the quota of one
 * step. Graphs that exist already are launched meanwhile.
 *
 * The time of the build within the step does not matter. A host that is ahead of its GPU loses
 * nothing in any call, because the GPU has work meanwhile. A host that is behind has no spare time
 * in any call. */

/* On an H200 with driver 580, a graph of 500 nodes takes 0.31 ms to capture and 0.9 ms to
 * instantiate (tests/gpu/RESULTS.md). The process measures its own times from its first build
 * on. */
enum {
    /* The quota options are per this many ops of a step; a shorter step counts as this long. */
    STEP_OPS = 1000,
    TIME_PART = 10, /* of a step's time, one part in so many may be spent, if that is more */
    /* With each step, the remembered step length shrinks by 1/FADE, unless the step was longer. */
    FADE = 8,
    NODE_NS = 2500,    /* first estimate of the time per node, in ns */
    NODE_NS_MIN = 500, /* the estimate stays between these two */
    NODE_NS_MAX = 1000000,
    GRAPH_NS = 30000, /* time per graph besides its nodes, in ns */
    /* Smaller graphs are not measured. A step may build this many nodes, if build_nodes allows it.
     */
    MEASURED_FROM = 8,
    /* After this many steps without a measurement, the estimate moves halfway back to NODE_NS.
     * Otherwise one bad moment would keep graphs small for ever. */
    STALE_STEPS = 64,
    /* Advised builds may take this many times the step's build time. They happen once, after a
     * first step in which the program loads code anyway. */
    ADVISED_TIMES = 20,
    /* The estimate is a mean in PARTS parts. A graph that was faster than the estimate counts as
     * one part, a slower one as SLOWER_PARTS parts. */
    PARTS = 4,
    SLOWER_PARTS = 3,
    /* A measurement counts as at most this many times the estimate. A thread that had to wait for a
     * processor says nothing about the driver. */
    SLOWER_MAX = 4
};

static uint64_t node_ns(void) {
    uint64_t ns = __atomic_load_n(&cus_process.build_node_ns, __ATOMIC_RELAXED);
    return ns ? ns : NODE_NS;
}

/* Expected time of a build, in ns. Before the first measurement the build is expected to be slow,
 * except if an earlier run advised it. */
static uint64_t estimate(uint32_t nodes, bool advised) {
    bool unknown = !__atomic_load_n(&cus_process.build_node_ns, __ATOMIC_RELAXED);
    uint64_t wait = __atomic_load_n(&cus_process.build_wait_ns, __ATOMIC_RELAXED);
    return GRAPH_NS + wait + nodes * node_ns() * (unknown && !advised ? SLOWER_MAX : 1);
}

/* The call that builds a graph also launches it. Returns how much longer, in ns, the step takes
 * because of that than if the program had issued the ops itself. */
static uint64_t beyond(uint32_t nodes, uint64_t ns) {
    uint64_t saved = (uint64_t)nodes * (CUS_COST_LAUNCH - CUS_COST_MATCHED);
    return ns > saved ? ns - saved : 0;
}

/* Engine lock held, here and below. The build quota in nodes for this many ops. */
static uint64_t nodes_of(uint64_t ops) {
    return cus_options()->build_nodes * ops / STEP_OPS;
}

/* The nodes of one graph that uses up the quota of a step with this many ops. */
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

/* Without measurements for STALE_STEPS steps, a slow estimate moves back towards NODE_NS. */
static void doubt(struct cus_building *building) {
    uint64_t ns = node_ns();
    if (++building->unmeasured < STALE_STEPS || ns <= NODE_NS)
        return;
    building->unmeasured = 0;
    __atomic_store_n(&cus_process.build_node_ns, (ns + NODE_NS) / 2, __ATOMIC_RELAXED);
}

void cus_build_allow(struct cus_engine *engine) {
    struct cus_building *building = &engine->building;
    struct cus_account now = cus_engine_account(engine);
    uint64_t ops = now.ops - building->began.ops;
    uint64_t lately = building->length - building->length / FADE;
    uint64_t length = ops > lately ? ops : lately;
    building->length = length > STEP_OPS ? length : STEP_OPS;
    building->began = now;
    building->nodes = building->advised = 0;
    building->ns = building->since_ns = 0;
    doubt(building);
    engine->view.build_quota = nodes_in(building->length);
}

/* The time since a graph was wanted first in this step. The host may have been idle in front of the
 * step. */
static uint64_t time_so_far(struct cus_building *building) {
    uint64_t now = cus_clock_ns();
    if (!building->since_ns)
        building->since_ns = now;
    return now - building->since_ns;
}

/* Advised graphs have their own, larger quota: any op of the step may be built at once, or the
 * advice would pay late. They are spread over steps only if they take ADVISED_TIMES the normal
 * build time. */
bool cus_build_fits(struct cus_engine *engine, uint32_t nodes, bool advised) {
    struct cus_building *building = &engine->building;
    struct cus_account step = cus_account_since(cus_engine_account(engine), building->began);
    uint64_t ops = step.ops < STEP_OPS ? STEP_OPS : step.ops;
    uint64_t took = time_so_far(building);
    if (!building->nodes && !building->advised)
        return true;
    step.built = step.anew = 0; /* build time is counted in building->ns */
    uint64_t whole = building->length > ops ? building->length : ops;
    uint64_t build_quota = cus_options()->build_us * (advised ? ADVISED_TIMES * whole : ops);
    int64_t balance = cus_account_balance(&step);
    int64_t then = (int64_t)(building->ns + beyond(nodes, estimate(nodes, advised)));
    bool in_time = !cus_options()->build_us || then <= (int64_t)build_quota + balance;
    if (advised)
        return in_time && building->advised <= ops;
    if (in_time && building->nodes + nodes <= nodes_of(ops))
        return true;
    uint64_t part = took / TIME_PART;
    return cus_options()->build_us && part > build_quota && then <= (int64_t)part + balance;
}

static void note_wait(uint64_t waited) {
    uint64_t before = __atomic_load_n(&cus_process.build_wait_ns, __ATOMIC_RELAXED);
    uint64_t most = SLOWER_MAX * (before + GRAPH_NS);
    uint64_t now = (before * (PARTS - 1) + (waited < most ? waited : most)) / PARTS;
    __atomic_store_n(&cus_process.build_wait_ns, now, __ATOMIC_RELAXED);
}

/* Adds a build to the step's account. The time counts as at most SLOWER_MAX times the estimate,
 * because a longer time was caused by something else than this step. */
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

/* One thread builds at a time. Two threads that update the estimate at once may lose one update,
 * which does no harm. */
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
    engine->view.build_quota = nodes_in(engine->building.length);
}
