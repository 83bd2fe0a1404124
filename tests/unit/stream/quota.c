#include "tests/unit/stream/quota.h"

#include "shim/stream/building.h"
#include "shim/stream/state.h"

static struct cus_engine engine;

void quota_step(void) {
    cus_build_allow(&engine);
}

void quota_ops(uint32_t ops, bool in_graphs) {
    engine.counters.ops[CUS_OP_LAUNCH] += ops;
    engine.counters.in_graphs += in_graphs ? ops : 0;
}

uint32_t quota_segment(void) {
    return engine.view.build_quota;
}

static bool build(uint32_t nodes, uint64_t ns, uint64_t waited_ns, bool advised) {
    bool fits = cus_build_fits(&engine, nodes, advised);
    if (fits)
        cus_build_took(&engine, nodes, ns, waited_ns, advised);
    return fits;
}

bool quota_build(uint32_t nodes, uint64_t ns, bool advised) {
    return build(nodes, ns, 0, advised);
}

bool quota_build_behind(uint32_t nodes, uint64_t ns, uint64_t waited_ns) {
    return build(nodes, ns, waited_ns, false);
}

void quota_fail(uint32_t nodes, uint64_t ns) {
    cus_build_failed(&engine, nodes, ns, false);
}
