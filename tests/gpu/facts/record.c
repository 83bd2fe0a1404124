/*
 * Experiment 1: what an event says and does whose record is a node of a graph. Only the thread of
 * the trial runs it.
 */
#include "tests/gpu/facts/facts.h"

#include <stdio.h>

enum { SOON_MS = 50, LONG_MS = 1000 };

static const char *said(CUresult code) {
    return code == CUDA_SUCCESS ? "complete" : fact_code(code);
}

/* {K1, record e, K2 spins} behind a gate: what the event says, and whether another stream that
 * waits for it goes on while K2 spins, and ends K2. */
static void record_node(int flags) {
    CUevent event = fact_event_done((unsigned)flags);
    struct fact_chain chain = fact_chain();
    int second = fact_gate();
    fact_chain_touch(&chain);
    fact_chain_record(&chain, event);
    fact_chain_spin(&chain, second);
    CUgraphExec exec = fact_chain_exec(&chain);
    int first = fact_gate_close(lab.a);
    CALL(cuGraphLaunch, (exec, lab.a));
    CUresult before = fact_query(event);
    CALL(cuStreamWaitEvent, (lab.b, event, 0));
    fact_flag(lab.b, second);
    bool early = fact_done(lab.b, SOON_MS);
    fact_gate_open(first);
    bool ended = fact_done(lab.a, LONG_MS);
    CUresult inside = fact_query(event);
    fact_gate_open(second);
    bool all = fact_done(lab.a, LONG_MS);
    fact_say("query %s; the other stream %s; K3 %s K2", said(before),
             early ? "does not wait" : "waits", ended ? "ends" : "does not end");
    fact_detail("then the event is %s; the graph %s", said(inside), all ? "ends" : "hangs");
}

/* Times between two record nodes, and between two records of the same launches. */
static void elapsed(int arg) {
    (void)arg;
    enum { TIMES = 9, KERNELS = 20, SPINS = 300 };
    double nodes[TIMES], plain[TIMES], mixed[TIMES];
    CUevent begin = fact_event(0), end = fact_event(0), b = fact_event(0), e = fact_event(0);
    struct fact_chain chain = fact_chain();
    fact_chain_record(&chain, begin);
    for (int i = 0; i < KERNELS; i++)
        fact_chain_slow(&chain, SPINS);
    fact_chain_record(&chain, end);
    CUgraphExec exec = fact_chain_exec(&chain);
    for (int i = 0; i < TIMES; i++) {
        float ms = 0;
        CALL(cuEventRecord, (b, lab.a));
        CALL(cuGraphLaunch, (exec, lab.a));
        CALL(cuEventRecord, (e, lab.a));
        CALL(cuStreamSynchronize, (lab.a));
        CALL(cuEventElapsedTime, (&ms, begin, end));
        nodes[i] = ms * 1000.0;
        CALL(cuEventElapsedTime, (&ms, b, end));
        mixed[i] = ms * 1000.0;
        CALL(cuEventRecord, (b, lab.a));
        for (int k = 0; k < KERNELS; k++)
            fact_slow(lab.a, SPINS);
        CALL(cuEventRecord, (e, lab.a));
        CALL(cuStreamSynchronize, (lab.a));
        CALL(cuEventElapsedTime, (&ms, b, e));
        plain[i] = ms * 1000.0;
    }
    fact_say("%.1f us between nodes, %.1f us between records of plain launches",
             fact_median(nodes, TIMES), fact_median(plain, TIMES));
    fact_detail("%d kernels; %.1f us from a record in front of the graph to the last node", KERNELS,
                fact_median(mixed, TIMES));
}

/* The codes of cuEventElapsedTime for events that only nodes record: before the first launch, while
 * a launch is behind a gate, and after it. */
static void elapsed_codes(int arg) {
    (void)arg;
    CUevent begin = fact_event(0), end = fact_event(0);
    struct fact_chain chain = fact_chain();
    struct fact_call never, pending, after;
    float ms = 0;
    fact_chain_record(&chain, begin);
    fact_chain_touch(&chain);
    fact_chain_record(&chain, end);
    CUgraphExec exec = fact_chain_exec(&chain);
    CUresult query = fact_query(begin);
    WATCH(never, cuEventElapsedTime, (&ms, begin, end));
    int gate = fact_gate_close(lab.a);
    CALL(cuGraphLaunch, (exec, lab.a));
    WATCH(pending, cuEventElapsedTime, (&ms, begin, end));
    fact_gate_open(gate);
    CALL(cuStreamSynchronize, (lab.a));
    WATCH(after, cuEventElapsedTime, (&ms, begin, end));
    fact_say("not launched: %s; behind a gate: %s; after: %s", fact_call_text(never),
             fact_call_text(pending), fact_call_text(after));
    fact_detail("a query before the first launch: %s; %.1f us", said(query), ms * 1000.0);
}

