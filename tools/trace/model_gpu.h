/* When ops ran, as CUPTI says. Private to the model. */
#ifndef CUSPLICE_TOOLS_TRACE_MODEL_GPU_H
#define CUSPLICE_TOOLS_TRACE_MODEL_GPU_H

#include "tools/trace/model.h"

/* Fills in `gpu` of the ops of which that can be told. False without memory. */
bool model_gpu_times(struct model *model);

#endif
