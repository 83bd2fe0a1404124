/*
 * Experiment 3: how many graphs can be instantiated, launched and destroyed while a gate spins, and
 * whether launches that completed on another stream make room; what calls on the legacy stream do
 * to blocking streams. Only the thread of the trial runs it.
 */
#include "tests/gpu/facts/facts.h"

#include <stdio.h>
#include <string.h>

enum { MOST = 500, TIME_US = 2500000, AT_ONCE_MS = 200 };

/* Of arg: the nodes of a graph, and what is done with each exec. */
enum {
    NODES = 0xffff,
    LAUNCH_GATED = 1 << 16, /* behind the gate */
    LAUNCH_FREE = 2 << 16,  /* on another stream */
    SEEN = 4 << 16,         /* an event recorded behind the launch has been seen complete */
    KEPT = 8 << 16          /* execs are not destroyed */
};

static struct {
    int count;
    const char *symbol;
    struct fact_call call;
    double longest;
} room;

static bool room_step(const char *symbol, struct fact_call call) {
    if (call.us > room.longest && !call.waited)
        room.longest = call.us;
    if (!call.waited && call.code == CUDA_SUCCESS)
        return true;
    room.symbol = symbol;
    room.call = call;
    return false;
}

/* One graph more; false: a call waited or failed. */
static bool room_one(CUgraph graph, int how, CUevent witness) {
    CUgraphExec exec = NULL;
    struct fact_call call;
    CUstream stream = how & LAUNCH_GATED ? lab.a : lab.b;
    WATCH(call, cuGraphInstantiateWithFlags, (&exec, graph, 0));
    if (!room_step("cuGraphInstantiateWithFlags", call))
        return false;
    if (how & (LAUNCH_GATED | LAUNCH_FREE)) {
        WATCH(call, cuGraphLaunch, (exec, stream));
        if (!room_step("cuGraphLaunch", call))
            return false;
    }
    if (how & SEEN) {
        WATCH(call, cuEventRecord, (witness, stream));
        if (!room_step("cuEventRecord", call))
            return false;
        double end = fact_now_us() + 500000;
        while (fact_query(witness) == CUDA_ERROR_NOT_READY && fact_now_us() < end)
            ;
    }
    if (!(how & KEPT)) {
        WATCH(call, cuGraphExecDestroy, (exec));
        if (!room_step("cuGraphExecDestroy", call))
            return false;
    }
    return true;
}

/* Until a call waits, which opens the gate. */
static void room_count(CUgraph graph, int how, CUevent witness) {
    int gate = fact_gate_close(lab.a);
    double end = fact_now_us() + TIME_US;
    bool on = true;
    memset(&room, 0, sizeof room);
    while (on && room.count < MOST && fact_now_us() < end) {
        on = room_one(graph, how, witness);
        room.count += on;
    }
    fact_gate_open(gate);
    CALL(cuStreamSynchronize, (lab.a));
    CALL(cuStreamSynchronize, (lab.b));
}

static void room_text(char *text, size_t size) {
    if (room.symbol)
        snprintf(text, size, "%d do not wait, then %s %s", room.count, room.symbol,
                 fact_call_text(room.call));
    else
        snprintf(text, size, "none of %d waits", room.count);
}

static void rooms(int how) {
    struct fact_chain chain = fact_chain();
    CUevent witness = fact_event_done(CU_EVENT_DISABLE_TIMING);
    char text[200];
    for (int i = 0; i < (how & NODES); i++)
        fact_chain_touch(&chain);
    room_count(chain.graph, how, witness);
    room_text(text, sizeof text);
    fact_say("%s", text);
    fact_detail("graphs of %d nodes; the longest call before took %.0f us", how & NODES,
                room.longest);
    if (!room.symbol)
        return;
    double longest = room.longest;
    room_count(chain.graph, how, witness);
    room_text(text, sizeof text);
    fact_detail("graphs of %d nodes; the longest call before took %.0f us; once all had run, "
                "behind a second gate: %s",
                how & NODES, longest, text);
}

