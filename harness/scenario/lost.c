/*
 * Programs that the simulator takes something from: their context, by a kernel of the last step
 * that fails, or a thread, by a call that never returns. Without such a fault every call succeeds.
 */
#include "harness/scenario/sc.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { N = 128, OPS = 15 };

/* What the calls below are about, made before anything fails. */
struct lost {
    struct sc *sc;
    CUcontext ctx;
    CUmodule module;
    CUfunction fn[SC_KERNELS];
    CUstream s, idle;
    CUevent done, other;
    CUdeviceptr x, y, freed;
    CUdeviceptr bad; /* while it is not 0, kernel trap fails */
    CUfunction trap;
    CUgraphExec graph;
};

static CUresult launch(struct lost *l) {
    unsigned a = 3, b = 0;
    int n = N;
    return sc_launch(l->sc, l->fn[SC_chain], N / 64, 64, 0, l->s, (void *[]){&l->x, &a, &b, &n});
}
static CUresult set(struct lost *l) {
    return l->sc->cu.MemsetD32Async(l->y, 1, 10, l->s);
}
static CUresult copy(struct lost *l) {
    return l->sc->cu.MemcpyDtoDAsync(l->y, l->x, 64, l->s);
}
static CUresult record(struct lost *l) {
    return l->sc->cu.EventRecord(l->other, l->s);
}
static CUresult wait_event(struct lost *l) {
    return l->sc->cu.StreamWaitEvent(l->s, l->done, 0);
}
static CUresult sync_stream(struct lost *l) {
    return l->sc->cu.StreamSynchronize(l->s);
}
static CUresult sync_idle(struct lost *l) {
    return l->sc->cu.StreamSynchronize(l->idle);
}
static CUresult sync_context(struct lost *l) {
    return l->sc->cu.CtxSynchronize();
}
static CUresult sync_event(struct lost *l) {
    return l->sc->cu.EventSynchronize(l->done);
}
static CUresult query_stream(struct lost *l) {
    return l->sc->cu.StreamQuery(l->s);
}
static CUresult query_event(struct lost *l) {
    return l->sc->cu.EventQuery(l->done);
}
static CUresult copy_back(struct lost *l) {
    unsigned words[4];
    return l->sc->cu.MemcpyDtoH(words, l->x, sizeof words);
}
static CUresult set_now(struct lost *l) {
    return l->sc->cu.MemsetD32(l->y, 1, 10);
}
static CUresult allocate(struct lost *l) {
    CUdeviceptr p;
    return l->sc->cu.MemAlloc(&p, 4096);
}
static CUresult release(struct lost *l) {
    CUdeviceptr p = l->freed;
    l->freed = 0;
    return l->sc->cu.MemFree(p);
}
static CUresult allocate_async(struct lost *l) {
    CUdeviceptr p;
    return l->sc->cu.MemAllocAsync(&p, 4096, l->s);
}
static CUresult load(struct lost *l) {
    CUmodule module;
    return l->sc->cu.ModuleLoadData(&module, sc_image());
}
static CUresult find(struct lost *l) {
    CUfunction f;
    return l->sc->cu.ModuleGetFunction(&f, l->module, "chain");
}
static void CUDA_CB nothing(void *unused) {
    (void)unused;
}
static CUresult call_host(struct lost *l) {
    return l->sc->cu.LaunchHostFunc(l->s, nothing, NULL);
}
static CUresult launch_graph(struct lost *l) {
    return l->sc->cu.GraphLaunch(l->graph, l->s);
}
static CUresult make_event(struct lost *l) {
    CUevent event;
    return l->sc->cu.EventCreate(&event, CU_EVENT_DEFAULT);
}
static CUresult make_stream(struct lost *l) {
    CUstream stream;
    return l->sc->cu.StreamCreate(&stream, CU_STREAM_NON_BLOCKING);
}
static CUresult capture(struct lost *l) {
    CUgraph graph;
    CUresult code = l->sc->cu.StreamBeginCapture(l->idle, CU_STREAM_CAPTURE_MODE_RELAXED);
    l->sc->cu.StreamEndCapture(l->idle, &graph);
    return code;
}
static CUresult ask_current(struct lost *l) {
    CUcontext now;
    return l->sc->cu.CtxGetCurrent(&now);
}

