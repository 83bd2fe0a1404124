/*
 * The clocks of threads and streams, in ns since the first event, as doubles, since costs have
 * fractions. player.c, events.c and driver.c call it, one thread at a time. It never asks the
 * machine for the time.
 */
#include "tools/whatif/clock.h"

#include <stdlib.h>
#include <string.h>

#include "shim/base/options.h"
#include "shim/base/uthash.h"
#include "shim/stream/virtual.h"
#include "tools/whatif/cost.h"
#include "tools/whatif/driver.h"
#include "tools/whatif/steps.h"

/* How much later than behind another one the GPU begins behind a graph with branches (H100, driver
 * 580; tests/gpu/DRIVER.md, "Branches"). */
enum { BRANCHES_SEAM = 4500 };

/* An op that was asked for and has not gone out. */
struct asked {
    uint32_t gpu_ns;
    uint8_t op;      /* enum cst_op_type */
    uint32_t thread; /* that asked for it; */
    uint64_t number; /* all ops are numbered */
};

/* A stream. */
struct lane {
    struct {
        CUstream handle;
        uint64_t thread; /* of a per-thread default stream */
    } key;
    double end; /* of what was issued */
    double out; /* when what was submitted last is launched */
    double seam; /* how much later the next op begins */
    bool ran, blocking;
    struct asked *asked; /* first come, first gone */
    size_t first, n, room;
    uint64_t ops; /* since its step began */
    double busy;  /* the same */
    UT_hash_handle hh;
};

/* What became of an op within its call. */
enum outcome { DEFERRED, ISSUED, GRAPH };

struct thread {
    bool begun, behind_op;       /* its last event was an op, which */
    enum outcome recorded, here; /* became that then, and now */
    double host;
    uint64_t at;              /* the end of its last event, as recorded */
    bool waits, polls, all;   /* in a wait; by questions; for every stream of the context */
    double reached;           /* when that work was done, or the wait began, if that is later */
    uint64_t ops;             /* of the step that the wait ends */
    double busy;              /* the same */
    bool measures;            /* a step began: */
    double from;              /* then, */
    uint64_t from_recorded;   /* as recorded */
    double own, call, waited; /* since then */
};

static struct {
    const struct cst_trace *trace;
    const struct whatif_timing *timing;
    const struct whatif_cost *cost;
    struct thread *threads;
    struct lane *lanes;
    struct lane *lane; /* of the op that is played */
    size_t event;
    struct thread *thread;              /* of the event that is played, or was last */
    struct thread *worked;              /* asked for an op last */
    bool own, matched, captures, waits; /* of that op; own, matched: it went out so, is paid for */
    bool background;
    double background_at;
    double lets_through;       /* what the library adds to an op that it does not defer */
    double patching;           /* what it took to patch the graph that is launched next */
    const struct lane *second; /* whose graph the second thread had last */
    double legacy_end, blocking_end;
    double event_end; /* of the record of an event that was issued last */
    uint64_t n_asked;
} here;

static double later(double a, double b) {
    return a > b ? a : b;
}

static const struct cst_record *event_at(size_t index) {
    return here.trace->events[index];
}

static uint64_t end_of(const struct cst_record *event) {
    return event->ns + (event->type == CST_OP ? ((const struct cst_op *)event)->host_ns
                                              : ((const struct cst_call *)event)->host_ns);
}

/* ---- streams ---- */

static struct lane *lane_of(CUstream handle) {
    struct lane *lane, key;
    memset(&key, 0, sizeof key);
    key.key.handle = handle ? handle : CU_STREAM_LEGACY;
    if (handle == CU_STREAM_PER_THREAD)
        key.key.thread = (uint64_t)(here.thread - here.threads);
    HASH_FIND(hh, here.lanes, &key.key, sizeof key.key, lane);
    if (lane)
        return lane;
    lane = whatif_need(calloc(1, sizeof *lane));
    lane->key = key.key;
    lane->blocking = handle == CU_STREAM_PER_THREAD;
#undef uthash_nonfatal_oom
#define uthash_nonfatal_oom(element) (_Exit(WHATIF_NO_MEMORY))
    HASH_ADD(hh, here.lanes, key, sizeof lane->key, lane);
    return lane;
}

