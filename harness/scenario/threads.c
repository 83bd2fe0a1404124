/*
 * Programs with several threads that launch. The comment of each function says what its threads
 * share. The main thread starts and joins them, and computes the digest after the join.
 */
#include "harness/scenario/sc.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

enum { N = 128, THREADS = 4, MANY = 8 };

struct worker {
    struct sc *sc;
    unsigned number, steps;
    CUstream s;
    CUdeviceptr x, y;
    uint64_t said;
};

static void start_all(struct worker *w, unsigned count, void *(*run)(void *)) {
    pthread_t thread[MANY];
    for (unsigned t = 0; t < count; t++) {
        if (pthread_create(&thread[t], NULL, run, &w[t])) {
            sc_fail("no thread");
        }
    }
    for (unsigned t = 0; t < count; t++) {
        pthread_join(thread[t], NULL);
    }
}

static void prepare(struct sc *sc, struct worker *w, unsigned count, unsigned steps) {
    for (unsigned t = 0; t < count; t++) {
        w[t] = (struct worker){.sc = sc, .number = t, .steps = steps};
        w[t].x = sc_device(sc, "x", N);
        w[t].y = sc_device(sc, "y", N);
        OK(sc->cu.StreamCreate(&w[t].s, CU_STREAM_NON_BLOCKING));
    }
}

static void *own_stream(void *arg) {
    struct worker *w = arg;
    struct sc *sc = w->sc;
    OK(sc->cu.CtxSetCurrent(sc->ctx));
    for (unsigned step = 0; step < w->steps; step++) {
        for (unsigned i = 0; i < 9 + 4 * w->number; i++) {
            sc_chain(sc, w->s, w->x, 3, step + i, N);
            if (i % 3 == 0) {
                OK(sc->cu.MemcpyDtoDAsync(w->y, w->x, 256, w->s));
            }
        }
        if (w->number != 3 || step % 8 == 7) {
            OK(sc->cu.StreamSynchronize(w->s));
        }
        if (w->number == 1) { /* this thread also allocates, which disturbs all others */
            CUdeviceptr p;
            OK(sc->cu.MemAlloc(&p, 4096));
            sc_fill(sc, w->s, p, step, 1024);
            OK(sc->cu.MemFree(p));
        }
    }
    OK(sc->cu.StreamSynchronize(w->s));
    return NULL;
}

/* Each thread has its own streams and memory. */
int sc_run_threads(struct sc *sc) {
    struct worker w[THREADS];
    sc_start(sc);
    prepare(sc, w, THREADS, sc_steps(sc, 20));
    start_all(w, THREADS, own_stream);
    sc_digest(sc);
    return 0;
}

static void *launch_bound(void *arg) {
    struct worker *w = arg;
    struct sc *sc = w->sc;
    OK(sc->cu.CtxSetCurrent(sc->ctx));
    for (unsigned step = 0; step < w->steps; step++) {
        for (unsigned i = 0; i < 1000; i++)
            sc_chain(sc, w->s, i % 2 ? w->x : w->y, 3, i + w->number, 64);
        OK(sc->cu.StreamSynchronize(w->s));
    }
    return NULL;
}

/* Steps of a thousand launches that never change, in each of eight threads. */
int sc_run_threads_bound(struct sc *sc) {
    struct worker w[MANY];
    sc_start(sc);
    prepare(sc, w, MANY, sc_steps(sc, 24));
    start_all(w, MANY, launch_bound);
    sc_digest(sc);
    return 0;
}

struct turn {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    unsigned next;
    CUstream s;
    CUdeviceptr x;
};

static struct turn turn = {.lock = PTHREAD_MUTEX_INITIALIZER, .moved = PTHREAD_COND_INITIALIZER};

static void *by_turns(void *arg) {
    struct worker *w = arg;
    struct sc *sc = w->sc;
    OK(sc->cu.CtxSetCurrent(sc->ctx));
    for (unsigned step = w->number; step < w->steps; step += 2) {
        pthread_mutex_lock(&turn.lock);
        while (turn.next != step) {
            pthread_cond_wait(&turn.moved, &turn.lock);
        }
        for (unsigned i = 0; i < 10; i++) {
            sc_chain(sc, turn.s, turn.x, w->number ? 3 : 5, step + i, N);
        }
        if (step % 8 >= 6) {
            OK(sc->cu.StreamSynchronize(turn.s));
        }
        turn.next++;
        pthread_cond_broadcast(&turn.moved);
        pthread_mutex_unlock(&turn.lock);
    }
    return NULL;
}

