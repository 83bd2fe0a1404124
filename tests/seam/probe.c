/* Programs that are not linked to libcuda: they open it, or run without it. */
#define _GNU_SOURCE
#include "tests/seam/probe.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>

#include "tests/seam/seam_log.h"

static void *cuda;
static call_fn *call_init, *get_v2;

static bool lies_in(const void *address, const char *object) {
    Dl_info info;
    return dladdr(address, &info) && strstr(info.dli_fname, object);
}

void *find(const char *name) {
    void *found = dlsym(cuda, name);
    if (!found)
        fprintf(stderr, "no %s\n", name);
    CHECK(found);
    return found;
}

void open_cuda(void) {
    cuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    CHECK(cuda);
}

void start(void) {
    open_cuda();
    CHECK(CALL(cuInit, 0) == 0);
}

void fake_result(const char *name, unsigned code) {
    ((void (*)(const char *, unsigned))find("fake_result"))(name, code);
}

static void *get(const char *name, int version, word flags) {
    void *function = NULL;
    CHECK(get_v2(name, &function, version, flags, NULL) == 0);
    CHECK(function);
    return function;
}

/* ---- routes ---- */

static void by_dlsym(void) {
    start();
    call_fn *launch = find("cuLaunchKernel");
    CHECK(dlerror() == NULL); /* a look-up that succeeded leaves no error */
    CHECK(lies_in((void *)launch, "libseam"));
    CHECK(launch((word)0xf1, 1, 2, 3, 4, 5, 6, 7, (word)0x51, (word)9, (word)10) == 0);
    CHECK(lies_in(find("cuDeviceGetCount"), "libcuda")); /* PASS */
    CHECK(dlsym(cuda, "cuNoSuchThing") == NULL);
    CHECK(dlerror() != NULL);
}

static void by_resolver(void) {
    open_cuda();
    get_v2 = find("cuGetProcAddress_v2");
    CHECK(lies_in((void *)get_v2, "libseam"));
    /* As the runtime does it: all look-ups come before cuInit, the resolver's own by version. */
    call_fn *get_v1 = get("cuGetProcAddress", 11030, 0);
    CHECK((void *)get_v1 == find("cuGetProcAddress"));
    CHECK(get("cuGetProcAddress", 12000, 0) == (void *)get_v2);
    get_v2 = get("cuGetProcAddress", 13000, 0);
    void *function = NULL;
    unsigned status = 9;
    CHECK(get_v1("cuLaunchKernel", &function, 11030, (word)0) == 0);
    CHECK(lies_in(function, "libseam"));
    CHECK(get("cuLaunchKernel", 13000, 0) == function);
    CHECK(get_v2("cuLaunchKernel", &function, 13000, (word)0, &status) == 0 && status == 0);
    CHECK(get_v2("cuLaunchKernel", NULL, 13000, (word)0, &status) == 0 && status == 0);
    CHECK(get_v2("cuNoSuchThing", &function, 13000, (word)0, &status) == 0 && status == 1);
    CHECK(function == NULL);
    CHECK(lies_in(get("cuDeviceGetCount", 13000, 0), "libcuda"));
    call_init = get("cuInit", 13000, 0);
    CHECK(call_init(0) == 0);
    CHECK(((call_fn *)get("cuLaunchKernel", 13000, 0))((word)0xf1, 1, 2, 3, 4, 5, 6, 7, (word)0x51,
                                                       (word)9, (word)10) == 0);
    /* The exact symbol, whatever the version suffix. */
    CHECK(get("cuMemcpyHtoDAsync", 13000, 0) == find("cuMemcpyHtoDAsync_v2"));
    CHECK(get("cuStreamBeginCapture", 13000, 0) == find("cuStreamBeginCapture_v2"));
}

static void twins(void) {
    start();
    get_v2 = find("cuGetProcAddress_v2");
    call_fn *legacy = get("cuEventRecord", 13000, 1), *twin = get("cuEventRecord", 13000, 2);
    CHECK(legacy != twin && (void *)twin == find("cuEventRecord_ptsz"));
    CHECK(twin((word)0xe, (word)0) == 0);
    CHECK(legacy((word)0xe, (word)0) == 0);
    CHECK(((call_fn *)get("cuMemsetD8Async", 13000, 2))((word)0x1000, 7, (word)64, (word)0) == 0);
    CHECK(((call_fn *)get("cuMemcpyHtoD", 13000, 2))((word)0x1000, (word)0x2000, (word)64) == 0);
    CHECK(((call_fn *)get("cuMemcpyHtoD", 13000, 1))((word)0x1000, (word)0x2000, (word)64) == 0);
}

