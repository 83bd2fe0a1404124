/*
 * The engine of a stream: found, made, closed (registry.c). Private to shim/stream.
 */
#ifndef CUSPLICE_STREAM_REGISTRY_H
#define CUSPLICE_STREAM_REGISTRY_H

#include "shim/stream/streams.h"

/* The engine of this stream, made when first seen. NULL if nothing is ever deferred on the stream:
 * a per-thread stream, one of a green context or of a context that is not current, one that
 * captures. NULL also without a context. `context` is the current context. */
struct cus_engine *cus_registry_look_up(struct cus_thread *thread, struct cus_stream_ref ref,
                                        CUcontext context);
/* The thread goes to a stream that it looked up lately, in the same context and epoch; the effect
 * is that of a new look-up. False: the thread does not remember the stream. */
bool cus_registry_turn(struct cus_thread *thread, struct cus_stream_ref ref);
/* The engine of this stream, made in any context; NULL if there is none. The thread stays where it
 * is. */
struct cus_engine *cus_registry_recall(struct cus_thread *thread, struct cus_stream_ref ref,
                                       CUcontext context);
static inline struct cus_engine *cus_registry_find(struct cus_thread *thread,
                                                   struct cus_stream_ref ref, CUcontext context) {
    return cus_streams_found(thread, ref, context) ? thread->cached_engine
                                                   : cus_registry_look_up(thread, ref, context);
}
/* A context has died. The next context at its address may be on another GPU. */
void cus_registry_forget_device(struct cus_context *context);
/* Stores this engine's segment list unless the stored one had more ops in graphs. Engine lock
 * held. */
void cus_registry_keep_list(struct cus_engine *engine);
/* Drops an engine's plan and private stream; the object will serve another stream. The context is
 * still alive. Engine lock held, nothing pending. */
void cus_registry_close(struct cus_engine *engine);
/* Forgets all engines, which are closed. For cus_engine_end. */
void cus_registry_drop(void);

#endif
