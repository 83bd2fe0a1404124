/* One pass over the events, with a queue of withheld ops for each stream. */
#include "tools/trace/model.h"

#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include "xxhash.h"

/* Of one stream, while the pass runs. */
struct state {
    uint32_t *withheld; /* ops in model->ops; those before `gone` have gone out */
    uint32_t n, gone, room;
    uint32_t step; /* the one that runs; CST_NONE: none does */
    uint32_t op_room, step_room;
};

struct pass {
    struct model *model;
    struct state *state; /* by stream */
    uint32_t step_room;
};

static bool grow(void **at, uint32_t n, uint32_t *room, size_t each) {
    if (n < *room)
        return true;
    uint32_t more = *room ? *room * 2 : 64;
    void *larger = realloc(*at, more * each);
    if (!larger)
        return false;
    *at = larger;
    *room = more;
    return true;
}

/* The step of this stream that runs, begun here if none does; CST_NONE without memory. */
static uint32_t step_of(struct pass *pass, uint32_t stream, const struct cst_record *at) {
    struct model *model = pass->model;
    struct model_stream *s = &model->streams[stream];
    struct state *state = &pass->state[stream];
    if (state->step != CST_NONE)
        return state->step;
    if (!grow((void **)&model->steps, model->n_steps, &pass->step_room, sizeof *model->steps) ||
        !grow((void **)&s->steps, s->n_steps, &state->step_room, sizeof *s->steps))
        return CST_NONE;
    state->step = model->n_steps++;
    model->steps[state->step] = (struct model_step){
        .stream = stream,
        .number = s->n_steps,
        .first = s->n_ops,
        .begin_ns = at->ns,
        .end_ns = at->ns,
    };
    s->steps[s->n_steps++] = state->step;
    return state->step;
}

static bool take_op(struct pass *pass, const struct cst_op *op) {
    struct model *model = pass->model;
    struct model_stream *s = &model->streams[op->stream];
    struct state *state = &pass->state[op->stream];
    uint32_t step = step_of(pass, op->stream, &op->head);
    if (step == CST_NONE || !grow((void **)&s->ops, s->n_ops, &state->op_room, sizeof *s->ops) ||
        !grow((void **)&state->withheld, state->n, &state->room, sizeof *state->withheld))
        return false;
    struct model_step *in = &model->steps[step];
    in->n_ops++;
    in->end_ns = op->head.ns + op->host_ns;
    in->signature = XXH3_64bits_withSeed(op->dims, sizeof op->dims, in->signature ^ op->kind);
    s->ops[s->n_ops++] = model->n_ops;
    model->ops[model->n_ops++] = (struct model_op){.op = op, .step = step};
    if (op->head.flags == CST_WITHHELD)
        state->withheld[state->n++] = model->n_ops - 1;
    else
        model->eager++;
    return true;
}

/* The oldest `n` withheld ops went out. Fewer where records were lost. */
static void take_out(struct pass *pass, const struct cst_record *out, uint32_t stream, uint32_t n) {
    struct model *model = pass->model;
    struct state *state = &pass->state[stream];
    bool graph = out->type == CST_LAUNCH;
    for (uint32_t i = 0; i < n && state->gone < state->n; i++, state->gone++) {
        struct model_op *op = &model->ops[state->withheld[state->gone]];
        op->out = out;
        op->place = i;
        model->in_graphs += graph;
        model->flushed += !graph;
        model->steps[op->step].in_graphs += graph;
        if (i == 0)
            model->steps[op->step].graphs += graph;
    }
    model->graph_launches += graph;
}

static bool take(struct pass *pass, const struct cst_record *record) {
    switch (record->type) {
    case CST_OP:
        return take_op(pass, (const struct cst_op *)record);
    case CST_LAUNCH: {
        const struct cst_launch *launch = (const struct cst_launch *)record;
        take_out(pass, record, launch->stream, launch->n);
        return true;
    }
    case CST_FLUSH: {
        const struct cst_flush *flush = (const struct cst_flush *)record;
        take_out(pass, record, flush->stream, flush->n);
        return true;
    }
    case CST_CALL: {
        const struct cst_call *call = (const struct cst_call *)record;
        bool ends = call->what == CST_CALL_STEP_END || call->what == CST_CALL_STREAM_GONE;
        if (!ends || call->stream == CST_NONE || pass->state[call->stream].step == CST_NONE)
            return true;
        struct model_step *step = &pass->model->steps[pass->state[call->stream].step];
        step->end_ns = record->ns + call->host_ns;
        step->end = call;
        pass->state[call->stream].step = CST_NONE;
        return true;
    }
    default:
        return true;
    }
}

