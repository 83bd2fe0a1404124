/*
 * Graphs of an engine (graphs.c). Engine lock held, the engine's context current, if nothing else
 * is said. Private to shim/stream.
 */
#ifndef CUSPLICE_STREAM_GRAPHS_H
#define CUSPLICE_STREAM_GRAPHS_H

#include "shim/stream/state.h"

/* Does the memory budget have room for a graph of this many nodes? */
bool cus_graphs_fit(uint32_t nodes);
/* Builds a graph of the complete segment from the ops that are being issued (HAZARDS A15). NULL:
 * failed; `no_room` tells if memory was missing. Build lock held. */
struct cus_variant *cus_graphs_build(struct cus_engine *engine, bool *no_room);
/* Drops a graph. The graph is destroyed later if a thread may sleep in a copy now. */
void cus_graphs_drop(struct cus_engine *engine, struct cus_exec *exec);
/* Destroys events that the program destroyed while a node held them, and that no node holds any
 * more. No lock held. */
void cus_graphs_destroy_events(void);
/* Destroys the private stream on which graphs are captured. */
void cus_graphs_drop_stream(struct cus_engine *engine);
/* Destroys the dropped graphs. With `must`, also while a thread may sleep in a copy. */
void cus_graphs_destroy_dropped(struct cus_engine *engine, bool must);
/* Has the engine its private stream, on which graphs are captured, or can it be made now? */
bool cus_graphs_capture_stream(struct cus_engine *engine);

#endif
