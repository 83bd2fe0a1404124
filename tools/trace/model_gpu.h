/*
 * Joins ops with CUPTI's records of them. model.c calls it once. It never changes anything but
 * `gpu` of an op.
 */
#ifndef CUSPLICE_TOOLS_TRACE_MODEL_GPU_H
#define CUSPLICE_TOOLS_TRACE_MODEL_GPU_H

#include "tools/trace/model.h"

/* Fills in `gpu` of the ops of which that can be told. False without memory. */
bool model_gpu_times(struct model *model);

/* ---- between model_gpu.c and model_gpu_calls.c ---- */

/* One call of the driver, as the trace has it: an op, or the launch of a graph. */
struct gpu_call {
    const uint32_t *ops; /* in model->ops: those that leave a record, in the order of the trace */
    uint32_t n, stream;
    bool graph;
    uint64_t ns; /* when it began: none of its ops can run before */
};

/* The same as CUPTI has it: all records of one correlation. */
struct gpu_run {
    const struct cst_gpu *const *gpu; /* in the order of the ops */
    uint32_t n;
    uint32_t stream, context; /* CUPTI's numbers; of a graph: of the launch's stream */
    bool graph;
    bool mixed;  /* the records do not tell their order */
    uint64_t ns; /* when the first of them began */
};

struct gpu_calls {
    struct gpu_call *calls; /* by stream, in order of their ops */
    uint32_t n_calls;
    struct gpu_run *runs; /* as they began */
    size_t n_runs;
    uint32_t *ops;                         /* those of each call together */
    const struct cst_gpu **gpu;            /* those of each run together */
    const struct cst_gpu_stream **numbers; /* by CUPTI's number */
    size_t n_numbers;
};

/* All zero before. False without memory. */
bool gpu_calls_find(struct gpu_calls *all, const struct model *model);
void gpu_calls_free(struct gpu_calls *all);
/* May the run be of this call? */
bool gpu_calls_same(const struct model *model, const struct gpu_call *call,
                    const struct gpu_run *run);
/* Gives each op of the call its record of the run, which is of it. */
void gpu_calls_tell(struct model *model, const struct gpu_call *call, const struct gpu_run *run);

#endif
