/*
 * Decides which of CUPTI's records belongs to which op: per stream number, it brings ops and
 * records into step, oldest first. model_make calls it once. A stream costs by its own ops and
 * records; it never guesses where they do not fit. Graphs with branches are model_branches.c's.
 */
#include "tools/trace/model_gpu.h"

#include <stdlib.h>
#include <string.h>

enum {
    AHEAD = 256, /* ops that the GPU may have skipped, for there was nothing to do */
    FEW = 8,     /* lanes of one number that may look through all records of it */
};

/* A stream as CUPTI knows it. In the trace it may be several, one after the other: when a context
 * goes, the library numbers all streams anew. */
struct lane {
    uint32_t number;  /* CUPTI's */
    uint32_t context; /* the trace's */
    uint32_t cupti;   /* CUPTI's context; 0: not known: files of before have no such records */
    size_t waited;    /* the first event that says that all its work was done; SIZE_MAX: none */
    uint32_t *ops;    /* in model->ops, in order */
    uint32_t n_ops;
    const struct cst_gpu **gpu;
    size_t n_gpu;
};

struct matching {
    struct model *model;
    struct lane *lanes; /* by number, then by the trace's context */
    uint32_t n_lanes;
    uint32_t *lane_of;           /* by stream of the trace; CST_NONE: none */
    uint32_t *ops;               /* those of each lane together */
    const struct cst_gpu **gpu;  /* those of each number together */
    const struct cst_gpu **some; /* room for those of one lane */
    struct model_branches branches;
};

/* ---- lanes ---- */

static int by_lane(const void *a, const void *b) {
    const struct lane *x = a, *y = b;
    if (x->number != y->number)
        return x->number < y->number ? -1 : 1;
    return x->context < y->context ? -1 : x->context > y->context;
}

static struct lane lane_named(const struct cst_trace *trace, const struct cst_gpu_stream *of) {
    return (struct lane){.number = of->gpu_stream,
                         .context = trace->streams[of->stream]->context,
                         .waited = SIZE_MAX};
}

/* A stream has one number: the first that is said. */
static void find_lanes(struct matching *m) {
    const struct cst_trace *trace = m->model->trace;
    size_t n = trace->n_gpu_streams;
    for (size_t i = 0; i < n; i++)
        m->lanes[i] = lane_named(trace, trace->gpu_streams[i]);
    qsort(m->lanes, n, sizeof *m->lanes, by_lane);
    for (size_t i = 0; i < n; i++)
        if (!i || by_lane(&m->lanes[m->n_lanes - 1], &m->lanes[i]) != 0)
            m->lanes[m->n_lanes++] = m->lanes[i];
    for (uint32_t i = 0; i < trace->n_streams; i++)
        m->lane_of[i] = CST_NONE;
    for (size_t i = 0; i < n; i++) {
        uint32_t stream = trace->gpu_streams[i]->stream;
        struct lane asked = lane_named(trace, trace->gpu_streams[i]);
        const struct lane *lane = bsearch(&asked, m->lanes, m->n_lanes, sizeof asked, by_lane);
        if (m->lane_of[stream] == CST_NONE)
            m->lane_of[stream] = (uint32_t)(lane - m->lanes);
    }
    for (size_t i = 0; i < trace->n_gpu_contexts; i++) {
        uint32_t lane = m->lane_of[trace->gpu_contexts[i]->stream];
        if (lane != CST_NONE)
            m->lanes[lane].cupti = trace->gpu_contexts[i]->context;
    }
}

static void share_ops(struct matching *m) {
    const struct model *model = m->model;
    uint32_t at = 0;
    for (uint32_t i = 0; i < model->trace->n_streams; i++)
        if (m->lane_of[i] != CST_NONE)
            m->lanes[m->lane_of[i]].n_ops += model->streams[i].n_ops;
    for (uint32_t i = 0; i < m->n_lanes; i++) {
        m->lanes[i].ops = m->ops + at;
        at += m->lanes[i].n_ops;
        m->lanes[i].n_ops = 0;
    }
    for (uint32_t i = 0; i < model->n_ops; i++) {
        uint32_t lane = m->lane_of[model->ops[i].op->stream];
        if (lane != CST_NONE && !model_branches_op(&m->branches, &model->ops[i]))
            m->lanes[lane].ops[m->lanes[lane].n_ops++] = i;
    }
}

