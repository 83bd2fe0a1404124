/*
 * Events: recorded many times a step, one or many, seen by the host, by other streams, threads and
 * graphs.
 *
 * Main thread. The second thread of event_threads waits for events and reads memory; it launches
 * nothing.
 */
#include "harness/scenario/sc.h"

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>

enum { N = 128, EVENTS = 8 };

static void loop(struct sc *sc, CUstream s, CUdeviceptr x, unsigned count, unsigned salt) {
    for (unsigned i = 0; i < count; i++) {
        sc_chain(sc, s, x, 3 + 2 * (i % 4), salt + i, N);
    }
}

/* Each second event has a time. */
static void make(struct sc *sc, CUevent *e, unsigned count) {
    for (unsigned i = 0; i < count; i++) {
        OK(sc->cu.EventCreate(&e[i], i % 2 ? CU_EVENT_DISABLE_TIMING : CU_EVENT_DEFAULT));
    }
}

/* Waits without sleeping. */
static void ask(struct sc *sc, CUevent e) {
    CUresult code;
    while ((code = sc->cu.EventQuery(e)) == CUDA_ERROR_NOT_READY) {
        sched_yield();
    }
    OK(code);
}

static void never_negative(struct sc *sc, CUevent from, CUevent to) {
    float ms = -1;
    OK(sc->cu.EventElapsedTime(&ms, from, to));
    sc_code(sc, ms < 0 ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS);
}

/* A record behind every third launch, each of its own event. They are seen at the end of the step,
 * or in the midst of the next one. */
