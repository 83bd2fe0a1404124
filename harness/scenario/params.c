/*
 * The forms of a launch: parameters of all sizes, the packed buffer, launch attributes, cooperative
 * launches, handles of both kinds. Main thread.
 */
#include "harness/scenario/sc.h"

#include <string.h>

enum { N = 256 };

static void many(struct sc *sc, CUstream s, CUdeviceptr out, CUdeviceptr j, unsigned v) {
    signed char a = (signed char)v;
    short b = (short)(v * 3);
    int c = (int)v * 5;
    long long d = (long long)v * 0x100000001;
    float e = (float)v / 3;
    double f = (double)v / 7;
    unsigned char g = (unsigned char)(v * 11);
    struct cus_mixed h;
    unsigned short i = (unsigned short)(v * 13);
    unsigned long long k = v * 0x123456789abcull;
    memset(&h, 0, sizeof(h));
    h.tag = (signed char)(v + 1);
    h.weight = v * 0.5;
    h.parts[1] = (short)v;
    void *params[] = {&out, &a, &b, &c, &d, &e, &f, &g, &h, &i, &j, &k};
    OK(sc_launch(sc, sc->fn[SC_many_params], 1, 1, 0, s, params));
    /* The driver copied the values at the call. */
    a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, i = 0, k = 0;
    memset(&h, 0xEE, sizeof(h));
    memset(params, 0, sizeof(params));
}