/* ---- GPU times ---- */

enum { AHEAD = 256 }; /* ops that the GPU may have skipped, for there was nothing to do */

/* One stream as CUPTI knows it: what was asked for, and what ran, oldest first. In the trace it may
 * be several, one after the other: when a context goes, the library numbers all streams anew. */
struct lane {
    uint32_t *ops; /* in model->ops */
    uint32_t n_ops;
    const struct cst_gpu **gpu;
    size_t n_gpu;
    bool *is; /* by stream of the trace */
    uint32_t context;
};

static bool ran(const struct cst_trace *trace, const struct cst_op *op, const struct cst_gpu *gpu) {
    const struct cst_kind *kind = trace->kinds[op->kind];
    switch (kind->op) {
    case CST_OP_LAUNCH:
        return gpu->head.flags == CST_GPU_KERNEL &&
               memcmp(op->dims, gpu->grid, sizeof gpu->grid) == 0 &&
               strcmp(cst_string(trace, kind->name), cst_string(trace, gpu->name)) == 0;
    case CST_OP_MEMSET:
        return gpu->head.flags == CST_GPU_MEMSET;
    default: {
        uint64_t bytes = op->dims[0] | (uint64_t)op->dims[1] << 32;
        return gpu->head.flags == CST_GPU_MEMCPY && (!gpu->bytes || gpu->bytes == bytes);
    }
    }
}

static bool is_of(const struct model *model, const struct lane *lane, uint32_t op, size_t gpu) {
    return ran(model->trace, model->ops[lane->ops[op]].op, lane->gpu[gpu]);
}

static void know(struct model *model, const struct lane *lane, uint32_t op, size_t gpu) {
    model->ops[lane->ops[op]].gpu = lane->gpu[gpu];
    model->gpu_known++;
}

/* A stream runs its ops in order. What ran there without being an op (a graph of the program's own)
 * is passed over, and so are ops that came to nothing. From `op` and `gpu` on to the end. */
static void match_on(struct model *model, const struct lane *lane, uint32_t op, size_t gpu) {
    for (; gpu < lane->n_gpu && op < lane->n_ops; gpu++) {
        uint32_t end = lane->n_ops - op > AHEAD ? op + AHEAD : lane->n_ops, at = op;
        while (at < end && !is_of(model, lane, at, gpu))
            at++;
        if (at == end)
            continue;
        know(model, lane, at, gpu);
        op = at + 1;
    }
}

/* The same from what is before `op` and `gpu` back to the beginning. */
static void match_back(struct model *model, const struct lane *lane, uint32_t op, size_t gpu) {
    while (gpu-- > 0 && op > 0) {
        uint32_t end = op > AHEAD ? op - AHEAD : 0, at = op;
        while (at > end && !is_of(model, lane, at - 1, gpu))
            at--;
        if (at == end)
            continue;
        op = at - 1;
        know(model, lane, op, gpu);
    }
}

/* Did the host see by this call that all work of the stream was done? Synchronous copies may return
 * before. */
static bool waited_for(const struct cst_trace *trace, const struct cst_call *call,
                       const struct lane *lane) {
    const char *name = cst_string(trace, call->name);
    if (call->what != CST_CALL_WAITED || call->stream == CST_NONE)
        return false;
    if (strcmp(name, "cuCtxSynchronize") == 0)
        return trace->streams[call->stream]->context == lane->context;
    return lane->is[call->stream] && call->value == 0 &&
           (!*name || strncmp(name, "cuStreamSynchronize", 19) == 0 ||
            strncmp(name, "cuStreamQuery", 13) == 0);
}

/*
 * A recording that began in the midst of the program has records of work from before it, any number
 * of them. Once the host has waited for the stream, what runs is what was asked for since, and the
 * last that ran before was the last op before. Without such a wait nothing can be told.
 */
static void match_late(struct model *model, const struct lane *lane) {
    const struct cst_trace *trace = model->trace;
    for (size_t i = 0; i < trace->n_events; i++) {
        const struct cst_call *call = (const struct cst_call *)trace->events[i];
        if (call->head.type != CST_CALL || !waited_for(trace, call, lane))
            continue;
        uint32_t op = 0;
        size_t gpu = 0;
        while (op < lane->n_ops && model->ops[lane->ops[op]].op->head.ns < call->head.ns)
            op++;
        while (gpu < lane->n_gpu && lane->gpu[gpu]->head.ns < call->head.ns)
            gpu++;
        match_back(model, lane, op, gpu);
        match_on(model, lane, op, gpu);
        return;
    }
}

