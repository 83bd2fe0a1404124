/*
 * Mode verify, between the engine and shim/verify. The engine's lock is held.
 */
#ifndef CUSPLICE_STREAM_CHECK_LAUNCH_H
#define CUSPLICE_STREAM_CHECK_LAUNCH_H

#include "shim/stream/state.h"
#include "shim/verify/verify.h"

/* Is this mode verify? All streams that calls name have to be known then. */
bool cus_check_on(void);
/* For a new engine. NULL in other modes, and without memory: nothing is verified then. */
struct cus_shadow *cus_check_new(void);
/* The op was deferred, as it is. */
void cus_check_requested(struct cus_engine *engine, const struct cus_op *op);
/* The variant is about to be patched and launched; `fresh`: it has just been built. */
void cus_check_ready(struct cus_engine *engine, const struct cus_variant *variant, bool built);
/* In place of the launch, unless the answer is NONE. */
enum cus_proof cus_check_launch(struct cus_engine *engine, struct cus_variant *variant,
                                CUresult *result);

#endif
