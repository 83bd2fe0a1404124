/*
 * Programs made from a seed: several streams, and a list of actions that repeats with some actions
 * changed. The actions mix everything that cusplice defers or must not defer.
 *
 * All right runs of a seed give the same memory: each stream works on its own buffers, and reads
 * others only behind events. random has one thread and all kinds of streams. random_threads has
 * three threads with their own streams, without the legacy stream, because CUDA promises no order
 * of it between threads.
 */
#include "harness/scenario/sc.h"

#include <pthread.h>
#include <string.h>

enum { STREAMS = 5, BUFFERS = 3, WORDS = 256, ACTIONS_MAX = 64, THREADS = 3 };

enum verb {
    CHAIN,
    CHAIN_MORE,
    COPY_WORDS,
    ADD,
    MANY,
    MEMSET8,
    MEMSET16,
    MEMSET32,
    MEMSET_2D,
    D2D,
    D2H_PINNED,
    H2D_PINNED,
    H2D_PAGEABLE,
    D2H_PAGEABLE,
    TAKE, /* from another stream, between two events */
    SYNC_STREAM,
    SYNC_CONTEXT,
    QUERY,
    EVENT,
    HOST_FUNC,
    ALLOC_FREE,
    BAD,
    CAPTURE,
    SLEEP,
    SYNC_MEMSET,
    VERBS
};

/* How often each verb is drawn: mostly ops that a node can stand for. */
static const unsigned char weight[VERBS] = {40, 12, 10, 10, 4, 4, 3, 5, 2, 8, 4, 2, 2,
                                            1,  3,  3,  1,  1, 3, 1, 1, 2, 1, 1, 1};

struct action {
    enum verb verb;
    unsigned stream, buffer, value;
};

struct lane {
    CUstream s;
    bool blocking, legacy;
    CUdeviceptr buffer[BUFFERS];
    unsigned *pinned_in, *pinned_out, *counter;
    CUevent made, taken, other;
};

struct machine {
    struct sc *sc;
    uint64_t rng;
    uint64_t codes;
    bool threads;
    unsigned lanes;
    struct lane lane[STREAMS];
    unsigned actions, steps;
    struct action action[ACTIONS_MAX];
};

static unsigned draw(struct machine *m, unsigned below) {
    return sc_random_of(&m->rng, below);
}

static struct action draw_action(struct machine *m) {
    unsigned total = 0, verb = 0;
    for (unsigned v = 0; v < VERBS; v++) {
        total += weight[v];
    }
    for (unsigned at = draw(m, total); at >= weight[verb]; verb++) {
        at -= weight[verb];
    }
    /* Programs usually make several launches on one stream in a row. */
    unsigned stream = draw(m, 4) ? 0 : draw(m, m->lanes);
    return (struct action){(enum verb)verb, stream, draw(m, BUFFERS), draw(m, 1000)};
}

static void lane_make(struct machine *m, unsigned l, bool threads) {
    struct sc *sc = m->sc;
    struct lane *lane = &m->lane[l];
    memset(lane, 0, sizeof(*lane));
    lane->legacy = !threads && l == 1;
    lane->blocking = lane->legacy || (!threads && l == 3);
    if (!lane->legacy) {
        OK(sc->cu.StreamCreate(&lane->s,
                               lane->blocking ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING));
    }
    for (unsigned b = 0; b < BUFFERS; b++) {
        lane->buffer[b] = sc_device(sc, "buffer", WORDS);
    }
    lane->pinned_in = sc_pinned(sc, "pinned_in", 256);
    lane->pinned_out = sc_pinned(sc, "pinned_out", 1024);
    lane->counter = sc_pinned(sc, "counter", 64);
    for (unsigned i = 0; i < 64; i++) {
        lane->pinned_in[i] = i * 7 + l;
    }
    OK(sc->cu.EventCreate(&lane->made, CU_EVENT_DISABLE_TIMING));
    OK(sc->cu.EventCreate(&lane->taken, CU_EVENT_DISABLE_TIMING));
    OK(sc->cu.EventCreate(&lane->other, CU_EVENT_DEFAULT));
}

static void machine_make(struct machine *m, struct sc *sc, uint64_t seed, bool threads) {
    memset(m, 0, sizeof(*m));
    m->sc = sc;
    m->rng = seed * 0x9E3779B97F4A7C15u + 99;
    m->codes = 1;
    m->threads = threads;
    m->lanes = threads ? 2 : STREAMS;
    m->steps = sc_steps(sc, 30);
    for (unsigned l = 0; l < m->lanes; l++) {
        lane_make(m, l, threads);
    }
    m->actions = 16 + draw(m, ACTIONS_MAX - 16);
    for (unsigned a = 0; a < m->actions; a++) {
        m->action[a] = draw_action(m);
    }
}

static void CUDA_CB count(void *data) {
    ++*(unsigned *)data;
}