/* The event is destroyed while its record is in flight, another is made, and the graph is launched
 * again. */
static void destroyed(int arg) {
    (void)arg;
    CUevent event = fact_event_done(0);
    struct fact_chain chain = fact_chain();
    struct fact_call destroy, again, sync, instantiate;
    fact_chain_touch(&chain);
    fact_chain_record(&chain, event);
    CUgraphExec exec = fact_chain_exec(&chain), second = NULL;
    int gate = fact_gate_close(lab.a);
    CALL(cuGraphLaunch, (exec, lab.a));
    WATCH(destroy, cuEventDestroy_v2, (event));
    CUevent fresh = fact_event(0);
    CUresult born = fact_query(fresh);
    fact_gate_open(gate);
    WATCH(sync, cuStreamSynchronize, (lab.a));
    fact_say("destroy %s; a new event has %s handle and is %s; the launch in flight: %s",
             fact_call_text(destroy), fresh == event ? "the same" : "another", said(born),
             fact_call_text(sync));
    gate = fact_gate_close(lab.a);
    WATCH(again, cuGraphLaunch, (exec, lab.a));
    CUresult behind = fact_query(fresh);
    fact_gate_open(gate);
    WATCH(sync, cuStreamSynchronize, (lab.a));
    WATCH(instantiate, cuGraphInstantiateWithFlags, (&second, chain.graph, 0));
    fact_detail("launched again: %s, the new event is then %s, the stream: %s; instantiated again: "
                "%s",
                fact_call_text(again), said(behind), fact_call_text(sync),
                fact_call_text(instantiate));
}

/* The node of an exec is given events of other kinds. */
static void set_event(int arg) {
    (void)arg;
    static const struct {
        const char *name;
        unsigned flags;
    } kinds[] = {{"timed", 0},
                 {"untimed", CU_EVENT_DISABLE_TIMING},
                 {"blocking", CU_EVENT_BLOCKING_SYNC},
                 {"untimed blocking", CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING},
                 {"timed again", 0}};
    char text[400];
    int used = 0;
    CUevent event = fact_event_done(CU_EVENT_DISABLE_TIMING);
    struct fact_chain chain = fact_chain();
    fact_chain_touch(&chain);
    CUgraphNode node = fact_chain_record(&chain, event);
    CUgraphExec exec = fact_chain_exec(&chain);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct fact_call set;
        CUevent next = fact_event_done(kinds[i].flags);
        WATCH(set, cuGraphExecEventRecordNodeSetEvent, (exec, node, next));
        int gate = fact_gate_close(lab.a);
        CALL(cuGraphLaunch, (exec, lab.a));
        bool hit = fact_query(next) == CUDA_ERROR_NOT_READY;
        fact_gate_open(gate);
        CALL(cuStreamSynchronize, (lab.a));
        used +=
            snprintf(text + used, sizeof text - (size_t)used, "%s%s %s and %s", i ? "; " : "",
                     kinds[i].name, fact_call_text(set), hit ? "is recorded" : "is not recorded");
    }
    fact_say("%s", text);
    fact_detail("the node was made with an untimed event");
}

/* Two launches of one exec in flight, each with its own event. */
static void two_in_flight(int arg) {
    (void)arg;
    CUevent one = fact_event_done(0), two = fact_event_done(0);
    struct fact_chain chain = fact_chain();
    struct fact_call set;
    fact_chain_touch(&chain);
    CUgraphNode node = fact_chain_record(&chain, one);
    CUgraphExec exec = fact_chain_exec(&chain);
    int first = fact_gate_close(lab.a);
    CALL(cuGraphLaunch, (exec, lab.a));
    /* The second gate stands between the launches; its kernel begins when the first opens. */
    struct fact_chain wait = fact_chain();
    int second = fact_gate();
    fact_chain_spin(&wait, second);
    CUgraphExec between = fact_chain_exec(&wait);
    CALL(cuGraphLaunch, (between, lab.a));
    WATCH(set, cuGraphExecEventRecordNodeSetEvent, (exec, node, two));
    CALL(cuGraphLaunch, (exec, lab.a));
    CUresult one_before = fact_query(one), two_before = fact_query(two);
    fact_gate_open(first);
    fact_nap(SOON_MS);
    CUresult one_between = fact_query(one), two_between = fact_query(two);
    fact_gate_open(second);
    CALL(cuStreamSynchronize, (lab.a));
    fact_say("behind both: %s, %s; between: %s, %s; after: %s, %s", said(one_before),
             said(two_before), said(one_between), said(two_between), said(fact_query(one)),
             said(fact_query(two)));
    fact_detail("the first launch's event, the second's; set in flight %s", fact_call_text(set));
}

