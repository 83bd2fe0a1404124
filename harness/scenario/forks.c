/*
 * A stream that the thread forks by an event and joins by another one, as frameworks do beside
 * their main stream. forks_left.c has forks that are not joined, or not at once.
 *
 * Main thread. Each order by events is needed: without it a copy reads, or a kernel changes, what
 * another stream has not finished, and the digests differ.
 */
#include "harness/scenario/forks.h"

#include <string.h>

enum { LAYERS = 4 };

void sc_forks_start(struct sc *sc, struct forks *f) {
    sc_start(sc);
    *f = (struct forks){.sc = sc};
    OK(sc->cu.StreamCreate(&f->a, CU_STREAM_NON_BLOCKING));
    OK(sc->cu.StreamCreate(&f->b, CU_STREAM_NON_BLOCKING));
    OK(sc->cu.StreamCreate(&f->c, CU_STREAM_NON_BLOCKING));
    for (unsigned i = 0; i < FORK_EVENTS; i++) {
        OK(sc->cu.EventCreate(&f->e[i], CU_EVENT_DISABLE_TIMING));
    }
    f->x = sc_device(sc, "x", FORK_N);
    f->y = sc_device(sc, "y", FORK_N);
    f->z = sc_device(sc, "z", FORK_N);
    f->w = sc_device(sc, "w", FORK_N);
    f->v = sc_device(sc, "v", FORK_N);
    f->sum = sc_device(sc, "sum", 6);
}

void sc_forks_chain(struct forks *f, CUstream s, CUdeviceptr p, unsigned salt) {
    sc_chain(f->sc, s, p, 3 + 2 * (salt % 4), salt, FORK_N);
}

void sc_forks_sum(struct forks *f, CUstream s, CUdeviceptr p) {
    unsigned word = s == f->a ? 0 : s == f->c ? 2 : 1;
    sc_checksum(f->sc, s, f->sum + word * 8, p, FORK_N * 4);
}

void sc_forks_order(struct forks *f, CUstream first, CUevent e, CUstream then) {
    OK(f->sc->cu.EventRecord(e, first));
    OK(f->sc->cu.StreamWaitEvent(then, e, 0));
}

void sc_forks_both(struct forks *f, CUstream b, unsigned salt) {
    struct sc *sc = f->sc;
    sc_copy(sc, b, f->z, f->x, FORK_N);
    sc_forks_chain(f, f->a, f->y, salt);
    sc_forks_chain(f, b, f->z, salt + 1);
    sc_forks_chain(f, f->a, f->y, salt + 2);
    sc_forks_chain(f, b, f->z, salt + 3);
    sc_copy(sc, b, f->w, f->z, FORK_N / 2);
    sc_forks_chain(f, b, f->w, salt + 4);
    sc_forks_sum(f, b, f->w);
}

void sc_forks_behind(struct forks *f, unsigned salt) {
    struct sc *sc = f->sc;
    sc_forks_sum(f, f->a, f->z);
    sc_copy(sc, f->a, f->x, f->z + FORK_N * 2, FORK_N / 2);
    sc_forks_chain(f, f->a, f->x, salt);
    sc_copy(sc, f->a, f->y, f->x, FORK_N / 4);
}

void sc_forks_layer(struct forks *f, CUstream b, CUevent fork, CUevent join, unsigned salt) {
    sc_forks_chain(f, f->a, f->x, salt + 5);
    sc_forks_chain(f, f->a, f->x, salt + 6);
    sc_forks_order(f, f->a, fork, b);
    sc_forks_both(f, b, salt);
    sc_forks_order(f, b, join, f->a);
    sc_forks_behind(f, salt + 7);
}

static void layers(struct forks *f, unsigned step) {
    for (unsigned i = 0; i < LAYERS; i++) {
        sc_forks_layer(f, f->b, f->e[0], f->e[1], step + i);
    }
}

/* Two events, used again in each layer. */
int sc_run_fork_layers(struct sc *sc) {
    struct forks f;
    sc_forks_start(sc, &f);
    for (unsigned step = 0; step < sc_steps(sc, 40); step++) {
        layers(&f, step);
        if (step % 2) {
            OK(sc->cu.StreamSynchronize(f.a));
        }
    }
    sc_digest(sc);
    return 0;
}