int sc_run_many_params(struct sc *sc) {
    CUstream s;
    struct cus_big big;
    sc_start(sc);
    CUdeviceptr out = sc_device(sc, "out", 32), j = sc_device(sc, "j", 1);
    CUdeviceptr words = sc_device(sc, "words", CUS_BIG_WORDS * 2);
    OK(sc->cu.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
    for (unsigned step = 0; step < sc_steps(sc, 24); step++) {
        for (unsigned i = 0; i < 6; i++) {
            /* Some of them change every step, some never. */
            many(sc, s, out + i * 8, j, i % 2 ? i : step * 10 + i);
            CUdeviceptr to = words + i % 2 * sizeof(big);
            for (unsigned w = 0; w < CUS_BIG_WORDS; w++) {
                big.word[w] = i % 2 ? w : w * step;
            }
            OK(sc_launch(sc, sc->fn[SC_big_params], 1, 256, 0, s, (void *[]){&to, &big}));
            memset(&big, 0xEE, sizeof(big));
            sc_touch(sc, s, j);
        }
        OK(sc->cu.StreamSynchronize(s));
    }
    sc_digest(sc);
    return 0;
}

/* The packed buffer in place of the pointers. */
int sc_run_extra_form(struct sc *sc) {
    CUstream s;
    sc_start(sc);
    CUdeviceptr x = sc_device(sc, "x", N);
    OK(sc->cu.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
    for (unsigned step = 0; step < sc_steps(sc, 24); step++) {
        for (unsigned i = 0; i < 10; i++) {
            struct {
                CUdeviceptr x;
                unsigned a, b;
                int n;
            } buffer = {x, 3, step + i, N};
            /* Up to the end of the last argument. In some steps the size includes the padding
             * after it, and the call fails. */
            size_t bytes = i == 7 && step % 4 == 3 ? sizeof(buffer) : 20;
            void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &buffer, CU_LAUNCH_PARAM_BUFFER_SIZE,
                             &bytes, CU_LAUNCH_PARAM_END};
            if (i % 3) {
                sc_code(sc, sc->cu.LaunchKernel(sc->fn[SC_chain], N / 64, 1, 1, 64, 1, 1, 0, s,
                                                NULL, extra));
            } else {
                CUlaunchConfig config = {.gridDimX = N / 64,
                                         .gridDimY = 1,
                                         .gridDimZ = 1,
                                         .blockDimX = 64,
                                         .blockDimY = 1,
                                         .blockDimZ = 1,
                                         .hStream = s};
                OK(sc->cu.LaunchKernelEx(&config, sc->fn[SC_chain], NULL, extra));
            }
            memset(&buffer, 0xEE, sizeof(buffer));
            bytes = 0;
        }
        OK(sc->cu.StreamSynchronize(s));
    }
    sc_digest(sc);
    return 0;
}

/* Attributes. The bytes of the union that an attribute does not use hold other garbage each
 * time. */
int sc_run_launch_ex(struct sc *sc) {
    CUstream s;
    sc_start(sc);
    CUdeviceptr x = sc_device(sc, "x", N), y = sc_device(sc, "y", N), p = sc_device(sc, "p", 8);
    int n = N;
    OK(sc->cu.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
    for (unsigned step = 0; step < sc_steps(sc, 24); step++) {
        for (unsigned i = 0; i < 12; i++) {
            CUlaunchAttribute attribute[2];
            unsigned a = 3, b = step + i;
            /* A kernel that may start before the previous one ended uses its own memory. */
            void *params[] = {i % 6 ? &x : &y, &a, &b, &n}, *touch[] = {&p};
            CUlaunchConfig config = {.gridDimX = N / 64,
                                     .gridDimY = 1,
                                     .gridDimZ = 1,
                                     .blockDimX = 64,
                                     .blockDimY = 1,
                                     .blockDimZ = 1,
                                     .hStream = s,
                                     .attrs = attribute};
            memset(attribute, (int)(step * 16 + i), sizeof(attribute));
            switch (i % 6) {
            case 0:
                attribute[0].id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
                attribute[0].value.programmaticStreamSerializationAllowed = (int)(i / 6);
                config.numAttrs = 1;
                break;
            case 1:
                attribute[0].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
                attribute[0].value.clusterDim.x = 1 + i / 6;
                attribute[0].value.clusterDim.y = 1;
                attribute[0].value.clusterDim.z = 1;
                config.numAttrs = 1;
                break;
            case 2:
                attribute[0].id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
                attribute[0].value.priority = 0;
                attribute[1].id = CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN;
                attribute[1].value.memSyncDomain = CU_LAUNCH_MEM_SYNC_DOMAIN_DEFAULT;
                config.numAttrs = 2;
                break;
            case 3:
                attribute[0].id = CU_LAUNCH_ATTRIBUTE_IGNORE;
                config.numAttrs = 1;
                break;
            case 4:
                attribute[0].id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
                attribute[0].value.cooperative = (int)(i / 6);
                config.numAttrs = 1;
                break;
            default:
                config.numAttrs = 0;
                break;
            }
            CUresult code =
                sc_code(sc, sc->cu.LaunchKernelEx(&config, sc->fn[SC_chain], params, NULL));
            if (step == 0) {
                sc_say(sc, "attribute set %u: %d", i, (int)code);
            }
            if (i % 6 == 1) { /* this one was compiled with a cluster size */
                config.gridDimX = 2 + 2 * (step % 2);
                config.blockDimX = 1;
                attribute[0].value.clusterDim.x = 2;
                sc_code(sc, sc->cu.LaunchKernelEx(&config, sc->fn[SC_cluster_touch], touch, NULL));
            }
        }
        OK(sc->cu.StreamSynchronize(s));
    }
    sc_digest(sc);
    return 0;
}

static void may_overlap(struct sc *sc, CUstream s, CUdeviceptr dst, CUdeviceptr src, unsigned b,
                        bool programmatic, int waits) {
    unsigned a = 5;
    int n = N;
    CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION};
    attribute.value.programmaticStreamSerializationAllowed = programmatic;
    CUlaunchConfig config = {.gridDimX = N / 64,
                             .gridDimY = 1,
                             .gridDimZ = 1,
                             .blockDimX = 64,
                             .blockDimY = 1,
                             .blockDimZ = 1,
                             .hStream = s,
                             .attrs = &attribute,
                             .numAttrs = 1};
    OK(sc->cu.LaunchKernelEx(&config, sc->fn[SC_overlap],
                             (void *[]){&dst, &src, &a, &b, &n, &waits}, NULL));
}

/* The second kernel waits for the first. The third never waits, and uses memory of its own. The
 * fourth begins when all three have ended. */
int sc_run_programmatic(struct sc *sc) {
    CUstream s;
    sc_start(sc);
    CUdeviceptr x = sc_device(sc, "x", N), y = sc_device(sc, "y", N), z = sc_device(sc, "z", N);
    CUdeviceptr v = sc_device(sc, "v", N), w = sc_device(sc, "w", N);
    OK(sc->cu.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
    for (unsigned step = 0; step < sc_steps(sc, 24); step++) {
        for (unsigned i = 0; i < 4; i++) {
            may_overlap(sc, s, y, x, step + i, false, 0);
            may_overlap(sc, s, z, y, i, true, 1);
            may_overlap(sc, s, w, v, step, true, 0);
            may_overlap(sc, s, x, z, i, false, 0);
            sc_chain(sc, s, v, 3, step + i, N);
        }
        OK(sc->cu.StreamSynchronize(s));
    }
    sc_digest(sc);
    return 0;
}

int sc_run_cooperative(struct sc *sc) {
    CUstream s;
    sc_start(sc);
    CUdeviceptr x = sc_device(sc, "x", N);
    int n = N;
    OK(sc->cu.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
    for (unsigned step = 0; step < sc_steps(sc, 24); step++) {
        for (unsigned i = 0; i < 10; i++) {
            unsigned a = 3, b = step + i;
            void *params[] = {&x, &a, &b, &n};
            if (i % 3 == 1) {
                /* In some steps far more blocks than can be resident: this call fails. */
                unsigned grid = i == 7 && step % 4 == 3 ? 10000000 : N / 64;
                sc_code(sc, sc->cu.LaunchCooperative(sc->fn[SC_chain], grid, 1, 1, 64, 1, 1, 0, s,
                                                     params));
            } else {
                OK(sc_launch(sc, sc->fn[SC_chain], N / 64, 64, 0, s, params));
            }
        }
        OK(sc->cu.StreamSynchronize(s));
    }
    sc_digest(sc);
    return 0;
}

/* In turn: a function of a module, a kernel of a library, and the function of that kernel. */
int sc_run_handles(struct sc *sc) {
    CUstream s;
    CUlibrary library;
    CUkernel kernel;
    CUfunction of_kernel;
    sc_start(sc);
    CUdeviceptr x = sc_device(sc, "x", N);
    int n = N;
    OK(sc->cu.LibraryLoadData(&library, sc_image(), NULL, NULL, 0, NULL, NULL, 0));
    OK(sc->cu.LibraryGetKernel(&kernel, library, "chain"));
    OK(sc->cu.KernelGetFunction(&of_kernel, kernel));
    OK(sc->cu.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
    for (unsigned step = 0; step < sc_steps(sc, 24); step++) {
        for (unsigned i = 0; i < 12; i++) {
            CUfunction fn[] = {sc->fn[SC_chain], (CUfunction)kernel, of_kernel};
            unsigned a = 3 + 2 * (i % 3), b = step + i;
            OK(sc_launch(sc, fn[i % 3], N / 64, 64, 0, s, (void *[]){&x, &a, &b, &n}));
        }
        OK(sc->cu.StreamSynchronize(s));
    }
    sc_digest(sc);
    OK(sc->cu.LibraryUnload(library));
    return 0;
}

/* The limit of shared memory is raised and lowered while launches are pending. */
int sc_run_func_attribute(struct sc *sc) {
    CUstream s;
    int n = 1024, value = 0;
    sc_start(sc);
    CUdeviceptr x = sc_device(sc, "x", 1024), sum = sc_device(sc, "sum", 2);
    CUfunction fn = sc->fn[SC_reduce_dynamic];
    OK(sc->cu.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
    for (unsigned step = 0; step < sc_steps(sc, 36); step++) {
        for (unsigned i = 0; i < 5; i++) {
            sc_chain(sc, s, x, 3, step + i, 1024);
            OK(sc_launch(sc, fn, 4, 256, 2048, s, (void *[]){&sum, &x, &n}));
        }
        int limit = step / 12 % 2 ? 64 * 1024 : step % 4 == 3 ? 56 * 1024 : 48 * 1024;
        sc_code(sc, sc->cu.FuncSetAttribute(fn, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                            limit));
        for (unsigned i = 0; i < 4; i++) {
            CUresult code = sc_code(
                sc, sc_launch(sc, fn, 4, 256, (40 + 8 * i) * 1024, s, (void *[]){&sum, &x, &n}));
            if (step == 0 || step == 12) {
                sc_say(sc, "limit %d, %u KiB: %d", limit, 40 + 8 * i, (int)code);
            }
            sc_chain(sc, s, x, 5, step + i, 1024);
        }
        sc_code(sc, sc->cu.FuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                            fn));
        sc_code(sc, (CUresult)value);
        OK(sc->cu.StreamSynchronize(s));
    }
    sc_digest(sc);
    return 0;
}