static struct lane *lane_of_stream(uint32_t id) {
    const struct cst_stream *stream = here.trace->streams[id];
    struct lane *lane = lane_of(whatif_driver_stream(stream));
    lane->blocking = stream->kind != CST_STREAM_LEGACY && !(stream->flags & CU_STREAM_NON_BLOCKING);
    return lane;
}

static void ask(struct lane *lane, struct asked op) {
    op.thread = (uint32_t)(here.thread - here.threads);
    op.number = here.n_asked++;
    if (lane->first + lane->n == lane->room && lane->first) {
        memmove(lane->asked, lane->asked + lane->first, lane->n * sizeof op);
        lane->first = 0;
    }
    if (lane->n == lane->room) {
        lane->room = lane->room ? 2 * lane->room : 64;
        lane->asked = whatif_need(realloc(lane->asked, lane->room * sizeof op));
    }
    lane->asked[lane->first + lane->n++] = op;
    lane->ops++;
}

static bool is_event(uint8_t op) {
    return op == CST_OP_RECORD || op == CST_OP_WAIT;
}

static struct asked take(struct lane *lane) {
    if (!lane->n)
        return (struct asked){.gpu_ns = WHATIF_NOT_MEASURED, .op = CST_OP_LAUNCH};
    lane->n--;
    struct asked op = lane->asked[lane->first++];
    if (!lane->n)
        lane->first = 0;
    return op;
}

/* The op that is played. */
static struct asked take_last(struct lane *lane) {
    lane->n--;
    return lane->asked[lane->first + lane->n];
}

/* The same where an op of this type was issued: records that nobody could see never are. */
static struct asked take_for(struct lane *lane, uint8_t type) {
    while (lane->n > 1 && lane->asked[lane->first].op == CST_OP_RECORD && type != CST_OP_RECORD)
        take(lane);
    return take(lane);
}

/* It was issued at `at`; what is ahead of it keeps it `gap` off. */
static void run(struct lane *lane, struct asked op, double at, double gap) {
    if (op.op == CST_OP_WAIT) {
        lane->end = later(lane->end, here.event_end);
        lane->ran = true;
        return;
    }
    bool legacy = lane->key.handle == CU_STREAM_LEGACY;
    double ns = here.cost->gpu.small_kernel, begin = at + here.cost->gpu.start;
    if (op.gpu_ns != WHATIF_NOT_MEASURED)
        ns = later(0, op.gpu_ns - here.cost->gpu.measured_more);
    if (op.op == CST_OP_RECORD)
        ns = here.cost->gpu.record;
    else if (op.op != CST_OP_LAUNCH)
        gap += here.cost->gpu.memset_more;
    if (lane->ran)
        begin = later(begin, lane->end + gap + lane->seam);
    lane->seam = 0;
    if (legacy)
        begin = later(begin, here.blocking_end);
    else if (lane->blocking)
        begin = later(begin, here.legacy_end);
    lane->ran = true;
    lane->end = begin + ns;
    lane->busy += ns;
    if (op.op == CST_OP_RECORD)
        here.event_end = lane->end;
    if (legacy)
        here.legacy_end = later(here.legacy_end, lane->end);
    else if (lane->blocking)
        here.blocking_end = later(here.blocking_end, lane->end);
}

/* ---- what the driver is asked for ---- */

/* Returns when it has been done. */
static double spend(double ns) {
    if (here.background)
        return here.background_at += ns;
    here.thread->call += ns;
    return here.thread->host += ns;
}

static double scaled(double ns, double factor) {
    return factor > 0 ? ns * factor : ns;
}

static double cost_of(uint8_t op) {
    double ns = op == CST_OP_LAUNCH   ? here.cost->host.eager_launch
                : op == CST_OP_MEMSET ? here.cost->host.eager_memset
                : is_event(op)        ? here.cost->host.eager_record
                                      : here.cost->host.eager_copy;
    return scaled(ns, here.timing->eager);
}

static double behind(enum outcome outcome) {
    return outcome == GRAPH    ? here.timing->behind_graph
           : outcome == ISSUED ? here.timing->behind_eager
                               : 0;
}