/* Each fork and each join of a step has its own event. */
int sc_run_fork_events(struct sc *sc) {
    struct forks f;
    CUevent e[LAYERS][2];
    sc_forks_start(sc, &f);
    for (unsigned i = 0; i < LAYERS; i++) {
        OK(sc->cu.EventCreate(&e[i][0], CU_EVENT_DISABLE_TIMING));
        OK(sc->cu.EventCreate(&e[i][1], i % 2 ? CU_EVENT_DEFAULT : CU_EVENT_DISABLE_TIMING));
    }
    for (unsigned step = 0; step < sc_steps(sc, 40); step++) {
        for (unsigned i = 0; i < LAYERS; i++) {
            sc_forks_layer(&f, f.b, e[i][0], e[i][1], step + i);
        }
        OK(sc->cu.StreamSynchronize(f.a));
    }
    sc_digest(sc);
    return 0;
}

void sc_forks_wait_stream(struct forks *f, CUstream then, CUstream first) {
    CUevent e;
    OK(f->sc->cu.EventCreate(&e, CU_EVENT_DISABLE_TIMING));
    sc_forks_order(f, first, e, then);
    OK(f->sc->cu.EventDestroy(e));
}

/* Events that are made and destroyed for each fork and each join. */
int sc_run_fork_wait_stream(struct sc *sc) {
    struct forks f;
    sc_forks_start(sc, &f);
    for (unsigned step = 0; step < sc_steps(sc, 40); step++) {
        for (unsigned i = 0; i < LAYERS; i++) {
            sc_forks_chain(&f, f.a, f.x, step + i);
            sc_forks_wait_stream(&f, f.b, f.a);
            sc_forks_both(&f, f.b, step + i);
            sc_forks_wait_stream(&f, f.a, f.b);
            sc_forks_behind(&f, step);
        }
        OK(sc->cu.StreamSynchronize(f.a));
    }
    sc_digest(sc);
    return 0;
}

/* b and c are forked one after the other, c waits for b in the midst, and c is joined first. What b
 * does to w comes behind what c waits for. */
static void two(struct forks *f, unsigned salt) {
    struct sc *sc = f->sc;
    sc_forks_chain(f, f->a, f->x, salt);
    sc_forks_order(f, f->a, f->e[0], f->b);
    sc_copy(sc, f->b, f->z, f->x, FORK_N);
    sc_forks_chain(f, f->a, f->y, salt + 1);
    sc_forks_order(f, f->a, f->e[1], f->c);
    sc_copy(sc, f->c, f->v, f->y, FORK_N);
    sc_forks_chain(f, f->b, f->z, salt + 2);
    sc_forks_chain(f, f->c, f->v, salt + 3);
    sc_forks_order(f, f->b, f->e[2], f->c);
    sc_copy(sc, f->c, f->v, f->z, FORK_N / 2);
    sc_forks_chain(f, f->b, f->w, salt + 4);
    sc_forks_chain(f, f->c, f->v, salt + 5);
    sc_forks_chain(f, f->b, f->w, salt + 6);
    sc_forks_order(f, f->c, f->e[3], f->a);
    sc_copy(sc, f->a, f->x, f->v, FORK_N / 2);
    sc_forks_sum(f, f->a, f->v);
    sc_forks_order(f, f->b, f->e[4], f->a);
    sc_forks_sum(f, f->a, f->w);
    sc_copy(sc, f->a, f->y, f->w, FORK_N / 2);
    sc_forks_chain(f, f->a, f->y, salt + 7);
}

int sc_run_fork_two(struct sc *sc) {
    struct forks f;
    sc_forks_start(sc, &f);
    for (unsigned step = 0; step < sc_steps(sc, 40); step++) {
        for (unsigned i = 0; i < LAYERS; i++) {
            two(&f, step + i);
        }
        OK(sc->cu.StreamSynchronize(f.a));
    }
    sc_digest(sc);
    return 0;
}

