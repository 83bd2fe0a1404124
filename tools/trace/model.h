/*
 * What a trace means: the outcome of each op, and the steps of each stream. Reports, exports,
 * diffs and calibrate share it. It is never changed after model_make.
 */
#ifndef CUSPLICE_TOOLS_TRACE_MODEL_H
#define CUSPLICE_TOOLS_TRACE_MODEL_H

#include "tools/trace/reader.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Words for enum cst_op_type. */
extern const char *const model_op_words[CST_OP_TYPES];

struct model_op {
    const struct cst_op *op;
    /* The LAUNCH (in a graph) or FLUSH (one by one, after being deferred) by which it went out;
     * NULL: by itself, at once, or the trace ends before. */
    const struct cst_record *out;
    const struct cst_gpu *gpu; /* when it ran; NULL: not known */
    uint32_t place;            /* which of the ops of `out` it is, from 0 on */
    uint32_t step;             /* in model->steps */
};

struct model_step {
    uint32_t stream;
    uint32_t number; /* of its stream, from 0 on */
    uint32_t n_ops, in_graphs, graphs;
    uint32_t first;             /* its first op in the list of its stream (model_stream.ops) */
    uint64_t begin_ns;          /* of the first op's call */
    uint64_t end_ns;            /* of the wait that ended it, or of its last op */
    uint64_t signature;         /* XXH3 of kinds and shapes of its ops in order */
    const struct cst_call *end; /* the wait; NULL: the trace ends, or the stream's */
};

struct model_stream {
    uint32_t *ops; /* in model->ops, in the order of the stream */
    uint32_t n_ops;
    uint32_t *steps; /* in model->steps; those of one stream are not neighbours there */
    uint32_t n_steps;
};

/* A graph that was launched. Its ops are those of its own stream, then those of each branch. */
struct model_launch {
    const struct cst_launch *record;
    const uint32_t *ops; /* in model->ops, by place */
    uint32_t n;          /* less than the record says where records were lost */
};

struct model {
    const struct cst_trace *trace;
    struct model_op *ops; /* in the order of the trace */
    uint32_t n_ops;
    struct model_step *steps; /* in the order in which they began */
    uint32_t n_steps;
    struct model_stream *streams;  /* by stream id; trace->n_streams of them */
    struct model_launch *launches; /* in the order of the trace; graph_launches of them */
    uint32_t *launched;            /* ops of all of them, one launch behind the other */
    uint64_t in_graphs, flushed, eager, graph_launches, open; /* deferred when the trace ends */
    uint64_t gpu_known; /* ops of which the GPU times are known */
};

/* NULL where memory does not suffice, or the trace has 4 billion ops. */
struct model *model_make(const struct cst_trace *trace);
void model_free(struct model *model);

/* The params of a record of an event, or of a wait for one. False: the trace does not have them. */
bool model_event(const struct cst_trace *trace, const struct cst_op *op, uint64_t *event,
                 uint64_t *number);
/* Elements of a memset, of all its rows; bytes of a copy. */
uint64_t model_elements(const struct cst_kind *kind, const struct cst_op *op);

static inline bool model_in_graph(const struct model_op *op) {
    return op->out && op->out->type == CST_LAUNCH;
}

#ifdef __cplusplus
}
#endif

#endif