/* What was submitted is out before anything else of its stream is. */
static void follow(const struct lane *lane) {
    if (!here.background && lane->out > here.thread->host)
        spend(lane->out - here.thread->host);
}

static void became(enum outcome outcome) {
    if (!here.background && outcome > here.thread->here)
        here.thread->here = outcome;
}

/* Ahead of an op, as the GPU needs it. What a record needs is in gpu.record. */
static double gap_ahead(struct asked op, double kernel) {
    return is_event(op.op) ? 0 : kernel - here.cost->gpu.small_kernel;
}

/* What is deferred is looked at before anything goes out because of it. */
static void match(void) {
    here.matched = true;
    spend(scaled(here.cost->host.matched_launch, here.timing->matched));
}

/* The host is there when the copy is. */
static void copy_and_wait(struct lane *lane) {
    struct thread *thread = here.thread;
    double begin = later(thread->host, lane->end);
    thread->waited += begin - thread->host;
    thread->call += here.cost->host.pageable_copy;
    thread->host = lane->end = begin + here.cost->host.pageable_copy;
    lane->ran = true;
}

void whatif_clock_own(void) {
    if (!here.timing)
        return;
    here.own = true;
    struct asked op = take_last(here.lane);
    became(ISSUED);
    follow(here.lane);
    spend(here.lets_through);
    if (here.captures) {
        spend(cost_of(op.op));
        return;
    }
    if (here.waits)
        copy_and_wait(here.lane);
    else
        run(here.lane, op, spend(cost_of(op.op)), gap_ahead(op, here.cost->gpu.eager_kernel));
}

void whatif_clock_waits(void) {
    if (here.timing)
        spend(cost_of(CST_OP_WAIT));
}

void whatif_clock_issued(CUstream stream, enum cst_op_type type) {
    if (!here.timing)
        return;
    struct lane *lane = lane_of(stream);
    struct asked op = take_for(lane, (uint8_t)type);
    became(ISSUED);
    follow(lane);
    run(lane, op, spend(cost_of(op.op)), gap_ahead(op, here.cost->gpu.eager_kernel));
}

void whatif_clock_captured(void) {
    if (here.timing)
        spend(here.cost->host.built_node);
}

void whatif_clock_patched(void) {
    if (here.timing)
        here.patching += scaled(here.cost->host.patched_node, here.timing->graph);
}

/* May it be submitted now? The second thread has one graph at a time, and for another stream
 * nobody waits. */
static bool hands_over(const struct lane *lane) {
    return cus_virtual_submit && !here.background &&
           (!here.second || here.second == lane || here.second->out <= here.thread->host);
}

/* The lane with the op that this thread asked for first of all that have not gone out: it defers
 * ops of one stream and its branches at a time. NULL: there is none. */
static struct lane *first_asked(uint32_t thread) {
    struct lane *best = NULL;
    for (struct lane *lane = here.lanes; lane; lane = lane->hh.next)
        if (lane->n && lane->asked[lane->first].thread == thread &&
            (!best || lane->asked[lane->first].number < best->asked[best->first].number))
            best = lane;
    return best;
}

/* The ops of a graph run that is launched at `at`. Records without a node cost nothing. */
static void run_graph(struct lane *home, uint32_t ops, struct whatif_nodes nodes, double at) {
    double kernel = here.cost->gpu.graph_kernel;
    uint32_t records = nodes.records - nodes.own;
    uint32_t thread = home->n ? home->asked[home->first].thread : 0;
    for (uint32_t i = 0; i < ops; i++) {
        struct lane *lane = home->n ? first_asked(thread) : NULL;
        lane = lane ? lane : home;
        struct asked op = take(lane);
        if (op.op == CST_OP_RECORD && !records) {
            here.event_end = lane->end;
            continue;
        }
        records -= op.op == CST_OP_RECORD;
        run(lane, op, at, gap_ahead(op, kernel) + (i ? 0 : here.cost->gpu.graph_seam));
    }
    home->seam = nodes.own ? BRANCHES_SEAM : 0;
}