/* b forks c. Either b joins c, or a does. */
static void nested(struct forks *f, bool by_b, unsigned salt) {
    struct sc *sc = f->sc;
    sc_forks_chain(f, f->a, f->x, salt);
    sc_forks_order(f, f->a, f->e[0], f->b);
    sc_copy(sc, f->b, f->z, f->x, FORK_N);
    sc_forks_chain(f, f->b, f->z, salt + 1);
    sc_forks_order(f, f->b, f->e[1], f->c);
    sc_copy(sc, f->c, f->v, f->z, FORK_N);
    sc_forks_chain(f, f->b, f->w, salt + 2);
    sc_forks_chain(f, f->c, f->v, salt + 3);
    sc_forks_chain(f, f->a, f->y, salt + 4);
    sc_forks_chain(f, f->c, f->v, salt + 5);
    sc_forks_order(f, f->c, f->e[2], by_b ? f->b : f->a);
    if (by_b) {
        sc_copy(sc, f->b, f->w, f->v, FORK_N / 2);
    }
    sc_forks_chain(f, f->b, f->w, salt + 6);
    sc_forks_order(f, f->b, f->e[3], f->a);
    sc_forks_sum(f, f->a, f->w);
    sc_forks_sum(f, f->a, f->v);
    sc_copy(sc, f->a, f->x, f->v, FORK_N / 2);
    sc_copy(sc, f->a, f->y, f->w, FORK_N / 2);
    sc_forks_chain(f, f->a, f->x, salt + 7);
}

int sc_run_fork_nested(struct sc *sc) {
    struct forks f;
    sc_forks_start(sc, &f);
    for (unsigned step = 0; step < sc_steps(sc, 40); step++) {
        for (unsigned i = 0; i < LAYERS; i++) {
            nested(&f, i % 2 == 0, step + i);
        }
        OK(sc->cu.StreamSynchronize(f.a));
    }
    sc_digest(sc);
    return 0;
}

/* Streams of a pool take turns. */
int sc_run_fork_moves(struct sc *sc) {
    enum { POOL = 6 };
    struct forks f;
    CUstream pool[POOL];
    sc_forks_start(sc, &f);
    for (unsigned i = 0; i < POOL; i++) {
        OK(sc->cu.StreamCreate(&pool[i], CU_STREAM_NON_BLOCKING));
    }
    for (unsigned step = 0, turn = 0; step < sc_steps(sc, 60); step++) {
        for (unsigned i = 0; i < LAYERS; i++, turn++) {
            sc_forks_layer(&f, pool[turn % POOL], f.e[0], f.e[1], step + i);
        }
        OK(sc->cu.StreamSynchronize(f.a));
    }
    sc_digest(sc);
    return 0;
}

/* A stream of another priority, below and above. */
int sc_run_fork_priority(struct sc *sc) {
    struct forks f;
    CUstream urgent;
    sc_forks_start(sc, &f);
    OK(sc->cu.StreamCreateWithPriority(&urgent, CU_STREAM_NON_BLOCKING, -1));
    for (unsigned step = 0; step < sc_steps(sc, 40); step++) {
        CUstream a = f.a;
        sc_forks_layer(&f, urgent, f.e[0], f.e[1], step);
        sc_forks_order(&f, a, f.e[2], urgent);
        f.a = urgent;
        sc_forks_layer(&f, a, f.e[0], f.e[1], step);
        f.a = a;
        sc_forks_order(&f, urgent, f.e[2], a);
        OK(sc->cu.StreamSynchronize(a));
    }
    sc_digest(sc);
    return 0;
}

/* Streams that the legacy stream waits for, and the legacy stream itself. It reads w, which the
 * forked stream alone writes. */
int sc_run_fork_blocking(struct sc *sc) {
    static const unsigned kinds[][2] = {
        {CU_STREAM_DEFAULT, CU_STREAM_DEFAULT},
        {CU_STREAM_NON_BLOCKING, CU_STREAM_DEFAULT},
        {CU_STREAM_DEFAULT, CU_STREAM_NON_BLOCKING},
        {UINT32_MAX, CU_STREAM_NON_BLOCKING},
        {UINT32_MAX, CU_STREAM_DEFAULT},
    };
    struct forks f;
    sc_forks_start(sc, &f);
    unsigned steps = sc_steps(sc, 24);
    for (unsigned k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
        f.a = NULL;
        if (kinds[k][0] != UINT32_MAX) {
            OK(sc->cu.StreamCreate(&f.a, kinds[k][0]));
        }
        OK(sc->cu.StreamCreate(&f.b, kinds[k][1]));
        for (unsigned step = 0; step < steps; step++) {
            layers(&f, step);
            if (step % 3 == 2) {
                sc_copy(sc, NULL, f.v, f.w, FORK_N);
                sc_chain(sc, NULL, f.v, 3, step, FORK_N);
            }
            OK(sc->cu.StreamSynchronize(f.a));
        }
        OK(sc->cu.CtxSynchronize());
        sc_say(sc, "kind %u", k);
    }
    sc_digest(sc);
    return 0;
}