/* tests/sim/lost_test.cc has the same list. The first ones are ops. */
static const struct {
    const char *name;
    CUresult (*make)(struct lost *l);
} calls[] = {
    {"launch", launch},
    {"memset", set},
    {"copy", copy},
    {"record", record},
    {"wait for an event", wait_event},
    {"synchronise the stream", sync_stream},
    {"synchronise another stream", sync_idle},
    {"synchronise the context", sync_context},
    {"synchronise an event", sync_event},
    {"query the stream", query_stream},
    {"query an event", query_event},
    {"copy back", copy_back},
    {"memset at once", set_now},
    {"allocate", allocate},
    {"free", release},
    {"allocate in order", allocate_async},
    {"load a module", load},
    {"find a function", find},
    {"host function", call_host},
    {"launch a graph", launch_graph},
    {"make an event", make_event},
    {"make a stream", make_stream},
    {"capture", capture},
    {"ask for the context", ask_current},
};
enum { CALLS = sizeof calls / sizeof calls[0] };

static void prepare(struct lost *l) {
    struct sc *sc = l->sc;
    CUgraph graph;
    CUgraphNode node;
    unsigned a = 3, b = 0;
    int n = N;
    CUDA_KERNEL_NODE_PARAMS params = {.gridDimX = N / 64,
                                      .gridDimY = 1,
                                      .gridDimZ = 1,
                                      .blockDimX = 64,
                                      .blockDimY = 1,
                                      .blockDimZ = 1,
                                      .kernelParams = (void *[]){&l->x, &a, &b, &n}};
    sc_load(sc, &l->module, l->fn);
    OK(sc->cu.MemAlloc(&l->x, N * 4));
    OK(sc->cu.MemAlloc(&l->y, N * 4));
    OK(sc->cu.MemAlloc(&l->freed, N * 4));
    OK(sc->cu.MemAlloc(&l->bad, 4));
    OK(sc->cu.MemsetD32(l->bad, 0, 1));
    OK(sc->cu.ModuleGetFunction(&l->trap, l->module, "trap"));
    OK(sc->cu.MemsetD8(l->x, 0, N * 4));
    OK(sc->cu.MemsetD8(l->y, 0, N * 4));
    OK(sc->cu.CtxSynchronize());
    OK(sc->cu.StreamCreate(&l->s, CU_STREAM_NON_BLOCKING));
    OK(sc->cu.StreamCreate(&l->idle, CU_STREAM_NON_BLOCKING));
    OK(sc->cu.EventCreate(&l->done, CU_EVENT_DEFAULT));
    OK(sc->cu.EventCreate(&l->other, CU_EVENT_DEFAULT));
    /* By hand: once a program captures, a stream is asked before anything is deferred on it. */
    params.func = l->fn[SC_chain];
    OK(sc->cu.GraphCreate(&graph, 0));
    OK(sc->cu.GraphAddKernelNode(&node, graph, NULL, 0, &params));
    OK(sc->cu.GraphInstantiate(&l->graph, graph, 0));
}

/* OPS kernels and a trap, and what else may be in a graph. Returns the first error. */
static CUresult step(struct lost *l) {
    CUresult code = CUDA_SUCCESS;
    for (unsigned i = 0; i < OPS && code == CUDA_SUCCESS; i++) {
        code = launch(l);
        if (i == OPS / 2 && code == CUDA_SUCCESS) {
            code = sc_launch(l->sc, l->trap, 1, 1, 0, l->s, (void *[]){&l->bad});
        }
        if (i % 5 == 3 && code == CUDA_SUCCESS) {
            code = set(l);
        }
        if (i % 5 == 3 && code == CUDA_SUCCESS) {
            code = copy(l);
        }
    }
    return code == CUDA_SUCCESS ? l->sc->cu.EventRecord(l->done, l->s) : code;
}

