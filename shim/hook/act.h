/*
 * Helpers that the calls in before.c and around.c share.
 */
#ifndef CUSPLICE_HOOK_ACT_H
#define CUSPLICE_HOOK_ACT_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/stream/engine.h"

/* Finds the stream that a call of this row is about. False: the row names none. `named` is the
 * argument that the row's `arg` points to. */
bool cus_act_stream(unsigned row, const uint64_t *named, struct cus_stream_ref *ref);
/* Flushes what the row's scope covers. `ref` may be NULL. */
void cus_act_flush(unsigned row, const struct cus_stream_ref *ref);
/* Called before a call that may end a context. Flushes and forgets everything. */
void cus_act_context_goes(unsigned row);

#endif
