/*
 * Facts for reports (why.c). Private to shim/stream.
 */
#ifndef CUSPLICE_STREAM_WHY_H
#define CUSPLICE_STREAM_WHY_H

#include "shim/stream/state.h"

/* A step ended. Updates which step was the first in graphs. Engine lock held. */
void cus_step_covered(struct cus_engine *engine);
/* Passed ops, which no other counter has. */
uint64_t cus_why_let_pass(void);
/* Keeps the facts of the engine's graphs for reports before they are dropped. Engine lock held. */
void cus_why_keep_segments(struct cus_engine *engine);
/* Forgets these facts. For cus_engine_end. */
void cus_why_drop(void);

#endif