/* While a gate spins on one stream, the same execs are launched again and again on another. */
static void launches(int how) {
    struct fact_chain chain = fact_chain();
    CUevent witness = fact_event_done(CU_EVENT_DISABLE_TIMING);
    struct fact_call call;
    CUgraphExec execs[8];
    for (int i = 0; i < (how & NODES); i++)
        fact_chain_touch(&chain);
    for (int i = 0; i < 8; i++)
        execs[i] = fact_chain_exec(&chain);
    int gate = fact_gate_close(lab.a), calls = 0;
    double end = fact_now_us() + TIME_US;
    do {
        WATCH(call, cuGraphLaunch, (execs[calls % 8], lab.b));
        if (call.waited || call.code)
            break;
        calls++;
        if (how & SEEN) {
            CALL(cuEventRecord, (witness, lab.b));
            while (fact_query(witness) == CUDA_ERROR_NOT_READY)
                ;
        }
    } while (calls < 4 * MOST && fact_now_us() < end);
    if (call.waited || call.code)
        fact_say("%d launches do not wait, then one %s", calls, fact_call_text(call));
    else
        fact_say("none of %d launches waits", calls);
    fact_detail("8 execs of %d nodes on a stream without a gate", how & NODES);
    fact_gate_open(gate);
}

/* ---- the legacy stream ---- */

enum { RECORD, ALLOC, ALLOC_FREE, MEMORY_FREE, LAUNCH };

static void legacy(int how) {
    CUstream gated = NULL, other = NULL;
    CUdeviceptr memory = 0, before = 0, more = 0;
    CUevent event = fact_event_done(CU_EVENT_DISABLE_TIMING);
    struct fact_call call = {0}, freed = {0};
    void *parameters[] = {&lab.memory};
    CALL(cuStreamCreate, (&gated, CU_STREAM_DEFAULT));
    CALL(cuStreamCreate, (&other, CU_STREAM_DEFAULT));
    CALL(cuMemAllocAsync, (&before, 1 << 20, NULL));
    CALL(cuMemAllocAsync, (&more, 1 << 20, NULL));
    CALL(cuMemFreeAsync, (more, NULL));
    CALL(cuCtxSynchronize, ());
    int gate = fact_gate_close(gated);
    if (how == RECORD)
        WATCH(call, cuEventRecord, (event, NULL));
    if (how == ALLOC || how == ALLOC_FREE)
        WATCH(call, cuMemAllocAsync, (&memory, 1 << 20, NULL));
    if (how == MEMORY_FREE)
        WATCH(call, cuMemFreeAsync, (before, NULL));
    if (how == LAUNCH)
        WATCH(call, cuLaunchKernel, (lab.touch, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
    if (how == ALLOC_FREE)
        WATCH(freed, cuMemFreeAsync, (memory, NULL));
    fact_touch(other, lab.memory);
    bool runs = fact_done(other, AT_ONCE_MS);
    fact_touch(lab.b, lab.memory);
    bool apart = fact_done(lab.b, AT_ONCE_MS);
    fact_say("the call %s; then a kernel on another blocking stream %s",
             call.waited    ? fact_call_text(call)
             : freed.waited ? fact_call_text(freed)
                            : fact_call_text(call),
             runs ? "runs" : "waits for the gate");
    fact_detail("a kernel on a non-blocking stream %s; the event is %s",
                apart ? "runs" : "waits for the gate", fact_code(fact_query(event)));
    fact_gate_open(gate);
}

const struct fact_trial fact_witness[] = {
    {"witness-gated/1000", rooms, 1000 | LAUNCH_GATED, 8000},
    {"witness-gated/100", rooms, 100 | LAUNCH_GATED, 8000},
    {"witness-gated-kept/1000", rooms, 1000 | LAUNCH_GATED | KEPT, 8000},
    {"witness-not-launched/1000", rooms, 1000, 8000},
    {"witness-free/1000", rooms, 1000 | LAUNCH_FREE, 8000},
    {"witness-seen/1000", rooms, 1000 | LAUNCH_FREE | SEEN, 8000},
    {"witness-seen/100", rooms, 100 | LAUNCH_FREE | SEEN, 8000},
    {"witness-seen-kept/1000", rooms, 1000 | LAUNCH_FREE | SEEN | KEPT, 8000},
    {"witness-launches", launches, 100, 8000},
    {"witness-launches-seen", launches, 100 | SEEN, 8000},
    {"legacy-record", legacy, RECORD, 0},
    {"legacy-alloc", legacy, ALLOC, 0},
    {"legacy-alloc-free", legacy, ALLOC_FREE, 0},
    {"legacy-free", legacy, MEMORY_FREE, 0},
    {"legacy-launch", legacy, LAUNCH, 0},
    {0},
};
