/*
 * Entering a context; an engine's lock at exit (access.c). Private to shim/stream.
 */
#ifndef CUSPLICE_STREAM_ACCESS_H
#define CUSPLICE_STREAM_ACCESS_H

#include "shim/stream/state.h"

/* Makes a context current around driver calls, if another one is current. cus_context_leave undoes
 * that. */
bool cus_context_enter(CUcontext wanted, bool *pushed);
void cus_context_leave(bool pushed);
/* Takes the engine's lock. At exit only if that does not take too long; false if it does. */
bool cus_engine_take_in_time(struct cus_engine *engine);
/* How long a lock is waited for at exit, in ns. cus_exit_give_up: it was not had; returns false. */
uint64_t cus_exit_patience_ns(void);
bool cus_exit_give_up(void);
/* No lock was missed at exit. For cus_engine_end. */
void cus_exit_drop(void);

#endif