/* A layer that is not like those of other steps. */
static void unlike(struct forks *f, unsigned how, unsigned salt) {
    struct sc *sc = f->sc;
    CUstream b = how == 3 ? f->a : f->b; /* 3: nothing is forked */
    sc_forks_chain(f, f->a, f->x, salt + 5);
    if (how == 6) {
        sc_forks_chain(f, f->a, f->x, salt + 1);
    }
    if (how != 3) {
        sc_forks_order(f, f->a, f->e[0], b);
    }
    sc_copy(sc, b, f->z, f->x, FORK_N);
    if (how == 0) {
        sc_add(sc, b, f->z, (int)salt, FORK_N);
    } else {
        sc_chain(sc, b, f->z, 5, salt, how == 1 ? FORK_N / 2 : FORK_N);
    }
    for (unsigned i = 0; i < (how == 2 ? 2 : 1); i++) {
        sc_forks_chain(f, b, f->w, salt + i);
    }
    sc_forks_sum(f, b, f->z);
    sc_forks_chain(f, f->a, f->y, salt);
    if (how == 4) { /* it is joined later */
        OK(sc->cu.EventRecord(f->e[1], b));
        sc_forks_chain(f, f->a, f->y, salt + 2);
        OK(sc->cu.StreamWaitEvent(f->a, f->e[1], 0));
    } else if (how == 5) { /* by another event */
        sc_forks_order(f, b, f->e[2], f->a);
    } else if (how != 3) {
        sc_forks_order(f, b, f->e[1], f->a);
    }
    sc_forks_behind(f, salt);
}

int sc_run_fork_diverge(struct sc *sc) {
    enum { FORMS = 7, LIKE = FORMS };
    struct forks f;
    sc_forks_start(sc, &f);
    for (unsigned step = 0; step < sc_steps(sc, 120); step++) {
        for (unsigned i = 0; i < LAYERS; i++) {
            bool here = step % 4 == 3 && i == step * 5 / 4 % LAYERS;
            unlike(&f, here ? step / 4 % FORMS : LIKE, step % 4 + i);
        }
        OK(sc->cu.StreamSynchronize(f.a));
    }
    sc_digest(sc);
    return 0;
}

