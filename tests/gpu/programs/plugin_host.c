/*
 * plugin_host PLUGIN [deep] [lazy] [thread] [busy] [opener=LIBRARY] [space]: a program opens a
 * plugin in the midst of its work, and the plugin launches on the program's stream. Prints whether
 * the device has what the host computed. Status: 0; 1 if it has not; 2 for a mistake; 3 if a call
 * failed.
 *
 *   deep    opens with RTLD_DEEPBIND, so that the plugin is bound to libcuda first
 *   lazy    opens with RTLD_LAZY
 *   thread  another thread opens the plugin
 *   busy    the program launches before a constructor that launches
 *   opener  LIBRARY opens the plugin, by its name without folders
 *   space   first opens a library of the plugin's name in another namespace
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/gpu/programs/plugin.h"

enum { N = 256, STEPS = 80, LAUNCHES = 24, OPENED_AT = 30 };

extern const unsigned char micro_fatbin[];

#define OK(call)                                                                                   \
    do {                                                                                           \
        int code_ = (int)(call);                                                                   \
        if (code_) {                                                                               \
            printf("FAILED line %d: %d\n", __LINE__, code_);                                       \
            exit(3);                                                                               \
        }                                                                                          \
    } while (0)

struct wish {
    const char *path, *opener;
    int flags;
    bool thread, space;
    plugin_launch_fn *launch;
};

static struct plugin_call call;
static uint32_t host[N];

static void expect(unsigned a, unsigned b) {
    for (int i = 0; i < N; i++)
        host[i] = a * host[i] + b;
}

static void start(void) {
    CUdevice device;
    CUcontext context;
    CUmodule module;
    OK(cuInit(0));
    OK(cuDeviceGet(&device, 0));
    OK(cuDevicePrimaryCtxRetain(&context, device));
    OK(cuCtxSetCurrent(context));
    OK(cuModuleLoadData(&module, micro_fatbin));
    OK(cuModuleGetFunction(&call.chain, module, "chain"));
    OK(cuStreamCreate(&call.stream, CU_STREAM_NON_BLOCKING));
    OK(cuMemAlloc(&call.x, N * sizeof *host));
    OK(cuMemsetD32(call.x, 0, N));
    OK(cuCtxSynchronize());
    call.n = N;
}

static void launch(unsigned a, unsigned b) {
    void *params[] = {&call.x, &a, &b, &call.n};
    OK(cuLaunchKernel(call.chain, 2, 1, 1, 128, 1, 1, 0, call.stream, params, NULL));
    expect(a, b);
}

/* Beginnings of steps as there were, from inside the dlopen. */
static void from_constructor(void) {
    for (unsigned k = 0; k < 2; k++) {
        OK(cuStreamSynchronize(call.stream));
        for (unsigned i = 0; i < LAUNCHES / 2 - 2; i++) /* so that no graph is full */
            launch(2 * i + 3, k + i);
    }
}

static void *open_plugin(const struct wish *wish) {
    if (!wish->opener)
        return dlopen(wish->path, wish->flags);
    void *opener = dlopen(wish->opener, RTLD_NOW);
    plugin_open_fn *open = opener ? (plugin_open_fn *)dlsym(opener, PLUGIN_OPEN) : NULL;
    const char *slash = strrchr(wish->path, '/');
    return open ? open(slash ? slash + 1 : wish->path, wish->flags) : NULL;
}

/* A plugin that launches when it is loaded makes this call. */
static void *open_it(void *context) {
    struct wish *wish = context;
    char at[32];
    if (wish->space)
        printf("another namespace: %s\n",
               dlmopen(LM_ID_NEWLM, wish->path, RTLD_NOW) ? "opened" : dlerror());
    snprintf(at, sizeof at, "%llx", (unsigned long long)(uintptr_t)&call);
    setenv(PLUGIN_AT_ONCE, at, 1);
    void *plugin = open_plugin(wish);
    if (!plugin) {
        printf("no plugin: %s\n", dlerror());
        exit(2);
    }
    wish->launch = (plugin_launch_fn *)dlsym(plugin, PLUGIN_LAUNCH);
    return NULL;
}

static void open_now(struct wish *wish, bool launches) {
    pthread_t thread;
    call.a = 7, call.b = 11;
    errno = 99;
    if (wish->thread) {
        OK(pthread_create(&thread, NULL, open_it, wish));
        OK(pthread_join(thread, NULL));
    } else {
        open_it(wish);
    }
    if (launches)
        expect(call.a, call.b);
}

static void step(unsigned k, struct wish *wish, bool launches) {
    for (unsigned i = 0; i < LAUNCHES; i++) {
        launch(2 * i + 3, k + i);
        if (k == OPENED_AT && i == 17)
            open_now(wish, launches);
        if (wish->launch && i % 12 == 7) {
            call.a = 5, call.b = k;
            OK(wish->launch(&call));
            expect(5, k);
        }
    }
    OK(cuStreamSynchronize(call.stream));
}

int main(int argc, char **argv) {
    struct wish wish = {.path = argc > 1 ? argv[1] : "", .flags = RTLD_LOCAL};
    bool lazy = false;
    for (int i = 2; i < argc; i++) {
        if (strcmp(argv[i], "deep") == 0)
            wish.flags |= RTLD_DEEPBIND;
        else if (strcmp(argv[i], "lazy") == 0)
            lazy = true;
        else if (strcmp(argv[i], "thread") == 0)
            wish.thread = true;
        else if (strcmp(argv[i], "busy") == 0)
            call.before = from_constructor;
        else if (strcmp(argv[i], "space") == 0)
            wish.space = true;
        else if (strncmp(argv[i], "opener=", 7) == 0)
            wish.opener = argv[i] + 7;
        else
            return 2;
    }
    wish.flags |= lazy ? RTLD_LAZY : RTLD_NOW;
    static uint32_t got[N];
    alarm(60);
    start();
    for (unsigned k = 0; k < STEPS; k++)
        step(k, &wish, strstr(wish.path, "at_load") != NULL);
    OK(cuMemcpyDtoH(got, call.x, sizeof got));
    bool right = memcmp(got, host, sizeof got) == 0;
    printf("program and plugin: %s\n", right ? "right" : "WRONG");
    return !right;
}