/* An event that a stream and a node record: which record a query sees. */
static void both_ways(int node_last) {
    CUevent event = fact_event_done(0);
    struct fact_chain chain = fact_chain();
    fact_chain_touch(&chain);
    fact_chain_record(&chain, event);
    CUgraphExec exec = fact_chain_exec(&chain);
    int gate;
    if (node_last) {
        CALL(cuEventRecord, (event, lab.b));
        CALL(cuStreamSynchronize, (lab.b));
        gate = fact_gate_close(lab.a);
        CALL(cuGraphLaunch, (exec, lab.a));
    } else {
        gate = fact_gate_close(lab.a);
        CALL(cuGraphLaunch, (exec, lab.a));
        CALL(cuEventRecord, (event, lab.b));
        CALL(cuStreamSynchronize, (lab.b));
    }
    CUresult seen = fact_query(event);
    bool later = (seen == CUDA_ERROR_NOT_READY) == (node_last != 0);
    fact_say("a query sees the %s record: %s", later ? "later" : "earlier", said(seen));
    fact_gate_open(gate);
    CALL(cuStreamSynchronize, (lab.a));
    fact_detail("%s; at the end %s",
                node_last ? "the node is later and behind a gate"
                          : "the node is earlier and behind a gate, the record on a free stream",
                said(fact_query(event)));
}

/* One exec is launched twice, each time behind a gate; between the launches another stream waits
 * for its event: for the first launch alone? */
static void twice_waited(int flags) {
    CUevent event = fact_event_done((unsigned)flags);
    struct fact_chain chain = fact_chain();
    fact_chain_touch(&chain);
    fact_chain_record(&chain, event);
    CUgraphExec exec = fact_chain_exec(&chain);
    struct fact_chain wait = fact_chain();
    int second = fact_gate();
    fact_chain_spin(&wait, second);
    CUgraphExec between = fact_chain_exec(&wait);
    int first = fact_gate_close(lab.a);
    CALL(cuGraphLaunch, (exec, lab.a));
    CALL(cuStreamWaitEvent, (lab.b, event, 0));
    fact_touch(lab.b, lab.memory);
    CALL(cuGraphLaunch, (between, lab.a));
    CALL(cuGraphLaunch, (exec, lab.a));
    bool early = fact_done(lab.b, SOON_MS);
    fact_gate_open(first);
    bool goes_on = fact_done(lab.b, LONG_MS);
    CUresult query = fact_query(event);
    fact_gate_open(second);
    CALL(cuStreamSynchronize, (lab.a));
    fact_say("the other stream %s, and goes on %s", early ? "does not wait" : "waits",
             goes_on ? "behind the first launch" : "behind the second launch");
    fact_detail("between the launches the event is %s, at the end %s", said(query),
                said(fact_query(event)));
}

/* The node's first event is destroyed, then the exec gets others, each of which is destroyed once
 * it is set no more; at last exec and graph go. */
static void replaced(int in_flight) {
    enum { TIMES = 20, OTHERS = 32 };
    unsigned wrong = 0, refused = 0;
    for (int i = 0; i < TIMES; i++) {
        CUevent event = fact_event_done(i % 2 ? 0 : CU_EVENT_DISABLE_TIMING);
        struct fact_chain chain = fact_chain();
        fact_chain_touch(&chain);
        CUgraphNode node = fact_chain_record(&chain, event);
        CUgraphExec exec = fact_chain_exec(&chain);
        CALL(cuEventDestroy_v2, (event));
        CUevent others[OTHERS];
        for (int k = 0; k < OTHERS; k++)
            others[k] = fact_event(k % 3 ? 0 : CU_EVENT_DISABLE_TIMING);
        for (int k = 0; k < 3; k++) {
            refused += cu.cuGraphExecEventRecordNodeSetEvent(exec, node, others[k]) != CUDA_SUCCESS;
            int gate = fact_gate_close(lab.a);
            CALL(cuGraphLaunch, (exec, lab.a));
            wrong += fact_query(others[k]) != CUDA_ERROR_NOT_READY;
            if (in_flight)
                CALL(cuEventDestroy_v2, (others[k]));
            fact_gate_open(gate);
            CALL(cuStreamSynchronize, (lab.a));
            if (!in_flight)
                CALL(cuEventDestroy_v2, (others[k]));
        }
        CALL(cuGraphExecDestroy, (exec));
        CALL(cuGraphDestroy, (chain.graph));
        for (int k = 3; k < OTHERS; k++)
            CALL(cuEventDestroy_v2, (others[k]));
    }
    fact_say("%d graphs with 4 events each: %u sets refused, %u launches not seen", TIMES, refused,
             wrong);
    fact_detail("each event was destroyed %s; at the end exec and graph were destroyed",
                in_flight ? "while its launch was in flight" : "behind its launch");
}

