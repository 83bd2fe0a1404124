/*
 * Programs that capture graphs themselves. A capture must hold exactly the calls between its begin
 * and its end; launches outside must stay outside.
 *
 * Main thread. capture_other_thread and capture_global have a second thread, and a semaphore passes
 * the turn.
 */
#include "harness/scenario/sc.h"

#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>

enum { N = 256 };

static void run_graph(struct sc *sc, CUgraph graph, CUstream s, unsigned times) {
    CUgraphExec exec;
    OK(sc->cu.GraphInstantiate(&exec, graph, 0));
    for (unsigned i = 0; i < times; i++) {
        OK(sc->cu.GraphLaunch(exec, s));
    }
    OK(sc->cu.StreamSynchronize(s));
    OK(sc->cu.GraphExecDestroy(exec));
    OK(sc->cu.GraphDestroy(graph));
}

/* Captured once, launched every step, with eager launches of the same kernels around it. */
int sc_run_capture_once(struct sc *sc) {
    CUstream s;
    CUgraph graph;
    CUgraphExec exec;
    sc_start(sc);
    CUdeviceptr x = sc_device(sc, "x", N), y = sc_device(sc, "y", N);
    OK(sc->cu.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
    for (unsigned i = 0; i < 6; i++) {
        sc_chain(sc, s, x, 3, i, N);
    }
    OK(sc->cu.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    for (unsigned i = 0; i < 9; i++) {
        sc_chain(sc, s, x, 5, i, N);
    }
    OK(sc->cu.MemcpyDtoDAsync(y, x, N * 4, s));
    OK(sc->cu.MemsetD32Async(x, 77, 3, s));
    OK(sc->cu.StreamEndCapture(s, &graph));
    OK(sc->cu.GraphInstantiate(&exec, graph, 0));
    for (unsigned step = 0; step < sc_steps(sc, 20); step++) {
        for (unsigned i = 0; i < 7; i++) {
            sc_chain(sc, s, x, 7, step + i, N);
        }
        OK(sc->cu.GraphLaunch(exec, s));
        for (unsigned i = 0; i < 5; i++) {
            sc_chain(sc, s, y, 9, step + i, N);
        }
        OK(sc->cu.StreamSynchronize(s));
    }
    OK(sc->cu.GraphExecDestroy(exec));
    OK(sc->cu.GraphDestroy(graph));
    sc_digest(sc);
    return 0;
}

/* A capture in every step, in the midst of launches that repeat. */
int sc_run_capture_each_step(struct sc *sc) {
    CUstream s;
    sc_start(sc);
    CUdeviceptr x = sc_device(sc, "x", N);
    OK(sc->cu.StreamCreate(&s, CU_STREAM_DEFAULT));
    for (unsigned step = 0; step < sc_steps(sc, 20); step++) {
        CUgraph graph;
        CUstreamCaptureStatus status;
        for (unsigned i = 0; i < 6; i++) {
            sc_chain(sc, s, x, 3, step + i, N);
        }
        OK(sc->cu.StreamIsCapturing(s, &status));
        sc_code(sc, (CUresult)status);
        OK(sc->cu.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
        for (unsigned i = 0; i < 6; i++) {
            sc_chain(sc, s, x, 5, step + i, N);
        }
        OK(sc->cu.StreamIsCapturing(s, &status));
        sc_code(sc, (CUresult)status);
        OK(sc->cu.StreamEndCapture(s, &graph));
        for (unsigned i = 0; i < 6; i++) {
            sc_chain(sc, s, x, 7, step + i, N);
        }
        run_graph(sc, graph, s, 2);
    }
    sc_digest(sc);
    return 0;
}

/* A blocking stream begins a capture while work of the legacy stream is pending. That work must
 * be issued before. */
int sc_run_capture_pending_legacy(struct sc *sc) {
    CUstream s, other;
    sc_start(sc);
    CUdeviceptr x = sc_device(sc, "x", N), y = sc_device(sc, "y", N), z = sc_device(sc, "z", N);
    OK(sc->cu.StreamCreate(&s, CU_STREAM_DEFAULT));
    OK(sc->cu.StreamCreate(&other, CU_STREAM_NON_BLOCKING));
    for (unsigned step = 0; step < sc_steps(sc, 20); step++) {
        CUgraph graph;
        unsigned a = 3, b = step;
        int n = N;
        for (unsigned i = 0; i < 7; i++) {
            sc_chain(sc, NULL, x, 3, step + i, N);
        }
        OK(sc->cu.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
        for (unsigned i = 0; i < 7; i++) {
            sc_chain(sc, s, y, 5, step + i, N);
        }
        /* Not allowed while a blocking stream captures; it ends that capture. */
        if (step % 5 == 4) {
            CUgraph none = NULL;
            sc_code(sc, sc_launch(sc, sc->fn[SC_chain], N / 64, 64, 0, NULL,
                                  (void *[]){&x, &a, &b, &n}));
            sc_chain(sc, other, z, 7, step, N);
            sc_code(sc, sc->cu.StreamEndCapture(s, &none));
            sc_say(sc, "graph of a spoilt capture: %s", none ? "there" : "none");
        } else {
            for (unsigned i = 0; i < 7; i++) {
                sc_chain(sc, other, z, 7, step + i, N);
            }
            OK(sc->cu.StreamEndCapture(s, &graph));
            run_graph(sc, graph, s, 1);
        }
        for (unsigned i = 0; i < 7; i++) {
            sc_chain(sc, NULL, x, 9, step + i, N);
        }
        OK(sc->cu.CtxSynchronize());
    }
    sc_digest(sc);
    return 0;
}

struct pair {
    struct sc *sc;
    sem_t to_worker, to_main;
    CUstream mine, theirs;
    CUdeviceptr x, y;
    CUstreamCaptureMode mode;
    unsigned steps;
};

static void pass(sem_t *to, sem_t *from) {
    sem_post(to);
    while (sem_wait(from)) {
    }
}

/* Captures on its own stream while the main thread launches on another. */
static void *capturing(void *arg) {
    struct pair *p = arg;
    struct sc *sc = p->sc;
    OK(sc->cu.CtxSetCurrent(sc->ctx));
    for (unsigned step = 0; step < p->steps; step++) {
        CUgraph graph;
        while (sem_wait(&p->to_worker)) {
        }
        OK(sc->cu.StreamBeginCapture(p->theirs, p->mode));
        for (unsigned i = 0; i < 5; i++) {
            sc_chain(sc, p->theirs, p->y, 5, step + i, N);
        }
        pass(&p->to_main, &p->to_worker);
        for (unsigned i = 0; i < 5; i++) {
            sc_chain(sc, p->theirs, p->y, 7, step + i, N);
        }
        OK(sc->cu.StreamEndCapture(p->theirs, &graph));
        run_graph(sc, graph, p->theirs, 2);
        sem_post(&p->to_main);
    }
    return NULL;
}

static void beside_a_capture(struct sc *sc, CUstreamCaptureMode mode) {
    struct pair p = {.sc = sc, .mode = mode, .steps = sc_steps(sc, 20)};
    pthread_t worker;
    p.x = sc_device(sc, "x", N);
    p.y = sc_device(sc, "y", N);
    OK(sc->cu.StreamCreate(&p.mine, CU_STREAM_NON_BLOCKING));
    OK(sc->cu.StreamCreate(&p.theirs, CU_STREAM_NON_BLOCKING));
    sem_init(&p.to_worker, 0, 0);
    sem_init(&p.to_main, 0, 0);
    if (pthread_create(&worker, NULL, capturing, &p)) {
        sc_fail("no thread");
    }
    for (unsigned step = 0; step < p.steps; step++) {
        for (unsigned i = 0; i < 9; i++) {
            sc_chain(sc, p.mine, p.x, 3, step + i, N);
        }
        pass(&p.to_worker, &p.to_main); /* now it captures */
        for (unsigned i = 0; i < 24; i++) {
            sc_chain(sc, p.mine, p.x, 5, step + i, N);
        }
        pass(&p.to_worker, &p.to_main); /* now it does not */
        for (unsigned i = 0; i < 9; i++) {
            sc_chain(sc, p.mine, p.x, 7, step + i, N);
        }
        OK(sc->cu.StreamSynchronize(p.mine));
    }
    pthread_join(worker, NULL);
    sc_digest(sc);
}

int sc_run_capture_other_thread(struct sc *sc) {
    sc_start(sc);
    beside_a_capture(sc, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    return 0;
}

/* With mode GLOBAL an unsafe call of any thread spoils the capture, also a call that a library
 * makes itself. */
int sc_run_capture_global(struct sc *sc) {
    sc_start(sc);
    beside_a_capture(sc, CU_STREAM_CAPTURE_MODE_GLOBAL);
    return 0;
}

/* Captures that end badly in several ways; ordinary launches follow. */
int sc_run_capture_failing(struct sc *sc) {
    CUstream s, t;
    CUevent e;
    sc_start(sc);
    CUdeviceptr x = sc_device(sc, "x", N);
    OK(sc->cu.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
    OK(sc->cu.StreamCreate(&t, CU_STREAM_NON_BLOCKING));
    OK(sc->cu.EventCreate(&e, CU_EVENT_DISABLE_TIMING));
    for (unsigned step = 0; step < sc_steps(sc, 24); step++) {
        CUgraph graph = NULL;
        for (unsigned i = 0; i < 12; i++) {
            sc_chain(sc, s, x, 3, step + i, N);
        }
        CUresult code = CUDA_SUCCESS;
        CUdeviceptr p = 0;
        switch (step % 5) {
        case 0: /* ends a capture that never began */
            code = sc_code(sc, sc->cu.StreamEndCapture(s, &graph));
            break;
        case 1: /* synchronises a stream that captures */
            OK(sc->cu.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
            sc_chain(sc, s, x, 5, step, N);
            sc_code(sc, sc->cu.StreamSynchronize(s));
            code = sc_code(sc, sc->cu.StreamEndCapture(s, &graph));
            break;
        case 2: /* a second stream joins the capture and never comes back */
            OK(sc->cu.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
            sc_chain(sc, s, x, 5, step, N);
            OK(sc->cu.EventRecord(e, s));
            OK(sc->cu.StreamWaitEvent(t, e, 0));
            sc_chain(sc, t, x, 7, step, N);
            code = sc_code(sc, sc->cu.StreamEndCapture(s, &graph));
            break;
        case 3: /* allocates on the capturing thread, which the capture's mode forbids */
            OK(sc->cu.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
            sc_chain(sc, s, x, 5, step, N);
            if (sc_code(sc, sc->cu.MemAlloc(&p, 64)) == CUDA_SUCCESS) {
                OK(sc->cu.MemFree(p));
            }
            code = sc_code(sc, sc->cu.StreamEndCapture(s, &graph));
            break;
        default: /* begins twice; the first capture goes on */
            OK(sc->cu.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
            sc_code(sc, sc->cu.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
            sc_chain(sc, s, x, 9, step, N);
            code = sc_code(sc, sc->cu.StreamEndCapture(s, &graph));
            break;
        }
        if (step < 5) {
            sc_say(sc, "end: %d", (int)code);
        }
        if (code == CUDA_SUCCESS && graph) {
            run_graph(sc, graph, s, 1);
        }
        for (unsigned i = 0; i < 12; i++) {
            sc_chain(sc, s, x, 11, step + i, N);
        }
        OK(sc->cu.StreamSynchronize(s));
    }
    sc_digest(sc);
    return 0;
}

/* Fork and join of two streams inside a capture; the second stream has older work pending. */
int sc_run_capture_fork_join(struct sc *sc) {
    CUstream s, t;
    CUevent fork, join;
    sc_start(sc);
    CUdeviceptr x = sc_device(sc, "x", N), y = sc_device(sc, "y", N);
    OK(sc->cu.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
    OK(sc->cu.StreamCreate(&t, CU_STREAM_NON_BLOCKING));
    OK(sc->cu.EventCreate(&fork, CU_EVENT_DISABLE_TIMING));
    OK(sc->cu.EventCreate(&join, CU_EVENT_DISABLE_TIMING));
    for (unsigned step = 0; step < sc_steps(sc, 16); step++) {
        CUgraph graph;
        for (unsigned i = 0; i < 6; i++) {
            sc_chain(sc, t, y, 3, step + i, N);
        }
        OK(sc->cu.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
        sc_chain(sc, s, x, 3, step, N);
        OK(sc->cu.EventRecord(fork, s));
        OK(sc->cu.StreamWaitEvent(t, fork, 0));
        for (unsigned i = 0; i < 3; i++) {
            sc_chain(sc, t, y, 5, step + i, N);
        }
        OK(sc->cu.EventRecord(join, t));
        OK(sc->cu.StreamWaitEvent(s, join, 0));
        sc_chain(sc, s, y, 7, step, N);
        OK(sc->cu.StreamEndCapture(s, &graph));
        OK(sc->cu.StreamSynchronize(t));
        run_graph(sc, graph, s, 1);
        for (unsigned i = 0; i < 6; i++) {
            sc_chain(sc, t, y, 9, step + i, N);
        }
        OK(sc->cu.StreamSynchronize(t));
    }
    sc_digest(sc);
    return 0;
}

/* The program makes a graph node by node, and patches it. */
int sc_run_graph_program(struct sc *sc) {
    CUstream s;
    CUgraph graph;
    CUgraphNode node[3];
    CUgraphExec exec;
    sc_start(sc);
    CUdeviceptr x = sc_device(sc, "x", N);
    unsigned a = 3, b = 1;
    int n = N;
    void *params[] = {&x, &a, &b, &n};
    CUDA_KERNEL_NODE_PARAMS kernel = {.func = sc->fn[SC_chain],
                                      .gridDimX = N / 64,
                                      .gridDimY = 1,
                                      .gridDimZ = 1,
                                      .blockDimX = 64,
                                      .blockDimY = 1,
                                      .blockDimZ = 1,
                                      .kernelParams = params};
    OK(sc->cu.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
    OK(sc->cu.GraphCreate(&graph, 0));
    for (int i = 0; i < 3; i++) {
        b = (unsigned)i;
        OK(sc->cu.GraphAddKernelNode(&node[i], graph, i ? &node[i - 1] : NULL, i ? 1 : 0, &kernel));
    }
    OK(sc->cu.GraphInstantiate(&exec, graph, 0));
    for (unsigned step = 0; step < sc_steps(sc, 20); step++) {
        for (unsigned i = 0; i < 8; i++) {
            sc_chain(sc, s, x, 5, step + i, N);
        }
        b = step;
        OK(sc->cu.GraphExecKernelNodeSetParams(exec, node[step % 3], &kernel));
        OK(sc->cu.GraphLaunch(exec, s));
        for (unsigned i = 0; i < 8; i++) {
            sc_chain(sc, s, x, 7, step + i, N);
        }
        OK(sc->cu.StreamSynchronize(s));
    }
    sc_digest(sc);
    return 0;
}

/* A driver may be newer than the library: here only the simulator has the call that begins a
 * capture. */
int sc_run_capture_unknown(struct sc *sc) {
    CUstream s;
    void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    CUresult (*begin)(CUstream, CUstreamCaptureMode) =
        lib ? (CUresult(*)(CUstream, CUstreamCaptureMode))dlsym(lib, "cuSimBeginCaptureX") : NULL;
    if (!begin) {
        sc_say(sc, "a driver without it");
        return 0;
    }
    sc_start(sc);
    CUdeviceptr x = sc_device(sc, "x", N);
    OK(sc->cu.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
    for (unsigned step = 0; step < sc_steps(sc, 24); step++) {
        CUgraph graph;
        for (unsigned i = 0; i < 9; i++) {
            sc_chain(sc, s, x, 3, step + i, N);
        }
        if (step % 3 == 2) {
            OK(begin(s, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
            for (unsigned i = 0; i < 9; i++) {
                sc_chain(sc, s, x, 3, step + i, N);
            }
            OK(sc->cu.StreamEndCapture(s, &graph));
            run_graph(sc, graph, s, 2);
        }
        for (unsigned i = 0; i < 9; i++) {
            sc_chain(sc, s, x, 7, step + i, N);
        }
        OK(sc->cu.StreamSynchronize(s));
    }
    sc_digest(sc);
    return 0;
}
