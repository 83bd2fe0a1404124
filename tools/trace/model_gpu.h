/*
 * Joins ops with CUPTI's records of them. model.c calls it once. It never changes anything but
 * `gpu` of an op.
 */
#ifndef CUSPLICE_TOOLS_TRACE_MODEL_GPU_H
#define CUSPLICE_TOOLS_TRACE_MODEL_GPU_H

#include "tools/trace/model.h"

/* Fills in `gpu` of the ops of which that can be told. False without memory. */
bool model_gpu_times(struct model *model);

#endif
