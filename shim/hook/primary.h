/*
 * Who holds the primary contexts: whether a release ends one.
 */
#ifndef CUSPLICE_HOOK_PRIMARY_H
#define CUSPLICE_HOOK_PRIMARY_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

/* What was known as a call began. */
struct cus_primary {
    CUdevice device;
    enum {
        CUS_PRIMARY_UNKNOWN,
        CUS_PRIMARY_ENDED,
        CUS_PRIMARY_ACTIVE
    } state;         /* the driver's word */
    uint32_t serial; /* of the last release before that */
};

/* Around a retain. */
struct cus_primary cus_primary_retains(CUdevice device);
void cus_primary_retained(const struct cus_primary *before, CUcontext context);

/* Around a release. True: somebody else holds the context for certain, so it does not end. */
bool cus_primary_releases(CUdevice device);
/* It was made, and succeeded or not. Returns the context that has ended with it; NULL: none. */
CUcontext cus_primary_released(CUdevice device, bool succeeded);

/* A reset, or a release that nobody looked at: who holds it is not known any more. */
void cus_primary_forget(CUdevice device);

#endif
