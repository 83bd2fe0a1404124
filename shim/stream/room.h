/*
 * Room for graphs in the driver's pools (room.c). Private to shim/stream.
 */
#ifndef CUSPLICE_STREAM_ROOM_H
#define CUSPLICE_STREAM_ROOM_H

#include "shim/stream/state.h"

/* May a graph of this many nodes be built now without a wait for the GPU? True if there is room or
 * nothing runs. Otherwise the graph is noted as wanted. Build lock and engine lock held. */
bool cus_room_for(struct cus_engine *engine, uint32_t nodes);
/* A graph of this many nodes is built: takes its room. */
void cus_room_take(struct cus_engine *engine, uint32_t nodes);
/* Waits until nothing runs in the current context `context`, until `until_ns` at most. Build lock
 * held. */
bool cus_room_settle(struct cus_context *context, uint64_t until_ns);
/* The program is about to begin a capture, on any stream; the call that begins it returned. */
void cus_room_capture_begins(void);
void cus_room_capture_tried(void);
/* For tests: does a thread ask a stream at this moment? */
bool cus_room_asks(void);
/* The engine begins to serve a stream; the stream or its context is about to go. */
void cus_room_stream_made(struct cus_engine *engine);
void cus_room_stream_goes(struct cus_engine *engine);
/* The program is about to destroy this stream, perhaps while work runs on it. */
void cus_room_stream_destroyed(const struct cus_engine *engine);
/* Work begins on an untracked stream of this context. Called both before and after the call that
 * begins it, because a wait for the context may begin in between. */
void cus_room_begins(struct cus_stream_ref stream, CUcontext context);
/* Work begins on unknown streams of this context (NULL: of any). Called only before: a wait for the
 * context that begins in between forgets it. */
void cus_room_begins_elsewhere(CUcontext context);
/* The thread has waited for its own per-thread stream. */
void cus_room_waited_own(CUcontext context);
/* An untracked stream is about to be destroyed. NULL: a context with all its streams is. */
void cus_room_untracked_destroyed(CUstream handle, CUcontext context);
/* The context at this address may soon be another one: its room is unknown. */
void cus_room_forget(struct cus_context *context);
/* The context is about to be destroyed, with what runs in it; or it was not, and anything may run.
 */
void cus_room_context_goes(CUcontext context);
void cus_room_context_stays(struct cus_context *context);
/* Does nothing run in this context? No lock held. */
bool cus_room_idle(struct cus_context *context);
/* Waits until nothing runs in the context, for a second at most. No lock held. */
bool cus_room_await_idle(struct cus_context *context);
/* Forgets that work did not end in time. For cus_engine_end. */
void cus_room_drop(void);

/* ---- for reserve.c; build lock held ---- */

/* Has this engine's stream no work left? */
bool cus_room_complete(const struct cus_engine *engine);
/* Takes what the program has made since the last look out of the room. */
void cus_room_look_at_program(struct cus_room *room);
/* Adds the room of graphs that this engine destroyed and whose work has ended. Engine lock held. */
void cus_room_take_freed(struct cus_engine *engine);

#endif
