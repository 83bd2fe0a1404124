/* offer.c, with a way to what begins a segment. */
#include "shim/stream/offer.c"
#include "tests/order/engine.h"

void order_begin_segment(struct cus_engine *engine) {
    begin(&cus_thread_self, engine, NULL);
}

bool order_may_defer(struct cus_engine *engine) {
    struct cus_reason why;
    return may_defer(engine, (struct cus_proposal){.to_build = 0}, &why);
}
