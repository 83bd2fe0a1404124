/*
 * Hosts that wait without a synchronisation: by memory, stream queries, event queries, callbacks or
 * sleep.
 *
 * Main thread. Host functions run on a thread of the driver, and use only the counter or semaphore
 * that they are given.
 */
#include "harness/scenario/sc.h"

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>

enum { N = 128 };

static void loop(struct sc *sc, CUstream s, CUdeviceptr x, unsigned count, unsigned salt) {
    for (unsigned i = 0; i < count; i++) {
        sc_chain(sc, s, x, 3 + 2 * (i % 4), salt + i, N);
    }
}

/* The last kernel of a step writes a word of mapped memory; the host reads it without a call. */
int sc_run_poll_pinned(struct sc *sc) {
    CUstream s;
    CUdeviceptr flag_device;
    sc_start(sc);
    CUdeviceptr x = sc_device(sc, "x", N);
    volatile unsigned *flag = sc_pinned(sc, "flag", 64);
    OK(sc->cu.MemHostGetDevicePointer(&flag_device, (void *)(uintptr_t)flag, 0));
    OK(sc->cu.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
    for (unsigned step = 0; step < sc_steps(sc, 30); step++) {
        loop(sc, s, x, 9, step);
        sc_set_flag(sc, s, flag_device, step + 1);
        while (*flag != step + 1) {
            sched_yield();
        }
        /* The flag decides what the host does next, although CUDA sees no synchronisation. */
        loop(sc, s, x, *flag % 5, step);
    }
    sc_digest(sc);
    return 0;
}

/* The same in managed memory, which a host accesses without any call. */
int sc_run_poll_managed(struct sc *sc) {
    CUstream s;
    CUdeviceptr shared;
    sc_start(sc);
    CUdeviceptr x = sc_device(sc, "x", N);
    OK(sc->cu.MemAllocManaged(&shared, 4096, CU_MEM_ATTACH_GLOBAL));
    volatile unsigned *flag = (volatile unsigned *)(uintptr_t)shared;
    *flag = 0;
    OK(sc->cu.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
    for (unsigned step = 0; step < sc_steps(sc, 30); step++) {
        loop(sc, s, x, 9, step);
        sc_set_flag(sc, s, shared, step + 1);
        while (*flag != step + 1) {
            sched_yield();
        }
    }
    sc_digest(sc);
    return 0;
}

struct holder {
    pthread_mutex_t mutex;
    pthread_barrier_t taken;
    volatile unsigned *flag;
    unsigned steps;
};

/* Releases the lock only when the kernel ran. */
static void *hold_until_flag(void *arg) {
    struct holder *h = arg;
    for (unsigned step = 0; step < h->steps; step++) {
        pthread_mutex_lock(&h->mutex);
        pthread_barrier_wait(&h->taken);
        while (*h->flag != step + 1) {
            sched_yield();
        }
        pthread_mutex_unlock(&h->mutex);
        pthread_barrier_wait(&h->taken);
    }
    return NULL;
}

/* The host sleeps on its own lock, which another thread holds until the kernel ran. */
int sc_run_lock_waits(struct sc *sc) {
    CUstream s;
    CUdeviceptr flag_device;
    struct holder h = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    pthread_t thread;
    sc_start(sc);
    CUdeviceptr x = sc_device(sc, "x", N);
    h.flag = sc_pinned(sc, "flag", 64);
    h.steps = sc_steps(sc, 30);
    OK(sc->cu.MemHostGetDevicePointer(&flag_device, (void *)(uintptr_t)h.flag, 0));
    OK(sc->cu.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
    pthread_barrier_init(&h.taken, NULL, 2);
    if (pthread_create(&thread, NULL, hold_until_flag, &h)) {
        sc_fail("no thread");
    }
    for (unsigned step = 0; step < h.steps; step++) {
        pthread_barrier_wait(&h.taken);
        loop(sc, s, x, 9, step);
        sc_set_flag(sc, s, flag_device, step + 1);
        pthread_mutex_lock(&h.mutex);
        pthread_mutex_unlock(&h.mutex);
        pthread_barrier_wait(&h.taken);
    }
    pthread_join(thread, NULL);
    sc_digest(sc);
    return 0;
}

/* The same with a pinned copy in place of the kernel that writes. */
int sc_run_poll_copy(struct sc *sc) {
    CUstream s;
    sc_start(sc);
    CUdeviceptr x = sc_device(sc, "x", N), word = sc_device(sc, "word", 4);
    volatile unsigned *seen = sc_pinned(sc, "seen", 64);
    OK(sc->cu.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
    for (unsigned step = 0; step < sc_steps(sc, 30); step++) {
        loop(sc, s, x, 7, step);
        sc_fill(sc, s, word, step + 1, 4);
        OK(sc->cu.MemcpyDtoHAsync((void *)(uintptr_t)seen, word, 16, s));
        while (seen[3] != step + 1) {
            sched_yield();
        }
    }
    sc_digest(sc);
    return 0;
}

int sc_run_stream_query(struct sc *sc) {
    CUstream s;
    CUresult code;
    sc_start(sc);
    CUdeviceptr x = sc_device(sc, "x", N);
    unsigned *seen = sc_pinned(sc, "seen", N * 4);
    uint64_t said = 0;
    OK(sc->cu.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
    for (unsigned step = 0; step < sc_steps(sc, 30); step++) {
        loop(sc, s, x, 14, step);
        OK(sc->cu.MemcpyDtoHAsync(seen, x, N * 4, s));
        while ((code = sc->cu.StreamQuery(s)) == CUDA_ERROR_NOT_READY) {
            sched_yield();
        }
        OK(code);
        /* A ready event means that the copy is complete. */
        said = sc_hash(said, seen, N * 4);
    }
    sc_say(sc, "seen: %016llx", (unsigned long long)said);
    sc_digest(sc);
    return 0;
}

int sc_run_event_query(struct sc *sc) {
    CUstream s;
    CUevent e[2];
    CUresult code;
    sc_start(sc);
    CUdeviceptr x = sc_device(sc, "x", N);
    unsigned *seen = sc_pinned(sc, "seen", N * 4);
    uint64_t said = 0;
    OK(sc->cu.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
    OK(sc->cu.EventCreate(&e[0], CU_EVENT_DISABLE_TIMING));
    OK(sc->cu.EventCreate(&e[1], CU_EVENT_DEFAULT));
    for (unsigned step = 0; step < sc_steps(sc, 30); step++) {
        loop(sc, s, x, 11, step);
        OK(sc->cu.MemcpyDtoHAsync(seen, x, N * 4, s));
        OK(sc->cu.EventRecord(e[step % 2], s));
        while ((code = sc->cu.EventQuery(e[step % 2])) == CUDA_ERROR_NOT_READY) {
            sched_yield();
        }
        OK(code);
        said = sc_hash(said, seen, N * 4);
        loop(sc, s, x, 6, step);
        if (step % 3 == 0) {
            OK(sc->cu.EventRecord(e[step % 2], s));
            OK(sc->cu.EventSynchronize(e[step % 2]));
        }
    }
    sc_say(sc, "seen: %016llx", (unsigned long long)said);
    sc_digest(sc);
    return 0;
}

static void CUDA_CB post(void *data) {
    sem_post(data);
}

static void CUDA_CB called(CUstream s, CUresult code, void *data) {
    (void)s;
    __atomic_fetch_add((unsigned *)data, code == CUDA_SUCCESS ? 1 : 1000, __ATOMIC_SEQ_CST);
}

/* Host functions among launches; the host waits for one only by a semaphore. */
int sc_run_host_func(struct sc *sc) {
    CUstream s;
    sem_t sem;
    sc_start(sc);
    CUdeviceptr x = sc_device(sc, "x", N);
    unsigned *calls = sc_pinned(sc, "calls", 64);
    sem_init(&sem, 0, 0);
    OK(sc->cu.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
    for (unsigned step = 0; step < sc_steps(sc, 24); step++) {
        loop(sc, s, x, 6, step);
        if (step % 3 == 1) {
            OK(sc->cu.StreamAddCallback(s, called, calls, 0));
        }
        loop(sc, s, x, 6, step);
        OK(sc->cu.LaunchHostFunc(s, post, &sem));
        loop(sc, s, x, 4, step);
        while (sem_wait(&sem)) {
        }
    }
    OK(sc->cu.StreamSynchronize(s));
    sem_destroy(&sem);
    sc_digest(sc);
    return 0;
}

/* A host function of one stream releases the host, which then needs older work of another
 * stream. */
int sc_run_host_func_two(struct sc *sc) {
    CUstream a, b;
    CUdeviceptr flag_device;
    sem_t sem;
    sc_start(sc);
    CUdeviceptr x = sc_device(sc, "x", N), y = sc_device(sc, "y", N);
    volatile unsigned *flag = sc_pinned(sc, "flag", 64);
    OK(sc->cu.MemHostGetDevicePointer(&flag_device, (void *)(uintptr_t)flag, 0));
    sem_init(&sem, 0, 0);
    OK(sc->cu.StreamCreate(&a, CU_STREAM_NON_BLOCKING));
    OK(sc->cu.StreamCreate(&b, CU_STREAM_NON_BLOCKING));
    for (unsigned step = 0; step < sc_steps(sc, 24); step++) {
        loop(sc, a, x, 6, step);
        sc_set_flag(sc, a, flag_device, step + 1);
        loop(sc, b, y, 6, step);
        OK(sc->cu.LaunchHostFunc(b, post, &sem));
        while (sem_wait(&sem)) {
        }
        while (*flag != step + 1) {
            sched_yield();
        }
    }
    sem_destroy(&sem);
    sc_digest(sc);
    return 0;
}

/* The host sleeps in the middle of a step, at a place that stays for some steps and then moves. */
int sc_run_sleepy_host(struct sc *sc) {
    CUstream s;
    sc_start(sc);
    CUdeviceptr x = sc_device(sc, "x", N);
    OK(sc->cu.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
    for (unsigned step = 0; step < sc_steps(sc, 40); step++) {
        unsigned gap = step < 24 ? 10 : 5 + step % 20;
        for (unsigned i = 0; i < 32; i++) {
            sc_chain(sc, s, x, 3 + 2 * (i % 4), step + i, N);
            if (i == gap) {
                sc_sleep_us(2500);
            }
        }
        OK(sc->cu.StreamSynchronize(s));
    }
    sc_digest(sc);
    return 0;
}