static void take(struct machine *m, struct lane *from, struct lane *to, unsigned buffer) {
    struct sc *sc = m->sc;
    if (from == to) {
        return;
    }
    OK(sc->cu.EventRecord(from->made, from->s));
    OK(sc->cu.StreamWaitEvent(to->s, from->made, 0));
    sc_copy(sc, to->s, to->buffer[buffer], from->buffer[buffer], 64);
    OK(sc->cu.EventRecord(to->taken, to->s));
    OK(sc->cu.StreamWaitEvent(from->s, to->taken, 0));
}

static void capture(struct machine *m, struct lane *lane, CUdeviceptr x, unsigned value) {
    struct sc *sc = m->sc;
    CUgraph graph;
    CUgraphExec exec;
    if (lane->blocking) { /* while such a stream captures, the legacy stream may not be used */
        return;
    }
    OK(sc->cu.StreamBeginCapture(lane->s, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    for (unsigned i = 0; i < 1 + value % 4; i++) {
        sc_chain(sc, lane->s, x, 3, value + i, 64);
    }
    OK(sc->cu.StreamEndCapture(lane->s, &graph));
    OK(sc->cu.GraphInstantiate(&exec, graph, 0));
    OK(sc->cu.GraphLaunch(exec, lane->s));
    OK(sc->cu.GraphLaunch(exec, lane->s));
    OK(sc->cu.StreamSynchronize(lane->s));
    OK(sc->cu.GraphExecDestroy(exec));
    OK(sc->cu.GraphDestroy(graph));
}

static void alloc_free(struct machine *m, struct lane *lane, CUdeviceptr x, unsigned value) {
    struct sc *sc = m->sc;
    CUdeviceptr p;
    OK(sc->cu.MemAlloc(&p, 4096));
    if (!m->threads) { /* between threads the address depends on which comes first, and the log
                          would show it */
        sc_fill(sc, lane->s, p, value, 64);
        sc_copy(sc, lane->s, x, p, 32);
    }
    OK(sc->cu.MemFree(p));
}

static void bad(struct machine *m, struct lane *lane, CUdeviceptr x, unsigned value) {
    unsigned a = 3, b = 1;
    int n = 64, code;
    code = (int)m->sc->cu.LaunchKernel(m->sc->fn[SC_chain], value % 2 ? 0 : 1, 1, 1,
                                       value % 2 ? 64 : 2000, 1, 1, 0, lane->s,
                                       (void *[]){&x, &a, &b, &n}, NULL);
    m->codes = sc_hash(m->codes, &code, sizeof(code));
}

static void many(struct machine *m, struct lane *lane, CUdeviceptr x, unsigned v) {
    signed char a = (signed char)v;
    short b = (short)v;
    int c = (int)v * 3;
    long long d = (long long)v * 0x10001000100;
    float e = (float)v;
    double f = (double)v;
    unsigned char g = (unsigned char)v;
    struct cus_mixed h;
    unsigned short i = (unsigned short)v;
    unsigned long long k = v;
    memset(&h, 0, sizeof(h));
    h.weight = v;
    CUdeviceptr j = x + 512;
    OK(sc_launch(m->sc, m->sc->fn[SC_many_params], 1, 1, 0, lane->s,
                 (void *[]){&x, &a, &b, &c, &d, &e, &f, &g, &h, &i, &j, &k}));
}

static void pageable(struct machine *m, struct lane *lane, CUdeviceptr x, bool in, unsigned value) {
    struct sc *sc = m->sc;
    unsigned host[48];
    if (in) {
        for (unsigned i = 0; i < 48; i++) {
            host[i] = value + i;
        }
        OK(sc->cu.MemcpyHtoDAsync(x, host, sizeof(host), lane->s));
        memset(host, 0xEE, sizeof(host));
    } else {
        OK(sc->cu.MemcpyDtoHAsync(host, x, sizeof(host), lane->s));
        m->codes = sc_hash(m->codes, host, sizeof(host));
    }
}

static void act(struct machine *m, const struct action *action) {
    struct sc *sc = m->sc;
    struct lane *lane = &m->lane[action->stream];
    CUstream s = lane->s;
    CUdeviceptr x = lane->buffer[action->buffer];
    CUdeviceptr y = lane->buffer[(action->buffer + 1) % BUFFERS];
    unsigned v = action->value;
    CUresult code;
    switch (action->verb) {
    case CHAIN:
        sc_chain(sc, s, x, 3, v, WORDS);
        break;
    case CHAIN_MORE:
        sc_chain(sc, s, x, 5, v, 64 * (int)(1 + v % 4));
        break;
    case COPY_WORDS:
        sc_copy(sc, s, y, x, 64 * (int)(1 + v % 3));
        break;
    case ADD:
        sc_add(sc, s, x, (int)v, WORDS);
        break;
    case MANY:
        many(m, lane, x, v);
        break;
    case MEMSET8:
        OK(sc->cu.MemsetD8Async(x + v % 16, (unsigned char)v, 1 + v % 200, s));
        break;
    case MEMSET16:
        code = sc->cu.MemsetD16Async(x + v % 16 * 2, (unsigned short)v, v % 90, s);
        m->codes = sc_hash(m->codes, &code, sizeof(code));
        break;
    case MEMSET32:
        OK(sc->cu.MemsetD32Async(x + v % 16 * 4, v, 1 + v % 3 * 16, s));
        break;
    case MEMSET_2D:
        OK(sc->cu.MemsetD2D8Async(x + v % 16, 64, (unsigned char)v, 20 + v % 3 / 2, 8, s));
        break;
    case D2D:
        OK(sc->cu.MemcpyDtoDAsync(y + v % 8 * 4, x, 4 + v % 4 * 128, s));
        break;
    case D2H_PINNED:
        OK(sc->cu.MemcpyDtoHAsync(lane->pinned_out + v % 8, x, 4 + v % 2 * 500, s));
        break;
    case H2D_PINNED:
        OK(sc->cu.MemcpyHtoDAsync(x + v % 8 * 4, lane->pinned_in, 128, s));
        break;
    case H2D_PAGEABLE:
    case D2H_PAGEABLE:
        pageable(m, lane, x, action->verb == H2D_PAGEABLE, v);
        break;
    case TAKE:
        take(m, &m->lane[v % m->lanes], lane, action->buffer);
        break;
    case SYNC_STREAM:
        OK(sc->cu.StreamSynchronize(s));
        break;
    case SYNC_CONTEXT:
        /* Another thread may be capturing, which forbids it. */
        OK(m->threads ? sc->cu.StreamSynchronize(s) : sc->cu.CtxSynchronize());
        break;
    case QUERY:
        code = sc->cu.StreamQuery(s);
        OK(code == CUDA_ERROR_NOT_READY ? CUDA_SUCCESS : code);
        break;
    case EVENT:
        OK(sc->cu.EventRecord(lane->other, s));
        if (v % 4 == 0) {
            OK(sc->cu.EventSynchronize(lane->other));
        }
        break;
    case HOST_FUNC:
        OK(sc->cu.LaunchHostFunc(s, count, lane->counter));
        break;
    case ALLOC_FREE:
        alloc_free(m, lane, x, v);
        break;
    case BAD:
        bad(m, lane, x, v);
        break;
    case CAPTURE:
        capture(m, lane, x, v);
        break;
    case SLEEP:
        sc_sleep_us(v * 3);
        break;
    case SYNC_MEMSET:
        /* This runs on the legacy stream, so it may use the lane's memory only if the lane is
         * ordered with that stream. */
        if (lane->blocking) {
            OK(sc->cu.MemsetD32(x, v, 5));
        }
        break;
    default:
        sc_fail("no such verb");
    }
}

static void machine_run(struct machine *m) {
    for (unsigned step = 0; step < m->steps; step++) {
        unsigned changes = draw(m, 3) ? 0 : 1 + draw(m, 3);
        for (unsigned a = 0; a < m->actions; a++) {
            struct action action = m->action[a];
            if (changes && draw(m, m->actions) < changes) {
                action = draw_action(m);
            } else if (a % 3 == 0) {
                action.value = (action.value / 16 * 16 + action.value % 16) ^ step << 10;
            }
            act(m, &action);
        }
        if (draw(m, 8) == 0) { /* permanently */
            m->action[draw(m, m->actions)] = draw_action(m);
        }
    }
    OK(m->sc->cu.StreamSynchronize(m->lane[0].s));
}

int sc_run_random(struct sc *sc) {
    static struct machine m;
    sc_start(sc);
    machine_make(&m, sc, sc->seed, false);
    machine_run(&m);
    sc->codes = m.codes;
    sc_digest(sc);
    return 0;
}

static void *one_thread(void *arg) {
    struct machine *m = arg;
    struct sc *sc = m->sc;
    OK(sc->cu.CtxSetCurrent(sc->ctx));
    machine_run(m);
    return NULL;
}

int sc_run_random_threads(struct sc *sc) {
    static struct machine m[THREADS];
    pthread_t thread[THREADS];
    sc_start(sc);
    for (unsigned t = 0; t < THREADS; t++) {
        machine_make(&m[t], sc, sc->seed * 31 + t, true);
    }
    for (unsigned t = 0; t < THREADS; t++) {
        if (pthread_create(&thread[t], NULL, one_thread, &m[t])) {
            sc_fail("no thread");
        }
    }
    for (unsigned t = 0; t < THREADS; t++) {
        pthread_join(thread[t], NULL);
        sc->codes = sc_hash(sc->codes, &m[t].codes, sizeof(m[t].codes));
    }
    sc_digest(sc);
    return 0;
}
