/*
 * Decides which of CUPTI's records belongs to which op: per stream number, it brings the calls of
 * the trace and the runs of CUPTI into step (model_gpu_calls.c has both), oldest first. model_make
 * calls it once. A stream costs by its own calls and runs; it never guesses where they do not fit.
 */
#include "tools/trace/model_gpu.h"

#include <stdlib.h>
#include <string.h>

enum {
    AHEAD = 256,      /* calls that the GPU may have skipped, for there was nothing to do */
    FEW = 8,          /* lanes of one number that may look through all runs of it */
    SLACK_NS = 20000, /* by which CUPTI's clock may be behind the host's */
};

/* A stream as CUPTI knows it. In the trace it may be several, one after the other: when a context
 * goes, the library numbers all streams anew. */
struct lane {
    uint32_t number;  /* CUPTI's */
    uint32_t context; /* the trace's */
    uint32_t cupti;   /* CUPTI's context; 0: not known: files of before have no such records */
    size_t waited;    /* the first event that says that all its work was done; SIZE_MAX: none */
    const struct gpu_call **calls; /* in order */
    uint32_t n_calls;
    const struct gpu_run **runs; /* as they began */
    size_t n_runs;
};

struct matching {
    struct model *model;
    struct lane *lanes; /* by number, then by the trace's context */
    uint32_t n_lanes;
    uint32_t *lane_of; /* by stream of the trace; CST_NONE: none */
    struct gpu_calls all;
    const struct gpu_call **calls; /* those of each lane together */
    const struct gpu_run **runs;   /* those of each number together */
    const struct gpu_run **some;   /* room for those of one lane */
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

static void share_calls(struct matching *m) {
    uint32_t at = 0;
    for (uint32_t i = 0; i < m->all.n_calls; i++)
        if (m->lane_of[m->all.calls[i].stream] != CST_NONE)
            m->lanes[m->lane_of[m->all.calls[i].stream]].n_calls++;
    for (uint32_t i = 0; i < m->n_lanes; i++) {
        m->lanes[i].calls = m->calls + at;
        at += m->lanes[i].n_calls;
        m->lanes[i].n_calls = 0;
    }
    for (uint32_t i = 0; i < m->all.n_calls; i++) {
        uint32_t lane = m->lane_of[m->all.calls[i].stream];
        if (lane != CST_NONE)
            m->lanes[lane].calls[m->lanes[lane].n_calls++] = &m->all.calls[i];
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

/* The runs of a number are those of its first lane for now. */
static void share_runs(struct matching *m) {
    size_t at = 0;
    for (size_t i = 0; i < m->all.n_runs; i++) {
        uint32_t lane = first_of(m, m->all.runs[i].stream);
        if (lane < m->n_lanes)
            m->lanes[lane].n_runs++;
    }
    for (uint32_t i = 0; i < m->n_lanes; i++) {
        m->lanes[i].runs = m->runs + at;
        at += m->lanes[i].n_runs;
        m->lanes[i].n_runs = 0;
    }
    for (size_t i = 0; i < m->all.n_runs; i++) {
        uint32_t lane = first_of(m, m->all.runs[i].stream);
        if (lane < m->n_lanes)
            m->lanes[lane].runs[m->lanes[lane].n_runs++] = &m->all.runs[i];
    }
}

/* ---- calls and runs in step ---- */

/* None runs before it was made. */
static bool is_of(const struct model *model, const struct lane *lane, uint32_t call, size_t run) {
    return lane->calls[call]->ns <= lane->runs[run]->ns + SLACK_NS &&
           gpu_calls_same(model, lane->calls[call], lane->runs[run]);
}

/* A stream runs its calls in order. What ran there without being an op, such as a graph of the
 * program's own, is passed over, and so are calls that came to nothing. From `call` and `run` on to
 * the end. */
static void match_on(struct model *model, const struct lane *lane, uint32_t call, size_t run) {
    for (; run < lane->n_runs && call < lane->n_calls; run++) {
        uint32_t end = lane->n_calls - call > AHEAD ? call + AHEAD : lane->n_calls, at = call;
        while (at < end && !is_of(model, lane, at, run))
            at++;
        if (at == end)
            continue;
        gpu_calls_tell(model, lane->calls[at], lane->runs[run]);
        call = at + 1;
    }
}

/* The same from what is before `call` and `run` back to the beginning. */
static void match_back(struct model *model, const struct lane *lane, uint32_t call, size_t run) {
    while (run-- > 0 && call > 0) {
        uint32_t end = call > AHEAD ? call - AHEAD : 0, at = call;
        while (at > end && !is_of(model, lane, at - 1, run))
            at--;
        if (at == end)
            continue;
        call = at - 1;
        gpu_calls_tell(model, lane->calls[call], lane->runs[run]);
    }
}

/* ---- recordings that began late ---- */

/* Did it begin behind the program's first step? What was trimmed has records of its ops alone. */
static bool began_late(const struct cst_trace *trace) {
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
    uint32_t call = 0;
    size_t run = 0;
    if (lane->waited == SIZE_MAX)
        return;
    uint64_t ns = model->trace->events[lane->waited]->ns;
    while (call < lane->n_calls && lane->calls[call]->ns < ns)
        call++;
    while (run < lane->n_runs && lane->runs[run]->ns < ns)
        run++;
    match_back(model, lane, call, run);
    match_on(model, lane, call, run);
}

/* ---- which of a number's runs are of which of its lanes ---- */

static int by_cupti(const void *a, const void *b) {
    const struct gpu_run *x = *(const struct gpu_run *const *)a,
                         *y = *(const struct gpu_run *const *)b;
    if (x->context != y->context)
        return x->context < y->context ? -1 : 1;
    return x < y ? -1 : x > y; /* they stand as they began */
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
        for (size_t k = 0; k < all.n_runs; k++)
            if (!lane->cupti || all.runs[k]->context == lane->cupti)
                m->some[n++] = all.runs[k];
        lane->runs = m->some;
        lane->n_runs = n;
        match(m, lane, late);
    }
}

/* Many: their contexts tell whose runs are whose, which are then nobody else's. */
static void match_many(struct matching *m, uint32_t from, uint32_t to, bool late) {
    const struct lane all = m->lanes[from];
    qsort(all.runs, all.n_runs, sizeof *all.runs, by_cupti);
    memset(m->some, 0, (all.n_runs + 1) * sizeof *m->some);
    for (uint32_t i = from; i < to; i++) {
        struct lane *lane = &m->lanes[i];
        size_t low = 0, high = all.n_runs, n = 0;
        while (low < high) {
            size_t middle = low + (high - low) / 2;
            if (all.runs[middle]->context < lane->cupti)
                low = middle + 1;
            else
                high = middle;
        }
        while (!m->some[low] && low + n < all.n_runs && all.runs[low + n]->context == lane->cupti)
            n++;
        lane->runs = all.runs + low;
        lane->n_runs = lane->cupti ? n : 0;
        if (lane->n_runs)
            m->some[low] = all.runs[low]; /* taken */
        match(m, lane, late);
    }
}

bool model_gpu_times(struct model *model) {
    const struct cst_trace *trace = model->trace;
    if (!trace->n_gpu || !trace->n_gpu_streams)
        return true;
    struct matching m = {.model = model,
                         .lanes = malloc((trace->n_gpu_streams + 1) * sizeof *m.lanes),
                         .lane_of = malloc((trace->n_streams + (size_t)1) * sizeof *m.lane_of),
                         .calls = malloc((model->n_ops + (size_t)1) * sizeof *m.calls),
                         .runs = malloc((trace->n_gpu + 1) * sizeof *m.runs),
                         .some = malloc((trace->n_gpu + 1) * sizeof *m.some)};
    bool made =
             m.lanes && m.lane_of && m.calls && m.runs && m.some && gpu_calls_find(&m.all, model),
         late = began_late(trace);
    if (made)
        find_lanes(&m);
    made = made && (!late || find_waits(&m));
    if (made) {
        share_calls(&m);
        share_runs(&m);
    }
    for (uint32_t i = 0, end; made && i < m.n_lanes; i = end) {
        for (end = i + 1; end < m.n_lanes && m.lanes[end].number == m.lanes[i].number;)
            end++;
        (end - i <= FEW ? match_few : match_many)(&m, i, end, late);
    }
    gpu_calls_free(&m.all);
    free(m.lanes);
    free(m.lane_of);
    free(m.calls);
    free(m.runs);
    free(m.some);
    return made;
}
