/*
 * Protects calls of the driver that are made with a lock held.
 */
#ifndef CUSPLICE_BASE_CANCEL_H
#define CUSPLICE_BASE_CANCEL_H

#include <pthread.h>

#include "shim/base/hazard.h"

/* A thread that is cancelled inside the driver would never give the engine's lock back (HAZARDS
 * E11). A thread that may be cancelled at any instruction must not call the driver anyway. */
static inline int cus_cancel_off(void) {
    int before = PTHREAD_CANCEL_ENABLE;
    if (CUS_HAZARD(E11))
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    return before;
}

static inline void cus_cancel_back(int before) {
    int unused;
    if (before == PTHREAD_CANCEL_ENABLE)
        pthread_setcancelstate(before, &unused);
}

#endif
