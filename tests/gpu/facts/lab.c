/*
 * What a trial works with: the driver's objects, gates, chains of graph nodes, watched calls. Only
 * the thread of the trial runs it, but for fact_step. A failure ends the child by fact_give_up.
 */
#include "tests/gpu/facts/facts.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct fact_lab lab;

double fact_now_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

void fact_nap(int ms) {
    struct timespec time = {ms / 1000, ms % 1000 * 1000000L};
    nanosleep(&time, NULL);
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double fact_median(double *values, int n) {
    qsort(values, (size_t)n, sizeof *values, by_value);
    return values[n / 2];
}

/* ---- what the parent sees ---- */

void fact_say(const char *value, ...) {
    va_list list;
    va_start(list, value);
    vsnprintf(fact_shared->value, sizeof fact_shared->value, value, list);
    va_end(list);
}

void fact_detail(const char *detail, ...) {
    va_list list;
    va_start(list, detail);
    vsnprintf(fact_shared->detail, sizeof fact_shared->detail, detail, list);
    va_end(list);
}

void fact_step(const char *what) {
    snprintf(fact_shared->step, sizeof fact_shared->step, "%s", what);
    fact_shared->beat = fact_shared->beat + 1;
}

/* A destructor of the driver might wait for what the trial left behind. */
static void __attribute__((noreturn)) child_end(void) {
    for (unsigned i = 0; i < fact_shared->gates; i++)
        fact_gate_open((int)i);
    _exit(0);
}

void fact_give_up(const char *what, CUresult code) {
    size_t used = strlen(fact_shared->detail);
    snprintf(fact_shared->detail + used, sizeof fact_shared->detail - used, "%s%s gives %s",
             used ? "; " : "", what, fact_code(code));
    child_end();
}

const char *fact_code(CUresult code) {
    static char texts[8][80];
    static unsigned next;
    char *text = texts[next++ % 8];
    snprintf(text, sizeof texts[0], "%s", gate_code_name(code));
    return text;
}

/* ---- watched calls ---- */

static struct {
    double begin;
    unsigned openings;
} call;

void fact_call_begin(const char *symbol) {
    fact_step(symbol);
    call.openings = fact_shared->openings;
    call.begin = fact_now_us();
}

struct fact_call fact_call_end(CUresult code) {
    struct fact_call result = {.code = code, .us = fact_now_us() - call.begin};
    result.waited = fact_shared->openings != call.openings;
    fact_shared->beat = fact_shared->beat + 1;
    return result;
}

const char *fact_call_text(struct fact_call seen) {
    static char texts[8][120];
    static unsigned next;
    char *text = texts[next++ % 8];
    if (seen.code == CUDA_SUCCESS)
        return seen.waited ? "waits for a gate" : "returns";
    snprintf(text, sizeof texts[0], "%sgives %s", seen.waited ? "waits for a gate, then " : "",
             fact_code(seen.code));
    return text;
}

/* ---- gates ---- */

/* Over the longest trial on a GPU (a microsecond a round), so that no GPU is held for ever. */
enum { ROUNDS = 20000000 };

/* The words that the device sees: the shared ones, or pinned memory of this process. */
static volatile unsigned *device_words;

/* Takes over gates that the parent opens. Calls no driver. */
static void *mirror_thread(void *data) {
    (void)data;
    for (;;) {
        for (int i = 0; i < FACT_GATES; i++)
            if (fact_shared->words[i * FACT_WORD_STEP])
                device_words[i * FACT_WORD_STEP] = 1;
        fact_nap(1);
    }
    return NULL;
}

/* Some machines refuse to register memory that processes share. */
static void words_register(void) {
    pthread_t thread;
    void *words = (void *)fact_shared->words;
    size_t bytes = sizeof fact_shared->words;
    fact_step("cuMemHostRegister_v2");
    if (cu.cuMemHostRegister_v2(words, bytes, CU_MEMHOSTREGISTER_DEVICEMAP) != CUDA_SUCCESS) {
        CALL(cuMemHostAlloc, (&words, bytes, CU_MEMHOSTALLOC_DEVICEMAP));
        memset(words, 0, bytes);
        device_words = words;
        pthread_create(&thread, NULL, mirror_thread, NULL);
    }
    device_words = words;
    CALL(cuMemHostGetDevicePointer_v2, (&lab.words, words, 0));
}

int fact_gate(void) {
    unsigned gate = fact_shared->gates;
    if (gate == FACT_GATES)
        fact_give_up("the 65th gate", CUDA_ERROR_OUT_OF_MEMORY);
    fact_shared->gates = gate + 1;
    return (int)gate;
}

CUdeviceptr fact_gate_word(int gate) {
    return lab.words + (CUdeviceptr)gate * FACT_WORD_STEP * sizeof(unsigned);
}

static void word_set(CUstream stream, CUdeviceptr word) {
    unsigned one = 1;
    void *parameters[] = {&word, &one};
    CALL(cuLaunchKernel, (lab.set_flag, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL));
}

static void word_spin(CUstream stream, CUdeviceptr word, unsigned long long rounds) {
    unsigned one = 1;
    CUdeviceptr out = lab.memory + 64;
    void *parameters[] = {&word, &one, &rounds, &out};
    CALL(cuLaunchKernel, (lab.spin, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL));
}

void fact_flag(CUstream stream, int gate) {
    word_set(stream, fact_gate_word(gate));
}

void fact_spin(CUstream stream, int gate) {
    word_spin(stream, fact_gate_word(gate), ROUNDS);
}

int fact_gate_close(CUstream stream) {
    int gate = fact_gate();
    word_set(stream, fact_gate_word(FACT_GATES + gate));
    fact_spin(stream, gate);
    for (int i = 0; !device_words[(FACT_GATES + gate) * FACT_WORD_STEP]; i++) {
        if (i == 3000)
            fact_give_up("a gate's kernel that does not begin", CUDA_ERROR_LAUNCH_TIMEOUT);
        fact_step("waiting for a gate's kernel");
        fact_nap(1);
    }
    return gate;
}

void fact_gate_open(int gate) {
    fact_shared->words[gate * FACT_WORD_STEP] = 1;
    device_words[gate * FACT_WORD_STEP] = 1;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/* ---- work ---- */

void fact_touch(CUstream stream, CUdeviceptr target) {
    void *parameters[] = {&target};
    CALL(cuLaunchKernel, (lab.touch, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL));
}

void fact_slow(CUstream stream, unsigned long long rounds) {
    word_spin(stream, lab.zero, rounds);
}

bool fact_done(CUstream stream, int ms) {
    double end = fact_now_us() + ms * 1000.0;
    for (;;) {
        fact_step("cuStreamQuery");
        CUresult code = cu.cuStreamQuery(stream);
        if (code == CUDA_SUCCESS)
            return true;
        if (code != CUDA_ERROR_NOT_READY)
            fact_give_up("cuStreamQuery", code);
        if (fact_now_us() > end)
            return false;
        fact_nap(1);
    }
}

CUresult fact_query(CUevent event) {
    fact_step("cuEventQuery");
    return cu.cuEventQuery(event);
}

CUevent fact_event(unsigned flags) {
    CUevent event = NULL;
    CALL(cuEventCreate, (&event, flags));
    return event;
}

CUevent fact_event_done(unsigned flags) {
    CUevent event = fact_event(flags);
    CALL(cuEventRecord, (event, lab.c));
    CALL(cuStreamSynchronize, (lab.c));
    return event;
}

CUdeviceptr fact_memory(size_t bytes) {
    CUdeviceptr memory = 0;
    CALL(cuMemAlloc_v2, (&memory, bytes));
    return memory;
}

/* ---- graphs ---- */

struct fact_chain fact_chain(void) {
    struct fact_chain chain = {NULL, NULL};
    CALL(cuGraphCreate, (&chain.graph, 0));
    return chain;
}

static CUDA_KERNEL_NODE_PARAMS kernel_node(CUfunction function, void **parameters) {
    return (CUDA_KERNEL_NODE_PARAMS){.func = function,
                                     .gridDimX = 1,
                                     .gridDimY = 1,
                                     .gridDimZ = 1,
                                     .blockDimX = 1,
                                     .blockDimY = 1,
                                     .blockDimZ = 1,
                                     .kernelParams = parameters};
}

CUgraphNode fact_chain_kernel(struct fact_chain *chain, CUfunction function, void **parameters) {
    CUDA_KERNEL_NODE_PARAMS node = kernel_node(function, parameters);
    CUgraphNode before = chain->last;
    CALL(cuGraphAddKernelNode_v2, (&chain->last, chain->graph, &before, before != NULL, &node));
    return chain->last;
}

CUgraphNode fact_chain_touch(struct fact_chain *chain) {
    void *parameters[] = {&lab.memory};
    return fact_chain_kernel(chain, lab.touch, parameters);
}

static CUgraphNode chain_spin(struct fact_chain *chain, CUdeviceptr word,
                              unsigned long long rounds) {
    unsigned one = 1;
    CUdeviceptr out = lab.memory + 64;
    void *parameters[] = {&word, &one, &rounds, &out};
    return fact_chain_kernel(chain, lab.spin, parameters);
}

CUgraphNode fact_chain_spin(struct fact_chain *chain, int gate) {
    return chain_spin(chain, fact_gate_word(gate), ROUNDS);
}

CUgraphNode fact_chain_slow(struct fact_chain *chain, unsigned long long rounds) {
    return chain_spin(chain, lab.zero, rounds);
}

void fact_spin_patch(CUgraphExec exec, CUgraphNode node, int gate) {
    unsigned one = 1;
    unsigned long long rounds = ROUNDS;
    CUdeviceptr word = fact_gate_word(gate), out = lab.memory + 64;
    void *parameters[] = {&word, &one, &rounds, &out};
    CUDA_KERNEL_NODE_PARAMS params = kernel_node(lab.spin, parameters);
    CALL(cuGraphExecKernelNodeSetParams_v2, (exec, node, &params));
}

CUgraphNode fact_chain_record(struct fact_chain *chain, CUevent event) {
    CUgraphNode before = chain->last;
    CALL(cuGraphAddEventRecordNode, (&chain->last, chain->graph, &before, before != NULL, event));
    return chain->last;
}

CUgraphExec fact_chain_exec(struct fact_chain *chain) {
    CUgraphExec exec = NULL;
    CALL(cuGraphInstantiateWithFlags, (&exec, chain->graph, 0));
    return exec;
}

CUgraphExec fact_touches(int nodes) {
    struct fact_chain chain = fact_chain();
    for (int i = 0; i < nodes; i++)
        fact_chain_touch(&chain);
    return fact_chain_exec(&chain);
}

/* ---- the child ---- */

/* Each kernel has run once: a first launch may load it, and loading waits for the GPU. */
static void kernels_load(void) {
    CUmodule module = NULL;
    CALL(cuModuleLoadData, (&module, gate_ptx));
    CALL(cuModuleGetFunction, (&lab.touch, module, "touch"));
    CALL(cuModuleGetFunction, (&lab.set_flag, module, "set_flag"));
    CALL(cuModuleGetFunction, (&lab.spin, module, "spin_until"));
    fact_touch(lab.a, lab.memory);
    word_set(lab.a, lab.memory);
    fact_slow(lab.a, 1);
    CALL(cuStreamSynchronize, (lab.a));
}

static void lab_open(void) {
    CUresult code = gate_driver_open() ? cu.cuInit(0) : CUDA_ERROR_NO_DEVICE;
    if (code != CUDA_SUCCESS) {
        fprintf(stderr, "facts: no GPU could be used: %d\n", (int)code);
        _exit(FACT_NO_DRIVER);
    }
    CALL(cuDeviceGet, (&lab.device, 0));
    CALL(cuDevicePrimaryCtxRetain, (&lab.context, lab.device));
    CALL(cuCtxSetCurrent, (lab.context));
    CALL(cuStreamCreate, (&lab.a, CU_STREAM_NON_BLOCKING));
    CALL(cuStreamCreate, (&lab.b, CU_STREAM_NON_BLOCKING));
    CALL(cuStreamCreate, (&lab.c, CU_STREAM_NON_BLOCKING));
    lab.memory = fact_memory(FACT_BYTES);
    lab.zero = lab.memory + 4096;
    CALL(cuMemsetD32_v2, (lab.memory, 0, FACT_BYTES / 4));
    CALL(cuCtxSynchronize, ());
    words_register();
    kernels_load();
}

void fact_child(const struct fact_trial *trial) {
    lab_open();
    fact_shared->ready = 1;
    fact_step("the trial");
    trial->run(trial->arg);
    child_end();
}
