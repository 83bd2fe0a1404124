/*
 * Eviction of graphs that idle streams hold (evict.c). Private to shim/stream.
 */
#ifndef CUSPLICE_STREAM_EVICT_H
#define CUSPLICE_STREAM_EVICT_H

#include "shim/stream/state.h"

/* If memory for a stream was refused, drops what idle streams hold, a little at a time. Called at
 * the end of a step, no lock held. */
void cus_evict_idle(void);

#endif
