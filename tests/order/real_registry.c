/* registry.c, with a way to what adds an engine. */
#include "shim/stream/registry.c"
#include "tests/order/engine.h"

struct cus_engine *order_new_engine(void) {
    cus_lock_take(&cus_registry_lock);
    struct cus_engine *engine = new_engine();
    cus_lock_give(&cus_registry_lock);
    return engine;
}
