/*
 * Build quota of a step (building.c). Private to shim/stream.
 */
#ifndef CUSPLICE_STREAM_BUILDING_H
#define CUSPLICE_STREAM_BUILDING_H

#include "shim/stream/state.h"

/* A step begins: sets its build quota. Engine lock held. */
void cus_build_allow(struct cus_engine *engine);
/* Does the build quota of this step still allow this many nodes? The first build of a step is
 * always allowed, whatever its size. */
bool cus_build_fits(struct cus_engine *engine, uint32_t nodes, bool advised);
/* A graph was built and launched for the first time. The call took `ns`. Of these, the build waited
 * `waited_ns` before it could begin. Engine lock held. */
void cus_build_took(struct cus_engine *engine, uint32_t nodes, uint64_t ns, uint64_t waited_ns,
                    bool advised);
/* A build failed after `ns`, which says nothing about the time of a build. Engine lock held. */
void cus_build_failed(struct cus_engine *engine, uint32_t nodes, uint64_t ns, bool advised);

#endif
