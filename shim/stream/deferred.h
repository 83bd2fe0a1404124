/*
 * Issues deferred ops (deferred.c). Engine lock held, the engine's context current. Private to
 * shim/stream.
 */
#ifndef CUSPLICE_STREAM_DEFERRED_H
#define CUSPLICE_STREAM_DEFERRED_H

#include "shim/stream/state.h"

/* Issues the deferred ops one by one. */
void cus_deferred_flush(struct cus_engine *engine, unsigned cause, enum cus_break reason,
                        enum cus_cut cut, enum cus_eager counted);
/* Launches the complete segment, or issues its ops one by one if that fails. Returns the result for
 * the call of the last op. */
CUresult cus_deferred_fire(struct cus_engine *engine);
/* Waits for a submitted segment. If it could not be launched, its ops are issued one by one. */
void cus_deferred_settle(struct cus_engine *engine);
/* Destroys a graph that the plan drops (cus_plan_drop_fn), after the submitted segment is out. */
void cus_deferred_drop_exec(void *engine, struct cus_exec *exec);
/* The context is dead, so the deferred ops can never be issued: counts them and notes a late
 * error. */
void cus_deferred_lose(struct cus_engine *engine);

#endif
