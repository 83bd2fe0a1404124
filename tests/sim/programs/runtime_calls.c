/*
 * runtime_calls WHAT [LIBRARY...]: launches by functions of a shared runtime, in steps that repeat.
 * Prints the memory at the end and the expected codes; status 1 with a line for any other code.
 */
#define _GNU_SOURCE
#include <cuda.h>
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "tests/sim/programs/runtime_plugin.h"

enum {
    N = 256,
    STEPS = 40,
    EACH = 24,
    THREADS = 4,
    ASKED = 100,
    TRACED = 0x100,
    LIBRARY_BYTES = 1 << 20
};

#define CHECK(call)                                                                                \
    do {                                                                                           \
        int status_ = (int)(call);                                                                 \
        if (status_) {                                                                             \
            fprintf(stderr, "runtime_calls: line %d: %s: %d\n", __LINE__, #call, status_);         \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

/* One thread's work. */
struct work {
    const struct plugin *plugin;
    enum form form;
    cudaStream_t stream;
    int *x;
};

static void start(struct work *work) {
    CHECK(cudaMalloc((void **)&work->x, N * sizeof *work->x));
    CHECK(cudaMemset(work->x, 0, N * sizeof *work->x));
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaStreamCreateWithFlags(&work->stream, cudaStreamNonBlocking));
}

static void step(const struct work *work, int turn) {
    for (int i = 0; i < EACH; i++)
        CHECK(work->plugin->launch(work->form, work->x, i == 5 ? turn : i, N - i, N / 64,
                                   work->stream));
}

static void steps(const struct work *work) {
    for (int turn = 0; turn < STEPS; turn++) {
        step(work, turn);
        CHECK(cudaStreamSynchronize(work->stream));
    }
}

static void say(const struct work *work, const char *what) {
    int host[N];
    unsigned sum = 0;
    CHECK(cudaStreamSynchronize(work->stream));
    CHECK(cudaMemcpy(host, work->x, sizeof host, cudaMemcpyDeviceToHost));
    for (int i = 0; i < N; i++)
        sum = sum * 31 + (unsigned)host[i];
    printf("%s %08x\n", what, sum);
}

static const struct plugin *open_plugin(const char *path, void **handle) {
    *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!*handle)
        fprintf(stderr, "runtime_calls: %s\n", dlerror());
    CHECK(!*handle);
    plugin_fn *get = (plugin_fn *)dlsym(*handle, "runtime_plugin");
    CHECK(!get);
    return get();
}

/* Each form in turn. */
static void forms(void) {
    for (int form = 0; form < FORMS; form++) {
        struct work work = {.plugin = runtime_plugin(), .form = (enum form)form};
        start(&work);
        steps(&work);
        say(&work, "form");
    }
}

/* On the stream that everybody has. */
static void legacy(void) {
    struct work work = {.plugin = runtime_plugin()};
    start(&work);
    work.stream = NULL;
    steps(&work);
    say(&work, "legacy");
}

/* In the midst of steps that repeat themselves: the kernel that comes there, with more shared
 * memory than a driver's launch can name. */
static void too_much(const struct work *work) {
    int value = 6, n = N;
    void *x = work->x, *params[] = {&x, &value, &n};
    for (int turn = 0; turn < STEPS; turn++) {
        for (int i = 0; i < EACH; i++) {
            if (i == value && turn > STEPS / 2) {
                printf("%d ",
                       cudaLaunchKernel(work->plugin->function, (dim3){N / 64, 1, 1},
                                        (dim3){64, 1, 1}, params, (size_t)1 << 32, work->stream));
                printf("%d ", cudaGetLastError());
            }
            CHECK(work->plugin->launch(work->form, work->x, i, N, N / 64, work->stream));
        }
        CHECK(cudaStreamSynchronize(work->stream));
    }
}

/* The runtime's last error is what it was before launches that succeed, and one that fails is what
 * it would have been; so is a launch where no context is current. */
static void errors(void) {
    struct work work = {.plugin = runtime_plugin()};
    start(&work);
    for (int turn = 0; turn < STEPS; turn++) {
        for (int i = 0; i < EACH; i++) {
            if (i == turn % EACH) {
                printf("%d ", work.plugin->launch(work.form, work.x, 1, N, 0, work.stream));
                CHECK(work.plugin->launch(work.form, work.x, i, N, N / 64, work.stream));
                printf("%d ", work.plugin->peek());
                printf("%d ", cudaGetLastError());
            }
            CHECK(work.plugin->launch(work.form, work.x, i, N, N / 64, work.stream));
            CHECK(work.plugin->peek());
        }
        CHECK(cudaStreamSynchronize(work.stream));
    }
    too_much(&work);
    say(&work, "\nerrors");
}

/* The same kernel in the contexts of two devices, launch by launch and step by step. */
static void devices(void) {
    struct work work[2] = {{.plugin = runtime_plugin()}, {.plugin = runtime_plugin()}};
    for (int device = 0; device < 2; device++) {
        CHECK(cudaSetDevice(device));
        start(&work[device]);
    }
    for (int turn = 0; turn < 2 * STEPS; turn++) {
        CHECK(cudaSetDevice(turn % 2));
        step(&work[turn % 2], turn);
        CHECK(cudaStreamSynchronize(work[turn % 2].stream));
    }
    /* In the midst of a step, the legacy stream of the other device. */
    for (int turn = 0; turn < STEPS; turn++) {
        for (int i = 0; i < EACH; i++) {
            CHECK(cudaSetDevice(i == turn % EACH));
            CHECK(work->plugin->launch(work->form, work[i == turn % EACH].x, i, N, N / 64, NULL));
        }
        CHECK(cudaDeviceSynchronize());
        CHECK(cudaSetDevice(1));
        CHECK(cudaDeviceSynchronize());
    }
    for (int device = 0; device < 2; device++) {
        CHECK(cudaSetDevice(device));
        say(&work[device], "device");
    }
}

/* Everything goes with the context; the same kernel is another one afterwards. */
static void reset(void) {
    for (int i = 0; i < 3; i++) {
        struct work work = {.plugin = runtime_plugin()};
        start(&work);
        steps(&work);
        say(&work, "reset");
        CHECK(cudaDeviceReset());
    }
}

/* All from one place. */
static __attribute__((noinline)) cudaError_t ask(int *device) {
    cudaError_t error = cudaGetDevice(device);
    __asm__ volatile(""); /* nor is this call the last thing here */
    return error;
}

/* What cudaGetDevice says and leaves. */
static void say_device(const char *where, int times) {
    int device = -1;
    cudaError_t error = cudaSuccess;
    for (int i = 0; i < times; i++) {
        int now = -1;
        error = ask(&now);
        if (i && now != device)
            printf("(%d) ", now);
        device = now;
    }
    printf("%s %d %d %d\n", where, device, error, cudaGetLastError());
}

static struct {
    CUresult (*get)(CUdevice *device, int ordinal);
    CUresult (*retain)(CUcontext *context, CUdevice device);
    CUresult (*create)(CUcontext *context, unsigned flags, CUdevice device);
    CUresult (*destroy)(CUcontext context);
    CUresult (*push)(CUcontext context);
    CUresult (*pop)(CUcontext *context);
    CUresult (*set)(CUcontext context);
} driver;

static void find_driver(void) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    CHECK(!library);
    driver.get = (__typeof__(driver.get))dlsym(library, "cuDeviceGet");
    driver.retain = (__typeof__(driver.retain))dlsym(library, "cuDevicePrimaryCtxRetain");
    driver.create = (__typeof__(driver.create))dlsym(library, "cuCtxCreate_v2");
    driver.destroy = (__typeof__(driver.destroy))dlsym(library, "cuCtxDestroy_v2");
    driver.push = (__typeof__(driver.push))dlsym(library, "cuCtxPushCurrent_v2");
    driver.pop = (__typeof__(driver.pop))dlsym(library, "cuCtxPopCurrent_v2");
    driver.set = (__typeof__(driver.set))dlsym(library, "cuCtxSetCurrent");
}