/* Two threads use one stream and one buffer in turn; only the mutex orders them. */
int sc_run_thread_handover(struct sc *sc) {
    struct worker w[THREADS];
    sc_start(sc);
    prepare(sc, w, THREADS, sc_steps(sc, 48));
    turn.s = w[0].s;
    turn.x = w[0].x;
    turn.next = 0;
    start_all(w, 2, by_turns);
    sc_digest(sc);
    return 0;
}

static void *by_turns_two_streams(void *arg) {
    struct worker *w = arg;
    struct sc *sc = w->sc;
    OK(sc->cu.CtxSetCurrent(sc->ctx));
    for (unsigned step = w->number; step < w->steps; step += 2) {
        pthread_mutex_lock(&turn.lock);
        while (turn.next != step) {
            pthread_cond_wait(&turn.moved, &turn.lock);
        }
        /* This thread waits for the other thread's work by a call that names that stream. */
        if (step) {
            CUstream theirs = w->number ? w[-1].s : w[1].s;
            OK(sc->cu.StreamSynchronize(theirs));
        }
        for (unsigned i = 0; i < 10; i++) {
            sc_chain(sc, w->s, turn.x, w->number ? 3 : 5, step + i, N);
        }
        turn.next++;
        pthread_cond_broadcast(&turn.moved);
        pthread_mutex_unlock(&turn.lock);
    }
    return NULL;
}

/* One buffer; each thread waits for the stream of the other. */
int sc_run_thread_sync_other(struct sc *sc) {
    struct worker w[THREADS];
    sc_start(sc);
    prepare(sc, w, THREADS, sc_steps(sc, 48));
    turn.x = w[0].x;
    turn.next = 0;
    start_all(w, 2, by_turns_two_streams);
    sc_digest(sc);
    return 0;
}

static atomic_bool over;

static void *pestering(void *arg) {
    struct worker *w = arg;
    struct sc *sc = w->sc;
    OK(sc->cu.CtxSetCurrent(sc->ctx));
    while (!atomic_load(&over)) {
        CUresult code = sc->cu.StreamQuery(w->s);
        if (code != CUDA_ERROR_NOT_READY) {
            OK(code);
        }
        OK(sc->cu.StreamSynchronize(w->s));
        sc_sleep_us(200);
    }
    return NULL;
}

/* A second thread queries and synchronises the first thread's stream again and again. */
int sc_run_thread_pester(struct sc *sc) {
    struct worker w[THREADS];
    pthread_t thread;
    sc_start(sc);
    prepare(sc, w, THREADS, sc_steps(sc, 40));
    atomic_store(&over, false);
    if (pthread_create(&thread, NULL, pestering, &w[0])) {
        sc_fail("no thread");
    }
    for (unsigned step = 0; step < w[0].steps; step++) {
        for (unsigned i = 0; i < 32; i++) {
            sc_chain(sc, w[0].s, w[0].x, 3, step + i, N);
        }
        OK(sc->cu.StreamSynchronize(w[0].s));
    }
    atomic_store(&over, true);
    pthread_join(thread, NULL);
    sc_digest(sc);
    return 0;
}

/* Long work and a wait for it, again and again. */
static void *waiting(void *arg) {
    struct worker *w = arg;
    struct sc *sc = w->sc;
    OK(sc->cu.CtxSetCurrent(sc->ctx));
    for (unsigned round = 0; round < 10 * w->steps; round++) {
        sc_saxpy_n(sc, w->s, w->y, w->x, 0, N, 20000);
        OK(sc->cu.StreamSynchronize(w->s));
    }
    return NULL;
}

/* One thread waits for the GPU nearly all the time, another one launches. The first computes
 * always 0. */
