/*
 * The engine while a tool moves the clock (cus_virtual of base/clock.h, switched on before
 * cus_engine_start). The engine starts no thread then and reads no cache: the tool calls
 * cus_watchdog_look when something has become due. One thread at a time is in the engine.
 */
#ifndef CUSPLICE_STREAM_VIRTUAL_H
#define CUSPLICE_STREAM_VIRTUAL_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/base/clock.h"

/* The graph that is launched next would have been submitted to the second thread, which is not
 * there. Set by cus_submit_claim; the driver that launches the graph takes it back. */
extern bool cus_virtual_submit;

/* The first moment at which something has been deferred for too long; UINT64_MAX where nothing is
 * deferred. */
uint64_t cus_watchdog_due(void);
/* What the watchdog's thread would do now. No lock held, a context is current. */
void cus_watchdog_look(void);

#endif
