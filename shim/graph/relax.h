/*
 * Between cus_relax and cus_relax_end the library makes calls that are unsafe during a capture.
 * They neither spoil a capture of the program nor are refused because of one (HAZARDS D2). If the
 * mode was not exchanged, it is not set back: a second exchange alone would leave the program's
 * thread relaxed.
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
    /* Tries again after a failure, since nothing else sets the mode back. */
    if (relaxed.exchanged && driver->cuThreadExchangeStreamCaptureMode(&mode) != CUDA_SUCCESS)
        driver->cuThreadExchangeStreamCaptureMode(&mode);
}

#endif
