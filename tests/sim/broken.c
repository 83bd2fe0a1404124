/*
 * A preload with mistakes on purpose, which the tests must find. CUS_BROKEN selects: "drop" (every
 * 50th launch), "twice", "value" (a parameter changes), "late" (a launch is issued after the next
 * one), "grid", "memset" (dropped), "wait" (every 7th wait of a stream for an event is dropped),
 * "code" (an error is reported late), "early" (every 7th launch may begin before the one ahead has
 * ended), "behind" (a launch of one thread is issued behind three launches on other streams),
 * "build" (every 50th launch makes a stream).
 *
 * Runs on the program's threads; holds no lock; calls only the real functions.
 */
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

typedef CUresult (*launch_fn)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned,
                              unsigned, unsigned, CUstream, void **, void **);

typedef CUresult (*create_fn)(CUstream *, unsigned);
typedef CUresult (*destroy_fn)(CUstream);

static int is(const char *what) {
    const char *mode = getenv("CUS_BROKEN");
    return mode && strcmp(mode, what) == 0;
}

static struct {
    CUfunction fn;
    unsigned grid, block, n;
    CUstream s;
    unsigned long long value[4];
} kept;

CUresult cuLaunchKernel(CUfunction fn, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                        unsigned by, unsigned bz, unsigned smem, CUstream s, void **params,
                        void **extra) {
    static unsigned count;
    launch_fn real = (launch_fn)dlsym(RTLD_NEXT, "cuLaunchKernel");
    int now = ++count % 50 == 0;
    if (now && is("drop")) {
        return CUDA_SUCCESS;
    }
    if (now && is("grid") && gx > 1) {
        gx--;
    }
    if (now && is("value") && params) {
        unsigned long long first = **(unsigned long long **)params;
        unsigned value = *(unsigned *)params[1] + 1;
        void *changed[16];
        memcpy(changed, params, 4 * sizeof(void *));
        changed[0] = &first;
        changed[1] = &value;
        return real(fn, gx, gy, gz, bx, by, bz, smem, s, changed, extra);
    }
    if (is("late") && params) {
        /* The chain kernel: an address, two factors, a count. */
        if (now && !kept.fn) {
            kept.fn = fn, kept.grid = gx, kept.block = bx, kept.s = s;
            kept.value[0] = *(unsigned long long *)params[0];
            for (int i = 1; i < 4; i++) {
                kept.value[i] = *(unsigned *)params[i];
            }
            return CUDA_SUCCESS;
        }
        CUresult code = real(fn, gx, gy, gz, bx, by, bz, smem, s, params, extra);
        if (kept.fn) {
            void *later[] = {&kept.value[0], &kept.value[1], &kept.value[2], &kept.value[3]};
            real(kept.fn, kept.grid, 1, 1, kept.block, 1, 1, 0, kept.s, later, NULL);
            kept.fn = NULL;
        }
        return code;
    }
    if (now && is("build")) {
        CUstream made;
        if (((create_fn)dlsym(RTLD_NEXT, "cuStreamCreate"))(&made, CU_STREAM_NON_BLOCKING) ==
            CUDA_SUCCESS) {
            ((destroy_fn)dlsym(RTLD_NEXT, "cuStreamDestroy_v2"))(made);
        }
    }
    /* The set_flag kernel: an address and a value. */
    if (is("behind") && !kept.fn && gx * bx == 1) {
        kept.fn = fn, kept.s = s, kept.n = 3;
        kept.value[0] = *(unsigned long long *)params[0];
        kept.value[1] = *(unsigned *)params[1];
        return CUDA_SUCCESS;
    }
    CUresult code = real(fn, gx, gy, gz, bx, by, bz, smem, s, params, extra);
    if (is("behind") && kept.fn && --kept.n == 0) {
        real(kept.fn, 1, 1, 1, 1, 1, 1, 0, kept.s, (void *[]){&kept.value[0], &kept.value[1]},
             NULL);
        kept.fn = NULL;
    }
    if (now && is("twice")) {
        real(fn, gx, gy, gz, bx, by, bz, smem, s, params, extra);
    }
    return is("code") ? CUDA_SUCCESS : code;
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction fn, void **params,
                          void **extra) {
    typedef CUresult (*launch_ex_fn)(const CUlaunchConfig *, CUfunction, void **, void **);
    static unsigned count;
    CUlaunchAttribute early = {.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION};
    CUlaunchConfig changed = *config;
    if (is("early") && ++count % 7 == 0) {
        early.value.programmaticStreamSerializationAllowed = 1;
        changed.attrs = &early;
        changed.numAttrs = 1;
    }
    return ((launch_ex_fn)dlsym(RTLD_NEXT, "cuLaunchKernelEx"))(&changed, fn, params, extra);
}

CUresult cuMemsetD32Async(CUdeviceptr dst, unsigned value, size_t n, CUstream s) {
    typedef CUresult (*fn)(CUdeviceptr, unsigned, size_t, CUstream);
    static unsigned count;
    if (is("memset") && ++count % 7 == 0) {
        return CUDA_SUCCESS;
    }
    return ((fn)dlsym(RTLD_NEXT, "cuMemsetD32Async"))(dst, value, n, s);
}

CUresult cuStreamWaitEvent(CUstream s, CUevent event, unsigned flags) {
    typedef CUresult (*fn)(CUstream, CUevent, unsigned);
    static unsigned count;
    if (is("wait") && ++count % 7 == 0) {
        return CUDA_SUCCESS;
    }
    return ((fn)dlsym(RTLD_NEXT, "cuStreamWaitEvent"))(s, event, flags);
}
