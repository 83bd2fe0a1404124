/*
 * Makes the model in one pass over the events, with a queue of deferred ops for each stream, and
 * for each thread what its next LAUNCH or FLUSH takes from other streams.
 * look.c and verb_calibrate.c call it. It never reads the file.
 */
#include "tools/trace/model.h"

#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include "xxhash.h"

#include "tools/trace/model_gpu.h"

const char *const model_op_words[CST_OP_TYPES] = {"launch", "memset", "copy", "record", "wait"};

bool model_event(const struct cst_trace *trace, const struct cst_op *op, uint64_t *event,
                 uint64_t *number) {
    const struct cst_kind *kind = trace->kinds[op->kind];
    uint64_t params[2];
    if ((kind->op != CST_OP_RECORD && kind->op != CST_OP_WAIT) || kind->flags & CST_KIND_OPAQUE ||
        kind->param_bytes < sizeof params)
        return false;
    memcpy(params, cst_op_params(op), sizeof params);
    *event = params[0];
    *number = params[1];
    return true;
}

uint64_t model_elements(const struct cst_kind *kind, const struct cst_op *op) {
    enum { HEIGHT = 20 }; /* of a memset's params */
    uint64_t count = op->dims[0] | (uint64_t)op->dims[1] << 32;
    uint32_t height = 1;
    if (kind->op == CST_OP_MEMSET && !(kind->flags & CST_KIND_OPAQUE) &&
        kind->param_bytes >= HEIGHT + sizeof height)
        memcpy(&height, cst_op_params(op) + HEIGHT, sizeof height);
    return count * (height ? height : 1);
}

enum { BRANCHES = 16 }; /* more than the library forks */

/* Of one stream, while the pass runs. */
struct state {
    uint32_t *deferred; /* ops in model->ops; those before `gone` have gone out */
    uint32_t n, gone, room;
    uint32_t step; /* the one that runs; CST_NONE: none does */
    uint32_t op_room, step_room;
};

/* Branches that a thread's next LAUNCH or FLUSH has. */
struct branches {
    const struct cst_branch *at[BRANCHES];
    uint32_t n;
};

struct pass {
    struct model *model;
    struct state *state;       /* by stream */
    struct branches *branches; /* by thread */
    uint32_t step_room, launch_room;
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
        !grow((void **)&state->deferred, state->n, &state->room, sizeof *state->deferred))
        return false;
    struct model_step *in = &model->steps[step];
    in->n_ops++;
    in->end_ns = op->head.ns + op->host_ns;
    in->signature = XXH3_64bits_withSeed(op->dims, sizeof op->dims, in->signature ^ op->kind);
    s->ops[s->n_ops++] = model->n_ops;
    model->ops[model->n_ops++] = (struct model_op){.op = op, .step = step};
    if (op->head.flags == CST_DEFERRED)
        state->deferred[state->n++] = model->n_ops - 1;
    else
        model->eager++;
    return true;
}

/* The oldest `n` deferred ops of a stream went out, from place `first` on. Fewer where records were
 * lost. */
static void take_some(struct pass *pass, const struct cst_record *out, uint32_t stream, uint32_t n,
                      uint32_t first) {
    struct model *model = pass->model;
    struct state *state = &pass->state[stream];
    bool graph = out->type == CST_LAUNCH;
    for (uint32_t i = 0; i < n && state->gone < state->n; i++, state->gone++) {
        struct model_op *op = &model->ops[state->deferred[state->gone]];
        op->out = out;
        op->place = first + i;
        if (graph)
            model->launched[model->in_graphs++] = state->deferred[state->gone];
        model->flushed += !graph;
        model->steps[op->step].in_graphs += graph;
        if (op->place == 0)
            model->steps[op->step].graphs += graph;
    }
}