static void *destroy(void *context) {
    CHECK(driver.destroy(context));
    return NULL;
}

/* On a thread that has set none. */
static void *device_of_thread(void *context) {
    say_device("thread", 3);
    CHECK(driver.set(context));
    say_device("thread with a context", 3);
    return NULL;
}

static void join(void *(*body)(void *), void *argument) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, body, argument));
    CHECK(pthread_join(thread, NULL));
}

/* Somebody listens to calls of the runtime for a while. */
static void listen(const char *path) {
    typedef int activity_fn(int kind);
    enum { RUNTIME = 5 };
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    CHECK(!library);
    activity_fn *enable = (activity_fn *)dlsym(library, "cuptiActivityEnable");
    activity_fn *disable = (activity_fn *)dlsym(library, "cuptiActivityDisable");
    say_device("before", ASKED);
    CHECK(enable(RUNTIME));
    say_device("listened to", ASKED);
    CHECK(disable(RUNTIME));
    say_device("behind", ASKED);
}

/* Which device the thread works on, by all that changes it. `path`: of CUPTI. */
static void device(const char *path) {
    CUcontext primary[2], own, popped;
    find_driver();
    say_device("nothing yet", 2);
    for (int i = 0; i < 2; i++) {
        CUdevice handle;
        CHECK(cudaSetDevice(i));
        say_device("set", ASKED);
        CHECK(driver.get(&handle, i) || driver.retain(&primary[i], handle));
    }
    for (int i = 0; i < STEPS; i++) {
        CHECK(cudaSetDevice(i % 2));
        say_device("set", 2);
        CHECK(driver.push(primary[(i + 1) % 2]));
        say_device("pushed", 2);
        CHECK(driver.pop(&popped));
        say_device("popped", 2);
    }
    CHECK(driver.set(NULL));
    say_device("none", 2);
    join(device_of_thread, primary[1]);
    CHECK(driver.create(&own, 0, 0));
    say_device("own", ASKED);
    join(destroy, own);
    say_device("own, destroyed by another thread", 2);
    driver.pop(&popped);
    CHECK(cudaSetDevice(1));
    say_device("set", ASKED);
    CHECK(ask(NULL) != cudaErrorInvalidValue);
    say_device("nowhere", 2);
    listen(path);
    CHECK(cudaDeviceReset());
    say_device("reset", 2);
    CHECK(cudaSetDevice(1));
    say_device("set", ASKED);
}

