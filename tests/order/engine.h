/*
 * Engines without a driver, for tests of parts of the stream engine: what those parts call, where
 * no test says otherwise, does nothing.
 */
#ifndef CUSPLICE_TESTS_ORDER_ENGINE_H
#define CUSPLICE_TESTS_ORDER_ENGINE_H

#include "shim/stream/state.h"

/* Makes engines, all of one context; the process has `n` of them so far, and order_new_engine adds
 * the next. */
void order_engines(uint32_t n);

/* Plain: the threads of the library that have begun. Who has waited for the end of one may read it.
 */
extern uint32_t order_threads;

/* Static functions of the library. */
enum cus_submit_state order_take_back(struct cus_engine *engine); /* deferred.c */
void order_nothing_pends(struct cus_engine *engine);
void order_begin_segment(struct cus_engine *engine); /* offer.c */
bool order_may_defer(struct cus_engine *engine);
struct cus_engine *order_new_engine(void); /* registry.c */

#endif