/* ---- unknown entry points ---- */

static void inside(void);

typedef double mixed_fn(int, double, const char *, float, long, double, unsigned char, double, long,
                        double, long, long, float, double);

static void unknown(void) {
    start();
    get_v2 = find("cuGetProcAddress_v2");
    mixed_fn *mixed = (mixed_fn *)get("cuFutureMixed", 14000, 0);
    CHECK(lies_in((void *)mixed, "libseam"));
    CHECK(mixed == (mixed_fn *)find("cuFutureMixed"));
    errno = 5;
    CHECK(mixed(-1, 2.5, "three", 4.5f, -5, 6.5, 7, 8.5, -9, 10.5, 11, -12, 13.5f, 14.5) == 17.0);
    CHECK(errno == 5);
    int (*variadic)(int, ...) = (int (*)(int, ...))find("cuFutureVariadic");
    CHECK(variadic(10, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0) == 55);
    CHECK(CALL(cuGraphicsGLRegisterBuffer, (word)1, (word)2, (word)3) == 0);
}

/* A newer form of cuGetProcAddress, which nobody here knows. */
static void unknown_look_up(void) {
    start();
    get_v2 = find("cuGetProcAddress_v2");
    call_fn *look = (call_fn *)get("cuGetProcAddress_v3", 14000, 0);
    CHECK(lies_in((void *)look, "libseam"));
    inside();
    seam_log("looks");
    CHECK(look((word)1, (word)2) == 0);
    inside();
}

/* More unknown functions than stubs. */
static void many(void) {
    start();
    get_v2 = find("cuGetProcAddress_v2");
    unsigned ours = 0;
    for (int i = 0; i < 1000; i++) {
        char name[32];
        snprintf(name, sizeof name, "cuMany%d", i);
        call_fn *function = get(name, 13000, 0);
        CHECK(function == get(name, 13000, 0));
        if (lies_in((void *)function, "libseam"))
            ours++;
        else
            CHECK(ours >= 256);
        CHECK(function() == 0);
    }
    CHECK(ours >= 256 && ours < 1000);
    CALL(cuMemFree_v2, (word)0x1000);
}

/* ---- who looks up ---- */

static void callers(void) {
    typedef const char *text_fn(void);
    /* A library's RTLD_NEXT is what comes behind that library. Both are linked to this program, a
     * in front of b. */
    text_fn *next = (text_fn *)dlsym(RTLD_DEFAULT, "scope_a_next");
    CHECK(next && strcmp(next(), "b") == 0);
    /* RTLD_DEFAULT of a library that was opened locally sees that library's own scope. */
    char path[4096];
    snprintf(path, sizeof path, "%s/libscope_c.so", getenv("SEAM_LIBRARIES"));
    void *local = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    CHECK(local);
    text_fn *own = (text_fn *)dlsym(local, "scope_c_own");
    CHECK(own && strcmp(own(), "c") == 0);
    CHECK(dlsym(RTLD_DEFAULT, "scope_c_text") == NULL);
    /* A library of the program's that happens to use such a name is left alone. */
    CHECK(lies_in(dlsym(local, "cuInit"), "libscope_c"));
    open_cuda();
    bool (*self)(void) = (bool (*)(void))find("fake_self_lookup");
    CHECK(self());
}

extern unsigned cuInit(unsigned flags) __attribute__((weak));

static void without_cuda(void) {
    dlerror();
    CHECK(dlsym(RTLD_DEFAULT, "cuInit") == NULL);
    const char *error = dlerror();
    CHECK(error && strstr(error, "cuInit"));
    CHECK(dlsym(RTLD_DEFAULT, "cuptiSubscribe") == NULL);
    CHECK(dlsym(RTLD_DEFAULT, "malloc") == (void *)malloc);
    CHECK(dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_NOW) == NULL);
    /* A weak reference is bound to the export; the answer is an error, not a crash. */
    CHECK(cuInit && cuInit(0) == 3);
    call_fn *free_it = dlsym(RTLD_NEXT, "cuMemFree_v2");
    CHECK(free_it && free_it((word)1) == 3);
}