/* One library, then another that may lie where it lay. */
static void unload(char **paths) {
    struct work work = {.plugin = NULL};
    const void *before = NULL;
    start(&work);
    for (int i = 0; i < 6; i++) {
        void *handle;
        work.plugin = open_plugin(paths[i % 2], &handle);
        steps(&work);
        say(&work, "library");
        if (i && work.plugin->function == before)
            fprintf(stderr, "runtime_calls: in its place\n");
        before = work.plugin->function;
        CHECK(dlclose(handle));
    }
}

/* Two runtimes: each knows its own kernels only and has a last error of its own. `paths`: the other
 * runtime, and a library that is linked to it. */
static void two(char **paths) {
    void *runtime = dlopen(paths[0], RTLD_NOW | RTLD_LOCAL), *handle;
    CHECK(!runtime);
    struct work mine = {.plugin = runtime_plugin()};
    struct work other = {.plugin = open_plugin(paths[1], &handle)};
    CHECK(other.plugin->peek == mine.plugin->peek);
    start(&mine);
    start(&other);
    for (int turn = 0; turn < STEPS; turn++) {
        step(&mine, turn);
        step(&other, turn);
        if (turn % 8 == 3)
            printf("%d ", other.plugin->launch(other.form, other.x, 1, N, 0, other.stream));
        printf("%d%d ", mine.plugin->peek(), other.plugin->peek() != 0);
        CHECK(cudaStreamSynchronize(mine.stream));
        CHECK(cudaStreamSynchronize(other.stream));
    }
    say(&mine, "\nmine");
    say(&other, "other");
}

/* By a function that was looked up. Of what is not there none is found. */
static void lookups(void) {
    typedef cudaError_t launch_fn(const void *, dim3, dim3, void **, size_t, cudaStream_t);
    void *self = dlopen(NULL, RTLD_NOW), *library = dlopen("libcudart.so.13", RTLD_NOW);
    launch_fn *of[] = {(launch_fn *)dlsym(RTLD_DEFAULT, "cudaLaunchKernel"),
                       (launch_fn *)dlsym(self, "cudaLaunchKernel"),
                       (launch_fn *)dlsym(library, "cudaLaunchKernel")};
    CHECK(dlsym(RTLD_DEFAULT, "cudaLaunchKernelNone") != NULL);
    for (int i = 0; i < 3; i++) {
        struct work work = {.plugin = runtime_plugin()};
        int n = N;
        CHECK(!of[i]);
        start(&work);
        for (int turn = 0; turn < STEPS; turn++) {
            for (int value = 0; value < EACH; value++)
                CHECK(of[i](work.plugin->function, (dim3){N / 64, 1, 1}, (dim3){64, 1, 1},
                            (void *[]){&work.x, &value, &n}, 0, work.stream));
            CHECK(cudaStreamSynchronize(work.stream));
        }
        say(&work, "found");
    }
}

