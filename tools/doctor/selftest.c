/*
 * The program of the self-test: a process of its own, started by judge.c with the library. It opens
 * libcuda by name, launches a small kernel some hundred times in steps, compares the results, and
 * prints lines "word number". It never links to the driver, and has no setting.
 */
#define CUSPLICE_INSIDE /* its types alone: functions are found by name, since there may be no     \
                           library */
#define CUSPLICE_WEAK
#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "shim/include/cusplice.h"
#include "tools/calibrate/calibrate.h"
#include "tools/doctor/probe.h"

/* LEAST: steps in any case; after them it ends once graphs were launched in ENOUGH of them, after
 * MOST steps, or when the time is over. */
enum { WORDS = 64, STEP = 16, LEAST = 24, ENOUGH = 8, MOST = 1000, SECONDS = 2 };

#define TEST_CALLS(X)                                                                              \
    X(cuInit)                                                                                      \
    X(cuDeviceGet)                                                                                 \
    X(cuDevicePrimaryCtxRetain)                                                                    \
    X(cuCtxSetCurrent)                                                                             \
    X(cuModuleLoadData)                                                                            \
    X(cuModuleGetFunction)                                                                         \
    X(cuMemAlloc_v2)                                                                               \
    X(cuMemsetD32Async)                                                                            \
    X(cuMemcpyDtoH_v2)                                                                             \
    X(cuStreamCreate)                                                                              \
    X(cuStreamSynchronize)                                                                         \
    X(cuLaunchKernel)                                                                              \
    X(cuGetProcAddress_v2)

struct program {
#define X(name) __typeof__(&name) name;
    TEST_CALLS(X)
#undef X
    CUfunction chain;
    CUdeviceptr words;
    CUstream stream;
    unsigned expected; /* of each word, if all launches ran in their order */
    unsigned launches;
    __typeof__(&cusplice_read_counters_) read_counters; /* NULL: no library */
};

/* A line is out before the next call, which may not return. */
static void tell(const char *word, unsigned long long number) {
    printf("%s %llu\n", word, number);
    fflush(stdout);
}

/* Told before the call is made, and once for many of one kind. */
static void tell_stage(const char *call) {
    static const char *last;
    if (call != last)
        printf("stage %s\n", call);
    fflush(stdout);
    last = call;
}

static bool is_done(CUresult result) {
    if (result != CUDA_SUCCESS)
        tell("result", result);
    return result == CUDA_SUCCESS;
}

/* A call of the driver; ends the function with false where it fails. */
#define TRY(program, name, ...)                                                                    \
    do {                                                                                           \
        tell_stage(#name);                                                                         \
        if (!is_done((program)->name(__VA_ARGS__)))                                                \
            return false;                                                                          \
    } while (0)

/* ---- routes ---- */

/* 2: the function is the library's, 1: it is another's, 0: there is none. */
static int leads_to(const void *function) {
    Dl_info info;
    if (!function || !dladdr(function, &info) || !info.dli_fname)
        return 0;
    const char *slash = strrchr(info.dli_fname, '/');
    return strcmp(slash ? slash + 1 : info.dli_fname, "libcusplice.so") == 0 ? 2 : 1;
}

static void tell_routes(const struct program *program) {
    void *function = NULL;
    CUdriverProcAddressQueryResult found;
    tell("global", (unsigned)leads_to(dlsym(RTLD_DEFAULT, "cuLaunchKernel")));
    tell("dlsym", (unsigned)leads_to((const void *)program->cuLaunchKernel));
    if (program->cuGetProcAddress_v2("cuLaunchKernel", &function, 12000,
                                     CU_GET_PROC_ADDRESS_DEFAULT, &found) != CUDA_SUCCESS)
        function = NULL;
    tell("getproc", (unsigned)leads_to(function));
}

/* ---- the launches ---- */

static bool open_driver(struct program *program) {
    tell_stage("dlopen");
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
#define X(name)                                                                                    \
    if (!driver || !(program->name = (__typeof__(&name))dlsym(driver, #name)))                     \
        return false;
    TEST_CALLS(X)
#undef X
    program->read_counters =
        (__typeof__(&cusplice_read_counters_))dlsym(RTLD_DEFAULT, "cusplice_read_counters_");
    return true;
}

static bool set_up(struct program *program) {
    CUdevice device;
    CUcontext context;
    CUmodule module;
    program->expected = 1;
    TRY(program, cuInit, 0);
    TRY(program, cuDeviceGet, &device, 0);
    TRY(program, cuDevicePrimaryCtxRetain, &context, device);
    TRY(program, cuCtxSetCurrent, context);
    TRY(program, cuModuleLoadData, &module, calibrate_ptx);
    TRY(program, cuModuleGetFunction, &program->chain, module, CALIBRATE_KERNEL);
    TRY(program, cuMemAlloc_v2, &program->words, WORDS * sizeof program->expected);
    TRY(program, cuStreamCreate, &program->stream, CU_STREAM_NON_BLOCKING);
    /* In the order of the stream, which waits for no synchronous copy. */
    TRY(program, cuMemsetD32Async, program->words, program->expected, WORDS, program->stream);
    return true;
}

static bool step(struct program *program) {
    unsigned n = WORDS;
    for (unsigned i = 0; i < STEP; i++) {
        unsigned a = 3, b = i;
        void *params[] = {&program->words, &a, &b, &n};
        TRY(program, cuLaunchKernel, program->chain, 1, 1, 1, WORDS, 1, 1, 0, program->stream,
            params, NULL);
        program->expected = program->expected * a + b;
        program->launches++;
    }
    TRY(program, cuStreamSynchronize, program->stream);
    return true;
}

static bool all_steps(struct program *program) {
    struct cusplice_counters counters = {0};
    unsigned words[WORDS], differ = 0, good = 0;
    time_t until = time(NULL) + SECONDS;
    for (unsigned steps = 0; steps < LEAST || (good < ENOUGH && steps < MOST && time(NULL) < until);
         steps++) {
        unsigned long long before = counters.graph_launches;
        if (!step(program))
            return false;
        if (program->read_counters)
            program->read_counters(&counters, sizeof counters);
        good += counters.graph_launches > before;
    }
    TRY(program, cuMemcpyDtoH_v2, words, program->words, sizeof words);
    for (unsigned i = 0; i < WORDS; i++)
        differ += words[i] != program->expected;
    tell("launches", program->launches);
    tell("ops", counters.launches);
    tell("in", counters.in_graphs);
    tell("words", differ);
    tell("finished", 1);
    return true;
}

int doctor_selftest(void) {
    static struct program program;
    void *interface = dlsym(RTLD_DEFAULT, "cusplice_interface_");
    tell("library", interface ? (unsigned)((__typeof__(&cusplice_interface_))interface)() : 0);
    if (!open_driver(&program) || !set_up(&program))
        return 1;
    tell_routes(&program);
    return all_steps(&program) ? 0 : 1;
}
