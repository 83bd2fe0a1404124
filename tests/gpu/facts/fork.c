/*
 * What a captured graph with branches does: which edges a capture takes from the dependencies that
 * it is given, what an event says whose record ends a branch, and whether branches run at the same
 * time. Only the thread of the trial runs it. Flags decide what runs before what; where a kernel
 * must not have run, it had SOON_MS.
 */
#include "tests/gpu/facts/facts.h"

#include <stdio.h>

enum { SOON_MS = 50, LONG_MS = 1000, EDGES = 32, BRANCHES = 5 };

/* ---- captures, on lab.b ---- */

static void capture_begin(void) {
    CALL(cuStreamBeginCapture_v2, (lab.b, CU_STREAM_CAPTURE_MODE_RELAXED));
}

/* The node of the last call: the one dependency that it left. */
static CUgraphNode captured(void) {
    CUstreamCaptureStatus status;
    cuuint64_t id = 0;
    CUgraph graph = NULL;
    const CUgraphNode *nodes = NULL;
    const CUgraphEdgeData *data = NULL;
    size_t n = 0;
    CALL(cuStreamGetCaptureInfo_v3, (lab.b, &status, &id, &graph, &nodes, &data, &n));
    if (n != 1)
        fact_give_up("a capture without one last node", CUDA_ERROR_UNKNOWN);
    return nodes[0];
}