static void by_default(void) {
    cuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    CHECK(cuda);
    CHECK(dlsym(RTLD_DEFAULT, "cuLaunchKernel") == find("cuLaunchKernel"));
    CHECK(lies_in(dlsym(RTLD_DEFAULT, "cuDeviceGetCount"), "libcuda"));
    CHECK(dlsym(dlopen(NULL, RTLD_NOW), "cuLaunchKernel") == find("cuLaunchKernel"));
}

static void switched_off(void) {
    open_cuda();
    CHECK(lies_in(find("cuLaunchKernel"), "libcuda"));
    get_v2 = find("cuGetProcAddress_v2");
    CHECK(lies_in((void *)get_v2, "libcuda"));
    CHECK(lies_in(get("cuLaunchKernel", 13000, 0), "libcuda"));
    CHECK(lies_in(get("cuFutureMixed", 14000, 0), "libcuda"));
    CHECK(CALL(cuInit, 0) == 0);
}

/* ---- depth, threads, life ---- */

static void inside(void) {
    CALL(cuLaunchKernel, (word)0xf9, 1, 1, 1, 1, 1, 1, 0, (word)0, (word)0, (word)0);
}

static void callbacks(void) {
    start();
    ((void (*)(void (*)(void)))find("fake_callback"))(inside);
    CALL(cuStreamSynchronize, (word)0x51);
    inside();
}

static void free_inside(void) {
    CALL(cuMemFree_v2, (word)0x1000);
}

/* From inside a launch that the hook passes on without asking the engine. */
static void callback_passed(void) {
    start();
    inside();
    ((void (*)(void (*)(void)))find("fake_callback"))(free_inside);
    inside();
}

static void forked(void) {
    start();
    inside();
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        seam_log("child");
        inside();
        CALL(cuMemFree_v2, (word)0x1000);
        seam_log("child done");
        exit(0);
    }
    int status = 1;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    inside();
}

/* Registered before cuInit, hence run after the library's own handler. */
static void older_handler(void) {
    seam_log("older handler");
    inside();
}

static void leaving(void) {
    atexit(older_handler);
    start();
    inside();
    CALL(cuGraphLaunch, (word)0x77, (word)0x51);
}

static void failing_init(void) {
    open_cuda();
    fake_result("cuInit", 100);
    CHECK(CALL(cuInit, 0) == 100);
    seam_log("init failed");
    CALL(cuMemFree_v2, (word)0x1000);
    fake_result("cuInit", 0);
    CHECK(CALL(cuInit, 0) == 0);
    CHECK(CALL(cuInit, 0) == 0);
    CALL(cuMemFree_v2, (word)0x1000);
}

static void late_error(void) {
    start();
    CHECK(CALL(cuStreamSynchronize, (word)0x51) == 719);
    CHECK(CALL(cuStreamQuery, (word)0x51) == 719);
    fake_result("cuStreamSynchronize", 700);
    CHECK(CALL(cuStreamSynchronize, (word)0x51) == 700);
}

/* Everybody looks up, starts and launches at the same moment. */
static pthread_barrier_t together;

static void *racer(void *unused) {
    (void)unused;
    pthread_barrier_wait(&together);
    void *handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    CHECK(handle);
    call_fn *resolver = (call_fn *)dlsym(handle, "cuGetProcAddress_v2"), *launch = NULL,
            *mixed = NULL;
    call_fn *init = (call_fn *)dlsym(handle, "cuInit");
    CHECK(resolver("cuFutureMixed", &mixed, 13000, (word)0, NULL) == 0);
    CHECK(resolver("cuLaunchKernel", &launch, 13000, (word)0, NULL) == 0);
    CHECK(lies_in((void *)launch, "libseam") && lies_in((void *)mixed, "libseam"));
    CHECK(init(0) == 0);
    word out;
    for (int i = 0; i < 50; i++) {
        launch((word)0xf1, 1, 1, 1, 1, 1, 1, 0, (word)0x51, (word)0, (word)0);
        call_fn *touch = (call_fn *)dlsym(handle, "cuFuncGetAttribute");
        touch(&out, (word)0, (word)(0xf00 + i));
        ((call_fn *)dlsym(handle, "cuFuncSetAttribute"))((word)0xf1, (word)8, (word)i);
    }
    return mixed;
}

