#include "tests/unit/stream/shares.h"

#include "shim/stream/state.h"

static struct cus_engine engine;

void shares_step(void) {
    cus_build_allow(&engine);
}

void shares_ops(uint32_t ops, bool in_graphs) {
    engine.counters.ops[CUS_OP_LAUNCH] += ops;
    engine.counters.in_graphs += in_graphs ? ops : 0;
}

uint32_t shares_piece(void) {
    return engine.plan.share;
}

bool shares_build(uint32_t nodes, uint64_t ns, bool advised) {
    bool fits = cus_build_fits(&engine, nodes, advised);
    if (fits)
        cus_build_took(&engine, nodes, ns, advised);
    return fits;
}
