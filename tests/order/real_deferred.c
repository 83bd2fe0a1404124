/* deferred.c, with a way to the functions that a test needs alone. */
#define cus_deferred_flush order_unused_flush /* tests have their own */
#include "shim/stream/deferred.c"
#include "tests/order/engine.h"

enum cus_submit_state order_take_back(struct cus_engine *engine) {
    return take_back(engine);
}

void order_nothing_pends(struct cus_engine *engine) {
    nothing_pends(engine);
}
