/*
 * Counts who holds the primary contexts, and says whether a release ends one.
 */
#ifndef CUSPLICE_HOOK_PRIMARY_H
#define CUSPLICE_HOOK_PRIMARY_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

/* What was known when a call began. */
struct cus_primary {
    CUdevice device;
    enum {
        CUS_PRIMARY_UNKNOWN,
        CUS_PRIMARY_ENDED,
        CUS_PRIMARY_ACTIVE
    } state;         /* as the driver says */
    uint32_t serial; /* of the last release before the call */
};

/* Called before and after a retain. */
struct cus_primary cus_primary_retains(CUdevice device);
void cus_primary_retained(const struct cus_primary *before, CUcontext context);

/* Called before a release. True: somebody else holds the context for certain, so it does not
 * end. */
bool cus_primary_releases(CUdevice device);
/* Called after the release. Returns the context that ended with it; NULL: none. */
CUcontext cus_primary_released(CUdevice device, bool succeeded);

/* Called for a reset, or for a release that nobody examined: who holds the context is now
 * unknown. */
void cus_primary_forget(CUdevice device);

#endif