/* The first lane of that number; n_lanes: there is none. */
static uint32_t first_of(const struct matching *m, uint32_t number) {
    uint32_t low = 0, high = m->n_lanes;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (m->lanes[middle].number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low < m->n_lanes && m->lanes[low].number == number ? low : m->n_lanes;
}

/* The records of a number are those of its first lane for now. */
static void share_records(struct matching *m) {
    const struct cst_trace *trace = m->model->trace;
    uint32_t lane = m->n_lanes;
    size_t at = 0;
    for (size_t i = 0; i < trace->n_gpu; i++) {
        if (lane == m->n_lanes || m->lanes[lane].number != trace->gpu[i]->gpu_stream)
            lane = first_of(m, trace->gpu[i]->gpu_stream);
        if (lane < m->n_lanes && !model_branches_record(&m->branches, trace->gpu[i]))
            m->lanes[lane].n_gpu++;
    }
    for (uint32_t i = 0; i < m->n_lanes; i++) {
        m->lanes[i].gpu = m->gpu + at;
        at += m->lanes[i].n_gpu;
        m->lanes[i].n_gpu = 0;
    }
    for (size_t i = 0; i < trace->n_gpu; i++) {
        if (lane == m->n_lanes || m->lanes[lane].number != trace->gpu[i]->gpu_stream)
            lane = first_of(m, trace->gpu[i]->gpu_stream);
        if (lane < m->n_lanes && !model_branches_record(&m->branches, trace->gpu[i]))
            m->lanes[lane].gpu[m->lanes[lane].n_gpu++] = trace->gpu[i];
    }
}

/* ---- ops and records in step ---- */

bool model_gpu_ran(const struct cst_trace *trace, const struct cst_op *op,
                   const struct cst_gpu *gpu) {
    const struct cst_kind *kind = trace->kinds[op->kind];
    switch (kind->op) {
    case CST_OP_LAUNCH:
        return gpu->head.flags == CST_GPU_KERNEL &&
               memcmp(op->dims, gpu->grid, sizeof gpu->grid) == 0 &&
               (kind->name == gpu->name ||
                strcmp(cst_string(trace, kind->name), cst_string(trace, gpu->name)) == 0);
    case CST_OP_MEMSET:
        return gpu->head.flags == CST_GPU_MEMSET;
    case CST_OP_RECORD: /* CUPTI has no such record of these */
    case CST_OP_WAIT:
        return false;
    default: {
        uint64_t bytes = op->dims[0] | (uint64_t)op->dims[1] << 32;
        return gpu->head.flags == CST_GPU_MEMCPY && (!gpu->bytes || gpu->bytes == bytes);
    }
    }
}

static bool is_of(const struct model *model, const struct lane *lane, uint32_t op, size_t gpu) {
    return model_gpu_ran(model->trace, model->ops[lane->ops[op]].op, lane->gpu[gpu]);
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

/* ---- recordings that began late ---- */

/* Did it begin behind the program's first step? What was trimmed has records of its ops alone. */
static bool is_late(const struct cst_trace *trace) {
    static const char key[] = "\"record_from\":\"";
    const char *at = trace->facts ? strstr(trace->facts, key) : NULL;
    return at && at[sizeof key - 1] != '0' && !strstr(trace->facts, "\"trimmed");
}

static int by_context(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* Did the host see by this call that all work of its stream was done? Synchronous copies may return
 * before. `whole`: of its context, too. */
static bool waited_for(const struct cst_trace *trace, const struct cst_call *call, bool *whole) {
    const char *name = cst_string(trace, call->name);
    *whole = strcmp(name, "cuCtxSynchronize") == 0;
    return *whole ||
           (call->value == 0 && (!*name || strncmp(name, "cuStreamSynchronize", 19) == 0 ||
                                 strncmp(name, "cuStreamQuery", 13) == 0));
}

/* The first wait of each lane; false without memory. */
static bool find_waits(struct matching *m) {
    const struct cst_trace *trace = m->model->trace;
    uint32_t *contexts = malloc((m->n_lanes + (size_t)1) * sizeof *contexts);
    size_t *first = malloc((m->n_lanes + (size_t)1) * sizeof *first);
    for (uint32_t i = 0; contexts && first && i < m->n_lanes; i++) {
        contexts[i] = m->lanes[i].context;
        first[i] = SIZE_MAX;
    }
    if (contexts && first)
        qsort(contexts, m->n_lanes, sizeof *contexts, by_context);
    for (size_t i = 0; contexts && first && i < trace->n_events; i++) {
        const struct cst_call *call = (const struct cst_call *)trace->events[i];
        bool whole;
        if (call->head.type != CST_CALL || call->what != CST_CALL_WAITED ||
            call->stream == CST_NONE || !waited_for(trace, call, &whole))
            continue;
        uint32_t lane = m->lane_of[call->stream];
        if (!whole && lane != CST_NONE && m->lanes[lane].waited == SIZE_MAX)
            m->lanes[lane].waited = i;
        const uint32_t *context = whole ? bsearch(&trace->streams[call->stream]->context, contexts,
                                                  m->n_lanes, sizeof *contexts, by_context)
                                        : NULL;
        if (context && first[context - contexts] == SIZE_MAX)
            first[context - contexts] = i;
    }
    for (uint32_t i = 0; contexts && first && i < m->n_lanes; i++) {
        struct lane *lane = &m->lanes[i];
        const uint32_t *context =
            bsearch(&lane->context, contexts, m->n_lanes, sizeof *contexts, by_context);
        if (first[context - contexts] < lane->waited)
            lane->waited = first[context - contexts];
    }
    bool made = contexts && first;
    free(contexts);
    free(first);
    return made;
}

/*
 * A recording that began in the midst of the program has records of work from before it, any number
 * of them. Once the host has waited for the stream, what runs is what was asked for since, and the
 * last that ran before was the last op before. Without such a wait nothing can be told.
 */
static void match_late(struct model *model, const struct lane *lane) {
    uint32_t op = 0;
    size_t gpu = 0;
    if (lane->waited == SIZE_MAX)
        return;
    uint64_t ns = model->trace->events[lane->waited]->ns;
    while (op < lane->n_ops && model->ops[lane->ops[op]].op->head.ns < ns)
        op++;
    while (gpu < lane->n_gpu && lane->gpu[gpu]->head.ns < ns)
        gpu++;
    match_back(model, lane, op, gpu);
    match_on(model, lane, op, gpu);
}

/* ---- which of a number's records are of which of its lanes ---- */

static int by_cupti(const void *a, const void *b) {
    const struct cst_gpu *x = *(const struct cst_gpu *const *)a,
                         *y = *(const struct cst_gpu *const *)b;
    if (x->context != y->context)
        return x->context < y->context ? -1 : 1;
    if (x->head.ns != y->head.ns)
        return x->head.ns < y->head.ns ? -1 : 1;
    return x < y ? -1 : x > y;
}

static void match(struct matching *m, struct lane *lane, bool late) {
    if (late)
        match_late(m->model, lane);
    else
        match_on(m->model, lane, 0, 0);
}

/* A few lanes: each looks through all of them. */
static void match_few(struct matching *m, uint32_t from, uint32_t to, bool late) {
    const struct lane all = m->lanes[from];
    for (uint32_t i = from; i < to; i++) {
        struct lane *lane = &m->lanes[i];
        size_t n = 0;
        for (size_t k = 0; k < all.n_gpu; k++)
            if (!lane->cupti || all.gpu[k]->context == lane->cupti)
                m->some[n++] = all.gpu[k];
        lane->gpu = m->some;
        lane->n_gpu = n;
        match(m, lane, late);
    }
}

/* Many: their contexts tell whose records are whose, which are then nobody else's. */
static void match_many(struct matching *m, uint32_t from, uint32_t to, bool late) {
    const struct lane all = m->lanes[from];
    qsort(all.gpu, all.n_gpu, sizeof *all.gpu, by_cupti);
    memset(m->some, 0, (all.n_gpu + 1) * sizeof *m->some);
    for (uint32_t i = from; i < to; i++) {
        struct lane *lane = &m->lanes[i];
        size_t low = 0, high = all.n_gpu, n = 0;
        while (low < high) {
            size_t middle = low + (high - low) / 2;
            if (all.gpu[middle]->context < lane->cupti)
                low = middle + 1;
            else
                high = middle;
        }
        while (!m->some[low] && low + n < all.n_gpu && all.gpu[low + n]->context == lane->cupti)
            n++;
        lane->gpu = all.gpu + low;
        lane->n_gpu = lane->cupti ? n : 0;
        if (lane->n_gpu)
            m->some[low] = all.gpu[low]; /* taken */
        match(m, lane, late);
    }
}

/* Of a late recording, as match_late: from the first wait on. */
static void match_graphs(struct matching *m, bool late) {
    const struct cst_trace *trace = m->model->trace;
    for (uint32_t s = 0; s < trace->n_streams; s++) {
        if (m->lane_of[s] == CST_NONE)
            continue;
        const struct lane *lane = &m->lanes[m->lane_of[s]];
        if (!late || lane->waited != SIZE_MAX)
            model_branches_match(&m->branches, s, lane->number, lane->cupti,
                                 late ? trace->events[lane->waited]->ns : 0);
    }
}

bool model_gpu_times(struct model *model) {
    const struct cst_trace *trace = model->trace;
    if (!trace->n_gpu || !trace->n_gpu_streams)
        return true;
    struct matching m = {.model = model,
                         .lanes = malloc((trace->n_gpu_streams + 1) * sizeof *m.lanes),
                         .lane_of = malloc((trace->n_streams + (size_t)1) * sizeof *m.lane_of),
                         .ops = malloc((model->n_ops + (size_t)1) * sizeof *m.ops),
                         .gpu = malloc((trace->n_gpu + 1) * sizeof *m.gpu),
                         .some = malloc((trace->n_gpu + 1) * sizeof *m.some)};
    bool made = m.lanes && m.lane_of && m.ops && m.gpu && m.some, late = is_late(trace);
    if (made) {
        find_lanes(&m);
        made = model_branches_find(&m.branches, model) && (!late || find_waits(&m));
    }
    if (made) {
        share_ops(&m);
        share_records(&m);
        match_graphs(&m, late);
    }
    for (uint32_t i = 0, end; made && i < m.n_lanes; i = end) {
        for (end = i + 1; end < m.n_lanes && m.lanes[end].number == m.lanes[i].number;)
            end++;
        (end - i <= FEW ? match_few : match_many)(&m, i, end, late);
    }
    model_branches_free(&m.branches);
    free(m.lanes);
    free(m.lane_of);
    free(m.ops);
    free(m.gpu);
    free(m.some);
    return made;
}
