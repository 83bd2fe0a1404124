/*
 * One trial. The controller (the child's first thread) starts a thread for the row and takes it
 * through its phases; `lock` guards `now` and the jobs of the third threads. While the gate is
 * closed, the controller makes no driver call.
 */
#include "tests/gpu/gate/gate.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { SETTLE_MS = 50, OPEN_LIMIT_MS = 15000, LOCK_MS = 300, PAGEABLE_BYTES = 1 << 20 };

enum phase { SETUP, WANT_GATE, GATE_ON, READY, GO, BACK, CLEAN, DONE };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t change;

/* The trial that is under way. */
static struct {
    enum phase phase;
    void (*run)(struct gate *g);
    CUresult code;
    int legal;
} now;

/* The gate: flag and started are words of mapped host memory, which outlives its context;
 * generation counts the gates. */
static struct {
    volatile unsigned *words;
    CUdeviceptr words_device;
    unsigned generation;
    bool closed;
} gate;

/* Third threads: each runs one job at a time. */
struct third {
    pthread_t thread;
    struct gate *g;
    void (*job)(struct gate *g);
    bool started, busy;
    int number; /* atomic: the kernel's, once it has taken the job; 0 before */
};

static struct third copier, capturer, launcher;
static CUdeviceptr copy_source;
static unsigned char copy_target[PAGEABLE_BYTES];
static CUresult capture_begun, capture_ended;
static CUstream capture_stream;

static void deadline_in(struct timespec *at, int ms) {
    clock_gettime(CLOCK_MONOTONIC, at);
    at->tv_nsec += (ms % 1000) * 1000000L;
    at->tv_sec += ms / 1000 + at->tv_nsec / 1000000000L;
    at->tv_nsec %= 1000000000L;
}

static void nap(int ms) {
    struct timespec time = {0, ms * 1000000L};
    nanosleep(&time, NULL);
}

/* ---- the row's side ---- */

static void phase_set(enum phase phase) {
    pthread_mutex_lock(&lock);
    now.phase = phase;
    pthread_cond_broadcast(&change);
    pthread_mutex_unlock(&lock);
}

static void phase_await(enum phase phase) {
    pthread_mutex_lock(&lock);
    while (now.phase != phase)
        pthread_cond_wait(&change, &lock);
    pthread_mutex_unlock(&lock);
}

void gate_unfit(struct gate *g, const char *what, CUresult code) {
    if (!g->unfit[0])
        snprintf(g->unfit, sizeof g->unfit, "%s gives %s", what, gate_code_name(code));
}

void gate_now(struct gate *g) {
    if (g->unfit[0])
        return;
    phase_set(WANT_GATE);
    phase_await(GATE_ON);
}

bool gate_enter(struct gate *g, const char *symbol) {
    if (!g->unfit[0] && !gate_driver_has(symbol))
        snprintf(g->unfit, sizeof g->unfit, "the driver lacks %s", symbol);
    if (g->unfit[0])
        return false;
    phase_set(READY);
    phase_await(GO);
    return true;
}

void gate_leave(struct gate *g, CUresult code, int legal) {
    g->called = true;
    g->refused = code != CUDA_SUCCESS;
    pthread_mutex_lock(&lock);
    now.code = code;
    now.legal = legal;
    now.phase = BACK;
    pthread_cond_broadcast(&change);
    pthread_mutex_unlock(&lock);
    phase_await(CLEAN);
}

static void *row_thread(void *data) {
    struct gate *g = data;
    cu.cuCtxSetCurrent(g->context);
    now.run(g);
    phase_set(DONE);
    return NULL;
}

/* ---- third threads ---- */

static void *third_thread(void *data) {
    struct third *third = data;
    cu.cuCtxSetCurrent(third->g->context);
    pthread_mutex_lock(&lock);
    for (;;) {
        while (!third->job)
            pthread_cond_wait(&change, &lock);
        void (*job)(struct gate *) = third->job;
        pthread_mutex_unlock(&lock);
        __atomic_store_n(&third->number, (int)syscall(SYS_gettid), __ATOMIC_RELEASE);
        job(third->g);
        pthread_mutex_lock(&lock);
        third->job = NULL;
        third->busy = false;
        pthread_cond_broadcast(&change);
    }
    return NULL;
}

static void third_post(struct third *third, struct gate *g, void (*job)(struct gate *g)) {
    pthread_mutex_lock(&lock);
    third->g = g;
    third->job = job;
    third->busy = true;
    __atomic_store_n(&third->number, 0, __ATOMIC_RELEASE);
    if (!third->started)
        pthread_create(&third->thread, NULL, third_thread, third);
    third->started = true;
    pthread_cond_broadcast(&change);
    pthread_mutex_unlock(&lock);
}

static bool third_await(struct third *third, int ms) {
    struct timespec at;
    deadline_in(&at, ms);
    pthread_mutex_lock(&lock);
    int error = 0;
    while (third->busy && error != ETIMEDOUT)
        error = pthread_cond_timedwait(&change, &lock, &at);
    bool idle = !third->busy;
    pthread_mutex_unlock(&lock);
    return idle;
}