/* The event of a node is destroyed before the exec gets another one. */
enum { LAUNCHED = 1, AWAY = 2, TEMPLATE = 4 };
static void set_behind(int how) {
    CUevent old = fact_event_done(0), next = fact_event_done(0), away = fact_event_done(0);
    struct fact_chain chain = fact_chain();
    struct fact_call set = {0};
    fact_chain_touch(&chain);
    CUgraphNode node = fact_chain_record(&chain, old);
    CUgraphExec exec = fact_chain_exec(&chain);
    if (how & LAUNCHED)
        CALL(cuGraphLaunch, (exec, lab.a));
    CALL(cuStreamSynchronize, (lab.a));
    if (how & AWAY)
        CALL(cuGraphExecEventRecordNodeSetEvent, (exec, node, away));
    CALL(cuEventDestroy_v2, (old));
    if (how & TEMPLATE)
        CALL(cuGraphEventRecordNodeSetEvent, (node, away));
    WATCH(set, cuGraphExecEventRecordNodeSetEvent, (exec, node, next));
    int gate = fact_gate_close(lab.a);
    CUresult launch = cu.cuGraphLaunch(exec, lab.a);
    CUresult query = fact_query(next);
    fact_gate_open(gate);
    CALL(cuStreamSynchronize, (lab.a));
    fact_say("set %s; the launch %s; the new event is %s", fact_call_text(set), said(launch),
             said(query));
    fact_detail("%s%s%s", how & LAUNCHED ? "launched with the old event before" : "never launched",
                how & AWAY ? ", set to a third event before the old one was destroyed" : "",
                how & TEMPLATE ? ", the graph's own node set to a third event behind that" : "");
}

/* A programmatic launch is captured directly behind a record. */
static void programmatic(int arg) {
    (void)arg;
    CUevent event = fact_event_done(0);
    CUgraph graph = NULL;
    CUgraphExec exec = NULL;
    struct fact_call record, launch, end, run;
    void *target[] = {&lab.memory};
    CUlaunchAttribute attr = {.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION};
    attr.value.programmaticStreamSerializationAllowed = 1;
    CUlaunchConfig config = {.gridDimX = 1,
                             .gridDimY = 1,
                             .gridDimZ = 1,
                             .blockDimX = 1,
                             .blockDimY = 1,
                             .blockDimZ = 1,
                             .hStream = lab.b,
                             .attrs = &attr,
                             .numAttrs = 1};
    CALL(cuStreamBeginCapture_v2, (lab.b, CU_STREAM_CAPTURE_MODE_RELAXED));
    CALL(cuLaunchKernelEx, (&config, lab.touch, target, NULL));
    WATCH(record, cuEventRecordWithFlags, (event, lab.b, CU_EVENT_RECORD_EXTERNAL));
    WATCH(launch, cuLaunchKernelEx, (&config, lab.touch, target, NULL));
    WATCH(end, cuStreamEndCapture, (lab.b, &graph));
    CALL(cuGraphInstantiateWithFlags, (&exec, graph, 0));
    WATCH(run, cuGraphLaunch, (exec, lab.a));
    CALL(cuStreamSynchronize, (lab.a));
    fact_say("record %s, launch %s, end %s; the graph's launch %s", fact_call_text(record),
             fact_call_text(launch), fact_call_text(end), fact_call_text(run));
    fact_detail("a programmatic launch, a record node by capture, a programmatic launch");
}

const struct fact_trial fact_record[] = {
    {"record-node/timed", record_node, 0, 0},
    {"record-node/untimed", record_node, CU_EVENT_DISABLE_TIMING, 0},
    {"record-node/blocking", record_node, CU_EVENT_BLOCKING_SYNC, 0},
    {"record-node/blocking-untimed", record_node, CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING,
     0},
    {"record-elapsed", elapsed, 0, 0},
    {"record-elapsed-codes", elapsed_codes, 0, 0},
    {"record-destroyed", destroyed, 0, 0},
    {"record-set-event", set_event, 0, 0},
    {"record-two-in-flight", two_in_flight, 0, 0},
    {"record-node-later", both_ways, 1, 0},
    {"record-node-earlier", both_ways, 0, 0},
    {"record-twice-waited/timed", twice_waited, 0, 0},
    {"record-twice-waited/untimed", twice_waited, CU_EVENT_DISABLE_TIMING, 0},
    {"record-replaced", replaced, 0, 20000},
    {"record-replaced/in-flight", replaced, 1, 20000},
    {"record-set-behind", set_behind, 0, 0},
    {"record-set-behind/launched", set_behind, LAUNCHED, 0},
    {"record-set-behind/away", set_behind, LAUNCHED | AWAY, 0},
    {"record-set-behind/template", set_behind, LAUNCHED | TEMPLATE, 0},
    {"record-set-behind/template-first", set_behind, TEMPLATE, 0},
    {"record-programmatic", programmatic, 0, 0},
    {0},
};
