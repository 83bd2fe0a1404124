/*
 * Flushes what streams defer (flush.c). Private to shim/stream.
 */
#ifndef CUSPLICE_STREAM_FLUSH_H
#define CUSPLICE_STREAM_FLUSH_H

#include "shim/stream/state.h"

/* Issues what this engine defers, from any thread. Takes the lock and makes the context current. */
void cus_flush_engine(struct cus_engine *engine, unsigned cause, enum cus_break reason,
                      enum cus_cut cut);
/* The same with the engine lock held. */
void cus_flush_locked(struct cus_engine *engine, unsigned cause, enum cus_break reason,
                      enum cus_cut cut);
/* Sees to it that the submitted segment is issued; what is deferred stays so. Engine lock held. */
void cus_settle_locked(struct cus_engine *engine);
/* Issues what this thread defers, on whichever stream. */
void cus_flush_own(struct cus_thread *thread);
/* Issues what every engine of the process defers: for a call that may wait, or that must come
 * last. */
void cus_flush_everything(unsigned cause, enum cus_break reason);
/* The same, but takes every lock whatever `pending` says. For use after a change that forbids
 * deferral: a thread may have decided to defer just before the change. */
void cus_flush_for_certain(unsigned cause, enum cus_break reason);
/* A call names this stream, or (cus_flush_branches) any: it is no branch any more, and waits for
 * what graphs did on its branch. */
void cus_flush_branch(struct cus_engine *engine, unsigned row);
void cus_flush_branches(unsigned row);
/* Issues what must precede an op or call on `engine` by legacy ordering and program order (HAZARDS
 * B4, B6). No lock held. */
void cus_flush_ties(struct cus_thread *thread, struct cus_engine *engine);
/* The same of legacy ordering alone. */
void cus_flush_legacy(struct cus_engine *engine);

#endif
