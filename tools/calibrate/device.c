/*
 * Finds the driver by name, sets it up, and computes medians and quartiles. Both parts call it;
 * calibrate_run, which picks the part, is here. It never preloads anything.
 */
#include "tools/calibrate/device.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tools/calibrate/calibrate.h"
#include "tools/trace/clean.h"

/* chain, fill and spin_until of kernels/, for any GPU since Maxwell; the driver compiles them. The
 * simulator knows them by their names. */
const char calibrate_ptx[] =
    ".version 6.0\n"
    ".target sm_50\n"
    ".address_size 64\n"
    ".visible .entry chain(.param .u64 x, .param .u32 a, .param .u32 b, .param .u32 n)\n"
    "{\n"
    ".reg .pred %p1;\n"
    ".reg .b32 %r<10>;\n"
    ".reg .b64 %rd<5>;\n"
    "ld.param.u64 %rd1, [x];\n"
    "ld.param.u32 %r1, [a];\n"
    "ld.param.u32 %r2, [b];\n"
    "ld.param.u32 %r3, [n];\n"
    "mov.u32 %r4, %ctaid.x;\n"
    "mov.u32 %r5, %ntid.x;\n"
    "mov.u32 %r6, %tid.x;\n"
    "mad.lo.s32 %r7, %r4, %r5, %r6;\n"
    "setp.ge.s32 %p1, %r7, %r3;\n"
    "@%p1 bra DONE;\n"
    "cvta.to.global.u64 %rd2, %rd1;\n"
    "mul.wide.s32 %rd3, %r7, 4;\n"
    "add.s64 %rd4, %rd2, %rd3;\n"
    "ld.global.u32 %r8, [%rd4];\n"
    "mad.lo.s32 %r9, %r8, %r1, %r2;\n"
    "st.global.u32 [%rd4], %r9;\n"
    "DONE:\n"
    "ret;\n"
    "}\n"
    ".visible .entry fill(.param .u64 x, .param .u32 value, .param .u32 n)\n"
    "{\n"
    ".reg .pred %p1;\n"
    ".reg .b32 %r<7>;\n"
    ".reg .b64 %rd<5>;\n"
    "ld.param.u64 %rd1, [x];\n"
    "ld.param.u32 %r1, [value];\n"
    "ld.param.u32 %r2, [n];\n"
    "mov.u32 %r3, %ctaid.x;\n"
    "mov.u32 %r4, %ntid.x;\n"
    "mov.u32 %r5, %tid.x;\n"
    "mad.lo.s32 %r6, %r3, %r4, %r5;\n"
    "setp.ge.s32 %p1, %r6, %r2;\n"
    "@%p1 bra DONE;\n"
    "cvta.to.global.u64 %rd2, %rd1;\n"
    "mul.wide.s32 %rd3, %r6, 4;\n"
    "add.s64 %rd4, %rd2, %rd3;\n"
    "st.global.u32 [%rd4], %r1;\n"
    "DONE:\n"
    "ret;\n"
    "}\n"
    ".visible .entry spin_until(.param .u64 flag, .param .u32 value, .param .u64 rounds, .param "
    ".u64 out)\n"
    "{\n"
    ".reg .pred %p<3>;\n"
    ".reg .b32 %r<4>;\n"
    ".reg .b64 %rd<7>;\n"
    "ld.param.u64 %rd1, [flag];\n"
    "ld.param.u32 %r1, [value];\n"
    "ld.param.u64 %rd2, [rounds];\n"
    "ld.param.u64 %rd3, [out];\n"
    "cvta.to.global.u64 %rd4, %rd1;\n"
    "cvta.to.global.u64 %rd5, %rd3;\n"
    "mov.u64 %rd6, 0;\n"
    "AGAIN:\n"
    "ld.volatile.global.u32 %r2, [%rd4];\n"
    "setp.ge.u32 %p1, %r2, %r1;\n"
    "@%p1 bra SEEN;\n"
    "add.s64 %rd6, %rd6, 1;\n"
    "setp.lt.u64 %p2, %rd6, %rd2;\n"
    "@%p2 bra AGAIN;\n"
    "SEEN:\n"
    "st.global.u32 [%rd5], %r2;\n"
    "ret;\n"
    "}\n";

static _Noreturn void end(const char *what, const char *why) {
    clean_print(stderr, "cusplice: calibrate: %s: %s\n", what, why);
    exit(1);
}

void device_must(CUresult result, const char *call) {
    char code[32];
    if (result == CUDA_SUCCESS)
        return;
    snprintf(code, sizeof code, "error %d", (int)result);
    end(call, code);
}

void device_start(struct device *d) {
    CUcontext context;
    CUmodule module;
    void *host;
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!driver)
        end("no CUDA driver", dlerror());
#define X(name)                                                                                    \
    if (!(d->name = (__typeof__(&name))dlsym(driver, #name)))                                      \
        end("the CUDA driver is too old: it has no", #name);
    DEVICE_CALLS(X)
#undef X
    MUST(d->cuInit(0));
    MUST(d->cuDeviceGet(&d->device, 0));
    MUST(d->cuDevicePrimaryCtxRetain(&context, d->device));
    MUST(d->cuCtxSetCurrent(context));
    MUST(d->cuModuleLoadData(&module, calibrate_ptx));
    MUST(d->cuModuleGetFunction(&d->chain, module, CALIBRATE_KERNEL));
    MUST(d->cuModuleGetFunction(&d->fill, module, "fill"));
    MUST(d->cuModuleGetFunction(&d->spin, module, "spin_until"));
    MUST(d->cuMemAlloc_v2(&d->words, DEVICE_WORDS * 4));
    MUST(d->cuMemAlloc_v2(&d->other, DEVICE_WORDS * 4));
    MUST(d->cuMemHostAlloc(&host, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
    MUST(d->cuMemHostGetDevicePointer_v2(&d->gate, host, 0));
    d->flag = host;
    d->flag[0] = d->flag[1] = 0;
    MUST(d->cuStreamCreate(&d->stream, CU_STREAM_NON_BLOCKING));
}

void device_chain(struct device *d, unsigned b) {
    unsigned a = 3;
    int n = DEVICE_WORDS;
    void *params[] = {&d->words, &a, &b, &n};
    MUST(d->cuLaunchKernel(d->chain, 1, 1, 1, DEVICE_WORDS, 1, 1, 0, d->stream, params, NULL));
}

void device_memset(struct device *d) {
    MUST(d->cuMemsetD32Async(d->words, 1, DEVICE_WORDS, d->stream));
}

uint64_t device_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- measurements ---- */

void series_add(struct series *series, double value) {
    if (series->n < SERIES)
        series->values[series->n++] = value;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double part(struct series *series, double share) {
    qsort(series->values, series->n, sizeof *series->values, by_value);
    return series->n ? series->values[(size_t)(share * (double)(series->n - 1))] : 0;
}

double series_median(struct series *series) {
    return part(series, 0.5);
}

double series_apart(struct series *series) {
    return part(series, 0.75) - part(series, 0.25);
}

void tell(const char *name, double value, double apart) {
    printf("%s %.3f %.3f\n", name, value > 0 ? value : 0, apart);
}

void series_tell(const char *name, struct series *series) {
    tell(name, series_median(series), series_apart(series));
}

int calibrate_run(enum calibrate_part part) {
    return part == CALIBRATE_DRIVER ? driver_part() : loop_part(part == CALIBRATE_LOOP);
}
