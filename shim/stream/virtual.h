/*
 * The engine in virtual time: a tool switches cus_virtual (base/clock.h) on before cus_engine_start
 * and moves that clock. The engine then starts no watchdog thread and no submit thread, and reads
 * no signature cache. The tool is the watchdog's thread: it calls cus_watchdog_look twice per
 * hold_us, or cus_watchdog_issue when an op is due. Only one thread at a time may be in the engine.
 */
#ifndef CUSPLICE_STREAM_VIRTUAL_H
#define CUSPLICE_STREAM_VIRTUAL_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/base/clock.h"

/* The next graph launch would have been submitted. Set by cus_submit_claim; cleared by the driver
 * that launches the graph. */
extern bool cus_virtual_submit;

/* How many ops the next graph launch stands for. */
extern uint32_t cus_virtual_ops;

/* The first moment at which an op is deferred for too long; UINT64_MAX: nothing is deferred. */
uint64_t cus_watchdog_due(void);
/* Does what the watchdog's thread does twice per hold_us. What the kernel says of threads meanwhile
 * comes from cus_virtual; the watchdog is late if the tool comes late. No lock held. */
void cus_watchdog_look(void);
/* The same for a tool that comes only when an op is due: the watchdog is never late. */
void cus_watchdog_issue(void);

#endif
