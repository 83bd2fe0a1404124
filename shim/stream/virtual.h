/*
 * The engine where time is what a tool says it is: the same sources, compiled with
 * CUS_VIRTUAL_CLOCK (//shim/stream:virtual). There is no watchdog's thread: whoever moves the clock
 * looks when something has become due. One thread at a time in the whole of the engine.
 */
#ifndef CUSPLICE_STREAM_VIRTUAL_H
#define CUSPLICE_STREAM_VIRTUAL_H

#include <stdbool.h>
#include <stdint.h>

extern uint64_t cus_virtual_ns; /* now; never goes back */
/* What building took in the call that is made now: the clock stands still within a call. */
extern uint64_t cus_virtual_unseen_ns;
/* The graph that is launched next would have been submitted to the second thread, which is not
 * there. Set by cus_submit_claim; the driver that launches the graph takes it back. */
extern bool cus_virtual_submit;

/* The first moment at which something has been deferred for too long; UINT64_MAX where nothing is
 * deferred. */
uint64_t cus_watchdog_due(void);
/* What the watchdog's thread would do now. No lock held, a context is current. */
void cus_watchdog_look(void);

#endif