/* A LAUNCH or FLUSH of `n` ops: first those of its own stream, then those of each branch. */
static bool take_out(struct pass *pass, const struct cst_record *out, uint32_t stream, uint32_t n) {
    struct model *model = pass->model;
    uint64_t before = model->in_graphs;
    struct branches *branches = &pass->branches[out->thread];
    uint32_t own = n, first;
    for (uint32_t i = 0; i < branches->n; i++)
        own -= branches->at[i]->n < own ? branches->at[i]->n : own;
    take_some(pass, out, stream, own, 0);
    first = own;
    for (uint32_t i = 0; i < branches->n; i++) {
        take_some(pass, out, branches->at[i]->stream, branches->at[i]->n, first);
        first += branches->at[i]->n;
    }
    branches->n = 0;
    if (out->type != CST_LAUNCH)
        return true;
    if (model->graph_launches >= CST_NONE ||
        !grow((void **)&model->launches, (uint32_t)model->graph_launches, &pass->launch_room,
              sizeof *model->launches))
        return false;
    model->launches[model->graph_launches++] =
        (struct model_launch){.record = (const struct cst_launch *)out,
                              .ops = model->launched + before,
                              .n = (uint32_t)(model->in_graphs - before)};
    return true;
}

static void take_branch(struct pass *pass, const struct cst_branch *branch) {
    struct branches *branches = &pass->branches[branch->head.thread];
    if (branches->n < BRANCHES)
        branches->at[branches->n++] = branch;
}

/* What went out behind it is not of ops in front of it. */
static void take_damage(struct pass *pass) {
    const struct cst_trace *trace = pass->model->trace;
    for (uint32_t i = 0; i < trace->n_streams; i++) {
        struct state *state = &pass->state[i];
        pass->model->open += state->n - state->gone;
        state->gone = state->n;
    }
    for (uint32_t i = 0; i < trace->n_threads; i++)
        pass->branches[i].n = 0;
}

static bool take(struct pass *pass, const struct cst_record *record) {
    switch (record->type) {
    case CST_OP:
        return take_op(pass, (const struct cst_op *)record);
    case CST_LAUNCH: {
        const struct cst_launch *launch = (const struct cst_launch *)record;
        return take_out(pass, record, launch->stream, launch->n);
    }
    case CST_BRANCH:
        take_branch(pass, (const struct cst_branch *)record);
        return true;
    case CST_FLUSH: {
        const struct cst_flush *flush = (const struct cst_flush *)record;
        return take_out(pass, record, flush->stream, flush->n);
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
    case CST_LOST:
        if (record->flags & CST_LOST_DAMAGE)
            take_damage(pass);
        return true;
    default:
        return true;
    }
}

struct model *model_make(const struct cst_trace *trace) {
    struct model *model = calloc(1, sizeof *model);
    struct pass pass = {.model = model};
    bool made = model && trace->ops < CST_NONE;
    if (made) {
        model->trace = trace;
        model->ops = calloc(trace->ops + 1, sizeof *model->ops);
        model->launched = malloc((trace->ops + 1) * sizeof *model->launched);
        model->streams = calloc(trace->n_streams + 1, sizeof *model->streams);
        pass.state = calloc(trace->n_streams + 1, sizeof *pass.state);
        pass.branches = calloc(trace->n_threads + 1, sizeof *pass.branches);
        made = model->ops && model->launched && model->streams && pass.state && pass.branches;
    }
    for (uint32_t i = 0; made && i < trace->n_streams; i++)
        pass.state[i].step = CST_NONE;
    for (size_t i = 0; made && i < trace->n_events; i++)
        made = take(&pass, trace->events[i]);
    for (uint32_t i = 0; made && i < trace->n_streams; i++)
        model->open += pass.state[i].n - pass.state[i].gone;
    for (uint32_t i = 0; pass.state && i < trace->n_streams; i++)
        free(pass.state[i].deferred);
    free(pass.state);
    free(pass.branches);
    made = made && model_gpu_times(model);
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
    free(model->launches);
    free(model->launched);
    free(model->steps);
    free(model->ops);
    free(model);
}