void whatif_clock_graph(CUstream stream, struct whatif_nodes nodes) {
    if (!here.timing)
        return;
    const struct whatif_cost *cost = here.cost;
    struct lane *lane = lane_of(stream);
    if (!here.own && !here.matched && !here.background)
        match();
    follow(lane);
    double ns = here.patching, at;
    ns += scaled(whatif_cost_launch(cost, nodes), here.timing->graph);
    here.patching = 0;
    if (hands_over(lane)) {
        here.second = lane;
        at = lane->out = here.thread->host + ns;
    } else {
        became(GRAPH);
        at = spend(ns);
    }
    cus_virtual_submit = false;
    run_graph(lane, cus_virtual_ops, nodes, at);
}

/* ---- steps ---- */

static void step_ends(struct thread *thread, uint64_t recorded) {
    if (thread->measures && thread->ops) {
        whatif_steps_add(&(struct whatif_step){
            .ops = thread->ops,
            .ns = thread->host - thread->from,
            .recorded = (double)(recorded - thread->from_recorded),
            .own = thread->own,
            .calls = thread->call,
            .waits = thread->waited,
            .busy = thread->busy,
        });
    }
    thread->measures = true;
    thread->from = thread->host;
    thread->from_recorded = recorded;
    thread->own = thread->call = thread->waited = 0;
    thread->ops = 0;
    thread->waits = false;
}

/* Is it a wait, and not merely the mark of a step? Then the end of it comes next. */
static bool is_wait(void) {
    enum { AHEAD = 1 << 16 };
    const struct cst_trace *trace = here.trace;
    uint32_t thread = event_at(here.event)->thread;
    for (size_t i = here.event + 1; i < trace->n_events && i <= here.event + AHEAD; i++) {
        const struct cst_record *event = trace->events[i];
        if (event->thread != thread || (event->type != CST_OP && event->type != CST_CALL))
            continue;
        uint8_t what = ((const struct cst_call *)event)->what;
        return event->type == CST_CALL && (what == CST_CALL_WAITED || what == CST_CALL_COPYING);
    }
    return false;
}

static void gather(struct thread *thread, struct lane *lane, double *end) {
    *end = later(*end, lane->end);
    thread->ops += lane->ops;
    thread->busy += lane->busy;
    lane->ops = 0;
    lane->busy = 0;
}

static void wait_for(struct thread *thread, const struct cst_call *call) {
    double end = 0;
    thread->ops = 0;
    thread->busy = 0;
    if (thread->all || call->stream == CST_NONE) {
        for (struct lane *lane = here.lanes; lane; lane = lane->hh.next)
            gather(thread, lane, &end);
    } else {
        gather(thread, lane_of_stream(call->stream), &end);
    }
    if (!is_wait()) {
        step_ends(thread, end_of(&call->head));
        return;
    }
    double begin = thread->host;
    thread->reached = later(begin, end);
    thread->host = thread->polls
                       ? thread->reached
                       : later(begin + here.cost->host.idle_sync, end + here.cost->host.wake_up);
    thread->waited += thread->host - begin;
    thread->waits = true;
}

/* ---- events ---- */

static void call_ends(struct thread *thread, const struct cst_call *call) {
    const char *name = cst_string(here.trace, call->name);
    switch ((enum cst_what)call->what) {
    case CST_CALL_FLUSH:
        thread->polls = strstr(name, "Query") != NULL;
        thread->all = strstr(name, "CtxSynchronize") != NULL;
        if (call->stream == CST_NONE)
            break;
        if (strncmp(name, "cuEventRecord", 13) == 0) {
            here.event_end = lane_of_stream(call->stream)->end;
        } else if (strncmp(name, "cuStreamWaitEvent", 17) == 0) {
            struct lane *lane = lane_of_stream(call->stream);
            lane->end = later(lane->end, here.event_end);
        }
        break;
    case CST_CALL_STEP_END:
        wait_for(thread, call);
        break;
    case CST_CALL_COPYING:
        if (thread->waits && call->value) {
            double end = thread->reached + here.cost->host.pageable_copy;
            thread->waited += end - thread->host;
            thread->host = end;
        }
        break;
    case CST_CALL_WAITED:
        if (thread->waits)
            step_ends(thread, end_of(&call->head));
        break;
    default:
        break;
    }
}

