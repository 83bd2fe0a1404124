/*
 * Joins ops with CUPTI's records of them. model.c calls it once. It never changes anything but
 * `gpu` of an op.
 */
#ifndef CUSPLICE_TOOLS_TRACE_MODEL_GPU_H
#define CUSPLICE_TOOLS_TRACE_MODEL_GPU_H

#include "tools/trace/model.h"

/* Fills in `gpu` of the ops of which that can be told. False without memory. */
bool model_gpu_times(struct model *model);

/* ---- between model_gpu.c and model_branches.c ---- */

/* May the record be of this op? */
bool model_gpu_ran(const struct cst_trace *trace, const struct cst_op *op,
                   const struct cst_gpu *gpu);

/* Graphs with branches, their ops and the records of them. */
struct model_branches {
    struct model *model;
    struct model_graph *graphs; /* in the order of their launches */
    uint32_t n_graphs;
    uint32_t *ops; /* of all graphs, each one's together, in order */
    uint32_t n_ops;
    const struct cst_gpu **gpu; /* of all such graphs, by correlation, then by node */
    size_t n_gpu;
};

/* All zero before. False without memory. */
bool model_branches_find(struct model_branches *branches, struct model *model);
void model_branches_free(struct model_branches *branches);
/* Is the op in such a graph? Is the record of one? */
bool model_branches_op(const struct model_branches *branches, const struct model_op *op);
bool model_branches_record(const struct model_branches *branches, const struct cst_gpu *gpu);
/* Brings the graphs that were launched into this stream, which has this number and context (0: not
 * known), into step with records; both from `ns` on. */
void model_branches_match(struct model_branches *branches, uint32_t stream, uint32_t number,
                          uint32_t context, uint64_t ns);

#endif
