#include "tests/unit/stream/shares.h"

#include "shim/stream/state.h"

static struct cus_engine engine;

void shares_step(uint32_t ops) {
    engine.counters.ops[CUS_OP_LAUNCH] += ops;
    cus_build_allow(&engine);
}

bool shares_build(uint32_t nodes, uint64_t ns, bool advised) {
    bool fits = cus_build_fits(&engine, nodes, advised);
    if (fits)
        cus_build_took(&engine, nodes, ns, advised);
    return fits;
}