int sc_run_event_loop(struct sc *sc) {
    CUstream s;
    CUevent e[EVENTS];
    sc_start(sc);
    CUdeviceptr x = sc_device(sc, "x", N);
    unsigned *seen = sc_pinned(sc, "seen", N * 4);
    uint64_t said = 0;
    OK(sc->cu.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
    make(sc, e, EVENTS);
    for (unsigned step = 0; step < sc_steps(sc, 60); step++) {
        for (unsigned i = 0; i < EVENTS; i++) {
            loop(sc, s, x, 3, step + i);
            if (i == 4 && step % 6 == 5) { /* recorded in the step before */
                OK(sc->cu.EventSynchronize(e[5]));
            }
            if (i == EVENTS - 1) {
                OK(sc->cu.MemcpyDtoHAsync(seen, x, N * 4, s));
            }
            OK(sc->cu.EventRecord(e[i], s));
        }
        if (step % 6 == 4) {
            continue;
        }
        if (step % 3 == 0) {
            ask(sc, e[EVENTS - 1]);
        } else {
            OK(sc->cu.EventSynchronize(e[EVENTS - 1]));
        }
        said = sc_hash(said, seen, N * 4);
        never_negative(sc, e[step % 3 * 2], e[6]);
    }
    sc_say(sc, "seen: %016llx", (unsigned long long)said);
    sc_digest(sc);
    return 0;
}

/* One event, recorded behind every few launches; whoever looks means the last record. */
int sc_run_event_reuse(struct sc *sc) {
    CUstream s, other;
    CUevent e, taken;
    sc_start(sc);
    CUdeviceptr x = sc_device(sc, "x", N), y = sc_device(sc, "y", N);
    unsigned *seen = sc_pinned(sc, "seen", N * 4);
    uint64_t said = 0;
    OK(sc->cu.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
    OK(sc->cu.StreamCreate(&other, CU_STREAM_NON_BLOCKING));
    OK(sc->cu.EventCreate(&e, CU_EVENT_DEFAULT));
    OK(sc->cu.EventCreate(&taken, CU_EVENT_DISABLE_TIMING));
    for (unsigned step = 0; step < sc_steps(sc, 60); step++) {
        for (unsigned i = 0; i < EVENTS; i++) {
            loop(sc, s, x, 3, step + i);
            if (i == EVENTS - 1) {
                OK(sc->cu.MemcpyDtoHAsync(seen, x, N * 4, s));
            }
            OK(sc->cu.EventRecord(e, i == 2 && step % 7 == 6 ? other : s));
            if (i == 5 && step % 4 == 3) {
                OK(sc->cu.StreamWaitEvent(other, e, 0));
                sc_copy(sc, other, y, x, N);
                OK(sc->cu.EventRecord(taken, other));
                OK(sc->cu.StreamWaitEvent(s, taken, 0));
            }
        }
        if (step % 3 == 0) {
            ask(sc, e);
        } else {
            OK(sc->cu.EventSynchronize(e));
        }
        said = sc_hash(said, seen, N * 4);
    }
    sc_say(sc, "seen: %016llx", (unsigned long long)said);
    sc_digest(sc);
    return 0;
}

/* Events that live for a step. One is destroyed while its work may still run. */
int sc_run_event_recreate(struct sc *sc) {
    CUstream s;
    sc_start(sc);
    CUdeviceptr x = sc_device(sc, "x", N);
    unsigned *seen = sc_pinned(sc, "seen", N * 4);
    uint64_t said = 0;
    OK(sc->cu.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
    for (unsigned step = 0; step < sc_steps(sc, 60); step++) {
        CUevent e[4];
        make(sc, e, 4);
        for (unsigned i = 0; i < 4; i++) {
            loop(sc, s, x, 4, step + i);
            if (i == 3) {
                OK(sc->cu.MemcpyDtoHAsync(seen, x, N * 4, s));
            }
            OK(sc->cu.EventRecord(e[i], s));
        }
        if (step % 5 == 4) {
            OK(sc->cu.EventDestroy(e[1]));
            OK(sc->cu.EventCreate(&e[1], CU_EVENT_DEFAULT));
        }
        OK(sc->cu.EventSynchronize(e[3]));
        said = sc_hash(said, seen, N * 4);
        loop(sc, s, x, 3, step);
        OK(sc->cu.EventRecord(e[2], s));
        for (unsigned i = 0; i < 4; i++) {
            OK(sc->cu.EventDestroy(e[i]));
        }
    }
    sc_say(sc, "seen: %016llx", (unsigned long long)said);
    sc_digest(sc);
    return 0;
}

/* In the midst of a step one stream waits for what another one has done so far, which goes on with
 * other memory. */
int sc_run_event_across(struct sc *sc) {
    CUstream a, b;
    CUevent made[2], taken[2];
    sc_start(sc);
    CUdeviceptr x = sc_device(sc, "x", N), y = sc_device(sc, "y", N), z = sc_device(sc, "z", N);
    OK(sc->cu.StreamCreate(&a, CU_STREAM_NON_BLOCKING));
    OK(sc->cu.StreamCreate(&b, CU_STREAM_DEFAULT));
    make(sc, made, 2);
    make(sc, taken, 2);
    for (unsigned step = 0; step < sc_steps(sc, 60); step++) {
        for (unsigned i = 0; i < 2; i++) {
            loop(sc, a, x, 6, step + i);
            OK(sc->cu.EventRecord(made[i], a));
            loop(sc, a, y, 5, step + i);
            OK(sc->cu.StreamWaitEvent(b, made[i], 0));
            sc_copy(sc, b, z, x, N - (int)(step % 16));
            loop(sc, b, z, 5, step);
            OK(sc->cu.EventRecord(taken[i], b));
            OK(sc->cu.StreamWaitEvent(a, taken[i], 0));
        }
        sc_copy(sc, a, x, z, N);
        if (step % 4 == 3) {
            OK(sc->cu.EventSynchronize(taken[1]));
        }
    }
    sc_digest(sc);
    return 0;
}

enum { SLOTS = 4 };

struct watcher {
    struct sc *sc;
    unsigned steps;
    CUevent e[SLOTS];
    unsigned *seen[SLOTS];
    uint64_t said;
    sem_t recorded, read;
};

/* Sees each event once, sleeping and asking in turn. */
static void *watch(void *arg) {
    struct watcher *w = arg;
    struct sc *sc = w->sc;
    OK(sc->cu.CtxSetCurrent(sc->ctx));
    for (unsigned step = 0; step < w->steps; step++) {
        sem_wait(&w->recorded);
        if (step % 3 == 0) {
            ask(sc, w->e[step % SLOTS]);
        } else {
            OK(sc->cu.EventSynchronize(w->e[step % SLOTS]));
        }
        w->said = sc_hash(w->said, w->seen[step % SLOTS], N * 4);
        sem_post(&w->read);
    }
    return NULL;
}

/* Another thread waits for an event while the first one goes on launching. */
int sc_run_event_threads(struct sc *sc) {
    CUstream s;
    pthread_t thread;
    sc_start(sc);
    CUdeviceptr x = sc_device(sc, "x", N);
    struct watcher w = {.sc = sc, .steps = sc_steps(sc, 60)};
    for (unsigned i = 0; i < SLOTS; i++) {
        w.seen[i] = sc_pinned(sc, "seen", N * 4);
    }
    make(sc, w.e, SLOTS);
    OK(sc->cu.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
    if (sem_init(&w.recorded, 0, 0) || sem_init(&w.read, 0, SLOTS) ||
        pthread_create(&thread, NULL, watch, &w)) {
        sc_fail("no thread");
    }
    for (unsigned step = 0; step < w.steps; step++) {
        loop(sc, s, x, 5, step);
        sem_wait(&w.read);
        OK(sc->cu.MemcpyDtoHAsync(w.seen[step % SLOTS], x, N * 4, s));
        OK(sc->cu.EventRecord(w.e[step % SLOTS], s));
        sem_post(&w.recorded);
        loop(sc, s, x, 9, step);
        if (step % 8 == 7) {
            OK(sc->cu.StreamSynchronize(s));
        }
    }
    pthread_join(thread, NULL);
    sc_say(sc, "seen: %016llx", (unsigned long long)w.said);
    sc_digest(sc);
    return 0;
}

/* Times between events: what is an error, what is not ready, what is never negative. */
int sc_run_event_elapsed(struct sc *sc) {
    CUstream s;
    CUevent e[4], untimed, never;
    CUdeviceptr flag_device;
    unsigned long long rounds = ~0ull;
    float ms;
    sc_start(sc);
    CUdeviceptr x = sc_device(sc, "x", N), out = sc_device(sc, "out", 4);
    volatile unsigned *flag = sc_pinned(sc, "flag", 64);
    OK(sc->cu.MemHostGetDevicePointer(&flag_device, (void *)(uintptr_t)flag, 0));
    OK(sc->cu.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
    for (unsigned i = 0; i < 4; i++) {
        OK(sc->cu.EventCreate(&e[i], i % 2 ? CU_EVENT_BLOCKING_SYNC : CU_EVENT_DEFAULT));
    }
    OK(sc->cu.EventCreate(&untimed, CU_EVENT_DISABLE_TIMING));
    OK(sc->cu.EventCreate(&never, CU_EVENT_DEFAULT));
    for (unsigned step = 0; step < sc_steps(sc, 60); step++) {
        unsigned value = step + 1;
        for (unsigned i = 0; i < 4; i++) {
            loop(sc, s, x, 4, step + i);
            OK(sc->cu.EventRecord(e[i], s));
        }
        OK(sc->cu.EventRecord(untimed, s));
        if (step % 5 == 4) {
            OK(sc_launch(sc, sc->fn[SC_spin_until], 1, 1, 0, s,
                         (void *[]){&flag_device, &value, &rounds, &out}));
            OK(sc->cu.EventRecord(e[3], s));
            sc_code(sc, sc->cu.EventElapsedTime(&ms, e[0], e[3])); /* not ready */
            sc_code(sc, sc->cu.EventQuery(e[3]));
            *flag = value;
        }
        if (step % 2) {
            OK(sc->cu.EventSynchronize(e[3]));
        } else {
            ask(sc, e[3]);
        }
        for (unsigned i = 0; i < 4; i++) {
            never_negative(sc, e[i / 2], e[i]);
        }
        sc_code(sc, sc->cu.EventElapsedTime(&ms, e[0], never));
        sc_code(sc, sc->cu.EventElapsedTime(&ms, untimed, e[3]));
    }
    sc_digest(sc);
    return 0;
}

static CUgraphExec instantiate(struct sc *sc, CUgraph graph) {
    CUgraphExec exec;
    OK(sc->cu.GraphInstantiate(&exec, graph, 0));
    OK(sc->cu.GraphDestroy(graph));
    return exec;
}

/* Events whose records were deferred come to be named by graphs of the program: one waits for what
 * the stream did, another one records. */
int sc_run_event_graphs(struct sc *sc) {
    CUstream s, other;
    CUevent made, taken[2];
    sc_start(sc);
    CUdeviceptr x = sc_device(sc, "x", N), y = sc_device(sc, "y", N);
    OK(sc->cu.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
    OK(sc->cu.StreamCreate(&other, CU_STREAM_NON_BLOCKING));
    OK(sc->cu.EventCreate(&made, CU_EVENT_DISABLE_TIMING));
    make(sc, taken, 2);
    for (unsigned step = 0; step < sc_steps(sc, 60); step++) {
        loop(sc, s, x, 8, step);
        OK(sc->cu.EventRecord(made, s));
        OK(sc->cu.EventRecord(taken[step % 2], s));
        if (step % 10 == 9) {
            CUgraph waits, records;
            CUgraphNode node;
            OK(sc->cu.GraphCreate(&waits, 0));
            OK(sc->cu.GraphAddEventWaitNode(&node, waits, NULL, 0, made));
            OK(sc->cu.GraphCreate(&records, 0));
            OK(sc->cu.GraphAddEventRecordNode(&node, records, NULL, 0, taken[0]));
            CUgraphExec first = instantiate(sc, waits);
            CUgraphExec second;
            OK(sc->cu.GraphInstantiate(&second, records, 0));
            OK(sc->cu.GraphExecEventRecordNodeSetEvent(second, node, taken[1]));
            OK(sc->cu.GraphLaunch(first, other));
            sc_copy(sc, other, y, x, N);
            OK(sc->cu.GraphLaunch(second, other));
            OK(sc->cu.StreamWaitEvent(s, taken[1], 0));
            loop(sc, s, x, 4, step);
            OK(sc->cu.StreamSynchronize(s));
            OK(sc->cu.GraphExecDestroy(first));
            OK(sc->cu.GraphExecDestroy(second));
            OK(sc->cu.GraphDestroy(records));
            /* New events, which no graph names. */
            OK(sc->cu.EventDestroy(made));
            OK(sc->cu.EventCreate(&made, CU_EVENT_DISABLE_TIMING));
            for (unsigned i = 0; i < 2; i++) {
                OK(sc->cu.EventDestroy(taken[i]));
            }
            make(sc, taken, 2);
        } else {
            loop(sc, s, x, 4, step);
            OK(sc->cu.EventSynchronize(made));
        }
    }
    sc_digest(sc);
    return 0;
}

/* The program captures beside and behind records: such as become nodes of its graph, and waits of
 * its graph for records made outside. */
int sc_run_event_capture(struct sc *sc) {
    CUstream s, other;
    CUevent outside, inside, taken, joined;
    CUgraph graph;
    sc_start(sc);
    CUdeviceptr x = sc_device(sc, "x", N), y = sc_device(sc, "y", N), z = sc_device(sc, "z", N);
    OK(sc->cu.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
    OK(sc->cu.StreamCreate(&other, CU_STREAM_NON_BLOCKING));
    OK(sc->cu.EventCreate(&inside, CU_EVENT_DISABLE_TIMING));
    OK(sc->cu.EventCreate(&taken, CU_EVENT_DISABLE_TIMING));
    OK(sc->cu.EventCreate(&joined, CU_EVENT_DISABLE_TIMING));
    for (unsigned step = 0; step < sc_steps(sc, 60); step++) {
        if (step % 10 == 0) {
            OK(sc->cu.EventCreate(&outside, CU_EVENT_DISABLE_TIMING));
        }
        loop(sc, s, x, 8, step);
        OK(sc->cu.EventRecord(outside, s));
        loop(sc, s, y, 4, step);
        if (step % 10 != 9) {
            OK(sc->cu.EventSynchronize(outside));
            continue;
        }
        /* The other stream waits for a record outside its capture, and makes one inside. */
        OK(sc->cu.StreamBeginCapture(other, CU_STREAM_CAPTURE_MODE_RELAXED));
        OK(sc->cu.StreamWaitEvent(other, outside, CU_EVENT_WAIT_EXTERNAL));
        sc_copy(sc, other, z, x, N);
        OK(sc->cu.EventRecord(joined, other)); /* of this capture alone */
        OK(sc->cu.StreamWaitEvent(other, joined, 0));
        OK(sc->cu.EventRecordWithFlags(inside, other, CU_EVENT_RECORD_EXTERNAL));
        OK(sc->cu.StreamEndCapture(other, &graph));
        CUgraphExec exec = instantiate(sc, graph);
        OK(sc->cu.GraphLaunch(exec, other));
        OK(sc->cu.StreamWaitEvent(s, inside, 0));
        loop(sc, s, x, 4, step);
        /* Outside a capture these flags are an error. */
        sc_code(sc, sc->cu.EventRecordWithFlags(taken, s, CU_EVENT_RECORD_EXTERNAL));
        OK(sc->cu.EventRecordWithFlags(taken, s, CU_EVENT_RECORD_DEFAULT));
        OK(sc->cu.EventSynchronize(taken));
        OK(sc->cu.GraphExecDestroy(exec));
        OK(sc->cu.EventDestroy(outside));
    }
    sc_digest(sc);
    return 0;
}