/* In some steps the program captures what it does in others. */
int sc_run_fork_capture(struct sc *sc) {
    struct forks f;
    CUgraph graph;
    CUgraphExec exec;
    sc_forks_start(sc, &f);
    for (unsigned step = 0; step < sc_steps(sc, 60); step++) {
        if (step % 6 != 5) {
            layers(&f, step);
        } else {
            layers(&f, 0);
            OK(sc->cu.StreamBeginCapture(f.a, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
            layers(&f, step);
            OK(sc->cu.StreamEndCapture(f.a, &graph));
            OK(sc->cu.GraphInstantiate(&exec, graph, 0));
            OK(sc->cu.GraphDestroy(graph));
            OK(sc->cu.GraphLaunch(exec, f.a));
            layers(&f, 1);
            OK(sc->cu.GraphExecDestroy(exec));
        }
        OK(sc->cu.StreamSynchronize(f.a));
    }
    sc_digest(sc);
    return 0;
}

/* Copies and memsets on the forked stream, of pageable memory too, which changes at once. */
static void copies(struct forks *f, const unsigned *in, unsigned *out, unsigned step) {
    struct sc *sc = f->sc;
    unsigned loose[16];
    for (unsigned i = 0; i < 16; i++) {
        loose[i] = step * 31 + i;
    }
    OK(sc->cu.MemcpyDtoDAsync(f->z, f->x, FORK_N * 4, f->b));
    OK(sc->cu.MemcpyHtoDAsync(f->z + 64, in, 128, f->b));
    sc_forks_chain(f, f->b, f->z, step);
    OK(sc->cu.MemcpyHtoDAsync(f->z + 256, loose, step % 3 ? sizeof(loose) : 4, f->b));
    memset(loose, 0xEE, sizeof(loose));
    OK(sc->cu.MemsetD32Async(f->y, step, 16, f->a));
    sc_forks_chain(f, f->b, f->z, step + 1);
    OK(sc->cu.MemsetD8Async(f->w, (unsigned char)step, 40, f->b));
    sc_forks_chain(f, f->b, f->w, step);
    OK(sc->cu.MemcpyDtoHAsync(out, f->z, FORK_N * 4, f->b));
}

int sc_run_fork_memory(struct sc *sc) {
    struct forks f;
    uint64_t said = 0;
    sc_forks_start(sc, &f);
    unsigned *in = sc_pinned(sc, "in", FORK_N * 4), *out = sc_pinned(sc, "out", FORK_N * 4);
    for (unsigned step = 0; step < sc_steps(sc, 60); step++) {
        for (unsigned i = 0; i < FORK_N; i++) {
            in[i] = step + i;
        }
        for (unsigned i = 0; i < 3; i++) {
            sc_forks_chain(&f, f.a, f.x, i);
            sc_forks_order(&f, f.a, f.e[0], f.b);
            copies(&f, in, out, step + i);
            sc_forks_chain(&f, f.a, f.y, i);
            sc_forks_order(&f, f.b, f.e[1], f.a);
            sc_forks_behind(&f, step);
        }
        OK(sc->cu.StreamSynchronize(f.a));
        said = sc_hash(said, out, FORK_N * 4);
    }
    sc_say(sc, "seen: %016llx", (unsigned long long)said);
    sc_digest(sc);
    return 0;
}

enum freed { POOL_OF_A, POOL_BY_B, AT_ONCE };

/* Memory that the forked stream used is freed behind the join, and comes again at once. */
static void with_memory(struct forks *f, enum freed how, unsigned salt) {
    struct sc *sc = f->sc;
    CUdeviceptr p, q;
    if (how == AT_ONCE) {
        OK(sc->cu.MemAlloc(&p, FORK_N * 4));
    } else {
        OK(sc->cu.MemAllocAsync(&p, FORK_N * 4, f->a));
    }
    sc_copy(sc, f->a, p, f->x, FORK_N);
    sc_forks_order(f, f->a, f->e[0], f->b);
    sc_forks_chain(f, f->b, p, salt);
    sc_forks_chain(f, f->a, f->y, salt);
    sc_forks_chain(f, f->b, p, salt + 1);
    sc_copy(sc, f->b, f->z, p, FORK_N);
    sc_forks_chain(f, f->b, f->w, salt + 2);
    sc_forks_sum(f, f->b, f->z);
    sc_forks_order(f, f->b, f->e[1], f->a);
    if (how == AT_ONCE) {
        OK(sc->cu.MemFree(p));
    } else {
        OK(sc->cu.MemFreeAsync(p, how == POOL_OF_A ? f->a : f->b));
    }
    OK(sc->cu.MemAllocAsync(&q, FORK_N * 4, f->a));
    sc_fill(sc, f->a, q, salt, FORK_N);
    sc_copy(sc, f->a, f->x, q, FORK_N / 4);
    OK(sc->cu.MemFreeAsync(q, f->a));
    sc_forks_behind(f, salt);
}

int sc_run_fork_free(struct sc *sc) {
    struct forks f;
    sc_forks_start(sc, &f);
    for (unsigned step = 0; step < sc_steps(sc, 64); step++) {
        for (unsigned i = 0; i < LAYERS; i++) {
            with_memory(&f, step % 8 == 5 ? POOL_BY_B : step % 8 == 7 ? AT_ONCE : POOL_OF_A, i);
        }
        OK(sc->cu.StreamSynchronize(f.a));
    }
    OK(sc->cu.StreamSynchronize(f.b));
    sc_digest(sc);
    return 0;
}

/* A step of molecular dynamics on the legacy stream: one event forks b and joins it again. Now and
 * then a list is made anew in front of b's work, random numbers in front of a's, and an energy is
 * worked out between. */
static void move(struct forks *f, unsigned turn, bool energy) {
    struct sc *sc = f->sc;
    sc_forks_chain(f, f->a, f->y, turn);
    sc_forks_order(f, f->a, f->e[0], f->b);
    if (turn % 11 == 5) {
        sc_add(sc, f->b, f->w, (int)turn, FORK_N);
        sc_forks_sum(f, f->b, f->w);
    }
    sc_copy(sc, f->b, f->z, f->x, FORK_N);
    for (unsigned i = 0; i < 6; i++) {
        sc_forks_chain(f, f->b, f->z, turn + i);
        if (energy && i == 3) {
            sc_forks_sum(f, f->b, f->z);
        }
    }
    OK(sc->cu.EventRecord(f->e[0], f->b));
    sc_forks_chain(f, f->a, f->y, turn + 2);
    sc_forks_chain(f, f->a, f->y, turn + 3);
    if (turn % 32 == 7) { /* two records that nothing orders: the later call counts */
        OK(sc->cu.EventRecord(f->e[3], f->a));
        sc_forks_order(f, f->b, f->e[3], f->c);
        sc_copy(sc, f->c, f->v, f->z, FORK_N);
    }
    OK(sc->cu.StreamWaitEvent(f->a, f->e[0], 0));
    if (!energy) {
        if (turn % 4 == 1) {
            sc_fill(sc, f->a, f->y, turn, FORK_N / 4);
        }
        sc_forks_behind(f, turn);
    }
}

/* Behind it the host waits for a copy on c, which is never joined. */
static void dynamics(struct forks *f, unsigned *out, unsigned step) {
    struct sc *sc = f->sc;
    move(f, step, step % 20 == 19);
    sc_forks_sum(f, f->a, f->y);
    sc_forks_order(f, f->a, f->e[1], f->c);
    OK(sc->cu.MemcpyDtoHAsync(out, f->sum, 8, f->c));
    OK(sc->cu.EventRecord(f->e[2], f->c));
    OK(sc->cu.EventSynchronize(f->e[2]));
}

/* The legacy stream waits before it is waited for, and the program sets up its pool: neither is in
 * the way of forks. */
int sc_run_fork_legacy(struct sc *sc) {
    struct forks f;
    CUmemoryPool pool;
    uint64_t seen = 0, kept = 1 << 20;
    sc_forks_start(sc, &f);
    unsigned *out = sc_pinned(sc, "out", 8);
    f.a = NULL;
    OK(sc->cu.DeviceGetDefaultMemPool(&pool, 0));
    OK(sc->cu.MemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &kept));
    sc_forks_chain(&f, f.b, f.z, 1);
    sc_forks_order(&f, f.b, f.e[4], f.a);
    for (unsigned step = 0; step < sc_steps(sc, 60); step++) {
        dynamics(&f, out, step);
        seen = sc_hash(seen, out, 8);
    }
    sc_say(sc, "seen: %016llx", (unsigned long long)seen);
    sc_digest(sc);
    return 0;
}

/* A call of a library that forks b, joins it, and makes it wait for a at the end already. */
static void library_call(struct forks *f, unsigned salt) {
    sc_forks_chain(f, f->a, f->x, salt);
    sc_forks_order(f, f->a, f->e[0], f->b);
    sc_copy(f->sc, f->b, f->z, f->x, FORK_N);
    sc_forks_chain(f, f->a, f->y, salt + 1);
    sc_forks_chain(f, f->b, f->z, salt + 2);
    sc_forks_order(f, f->b, f->e[0], f->a);
    sc_forks_order(f, f->a, f->e[0], f->b);
    sc_forks_behind(f, salt);
    for (unsigned i = 0; i < 4; i++) {
        sc_forks_chain(f, f->a, f->x, salt + i);
    }
}

int sc_run_fork_trailing(struct sc *sc) {
    struct forks f;
    sc_forks_start(sc, &f);
    f.a = NULL;
    for (unsigned step = 0; step < sc_steps(sc, 80); step++) {
        for (unsigned i = 0; i < LAYERS; i++) {
            library_call(&f, step + i);
            if (step % 16 == 11 && i == step / 16 % LAYERS) { /* b goes on behind that wait */
                sc_copy(sc, f.b, f.w, f.z, FORK_N);
                sc_forks_chain(&f, f.b, f.w, step);
                sc_forks_sum(&f, f.b, f.w);
            }
        }
        if (step % 16 == 13) {
            OK(sc->cu.StreamSynchronize(f.b));
        }
        OK(sc->cu.StreamSynchronize(f.a));
    }
    OK(sc->cu.StreamSynchronize(f.b));
    sc_digest(sc);
    return 0;
}
