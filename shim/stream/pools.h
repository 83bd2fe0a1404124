/*
 * Stream-ordered memory (pools.c). Private to shim/stream.
 */
#ifndef CUSPLICE_STREAM_POOLS_H
#define CUSPLICE_STREAM_POOLS_H

#include "shim/stream/state.h"

/* The engine's deferred frees are about to be made, or never will be: they do not count against
 * their pool any more. Engine lock held. */
void cus_pools_settle(struct cus_engine *engine);
/* So many frees that were deferred are made. */
static inline void cus_pools_made(uint32_t n) {
    if (n)
        __atomic_sub_fetch(&cus_process.frees, n, __ATOMIC_ACQ_REL);
}
/* The engine's stream goes; it can no longer be asked whether its frees have completed. Engine lock
 * held, the stream still there. */
void cus_pools_stream_goes(struct cus_engine *engine);
/* For cus_engine_end. */
void cus_pools_drop(void);

#endif