static void race(void) {
    pthread_t threads[8];
    void *mixed[8];
    pthread_barrier_init(&together, NULL, 8);
    for (int i = 0; i < 8; i++)
        CHECK(pthread_create(&threads[i], NULL, racer, NULL) == 0);
    for (int i = 0; i < 8; i++)
        CHECK(pthread_join(threads[i], &mixed[i]) == 0);
    for (int i = 0; i < 8; i++)
        CHECK(mixed[i] == mixed[0]);
}

/* ---- other libraries ---- */

static void *open_beside(const char *name) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", getenv("SEAM_LIBRARIES"), name);
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    CHECK(handle);
    return handle;
}

static void profiler(void) {
    start();
    void *cupti = open_beside("libcupti.so.13");
    call_fn *enable = (call_fn *)dlsym(cupti, "cuptiActivityEnable");
    CHECK(lies_in((void *)enable, "libseam"));
    CHECK(lies_in(dlsym(cupti, "cuptiGetVersion"), "libcupti"));
    CHECK(enable(3) == 0); /* on */
    CHECK(enable(10) == 0);
    CHECK(enable(10) == 0);
    call_fn *disable = (call_fn *)dlsym(cupti, "cuptiActivityDisable");
    CHECK(disable(10) == 0);
    CHECK(disable(3) == 0); /* off */
    /* The exported symbol, as a program calls it that is linked to the library. A subscription
     * alone records nothing. */
    call_fn *subscribe = (call_fn *)dlsym(RTLD_DEFAULT, "cuptiSubscribe");
    word subscriber = 0;
    CHECK(subscribe && subscribe(&subscriber, (word)0, (word)0) == 0 && subscriber == 0x5b);
    call_fn *callback = (call_fn *)dlsym(cupti, "cuptiEnableCallback");
    CHECK(callback(1, subscriber, 3, 1) == 0); /* of the domain of resources */
    CHECK(callback(1, subscriber, 1, 1) == 0); /* of the driver API: on */
    CHECK(callback(0, subscriber, 1, 2) == 0);
    CHECK(((call_fn *)dlsym(cupti, "cuptiUnsubscribe"))(subscriber) == 0);              /* off */
    CHECK(((call_fn *)dlsym(cupti, "cuptiActivityEnableContext"))((word)0xc0, 3) == 0); /* on */
    CHECK(((call_fn *)dlsym(cupti, "cuptiFinalize"))((word)0) == 0);                    /* off */
}

static void profiler_first(void) {
    void *cupti = open_beside("libcupti.so.13");
    CHECK(((call_fn *)dlsym(cupti, "cuptiActivityEnable"))(3) == 0);
    start();
}

/* Linked to by a library that was opened locally, beside another version of it. */
static void profiler_linked(void) {
    start();
    open_beside("libcupti.so.12");
    void *user = open_beside("libuser.so");
    CHECK(((call_fn *)dlsym(user, "user_enable"))(3) == 0);
}

static void stats_in_time(void) {
    start();
    inside();
    const char *stats = getenv("CUSPLICE_STATS");
    CHECK(stats);
    for (int i = 0; i < 100 && access(stats, F_OK) != 0; i++)
        usleep(50000);
    CHECK(access(stats, F_OK) == 0);
}

static void private_route(void) {
    start();
    inside();
    CHECK(dlopen(getenv("SEAM_ROUTE"), RTLD_NOW | RTLD_LOCAL));
    word module;
    CALL(cuModuleLoadData, &module, "image");
    inside();
    CALL(cuModuleLoadData, &module, "image");
}

/* Not all of these calls and flags switch core dumps on. */
static void core_dumps(void) {
    char no = 0, yes = 1;
    word context, size = 1;
    start();
    CALL(cuCoredumpSetAttribute, 1, &no, &size);
    CALL(cuCoredumpSetAttribute, 1, NULL, &size);
    CALL(cuCoredumpSetAttribute, 3, &yes, &size);
    CALL(cuCoredumpGetAttribute, 1, &yes, &size);
    CALL(cuCtxCreate_v2, &context, 0x18, 0);
    inside();
    CALL(cuInit, 0);
    CALL(cuCoredumpSetAttribute, 1, &yes, &size);
    inside();
    CALL(cuCoredumpSetAttributeGlobal, 4, &yes, &size);
    CALL(cuCtxCreate, &context, 0x20, 0);
    CALL(cuCtxCreate_v2, &context, 0x20, 0);
    CALL(cuCtxCreate_v3, &context, NULL, 0, 0x40, 0);
    CALL(cuCtxCreate_v4, &context, NULL, 0x60, 0);
    CALL(cuDevicePrimaryCtxSetFlags, 0, 0x20);
    CALL(cuDevicePrimaryCtxSetFlags_v2, 0, 0x40);
}

