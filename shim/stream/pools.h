/*
 * Stream-ordered memory (pools.c). Private to shim/stream.
 */
#ifndef CUSPLICE_STREAM_POOLS_H
#define CUSPLICE_STREAM_POOLS_H

#include "shim/stream/state.h"

/* The pool from which the program allocates: the one it named, or the current one of the context's
 * device. NULL: unknown. */
struct cus_pool *cus_pools_find(struct cus_context *context, CUmemoryPool named);
/* The stream allocates or frees in the pool. True: it is new there, beside others. */
bool cus_pools_note_use(struct cus_pool *pool, struct cus_engine *engine);
/* The same, for an allocation, with what holds before it. */
struct cus_pool_use {
    bool alone; /* it is a default pool or like one, and no other stream may have unfinished frees
                 * in it */
    bool others_free; /* frees of another stream are deferred */
    bool may_reuse;   /* cus_pools_reuse may find memory */
};
struct cus_pool_use cus_pools_use(struct cus_pool *pool, struct cus_engine *engine);
/* A stream without an engine (NULL), or one that frees unknown memory, may use any pool. */
void cus_pools_note_unknown(struct cus_engine *engine);

/* An allocation lives from here on, and no longer; NULL: it was not known to live. Its pool may be
 * destroyed meanwhile, and stays known up to cus_pools_let_go. */
void cus_pools_add(struct cus_pool *pool, uint64_t address, uint64_t bytes);
struct cus_pool *cus_pools_take_out(uint64_t address, uint64_t *bytes);
void cus_pools_let_go(struct cus_pool *pool);

/* An allocation was made. Below: may one of this size be made, while frees are deferred? The pool
 * may become larger than without deferred frees. */
void cus_pools_took(struct cus_pool *pool, uint64_t bytes);
bool cus_pools_may_grow(struct cus_pool *pool, uint64_t bytes);
/* Defers the free, if there is place. Engine lock held and ops deferred or submitted. */
bool cus_pools_defer(struct cus_engine *engine, struct cus_pool *pool, uint64_t address,
                     uint64_t bytes);
/* Takes memory of this size out of the engine's deferred frees. Engine lock held. */
bool cus_pools_reuse(struct cus_engine *engine, struct cus_pool *pool, uint64_t bytes,
                     uint64_t *address);
/* Memory ran out: nothing is deferred any more. */
void cus_pools_exhaust(void);
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
