/*
 * The watchdog (watchdog.c). Private to shim/stream.
 */
#ifndef CUSPLICE_STREAM_WATCHDOG_H
#define CUSPLICE_STREAM_WATCHDOG_H

#include "shim/stream/state.h"

/* Is the watchdog's thread running, or could it be started? Without it nothing is deferred. */
bool cus_watchdog_ready(void);
/* A thread began to defer ops: wakes the watchdog if it sleeps. True: the watchdog slept. */
bool cus_watchdog_kick(void);
/* Returns once the watchdog is outside the driver. It stays out until released (HAZARDS B14). */
void cus_watchdog_hold(void);
void cus_watchdog_release(void);
void cus_watchdog_stop(void);
/* Ends the thread and waits for that. For cus_engine_end. */
void cus_watchdog_drop(void);
/* Gives the watchdog's thread this real-time priority. False: no thread, or not permitted. */
bool cus_watchdog_raise(int priority);

#endif