/* What the program did since its last call. */
static void go_on(struct thread *thread, const struct cst_record *event) {
    double gap = event->ns > thread->at ? (double)(event->ns - thread->at) : 0;
    struct thread *other = here.worked;
    bool handed = other && other != thread && other->at > thread->at;
    if (thread->waits) {
        const struct cst_call *call = (const struct cst_call *)event;
        if (event->type == CST_CALL &&
            (call->what == CST_CALL_WAITED || call->what == CST_CALL_COPYING))
            return;
        step_ends(thread, thread->at);
    }
    gap -= here.cost->recorder.op;
    if (thread->behind_op)
        gap += behind(thread->here) - behind(thread->recorded);
    gap = later(0, gap);
    if (handed || !thread->begun) {
        double since = other ? other->host + ((double)event->ns - (double)other->at) : 0;
        gap = later(0, since - thread->host);
    }
    thread->begun = true;
    thread->own += gap;
    thread->host += gap;
}

/* What the recording says of the op at `index`. */
static enum outcome outcome_of(size_t index) {
    const struct cst_op *op = (const struct cst_op *)event_at(index);
    uint64_t end = end_of(&op->head);
    enum { AHEAD = 4096 };
    size_t last = index + AHEAD;
    if (op->head.flags == CST_EAGER)
        return ISSUED;
    for (index++; index < here.trace->n_events && index <= last && event_at(index)->ns <= end;
         index++) {
        const struct cst_record *event = event_at(index);
        if (event->thread != op->head.thread)
            continue;
        if (event->type == CST_LAUNCH)
            return GRAPH;
        if (event->type == CST_FLUSH)
            return ISSUED;
    }
    return DEFERRED;
}

void whatif_clock_event(size_t index) {
    if (!here.timing)
        return;
    const struct cst_record *event = event_at(index);
    here.event = index;
    here.background = false;
    here.own = true;
    here.matched = false;
    here.thread = &here.threads[event->thread];
    go_on(here.thread, event);
    here.thread->behind_op = event->type == CST_OP;
    here.thread->here = DEFERRED;
    if (event->type == CST_OP)
        here.thread->recorded = outcome_of(index);
}

void whatif_clock_op(bool captures, bool waits) {
    if (!here.timing)
        return;
    const struct cst_op *op = (const struct cst_op *)event_at(here.event);
    const uint32_t *known = here.timing->gpu_ns;
    here.lane = lane_of_stream(op->stream);
    here.captures = captures;
    here.waits = waits;
    here.own = false;
    ask(here.lane, (struct asked){.gpu_ns = known ? known[here.event] : WHATIF_NOT_MEASURED,
                                  .op = (uint8_t)here.trace->kinds[op->kind]->op});
}

void whatif_clock_call_op(uint32_t stream, enum cst_op_type op) {
    if (!here.timing)
        return;
    here.lane = lane_of_stream(stream);
    here.captures = here.waits = false;
    ask(here.lane, (struct asked){.gpu_ns = WHATIF_NOT_MEASURED, .op = (uint8_t)op});
}

void whatif_clock_call_drop(void) {
    if (!here.timing || !here.lane->n)
        return;
    here.lane->n--;
    here.lane->ops--;
}

void whatif_clock_event_end(void) {
    if (!here.timing)
        return;
    const struct cst_record *event = event_at(here.event);
    if (event->type == CST_OP) {
        here.worked = here.thread;
        if (!here.own && !here.matched)
            match();
    }
    if (event->type == CST_CALL)
        call_ends(here.thread, (const struct cst_call *)event);
    here.thread->at = end_of(event);
}

void whatif_clock_background(uint64_t ns) {
    if (!here.timing || !here.thread)
        return;
    const struct thread *thread = here.thread;
    here.background = true;
    here.background_at =
        thread->host + (ns > thread->at && !thread->waits ? (double)(ns - thread->at) : 0);
}

/* ---- the whole ---- */

void whatif_clock_start(const struct cst_trace *trace, const struct whatif_timing *timing) {
    here.trace = trace;
    here.timing = timing;
    here.cost = timing->cost;
    here.lets_through = cus_options()->mode == CUS_MODE_OFF ? 0 : timing->cost->host.let_through;
    here.threads = whatif_need(calloc(trace->n_threads + 1, sizeof *here.threads));
}

void whatif_clock_end(struct whatif_times *times) {
    whatif_steps_sum(times);
}
