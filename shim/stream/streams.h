/*
 * Contexts and streams that were seen (streams.c). Private to shim/stream.
 */
#ifndef CUSPLICE_STREAM_STREAMS_H
#define CUSPLICE_STREAM_STREAMS_H

#include "shim/stream/state.h"

extern struct cus_lock cus_registry_lock;

/* The handle alone names a stream, whichever context is current when it is used (HAZARDS A2). Only
 * the legacy stream differs from context to context. */
struct cus_stream_key {
    CUcontext context; /* NULL except for the legacy stream */
    CUstream handle;
};

struct cus_stream_entry {
    struct cus_stream_key key;
    struct cus_engine *engine; /* NULL: nothing is deferred on this stream */
    UT_hash_handle hh;
};

/* The entry of a stream; NULL: it was not seen. Registry lock held, for the next two as well. */
struct cus_stream_entry *cus_streams_find(CUcontext context, CUstream handle);
/* A new entry without an engine. NULL: no memory. */
struct cus_stream_entry *cus_streams_add(CUcontext context, CUstream handle);
void cus_streams_remove(CUcontext context, CUstream handle);

static inline bool cus_ref_is_per_thread(struct cus_stream_ref ref) {
    return ref.handle == CU_STREAM_PER_THREAD || (!ref.handle && ref.abi == CUS_ABI_PTSZ);
}
/* NULL and 0x1 mean the same stream in the legacy ABI (HAZARDS B3). */
static inline CUstream cus_ref_handle(struct cus_stream_ref ref) {
    return ref.handle || !CUS_HAZARD(B3) ? ref.handle : CU_STREAM_LEGACY;
}
static inline bool cus_ref_is_legacy(struct cus_stream_ref ref) {
    return !cus_ref_is_per_thread(ref) && cus_ref_handle(ref) == CU_STREAM_LEGACY;
}
static inline struct cus_engine *cus_context_legacy(const struct cus_context *context) {
    return __atomic_load_n(&context->legacy, __ATOMIC_ACQUIRE);
}
/* The engine of this stream, made in any context; NULL if there is none. */
struct cus_engine *cus_streams_peek(const struct cus_thread *thread, struct cus_stream_ref ref,
                                    CUcontext context);
/* A stream without an engine is destroyed: clears what is noted of it and what threads remember. */
void cus_streams_forget(struct cus_stream_ref ref, CUcontext context);
/* Does the thread's last look-up still hold? Called under the lock of the engine found; the answer
 * holds until that lock is given back. */
static inline bool cus_streams_current(const struct cus_thread *thread) {
    return thread->epoch == __atomic_load_n(&cus_process.registry_epoch, __ATOMIC_ACQUIRE);
}
/* Did the thread look up this stream in this context last, and does the answer still hold? */
static inline bool cus_streams_found(const struct cus_thread *thread, struct cus_stream_ref ref,
                                     CUcontext context) {
    return (thread->cached_engine || thread->none) && cus_streams_current(thread) &&
           thread->ref.handle == ref.handle && thread->ref.abi == ref.abi &&
           thread->context == context;
}
/* A context may die, and streams with it: the next stream at a handle may get an engine. */
void cus_streams_forget_alone(void);
struct cus_context *cus_streams_context(CUcontext context);
/* Objects of all contexts, linked by `next`. Some may serve none. */
struct cus_context *cus_streams_contexts(void);
/* This context is about to be destroyed. Its object, which nobody finds any more; NULL: it was not
 * seen, or a stream of it has an engine. */
struct cus_context *cus_streams_take_context(CUcontext context);
/* Clears an object that was taken, for the next new context. */
void cus_streams_free_context(struct cus_context *context);
/* Does the program have an open capture in this context? */
bool cus_program_captures(struct cus_context *context);
/* Is the engine's stream still the one that the engine was made for? Engine lock held. */
bool cus_streams_same(struct cus_engine *engine);
/* Forgets all streams and contexts. No engine and no kind is left. For cus_engine_end. */
void cus_streams_drop(void);

#endif