/* Until its job sleeps, which it does in the driver; or for a while. */
static void third_settle(const struct third *third) {
    for (int i = 0; i < SETTLE_MS; i++) {
        char path[64], text[256], *behind = NULL;
        snprintf(path, sizeof path, "/proc/self/task/%d/stat",
                 __atomic_load_n(&third->number, __ATOMIC_ACQUIRE));
        FILE *file = fopen(path, "r"); /* of thread 0 there is none */
        if (file && fgets(text, sizeof text, file))
            behind = strrchr(text, ')');
        if (file)
            fclose(file);
        if (behind && behind[1] == ' ' && behind[2] == 'S')
            return;
        nap(1);
    }
}

/* A pageable copy to the host is staged: the call sleeps in the driver until the gate opens. */
static void copy_behind_gate(struct gate *g) {
    cu.cuMemcpyDtoHAsync_v2(copy_target, copy_source, PAGEABLE_BYTES, g->busy);
}

static void capture_begin(struct gate *g) {
    (void)g;
    capture_begun = cu.cuStreamBeginCapture_v2(capture_stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

static void capture_end(struct gate *g) {
    (void)g;
    CUgraph graph = NULL;
    capture_ended = cu.cuStreamEndCapture(capture_stream, &graph);
    if (graph)
        cu.cuGraphDestroy(graph);
}

static void launch_once(struct gate *g) {
    void *parameters[] = {&g->memory2};
    cu.cuLaunchKernel(g->touch, 1, 1, 1, 1, 1, 1, 0, g->other, parameters, NULL);
}

/* ---- the controller's side ---- */

bool gate_lab_open(struct gate *g) {
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&change, &attributes);
    int devices = 0;
    /* What the controller does between trials must not touch a capture that a row has begun. */
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    TRY(cuInit, (0));
    TRY(cuDeviceGetCount, (&devices));
    TRY(cuDeviceGet, (&g->device, 0));
    g->peer = g->device;
    if (devices > 1)
        TRY(cuDeviceGet, (&g->peer, 1));
    TRY(cuDevicePrimaryCtxRetain, (&g->context, g->device));
    TRY(cuCtxSetCurrent, (g->context));
    TRY(cuThreadExchangeStreamCaptureMode, (&mode));
    TRY(cuModuleLoadData, (&g->module, gate_ptx));
    TRY(cuModuleGetFunction, (&g->touch, g->module, "touch"));
    TRY(cuModuleGetFunction, (&g->set_flag, g->module, "set_flag"));
    TRY(cuModuleGetFunction, (&g->spin, g->module, "spin_until"));
    TRY(cuStreamCreate, (&g->busy, CU_STREAM_NON_BLOCKING));
    TRY(cuStreamCreate, (&g->side, CU_STREAM_NON_BLOCKING));
    TRY(cuStreamCreate, (&g->other, CU_STREAM_NON_BLOCKING));
    TRY(cuStreamCreate, (&capture_stream, CU_STREAM_NON_BLOCKING));
    TRY(cuMemAlloc_v2, (&g->memory, GATE_BYTES));
    TRY(cuMemAlloc_v2, (&g->memory2, GATE_BYTES));
    TRY(cuMemAlloc_v2, (&copy_source, PAGEABLE_BYTES));
    TRY(cuMemHostAlloc, (&g->pinned, GATE_BYTES, CU_MEMHOSTALLOC_DEVICEMAP));
    TRY(cuMemHostGetDevicePointer_v2, (&g->pinned_device, g->pinned, 0));
    gate.words = aligned_alloc(4096, 4096);
    TRY(cuMemHostRegister_v2, ((void *)gate.words, 4096, CU_MEMHOSTREGISTER_DEVICEMAP));
    TRY(cuMemHostGetDevicePointer_v2, (&gate.words_device, (void *)gate.words, 0));
    TRY(cuMemsetD32_v2, (g->memory2, 0, GATE_BYTES / 4));
    if (g->unfit[0])
        return false;
    memset((void *)gate.words, 0, 4096);
    launch_once(g);
    TRY(cuCtxSynchronize, ());
    return !g->unfit[0];
}

static bool gate_close(struct gate *g) {
    unsigned generation = ++gate.generation;
    unsigned long long rounds = 40000000; /* well over the longest trial, so that no GPU hangs */
    CUdeviceptr flag = gate.words_device, started = gate.words_device + 64,
                out = gate.words_device + 128;
    void *said[] = {&started, &generation};
    void *spun[] = {&flag, &generation, &rounds, &out};
    CUresult code = cu.cuLaunchKernel(g->set_flag, 1, 1, 1, 1, 1, 1, 0, g->busy, said, NULL);
    if (code == CUDA_SUCCESS)
        code = cu.cuLaunchKernel(g->spin, 1, 1, 1, 1, 1, 1, 0, g->busy, spun, NULL);
    for (int i = 0; code == CUDA_SUCCESS && gate.words[16] != generation; i++) {
        if (i == 5000)
            return false;
        if (i > 100)
            nap(1);
        else
            sched_yield();
    }
    gate.closed = code == CUDA_SUCCESS;
    return gate.closed;
}

static void gate_open(void) {
    __atomic_store_n((unsigned *)gate.words, gate.generation, __ATOMIC_SEQ_CST);
}

/* True if the trial is in phase a or b (or is over) before the time is up. */
static bool await_either(enum phase a, enum phase b, int ms) {
    struct timespec at;
    deadline_in(&at, ms);
    pthread_mutex_lock(&lock);
    int error = 0;
    while (now.phase != a && now.phase != b && now.phase != DONE && error != ETIMEDOUT)
        error = pthread_cond_timedwait(&change, &lock, &at);
    bool there = now.phase == a || now.phase == b || now.phase == DONE;
    pthread_mutex_unlock(&lock);
    return there;
}

/* F is being called. Says what is seen while the gate is closed, and opens it. */
static void watch(struct gate *g, int column, int limit_ms, bool alone,
                  struct gate_result *result) {
    if (column == GATE_PAGEABLE) {
        third_post(&copier, g, copy_behind_gate);
        third_settle(&copier);
    }
    if (column == GATE_CAPTURE) {
        third_post(&capturer, g, capture_begin);
        third_await(&capturer, OPEN_LIMIT_MS);
    }
    if (column == GATE_LAUNCH)
        third_post(&launcher, g, launch_once);
    phase_set(GO);
    bool back = await_either(BACK, BACK, 20);
    if (column == GATE_LAUNCH || (column == GATE_PAGEABLE && !back)) {
        /* Where F sleeps: can somebody else launch meanwhile? */
        if (!back && third_await(&launcher, LOCK_MS))
            third_post(&launcher, g, launch_once);
        result->locked = !third_await(&launcher, LOCK_MS);
    }
    result->waited = !back && !await_either(BACK, BACK, limit_ms);
    gate_open();
    if (!await_either(BACK, BACK, OPEN_LIMIT_MS)) {
        result->hung = true;
        return;
    }
    /* Where F has ended the context, the capture's stream is gone. */
    if (column == GATE_CAPTURE && !alone) {
        third_post(&capturer, g, capture_end);
        result->hung = !third_await(&capturer, OPEN_LIMIT_MS);
        result->spoilt = capture_begun == CUDA_SUCCESS && capture_ended != CUDA_SUCCESS;
        result->ruined = capture_begun != CUDA_SUCCESS;
    }
    result->hung |= !third_await(&copier, OPEN_LIMIT_MS);
    result->hung |= !third_await(&launcher, OPEN_LIMIT_MS);
}

static void judge(int column, struct gate_result *result) {
    result->called = true;
    result->code = (int)now.code;
    bool capture_code = now.code >= CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED &&
                        now.code <= CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    result->refused = column == GATE_CAPTURE && capture_code;
    if (now.code != CUDA_SUCCESS && now.code != CUDA_ERROR_NOT_READY &&
        (int)now.code != now.legal && !result->refused) {
        result->called = false;
        snprintf(result->unfit, sizeof result->unfit, "it gives %s", gate_code_name(now.code));
    }
}

void gate_trial(struct gate *g, const struct gate_row *row, int column, int limit_ms,
                struct gate_result *result) {
    memset(result, 0, sizeof *result);
    memset(g->out, 0, sizeof g->out);
    g->unfit[0] = 0;
    g->called = g->refused = false;
    gate.closed = false;
    now.phase = SETUP;
    now.run = row->run;
    pthread_t thread;
    pthread_create(&thread, NULL, row_thread, g);

    bool alive = await_either(WANT_GATE, READY, OPEN_LIMIT_MS);
    if (alive && now.phase == WANT_GATE) {
        alive = gate_close(g);
        phase_set(GATE_ON);
        alive = alive && await_either(READY, READY, 2000);
    }
    if (alive && now.phase == READY) {
        if (!gate.closed)
            alive = gate_close(g);
        if (alive) {
            watch(g, column, limit_ms, row->alone, result);
            if (!result->hung)
                judge(column, result);
        }
    }
    gate_open();
    if (!alive)
        result->ruined = true;
    if (!alive || result->hung)
        return;
    if (now.phase == DONE && g->unfit[0])
        snprintf(result->unfit, sizeof result->unfit, "%s", g->unfit);
    else if (now.phase == DONE)
        snprintf(result->unfit, sizeof result->unfit, "the row makes no call");
    if (row->alone && result->called)
        return;
    if (cu.cuStreamSynchronize(g->busy) != CUDA_SUCCESS) {
        result->ruined = true;
        return;
    }
    if (now.phase != DONE)
        phase_set(CLEAN);
    if (!await_either(DONE, DONE, OPEN_LIMIT_MS)) {
        result->ruined = true;
        return;
    }
    pthread_join(thread, NULL);
    if (cu.cuStreamSynchronize(g->other) != CUDA_SUCCESS ||
        cu.cuStreamSynchronize(g->side) != CUDA_SUCCESS)
        result->ruined = true;
}