/* Steps that succeed. */
static void steps(struct lost *l, unsigned n) {
    for (unsigned i = 0; i < n; i++) {
        OK(step(l));
        OK(l->sc->cu.StreamSynchronize(l->s));
    }
}

static void hash_of(struct lost *l, const char *when) {
    unsigned words[N];
    OK(l->sc->cu.MemcpyDtoH(words, l->x, sizeof words));
    sc_say(l->sc, "%s: %llx", when, (unsigned long long)sc_hash(1, words, sizeof words));
}

/* The work of the last step ends while the host makes no call. Then it makes the call that the seed
 * names, and all others. It ends the context, and does its steps in a new one. An odd hundred of
 * the seed: the primary context, which is reset. From 200 on kernel trap fails in the last step. */
int sc_run_lost_context(struct sc *sc) {
    unsigned n = sc_steps(sc, 24), first = (unsigned)(sc->seed % 100 % CALLS);
    bool primary = sc->seed / 100 % 2;
    struct lost l = {.sc = sc};
    sc_start(sc);
    l.ctx = sc->ctx;
    if (!primary) {
        OK(sc->cu.CtxCreate(&l.ctx, 0, sc->device));
    }
    prepare(&l);
    steps(&l, n - 1);
    if (sc->seed >= 200) {
        OK(sc->cu.MemsetD32(l.bad, 1, 1));
        OK(sc->cu.CtxSynchronize());
    }
    step(&l); /* each of its calls may be the first that tells */
    sc_sleep_us(50000);
    sc_say(sc, "first, %s: %d", calls[first].name, (int)calls[first].make(&l));
    sc_say(sc, "then, synchronise the stream: %d", (int)sync_stream(&l));
    for (unsigned i = 0; i < CALLS; i++) {
        sc_say(sc, "%s: %d", calls[i].name, (int)calls[i].make(&l));
    }
    sc_say(sc, "synchronise the context: %d", (int)sync_context(&l));
    sc_say(sc, "destroy a stream: %d", (int)sc->cu.StreamDestroy(l.idle));
    sc_say(sc, "destroy an event: %d", (int)sc->cu.EventDestroy(l.other));
    if (primary) {
        sc_say(sc, "reset: %d", (int)sc->cu.PrimaryReset(sc->device));
        OK(sc->cu.PrimaryRetain(&l.ctx, sc->device));
        OK(sc->cu.CtxSetCurrent(l.ctx));
    } else {
        sc_say(sc, "destroy the context: %d", (int)sc->cu.CtxDestroy(l.ctx));
        OK(sc->cu.CtxCreate(&l.ctx, 0, sc->device));
    }
    prepare(&l);
    steps(&l, n);
    hash_of(&l, "in a new context");
    return 0;
}

/* ---- a thread that never comes back ---- */

enum { THREADS = 3 };

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned began, finished;
} all = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

struct worker {
    struct sc *sc;
    CUdeviceptr x, y;
    CUstream streams[2]; /* the second one in the second half of the steps */
    CUevent done;
    unsigned steps;
    bool finished; /* all.lock, as the next */
    unsigned result[N];
};

/* Waits until *count is `threads`, for `ms` at most. all.lock. */
static void await(const unsigned *count, unsigned threads, unsigned ms) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += ms / 1000;
    until.tv_nsec += ms % 1000 * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    while (*count < threads && pthread_cond_timedwait(&all.changed, &all.lock, &until) == 0) {
    }
}