int sc_run_thread_waits(struct sc *sc) {
    struct worker w[2];
    pthread_t thread;
    sc_start(sc);
    prepare(sc, w, 2, sc_steps(sc, 40));
    if (pthread_create(&thread, NULL, waiting, &w[1])) {
        sc_fail("no thread");
    }
    for (unsigned step = 0; step < w[0].steps; step++) {
        for (unsigned i = 0; i < 32; i++) {
            sc_chain(sc, w[0].s, w[0].x, 3, step + i, N);
        }
        OK(sc->cu.StreamSynchronize(w[0].s));
    }
    pthread_join(thread, NULL);
    sc_digest(sc);
    return 0;
}

struct sleeper {
    struct worker *w;
    CUdeviceptr flag;
    pthread_barrier_t turn; /* both threads begin and end a step together */
};

/* In two steps of three the copy stands behind a kernel that waits for the flag. */
static bool sleeps(unsigned step) {
    return step % 3 != 0;
}

static void *copying(void *arg) {
    struct sleeper *p = arg;
    struct worker *w = p->w;
    struct sc *sc = w->sc;
    OK(sc->cu.CtxSetCurrent(sc->ctx));
    for (unsigned step = 0; step < w->steps; step++) {
        unsigned loose[N], value = step + 1;
        unsigned long long rounds = 20000000;
        pthread_barrier_wait(&p->turn);
        if (sleeps(step)) {
            OK(sc_launch(sc, sc->fn[SC_spin_until], 1, 1, 0, w->s,
                         (void *[]){&p->flag, &value, &rounds, &w->y}));
            OK(sc->cu.MemcpyDtoHAsync(loose, w->y, sizeof(loose), w->s));
            w->said = sc_hash(w->said, loose, sizeof(loose));
        }
        pthread_barrier_wait(&p->turn);
    }
    return NULL;
}

/* A thread sleeps in a copy to pageable memory until another one has launched what it waits for. */
int sc_run_copy_asleep(struct sc *sc) {
    struct worker w[2];
    struct sleeper p = {.w = &w[1]};
    pthread_t thread;
    sc_start(sc);
    prepare(sc, w, 2, sc_steps(sc, 30));
    OK(sc->cu.MemHostGetDevicePointer(&p.flag, sc_pinned(sc, "flag", 64), 0));
    pthread_barrier_init(&p.turn, NULL, 2);
    if (pthread_create(&thread, NULL, copying, &p)) {
        sc_fail("no thread");
    }
    for (unsigned step = 0; step < w[0].steps; step++) {
        pthread_barrier_wait(&p.turn);
        if (sleeps(step)) {
            sc_sleep_us(1000); /* by now it sleeps, mostly */
        }
        for (unsigned i = 0; i < 12; i++) {
            sc_chain(sc, w[0].s, w[0].x, 3, step + i, N);
            if (i == 6) {
                sc_set_flag(sc, w[0].s, p.flag, step + 1);
            }
        }
        OK(sc->cu.StreamSynchronize(w[0].s));
        pthread_barrier_wait(&p.turn);
    }
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&p.turn);
    sc_say(sc, "said: %016llx", (unsigned long long)w[1].said);
    sc_digest(sc);
    return 0;
}

static atomic_bool long_begun;

