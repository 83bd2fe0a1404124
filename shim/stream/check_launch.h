/*
 * Mode verify: what the engine calls in check_launch.c. The engine's lock is held.
 */
#ifndef CUSPLICE_STREAM_CHECK_LAUNCH_H
#define CUSPLICE_STREAM_CHECK_LAUNCH_H

#include "shim/stream/state.h"
#include "shim/verify/verify.h"

/* Is this mode verify? Then every stream that a call names gets an engine. */
bool cus_check_on(void);
/* For a new engine. NULL in other modes, or without memory; then nothing is verified. */
struct cus_shadow *cus_check_new(void);
void cus_check_free(struct cus_shadow *shadow);
/* This op was just deferred. */
void cus_check_requested(struct cus_engine *engine, const struct cus_op *op);
/* The variant is about to be patched and launched. `built`: it has just been built. */
void cus_check_ready(struct cus_engine *engine, const struct cus_variant *variant, bool built);
/* Called in place of the launch. If the answer is NONE, the caller launches. */
enum cus_proof cus_check_launch(struct cus_engine *engine, struct cus_variant *variant,
                                CUresult *result);
/* Forgets what was seen of all streams, and all that verifying found. For cus_engine_end. */
void cus_check_drop(void);

#endif
