/*
 * The engine in virtual time, which a tool sets: the same sources, compiled with CUS_VIRTUAL_CLOCK
 * (//shim/stream:virtual). There is no watchdog thread and no submit thread: the tool that moves
 * the clock calls cus_watchdog_look when an op is due. Only one thread at a time may be in the
 * engine.
 */
#ifndef CUSPLICE_STREAM_VIRTUAL_H
#define CUSPLICE_STREAM_VIRTUAL_H

#include <stdbool.h>
#include <stdint.h>

extern uint64_t cus_virtual_ns; /* now, in ns; never goes back */
/* Build time of the current call, in ns: the clock does not move within a call. */
extern uint64_t cus_virtual_unseen_ns;
/* The next graph launch would have been submitted. Set by cus_submit_claim; cleared by the driver
 * that launches the graph. */
extern bool cus_virtual_submit;

/* The first moment at which an op is deferred for too long; UINT64_MAX: nothing is deferred. */
uint64_t cus_watchdog_due(void);
/* Does what the watchdog's thread would do now. No lock held, a context is current. */
void cus_watchdog_look(void);

#endif