static void work_a_step(struct worker *w, unsigned step) {
    struct sc *sc = w->sc;
    CUstream s = w->streams[step >= w->steps / 2];
    for (unsigned i = 0; i < 12; i++) {
        sc_chain(sc, s, w->x, 3, step + i, N);
        if (i % 4 == 1) {
            OK(sc->cu.MemsetD32Async(w->y, i, 10, s));
            OK(sc->cu.MemcpyDtoDAsync(w->y + 64, w->x, 64, s));
        }
    }
    OK(sc->cu.EventRecord(w->done, s));
    while (sc->cu.EventQuery(w->done) == CUDA_ERROR_NOT_READY) {
        sc_sleep_us(20);
    }
    OK(sc->cu.StreamSynchronize(s));
}

/* The first launch of a function waits for all threads, so each makes its first ones before it goes
 * on. A thread that stays in them is not waited for. */
static void *work(void *arg) {
    enum { FIRST_MS = 300 };
    struct worker *w = arg;
    struct sc *sc = w->sc;
    unsigned words[N];
    OK(sc->cu.CtxSetCurrent(sc->ctx));
    work_a_step(w, 0);
    pthread_mutex_lock(&all.lock);
    all.began++;
    pthread_cond_broadcast(&all.changed);
    await(&all.began, THREADS, FIRST_MS);
    pthread_mutex_unlock(&all.lock);
    for (unsigned step = 1; step < w->steps; step++) {
        work_a_step(w, step);
    }
    OK(sc->cu.MemcpyDtoHAsync(words, w->x, sizeof words, w->streams[1]));
    OK(sc->cu.StreamSynchronize(w->streams[1]));
    pthread_mutex_lock(&all.lock);
    memcpy(w->result, words, sizeof words);
    w->finished = true;
    all.finished++;
    pthread_cond_broadcast(&all.changed);
    pthread_mutex_unlock(&all.lock);
    return NULL;
}

/* Threads with streams of their own. With a fault one may stay away; the others finish, and are not
 * waited for longer than WAIT_MS. */
int sc_run_thread_hangs(struct sc *sc) {
    enum { WAIT_MS = 8000, MORE_MS = 50 };
    static struct worker w[THREADS]; /* a thread that stays may still use it */
    pthread_t thread;
    sc_start(sc);
    for (unsigned t = 0; t < THREADS; t++) {
        w[t] = (struct worker){.sc = sc, .steps = sc_steps(sc, 24)};
        OK(sc->cu.StreamCreate(&w[t].streams[0], CU_STREAM_NON_BLOCKING));
        OK(sc->cu.StreamCreate(&w[t].streams[1], CU_STREAM_NON_BLOCKING));
        OK(sc->cu.EventCreate(&w[t].done, CU_EVENT_DEFAULT));
        OK(sc->cu.MemAlloc(&w[t].x, N * 4));
        OK(sc->cu.MemAlloc(&w[t].y, N * 4));
        OK(sc->cu.MemsetD8(w[t].x, (unsigned char)t, N * 4));
    }
    OK(sc->cu.CtxSynchronize());
    for (unsigned t = 0; t < THREADS; t++) {
        if (pthread_create(&thread, NULL, work, &w[t]) || pthread_detach(thread)) {
            sc_fail("no thread");
        }
    }
    pthread_mutex_lock(&all.lock);
    await(&all.finished, THREADS - 1, WAIT_MS);
    await(&all.finished, THREADS, getenv("CUSIM_FAULT") ? MORE_MS : WAIT_MS);
    for (unsigned t = 0; t < THREADS; t++) {
        if (w[t].finished) {
            sc_say(sc, "thread %u: %llx", t,
                   (unsigned long long)sc_hash(1, w[t].result, sizeof w[t].result));
        } else {
            sc_say(sc, "thread %u stays away", t);
        }
    }
    if (all.finished < THREADS) {
        fflush(NULL);
        _exit(0); /* exit handlers may wait for the thread that stays */
    }
    pthread_mutex_unlock(&all.lock);
    return 0;
}