/* What is captured next depends on these nodes. */
static struct fact_call depend(CUgraphNode *nodes, size_t n) {
    struct fact_call set;
    WATCH(set, cuStreamUpdateCaptureDependencies_v2,
          (lab.b, n ? nodes : NULL, NULL, n, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
    return set;
}

static void behind(CUgraphNode *nodes, size_t n) {
    struct fact_call set = depend(nodes, n);
    if (set.code != CUDA_SUCCESS)
        fact_give_up("cuStreamUpdateCaptureDependencies_v2", set.code);
}

static CUgraphNode captured_touch(void) {
    fact_touch(lab.b, lab.memory);
    return captured();
}

static void captured_record(CUevent event) {
    CALL(cuEventRecordWithFlags, (event, lab.b, CU_EVENT_RECORD_EXTERNAL));
}

static CUgraphExec capture_end(void) {
    CUgraph graph = NULL;
    CUgraphExec exec = NULL;
    CALL(cuStreamEndCapture, (lab.b, &graph));
    CALL(cuGraphInstantiateWithFlags, (&exec, graph, 0));
    return exec;
}

/* ---- which edges there are ---- */

/* How a call went that set dependencies, and whether the node depends on exactly these. */
static const char *edges_text(struct fact_call set, CUgraph graph, CUgraphNode node,
                              const CUgraphNode *wanted, size_t n) {
    CUgraphNode from[EDGES], to[EDGES];
    CUgraphEdgeData data[EDGES];
    size_t edges = EDGES, into = 0, right = 0;
    if (set.waited || set.code)
        return fact_call_text(set);
    CALL(cuGraphGetEdges_v2, (graph, from, to, data, &edges));
    for (size_t i = 0; i < edges && i < EDGES; i++) {
        into += to[i] == node;
        for (size_t w = 0; w < n; w++)
            right += to[i] == node && from[i] == wanted[w] && data[i].type == 0;
    }
    return into == n && right == n ? "exactly these" : "OTHERS";
}

/* K2 behind K1; K3 behind K1 alone; K4 behind K2 and K3; K5 behind nothing; a record behind K5,
 * which is no last dependency: that is K4 again, and K6 behind it. */
static void dependencies(int arg) {
    (void)arg;
    CUevent event = fact_event_done(CU_EVENT_DISABLE_TIMING);
    struct fact_call one, two, none, again, end, run;
    CUgraph graph = NULL;
    CUgraphExec exec = NULL;
    capture_begin();
    CUgraphNode first = captured_touch(), second = captured_touch();
    one = depend(&first, 1);
    CUgraphNode third = captured_touch(), both[] = {second, third};
    two = depend(both, 2);
    CUgraphNode fourth = captured_touch();
    none = depend(NULL, 0);
    CUgraphNode fifth = captured_touch();
    captured_record(event);
    CUgraphNode record = captured();
    again = depend(&fourth, 1);
    CUgraphNode sixth = captured_touch();
    WATCH(end, cuStreamEndCapture, (lab.b, &graph));
    if (end.code == CUDA_SUCCESS) {
        fact_say("behind an earlier node: %s; two nodes: %s; none: %s; a leaf is a record: the end "
                 "of the capture %s",
                 edges_text(one, graph, third, &first, 1), edges_text(two, graph, fourth, both, 2),
                 edges_text(none, graph, fifth, NULL, 0), fact_call_text(end));
        CALL(cuGraphInstantiateWithFlags, (&exec, graph, 0));
        WATCH(run, cuGraphLaunch, (exec, lab.a));
        CALL(cuStreamSynchronize, (lab.a));
        fact_detail("the record behind the fifth kernel: %s; the sixth behind the fourth: %s; the "
                    "launch %s",
                    edges_text(none, graph, record, &fifth, 1),
                    edges_text(again, graph, sixth, &fourth, 1), fact_call_text(run));
    } else {
        fact_say("the end of the capture %s", fact_call_text(end));
    }
}

/* ---- a branch that ends in a record ---- */

/* Behind a first kernel the branch {spins on a gate, records the event}, and another kernel; behind
 * both a tail that spins on a second gate. */
struct branched {
    CUgraphExec exec;
    CUgraphNode spin;
    CUevent event;
    int branch, tail; /* gates */
};

static struct branched branched(unsigned flags) {
    struct branched b = {
        .event = fact_event_done(flags), .branch = fact_gate(), .tail = fact_gate()};
    capture_begin();
    CUgraphNode root = captured_touch();
    fact_spin(lab.b, b.branch);
    b.spin = captured();
    captured_record(b.event);
    behind(&root, 1);
    CUgraphNode ends[] = {captured_touch(), b.spin};
    behind(ends, 2);
    fact_spin(lab.b, b.tail);
    b.exec = capture_end();
    return b;
}

/* Does a stream that waits for the event wait for the branch, and for the branch alone? */
static void left(int flags) {
    struct branched b = branched((unsigned)flags);
    CALL(cuGraphLaunch, (b.exec, lab.a));
    CALL(cuStreamWaitEvent, (lab.b, b.event, 0));
    fact_touch(lab.b, lab.memory);
    bool early = fact_done(lab.b, SOON_MS);
    fact_gate_open(b.branch);
    bool goes_on = fact_done(lab.b, LONG_MS);
    CUresult event = fact_query(b.event), graph = cu.cuStreamQuery(lab.a);
    fact_gate_open(b.tail);
    bool ended = fact_done(lab.a, LONG_MS) && fact_done(lab.b, LONG_MS);
    fact_say("the stream %s, and goes on %s", early ? "DOES NOT WAIT for the branch" : "waits",
             goes_on ? "behind the branch, while the tail spins" : "BEHIND THE TAIL");
    fact_detail("then the event is %s, the graph %s; at the end all %s", fact_code(event),
                fact_code(graph), ended ? "are done" : "HANG");
}

/* Two launches in a row, patched in between so that the branch of the second spins on a third gate.
 * The tails do not spin. Does a wait behind both wait for the second branch? */
static void left_twice(int flags) {
    struct branched b = branched((unsigned)flags);
    CUevent between = fact_event(CU_EVENT_DISABLE_TIMING);
    int second = fact_gate();
    fact_gate_open(b.tail);
    CALL(cuGraphLaunch, (b.exec, lab.a));
    CALL(cuEventRecord, (between, lab.a));
    fact_spin_patch(b.exec, b.spin, second);
    CALL(cuGraphLaunch, (b.exec, lab.a));
    CALL(cuStreamWaitEvent, (lab.b, b.event, 0));
    fact_touch(lab.b, lab.memory);
    fact_gate_open(b.branch);
    double end = fact_now_us() + LONG_MS * 1000.0;
    while (fact_query(between) == CUDA_ERROR_NOT_READY && fact_now_us() < end)
        fact_nap(1);
    CUresult first = fact_query(between);
    bool early = fact_done(lab.b, SOON_MS);
    fact_gate_open(second);
    bool goes_on = fact_done(lab.b, LONG_MS), ended = fact_done(lab.a, LONG_MS);
    fact_say("the stream goes on %s", early     ? "BEHIND THE FIRST LAUNCH's branch"
                                      : goes_on ? "behind the second launch's branch"
                                                : "NEVER");
    fact_detail("the first launch was %s when the stream was seen to wait; at the end the graph %s",
                fact_code(first), ended ? "is done" : "HANGS");
}

/* The wait comes when the graph has ended, and a gate spins on its stream. */
static void left_late(int flags) {
    struct branched b = branched((unsigned)flags);
    fact_gate_open(b.branch);
    fact_gate_open(b.tail);
    CALL(cuGraphLaunch, (b.exec, lab.a));
    CALL(cuStreamSynchronize, (lab.a));
    int gate = fact_gate_close(lab.a);
    CALL(cuStreamWaitEvent, (lab.b, b.event, 0));
    fact_touch(lab.b, lab.memory);
    bool passes = fact_done(lab.b, LONG_MS);
    fact_say("the wait %s", passes ? "passes" : "DOES NOT PASS");
    fact_detail("the event is %s; work behind the graph is not done",
                fact_code(fact_query(b.event)));
    fact_gate_open(gate);
}

/* ---- branches beside each other ---- */

/* Each branch opens a gate, and spins on the one that the next branch opens. */
static void meet(int branches) {
    CUgraphNode ends[BRANCHES];
    int gates[BRANCHES];
    for (int i = 0; i < branches; i++)
        gates[i] = fact_gate();
    capture_begin();
    CUgraphNode root = captured_touch();
    for (int i = 0; i < branches; i++) {
        behind(&root, 1);
        fact_flag(lab.b, gates[i]);
        fact_spin(lab.b, gates[(i + 1) % branches]);
        ends[i] = captured();
    }
    behind(ends, (size_t)branches);
    captured_touch();
    CUgraphExec exec = capture_end();
    CALL(cuGraphLaunch, (exec, lab.a));
    bool met = fact_done(lab.a, LONG_MS);
    for (int i = 0; i < branches; i++)
        fact_gate_open(gates[i]);
    bool ended = met || fact_done(lab.a, LONG_MS);
    fact_say("%d branches run %s", branches, met ? "at the same time" : "ONE AFTER THE OTHER");
    fact_detail("the graph %s", met     ? "ends"
                                : ended ? "ends once the host opens the gates"
                                        : "HANGS");
}

/* ---- what they cost ---- */

enum { LAYERS = 60, HALF = 4, KERNELS = LAYERS * 2 * HALF };

static void launch(const void *exec) {
    cu.cuGraphLaunch(*(CUgraphExec const *)exec, lab.a);
}

/* All in a row; with: one edge more a layer, which orders nothing that is not in order. */
static CUgraphExec row(bool with) {
    CUgraphNode before[2] = {NULL, NULL}; /* the last node, and the last one of a layer */
    capture_begin();
    for (int i = 0; i < KERNELS; i++) {
        if (with && i % (2 * HALF) == 0 && before[1])
            behind(before, 2);
        before[0] = captured_touch();
        if (i % (2 * HALF) == 0)
            before[1] = before[0];
    }
    return capture_end();
}

/* Two streams in turn, `each` kernels on each, forked and joined in each layer; record: behind the
 * last of the second stream. */
static CUgraphExec layers(int count, int each, bool record) {
    CUgraphNode ends[2];
    CUevent event = fact_event(CU_EVENT_DISABLE_TIMING);
    capture_begin();
    for (int l = 0; l < count; l++) {
        CUgraphNode last[2] = {ends[0], ends[1]};
        for (int i = 0; i < 2 * each; i++) {
            if (i < 2)
                behind(ends, l ? 2 : 0);
            else
                behind(&last[i % 2], 1);
            last[i % 2] = captured_touch();
        }
        ends[0] = last[0], ends[1] = last[1];
    }
    if (record)
        captured_record(event);
    behind(ends, 2);
    return capture_end();
}

static void cost(int arg) {
    (void)arg;
    const CUgraphExec execs[] = {row(false), row(true), layers(LAYERS, HALF, false),
                                 layers(LAYERS, HALF, true), layers(1, KERNELS / 2, false)};
    struct fact_form forms[] = {
        {.name = "a row", .run = launch, .work = &execs[0]},
        {.name = "60 edges more", .run = launch, .work = &execs[1]},
        {.name = "60 layers of two branches", .run = launch, .work = &execs[2]},
        {.name = "and a record", .run = launch, .work = &execs[3]},
        {.name = "two branches of 240", .run = launch, .work = &execs[4]}};
    fact_forms(forms, 5);
    fact_detail("us a launch of %d kernels; an edge: host %.0f ns, GPU %.0f ns; a fork and join: "
                "host %.0f ns, GPU %.0f ns",
                KERNELS, 1000 * (forms[1].host - forms[0].host) / (LAYERS - 1),
                1000 * (forms[1].gpu - forms[0].gpu) / (LAYERS - 1),
                1000 * (forms[2].host - forms[0].host) / LAYERS,
                1000 * (forms[2].gpu - forms[0].gpu) / LAYERS);
}

const struct fact_trial fact_fork[] = {
    {"fork-dependencies", dependencies, 0, 0},
    {"fork-left/untimed", left, CU_EVENT_DISABLE_TIMING, 0},
    {"fork-left/timed", left, 0, 0},
    {"fork-left-twice", left_twice, CU_EVENT_DISABLE_TIMING, 0},
    {"fork-left-late", left_late, CU_EVENT_DISABLE_TIMING, 0},
    {"fork-meet/2", meet, 2, 0},
    {"fork-meet/5", meet, 5, 0},
    {"fork-cost", cost, 0, 0},
    {0},
};