static void *writing_late(void *arg) {
    struct worker *w = arg;
    struct sc *sc = w->sc;
    OK(sc->cu.CtxSetCurrent(sc->ctx));
    while (!atomic_load(&long_begun)) {
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    nanosleep(&(struct timespec){0, 300000000}, NULL);
    OK(sc->cu.MemsetD32Async(w->x, 7, N, w->s));
    OK(sc->cu.StreamSynchronize(w->s));
    return NULL;
}

/* A thread writes its own memory during another thread's long kernels. */
int sc_run_thread_writes(struct sc *sc) {
    struct worker w[2];
    pthread_t thread;
    sc_start(sc);
    prepare(sc, w, 2, 12);
    int rounds = 20000 * (int)sc_steps(sc, 1);
    atomic_store(&long_begun, false);
    if (pthread_create(&thread, NULL, writing_late, &w[1])) {
        sc_fail("no thread");
    }
    for (unsigned step = 0; step <= w[0].steps; step++) {
        atomic_store(&long_begun, step == w[0].steps);
        for (unsigned i = 0; i < 8; i++) {
            bool is_long = step == w[0].steps && i < 4;
            sc_saxpy_n(sc, w[0].s, w[0].y, w[0].x, 0.5f, N, is_long ? rounds : 1);
        }
        OK(sc->cu.StreamSynchronize(w[0].s));
    }
    pthread_join(thread, NULL);
    sc_digest(sc);
    return 0;
}

static void *per_thread_stream(void *arg) {
    struct worker *w = arg;
    struct sc *sc = w->sc;
    int n = N;
    OK(sc->cu.CtxSetCurrent(sc->ctx));
    for (unsigned step = 0; step < w->steps; step++) {
        for (unsigned i = 0; i < 10; i++) {
            unsigned a = 3 + 2 * w->number, b = step + i;
            /* NULL in per-thread entry points, and its explicit handle in ordinary ones, are one
             * stream. */
            void *params[] = {&w->x, &a, &b, &n};
            if (i % 3 == 2) {
                OK(sc_launch(sc, sc->fn[SC_chain], N / 64, 64, 0, CU_STREAM_PER_THREAD, params));
            } else {
                OK(sc->cu.LaunchKernel_ptsz(sc->fn[SC_chain], N / 64, 1, 1, 64, 1, 1, 0, NULL,
                                            params, NULL));
            }
        }
        OK(sc->cu.MemcpyDtoDAsync_ptsz(w->y, w->x, 128, NULL));
        OK(sc->cu.MemsetD32Async_ptsz(w->y + 256, step, 5, NULL));
        if (step % 2) {
            OK(sc->cu.StreamSynchronize_ptsz(NULL));
        }
    }
    OK(sc->cu.StreamSynchronize_ptsz(NULL));
    return NULL;
}

/* Per-thread default streams of three threads. */
int sc_run_ptds(struct sc *sc) {
    struct worker w[THREADS];
    sc_start(sc);
    prepare(sc, w, THREADS, sc_steps(sc, 20));
    start_all(w, 3, per_thread_stream);
    sc_digest(sc);
    return 0;
}

/* The per-thread default stream is a blocking stream: the legacy stream orders itself with it. */
int sc_run_ptds_legacy(struct sc *sc) {
    CUevent e;
    CUstream s;
    sc_start(sc);
    CUdeviceptr x = sc_device(sc, "x", N);
    int n = N;
    OK(sc->cu.EventCreate(&e, CU_EVENT_DISABLE_TIMING));
    OK(sc->cu.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
    for (unsigned step = 0; step < sc_steps(sc, 24); step++) {
        for (unsigned i = 0; i < 12; i++) {
            unsigned a = 3 + 2 * (i / 4), b = step + i;
            void *params[] = {&x, &a, &b, &n};
            if (i / 4 == 1) {
                OK(sc->cu.LaunchKernel_ptsz(sc->fn[SC_chain], N / 64, 1, 1, 64, 1, 1, 0, NULL,
                                            params, NULL));
            } else {
                OK(sc_launch(sc, sc->fn[SC_chain], N / 64, 64, 0, NULL, params));
            }
        }
        OK(sc->cu.EventRecord_ptsz(e, NULL));
        OK(sc->cu.StreamWaitEvent_ptsz(s, e, 0));
        sc_chain(sc, s, x, 9, step, N);
        OK(sc->cu.StreamSynchronize(s));
    }
    sc_digest(sc);
    return 0;
}

static void *launch_and_leave(void *arg) {
    struct worker *w = arg;
    struct sc *sc = w->sc;
    OK(sc->cu.CtxSetCurrent(sc->ctx));
    for (unsigned i = 0; i < 12; i++) {
        sc_chain(sc, w->s, w->x, 3, w->number * 100 + i, N);
    }
    return NULL;
}

/* In each step another thread launches and ends at once; the main thread synchronises. */
int sc_run_thread_leaves(struct sc *sc) {
    struct worker w[THREADS];
    sc_start(sc);
    prepare(sc, w, THREADS, sc_steps(sc, 24));
    for (unsigned step = 0; step < w[0].steps; step++) {
        start_all(&w[step % 2], 1, launch_and_leave);
        OK(sc->cu.StreamSynchronize(w[step % 2].s));
    }
    sc_digest(sc);
    return 0;
}
