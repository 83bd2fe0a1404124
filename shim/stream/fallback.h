/*
 * Doubts that made the library step back (fallback.c). Private to shim/stream.
 */
#ifndef CUSPLICE_STREAM_FALLBACK_H
#define CUSPLICE_STREAM_FALLBACK_H

#include "shim/stream/state.h"

/* Counts a fallback and logs it the first time. */
void cus_fallback(enum cus_fallback why);

#endif