static void *of_thread(void *work) {
    steps(work);
    return NULL;
}

static void threads(void) {
    struct work work[THREADS];
    pthread_t thread[THREADS];
    for (int i = 0; i < THREADS; i++) {
        work[i] =
            (struct work){.plugin = runtime_plugin(), .form = i % 2 ? BY_HANDLE : BY_FUNCTION};
        start(&work[i]);
    }
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&thread[i], NULL, of_thread, &work[i]));
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(thread[i], NULL));
    for (int i = 0; i < THREADS; i++)
        say(&work[i], "thread");
}

/* A signal handler launches on another stream, behind one instruction more of the preloaded library
 * in each turn: at each of them the thread may be interrupted. */
static struct {
    struct work work;
    uintptr_t base; /* of the library; 0: there is none */
    int left;       /* instructions until then */
    bool entered, done;
} handler;

static void handle(void) {
    for (int i = 0; i < 3; i++)
        CHECK(handler.work.plugin->launch(BY_CONFIG, handler.work.x, i, N, N / 64,
                                          handler.work.stream));
    CHECK(cudaStreamSynchronize(handler.work.stream));
    handler.done = true;
}

/* Single steps of a processor are said in its own words: elsewhere the handler runs between calls
 * alone. */
#if defined(__x86_64__)
static void behind_instruction(int signal, siginfo_t *info, void *context) {
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    bool within = (uintptr_t)registers[REG_RIP] - handler.base < LIBRARY_BYTES;
    (void)signal;
    (void)info;
    if (within ? handler.left-- > 0 : !handler.entered) {
        handler.entered |= within;
        return;
    }
    registers[REG_EFL] &= ~TRACED;
    if (within)
        handle();
}

static void trace(bool on) {
    if (on)
        __asm__ volatile("pushfq; orq $0x100, (%%rsp); popfq" ::: "memory", "cc");
    else
        __asm__ volatile("pushfq; andq $~0x100, (%%rsp); popfq" ::: "memory", "cc");
}
#else
static void behind_instruction(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)info, (void)context;
}

static void trace(bool on) {
    (void)on;
}
#endif

static void interrupted(enum form form) {
    struct work work = {.plugin = runtime_plugin(), .form = form};
    int within = 0;
    start(&work);
    for (int turn = 0; turn < 9 * STEPS; turn++) {
        for (int i = 0; i < EACH; i++) {
            bool here = i == EACH - 4 && turn >= STEPS;
            handler.left = turn - STEPS;
            handler.entered = handler.done = false;
            if (here && handler.base)
                trace(true);
            cudaError_t error = work.plugin->launch(work.form, work.x, i, N, N / 64, work.stream);
            if (here && handler.base)
                trace(false);
            CHECK(error);
            within += handler.done;
            if (here && !handler.done)
                handle();
        }
        CHECK(cudaStreamSynchronize(work.stream));
    }
    fprintf(stderr, "runtime_calls: interrupted %d times\n", within);
    say(&work, "interrupted");
}

static void signals(void) {
    struct sigaction action = {.sa_sigaction = behind_instruction, .sa_flags = SA_SIGINFO};
    Dl_info info;
    CHECK(sigaction(SIGTRAP, &action, NULL));
    CHECK(!dladdr((void *)&cudaLaunchKernel, &info));
    if (strstr(info.dli_fname, "cusplice"))
        handler.base = (uintptr_t)info.dli_fbase;
    handler.work.plugin = runtime_plugin();
    start(&handler.work);
    interrupted(BY_FUNCTION);
    interrupted(BY_CONFIG);
    say(&handler.work, "by");
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "forms") == 0)
        forms();
    else if (strcmp(what, "legacy") == 0)
        legacy();
    else if (strcmp(what, "errors") == 0)
        errors();
    else if (strcmp(what, "devices") == 0)
        devices();
    else if (strcmp(what, "device") == 0 && argc == 3)
        device(argv[2]);
    else if (strcmp(what, "reset") == 0)
        reset();
    else if (strcmp(what, "unload") == 0 && argc == 4)
        unload(argv + 2);
    else if (strcmp(what, "two") == 0 && argc == 4)
        two(argv + 2);
    else if (strcmp(what, "lookups") == 0)
        lookups();
    else if (strcmp(what, "threads") == 0)
        threads();
    else if (strcmp(what, "signals") == 0)
        signals();
    else
        return 2;
    return 0;
}
