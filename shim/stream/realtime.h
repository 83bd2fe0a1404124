/*
 * Real-time threads of the program (realtime.c). Private to shim/stream.
 */
#ifndef CUSPLICE_STREAM_REALTIME_H
#define CUSPLICE_STREAM_REALTIME_H

#include "shim/stream/state.h"

/* `raise` gives the watchdog's thread a priority, and starts that thread if there is none. Called
 * once, when the engine starts. */
void cus_realtime_start(bool (*raise)(int priority));
/* May this thread defer ops? Only if the watchdog will run whatever the thread does. Engine lock
 * held. */
bool cus_realtime_allows(struct cus_thread *thread);
/* Looks at all threads now and then, on the watchdog's thread. True: real-time threads may keep the
 * watchdog from running; nothing is deferred, and it must look again. */
bool cus_realtime_look(void);
/* Forgets what was found; each thread asks anew. For cus_engine_end. */
void cus_realtime_drop(void);

#endif