static void core_dumps_early(void) {
    char yes = 1;
    word size = 1;
    open_cuda();
    CALL(cuCoredumpSetAttributeGlobal, 1, &yes, &size);
    CHECK(CALL(cuInit, 0) == 0);
    inside();
}

static void open_route(void) {
    open_beside("libnvcuvid.so.1");
}

/* By the driver itself, inside a call: nothing is issued there, and the next hook acts. */
static void private_route_inside(void) {
    start();
    ((void (*)(void (*)(void)))find("fake_callback"))(open_route);
    CALL(cuStreamSynchronize, (word)0x51);
    seam_log("opened");
    inside();
}

/* Modules and libraries out of memory of every sort, and what is made from them. */
static void origins(void) {
    static const struct {
        int magic, version;
        const void *data;
    } around = {0x466243b1, 1, "image"};
    start();
    word made[4], unused = 0;
    void *user = open_beside("libuser.so");
    const void *in_user = dlsym(user, "user_enable");
    struct {
        int magic, version;
        const void *data;
    } *wrapper = malloc(sizeof *wrapper), *nothing = calloc(1, sizeof *nothing);
    CHECK(in_user && wrapper && nothing);
    wrapper->magic = 0x466243b1;
    wrapper->version = 1;
    wrapper->data = in_user;
    CALL(cuModuleLoadData, made, "image");                                                  /* a0 */
    CALL(cuModuleLoadDataEx, made, in_user, (word)0, (word)0, (word)0);                     /* a1 */
    CALL(cuModuleLoadFatBinary, made, &around);                                             /* a2 */
    ANSWERS(0, cuModuleLoad, made, "/some/where/code.cubin");                               /* a3 */
    CALL(cuLibraryLoadData, made, in_user, unused, unused, unused, unused, unused, unused); /* a4 */
    CALL(cuLibraryLoadFromFile, made, "code.fatbin", unused, unused, unused, unused, unused,
         unused);                          /* a5 */
    CALL(cuModuleLoadData, made, nothing); /* a6 */
    CALL(cuModuleLoadData, made, wrapper); /* a7 */
    fake_result("cuModuleLoadData", 200);
    ANSWERS(200, cuModuleLoadData, made, "image"); /* fails: says nothing */
    CALL(cuModuleGetFunction, made, (word)0xa0, "f");
    CALL(cuLibraryGetKernel, made, (word)0xa4, "f");
    CALL(cuKernelGetFunction, made, (word)0xe1);
    CALL(cuLibraryEnumerateKernels, made, (word)4, (word)0xa5);
    CALL(cuLibraryGetModule, made, (word)0xa4);
    CALL(cuModuleUnload, (word)0xa0);
    CALL(cuLibraryUnload, (word)0xa4);
    free(wrapper);
    free(nothing);
}

int main(int argc, char **argv) {
    static const struct probe probes[] = {
        {"dlsym", by_dlsym},
        {"resolver", by_resolver},
        {"twins", twins},
        {"unknown", unknown},
        {"unknown_look_up", unknown_look_up},
        {"many", many},
        {"callers", callers},
        {"without_cuda", without_cuda},
        {"default", by_default},
        {"off", switched_off},
        {"callbacks", callbacks},
        {"callback_passed", callback_passed},
        {"private_route_inside", private_route_inside},
        {"fork", forked},
        {"leaving", leaving},
        {"failing_init", failing_init},
        {"late_error", late_error},
        {"profiler", profiler},
        {"profiler_first", profiler_first},
        {"private_route", private_route},
        {"core_dumps", core_dumps},
        {"core_dumps_early", core_dumps_early},
        {"race", race},
        {"origins", origins},
        {"profiler_linked", profiler_linked},
        {"stats_in_time", stats_in_time},
    };
    CHECK(argc == 2);
    const struct probe *found = NULL;
    for (unsigned i = 0; i < sizeof probes / sizeof *probes; i++)
        found = strcmp(argv[1], probes[i].name) == 0 ? &probes[i] : found;
    for (const struct probe *probe = probes_of_calls; probe->name; probe++)
        found = strcmp(argv[1], probe->name) == 0 ? probe : found;
    CHECK(found); /* a known probe */
    found->run();
}