/* Did it begin behind the program's first step? What was trimmed has records of its ops alone. */
static bool is_late(const struct cst_trace *trace) {
    static const char key[] = "\"record_from\":\"";
    const char *at = trace->facts ? strstr(trace->facts, key) : NULL;
    return at && at[sizeof key - 1] != '0' && !strstr(trace->facts, "\"trimmed");
}

static bool same_stream(const struct cst_trace *trace, const struct cst_gpu_stream *a,
                        const struct cst_gpu_stream *b) {
    return a->gpu_stream == b->gpu_stream &&
           trace->streams[a->stream]->context == trace->streams[b->stream]->context;
}

/* What the gpu_streams from `first` on, which is the first of its stream, say of it. */
static void gather(const struct model *model, size_t first, struct lane *lane) {
    const struct cst_trace *trace = model->trace;
    const struct cst_gpu_stream *of = trace->gpu_streams[first];
    uint32_t context = 0; /* not known: files of before have no such records */
    lane->n_ops = 0;
    lane->n_gpu = 0;
    lane->context = trace->streams[of->stream]->context;
    memset(lane->is, 0, (trace->n_streams + 1) * sizeof *lane->is);
    for (size_t i = first; i < trace->n_gpu_streams; i++)
        if (same_stream(trace, of, trace->gpu_streams[i]))
            lane->is[trace->gpu_streams[i]->stream] = true;
    for (size_t i = 0; i < trace->n_gpu_contexts; i++)
        if (lane->is[trace->gpu_contexts[i]->stream])
            context = trace->gpu_contexts[i]->context;
    for (uint32_t i = 0; i < model->n_ops; i++)
        if (lane->is[model->ops[i].op->stream])
            lane->ops[lane->n_ops++] = i;
    for (size_t i = 0; i < trace->n_gpu; i++)
        if (trace->gpu[i]->gpu_stream == of->gpu_stream &&
            (!context || trace->gpu[i]->context == context))
            lane->gpu[lane->n_gpu++] = trace->gpu[i];
}

static bool find_gpu_times(struct model *model) {
    const struct cst_trace *trace = model->trace;
    struct lane lane = {.ops = malloc((model->n_ops + 1) * sizeof *lane.ops),
                        .gpu = malloc((trace->n_gpu + 1) * sizeof *lane.gpu),
                        .is = malloc((trace->n_streams + 1) * sizeof *lane.is)};
    bool made = lane.ops && lane.gpu && lane.is;
    for (size_t i = 0; made && i < trace->n_gpu_streams; i++) {
        bool known = false;
        for (size_t k = 0; k < i; k++)
            known |= same_stream(trace, trace->gpu_streams[k], trace->gpu_streams[i]);
        if (known)
            continue;
        gather(model, i, &lane);
        if (is_late(trace))
            match_late(model, &lane);
        else
            match_on(model, &lane, 0, 0);
    }
    free(lane.ops);
    free(lane.gpu);
    free(lane.is);
    return made;
}

struct model *model_make(const struct cst_trace *trace) {
    struct model *model = calloc(1, sizeof *model);
    struct pass pass = {.model = model};
    bool made = model && trace->ops < CST_NONE;
    if (made) {
        model->trace = trace;
        model->ops = calloc(trace->ops + 1, sizeof *model->ops);
        model->streams = calloc(trace->n_streams + 1, sizeof *model->streams);
        pass.state = calloc(trace->n_streams + 1, sizeof *pass.state);
        made = model->ops && model->streams && pass.state;
    }
    for (uint32_t i = 0; made && i < trace->n_streams; i++)
        pass.state[i].step = CST_NONE;
    for (size_t i = 0; made && i < trace->n_events; i++)
        made = take(&pass, trace->events[i]);
    for (uint32_t i = 0; made && i < trace->n_streams; i++)
        model->open += pass.state[i].n - pass.state[i].gone;
    for (uint32_t i = 0; pass.state && i < trace->n_streams; i++)
        free(pass.state[i].withheld);
    free(pass.state);
    made = made && find_gpu_times(model);
    if (made)
        return model;
    model_free(model);
    return NULL;
}

void model_free(struct model *model) {
    if (!model)
        return;
    for (uint32_t i = 0; model->streams && i < model->trace->n_streams; i++) {
        free(model->streams[i].ops);
        free(model->streams[i].steps);
    }
    free(model->streams);
    free(model->steps);
    free(model->ops);
    free(model);
}
