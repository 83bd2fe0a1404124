/*
 * Finds the driver for the stand-ins of libcudart and libcublas; each has its own copy of this
 * file.
 *
 * Runs under pthread_once on the thread that makes the first CUDA call. It must find the driver
 * only by dlopen, dlsym and cuGetProcAddress, because the stand-ins exist to test that route.
 */
#include "harness/sim/rt/driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>

/* The toolkit version of the stand-ins. */
#define RT_VERSION 13000

static struct rt_driver tables[RT_ZEROS];
static CUresult outcome = CUDA_ERROR_STUB_LIBRARY;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static const struct {
    const char *name;
    size_t field;
} names[] = {
    {"cuCtxSynchronize", offsetof(struct rt_driver, p_cuCtxSynchronize)},
    {"cuCtxGetDevice", offsetof(struct rt_driver, p_cuCtxGetDevice)},
#define RT_DRIVER(fn) {#fn, offsetof(struct rt_driver, p_##fn)},
#include "harness/sim/rt/driver.def"
#undef RT_DRIVER
};

typedef CUresult (*get_proc_fn)(const char *, void **, int, cuuint64_t,
                                CUdriverProcAddressQueryResult *);

static void load(void) {
    static const cuuint64_t flags[RT_ZEROS] = {
        [RT_LEGACY] = CU_GET_PROC_ADDRESS_LEGACY_STREAM,
        [RT_PER_THREAD] = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM,
    };
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    get_proc_fn get_proc = library ? (get_proc_fn)dlsym(library, "cuGetProcAddress_v2") : NULL;
    if (!get_proc) {
        return;
    }
    for (int zero = 0; zero < RT_ZEROS; zero++) {
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
            void *found = NULL;
            CUdriverProcAddressQueryResult how;
            if (get_proc(names[i].name, &found, RT_VERSION, flags[zero], &how) != CUDA_SUCCESS) {
                found = NULL;
            }
            *(void **)((char *)&tables[zero] + names[i].field) = found;
        }
    }
    outcome = RT_CALL(&tables[RT_LEGACY], cuInit, 0);
}

const struct rt_driver *rt_driver(enum rt_zero zero, CUresult *why) {
    pthread_once(&once, load);
    *why = outcome;
    return outcome == CUDA_SUCCESS ? &tables[zero] : NULL;
}
