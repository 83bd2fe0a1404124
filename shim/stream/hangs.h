/*
 * GPUs on which graphs hang (hangs.c). Private to shim/stream.
 */
#ifndef CUSPLICE_STREAM_HANGS_H
#define CUSPLICE_STREAM_HANGS_H

#include "shim/stream/state.h"

/* Is this GPU one on which graphs hang, with this driver? Context current. Said once. */
bool cus_graphs_hang(struct cus_context *context);

#endif
