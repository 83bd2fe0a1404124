/*
 * The library's own unsafe calls stand between these two, so that they neither spoil a capture of
 * the program nor are refused for one (HAZARDS D2). What the thread had before is set again only
 * if it was really exchanged: else the second exchange would leave the program's thread relaxed.
 */
#ifndef CUSPLICE_GRAPH_RELAX_H
#define CUSPLICE_GRAPH_RELAX_H

#include <stdbool.h>

#include "shim/api/driver.h"
#include "shim/base/hazard.h"

struct cus_relaxed {
    CUstreamCaptureMode before;
    bool exchanged;
};

static inline struct cus_relaxed cus_relax(const struct cus_driver *driver) {
    struct cus_relaxed relaxed = {CU_STREAM_CAPTURE_MODE_RELAXED, false};
    relaxed.exchanged = CUS_HAZARD(D2) &&
                        driver->cuThreadExchangeStreamCaptureMode(&relaxed.before) == CUDA_SUCCESS;
    return relaxed;
}

static inline void cus_relax_end(const struct cus_driver *driver, struct cus_relaxed relaxed) {
    CUstreamCaptureMode mode = relaxed.before;
    /* Once more if it fails: there is nobody else to set it back. */
    if (relaxed.exchanged && driver->cuThreadExchangeStreamCaptureMode(&mode) != CUDA_SUCCESS)
        driver->cuThreadExchangeStreamCaptureMode(&mode);
}

#endif
