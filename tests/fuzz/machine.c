/*
 * The verbs of generated programs, one function each, and the code that runs them.
 *
 * The fuzzer's servers are built from this file. A program that differs is printed as one C file;
 * it begins with the parts of this file that it uses (lines that begin with "@ part" separate
 * them). So this file needs only cuda.h and libc.
 *
 * A lane is a stream with its own memory, and belongs to one thread. Only work of the lane, or work
 * ordered with it by events or the host, uses its memory; so all right runs give the same memory
 * and codes. A program stays right if any operation is removed. Each thread has a `struct turn`;
 * SOLO verbs run while others wait.
 */
/*@ part start */
#define _GNU_SOURCE
#include <cuda.h>

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LANES = 6, BUFFERS = 3, WORDS = 256, SLOTS = 2, THREADS = 4, KERNELS = 13, RING = 8 };

enum lane_kind { LEGACY, PER_THREAD, BLOCKING, NON_BLOCKING, URGENT, LOW_BLOCKING };

struct lane {
    CUstream s;
    enum lane_kind kind;
    unsigned thread;
    CUdeviceptr buffer[BUFFERS];
    CUdeviceptr given; /* words of each lane: what it writes where this one has forked it */
    unsigned *pinned_in, *pinned_out, *flags; /* pinned; the host reads flags[] at any time */
    unsigned *page_in, *page_out;             /* pageable, a page each */
    unsigned *scratch;                        /* pinned, comes and goes */
    CUdeviceptr extra;                        /* device memory that comes and goes */
    CUmemoryPool pool;                        /* of the verbs pool_own and pool_change */
    CUdeviceptr kept;                         /* of a pool, which may be gone */
    unsigned extra_words, called, flag_value;
    CUevent made, taken, other, timed[2];
    CUevent ring[RING];   /* of the verbs ring_*; each second one is untimed */
    unsigned down, named; /* bits: behind its last record what ring_down copied is there; a graph
                           * that stays names it */
    CUgraph graph[SLOTS];
    CUgraphExec exec[SLOTS];
};

struct turn;

struct op {
    void (*verb)(struct turn *t);
    unsigned lane, other, buffer;
    unsigned every, phase, repeat; /* in steps where step % every == phase, so many times */
    unsigned vary;                 /* the value changes from step to step */
    unsigned value;
    int size, grow; /* words, and by how much more in each step */
    unsigned flags;
};

enum { SOLO = 1, ALL = 2 };

struct code {
    unsigned short op, step;
    int code;
};

/* A context that the program makes itself. */
struct second {
    CUcontext ctx;
    CUmodule module;
    CUfunction chain, trap;
    CUstream s;
    CUdeviceptr x;
    CUevent passed;
};

struct machine {
    CUcontext ctx;
    CUmodule module;
    const char *image; /* file of the kernels */
    CUfunction fn[KERNELS];
    struct lane lane[LANES];
    unsigned lanes, threads, steps, n_ops;
    const struct op *ops;
    struct second second;
    CUmodule own; /* of module_use; NULL: not there */
    CUfunction own_chain;
    struct lane *capturing; /* between the verbs capture_begin and capture_end */
    pthread_barrier_t barrier;
    struct code *codes[THREADS];
    unsigned n_codes[THREADS], cap_codes[THREADS];
};

/* One operation that is being done. */
struct turn {
    struct machine *m;
    unsigned thread, step, number;
    struct lane *l, *o;
    CUdeviceptr x, y; /* two of the lane's buffers */
    unsigned v;
    int n; /* words */
};

enum kernel {
    K_chain,
    K_copy_words,
    K_add_scalar,
    K_fill,
    K_many_params,
    K_big_params,
    K_reduce_dynamic,
    K_touch,
    K_cluster_touch,
    K_set_flag,
    K_spin_until,
    K_saxpy_n,
    K_overlap
};
static const char *const kernel_names[KERNELS] = {
    "chain",      "copy_words",     "add_scalar", "fill",          "many_params",
    "big_params", "reduce_dynamic", "touch",      "cluster_touch", "set_flag",
    "spin_until", "saxpy_n",        "overlap"};

static CUresult note(struct turn *t, CUresult code) {
    struct machine *m = t->m;
    unsigned i = t->thread;
    if (m->n_codes[i] == m->cap_codes[i]) {
        m->cap_codes[i] = m->cap_codes[i] * 2 + 256;
        m->codes[i] = realloc(m->codes[i], m->cap_codes[i] * sizeof(struct code));
        if (!m->codes[i])
            abort();
    }
    m->codes[i][m->n_codes[i]++] =
        (struct code){(unsigned short)t->number, (unsigned short)t->step, (int)code};
    return code;
}

#define MUST(call) must((call), #call)
static void must(CUresult code, const char *call) {
    if (code != CUDA_SUCCESS) {
        fprintf(stderr, "FAILED %s: %d\n", call, (int)code);
        fflush(stderr);
        _Exit(3);
    }
}

static uint64_t hash(uint64_t h, const void *data, size_t bytes) {
    const unsigned char *p = data;
    for (size_t i = 0; i < bytes; i++)
        h = (h ^ p[i]) * 1099511628211u;
    return h;
}

static void note_bytes(struct turn *t, const void *data, size_t bytes) {
    note(t, (CUresult)(int)(hash(14695981039346656037u, data, bytes) >> 33));
}

static inline CUresult launch(struct turn *t, enum kernel k, unsigned grid, unsigned block,
                              unsigned smem, void **params) {
    return note(t,
                cuLaunchKernel(t->m->fn[k], grid, 1, 1, block, 1, 1, smem, t->l->s, params, NULL));
}

static inline void do_chain(struct turn *t, CUdeviceptr x, unsigned a, unsigned b, int n) {
    launch(t, K_chain, (unsigned)(n + 63) / 64, 64, 0, (void *[]){&x, &a, &b, &n});
}

static inline void do_copy(struct turn *t, CUdeviceptr y, CUdeviceptr x, int n) {
    launch(t, K_copy_words, (unsigned)(n + 63) / 64, 64, 0, (void *[]){&y, &x, &n});
}

static inline void do_fill(struct turn *t, CUdeviceptr x, unsigned v, int n) {
    launch(t, K_fill, (unsigned)(n + 63) / 64, 64, 0, (void *[]){&x, &v, &n});
}

static inline CUdeviceptr device(void *pinned) {
    CUdeviceptr p = 0;
    cuMemHostGetDevicePointer(&p, pinned, 0);
    return p;
}

static inline void pause_us(unsigned us) {
    nanosleep(&(struct timespec){.tv_nsec = (long)us * 1000}, NULL);
}

/* Between two questions of a poll: at once at first, then seldom, so a long one makes few calls. */
static inline void poll_pause(unsigned asked) {
    if (asked < 64)
        sched_yield();
    else
        pause_us(asked < 512 ? 50 : 1000);
}

/* What ring_down copies in front of a record of this event. */
static inline unsigned *ring_words(const struct lane *l, unsigned i) {
    return l->pinned_out + WORDS + 64 + 16 * i;
}

static inline void ring_down(struct turn *t, unsigned i) {
    struct lane *l = t->l;
    note(t, cuMemcpyDtoHAsync(ring_words(l, i), t->x, 64, l->s));
    if (note(t, cuEventRecord(l->ring[i], l->s)) == CUDA_SUCCESS)
        l->down |= 1u << i;
}

/* Waits by sleeping or by asking. */
static inline CUresult ring_pass(struct turn *t, CUevent event, int sleeps) {
    CUresult code = sleeps ? cuEventSynchronize(event) : cuEventQuery(event);
    for (unsigned n = 0; code == CUDA_ERROR_NOT_READY; n++) {
        poll_pause(n);
        code = cuEventQuery(event);
    }
    return note(t, code);
}

/* What a lane writes that `home` has forked; read by `home` behind the join. */
static inline CUdeviceptr fork_given(struct turn *t, const struct lane *home,
                                     const struct lane *side) {
    return home->given + (CUdeviceptr)(side - t->m->lane) * WORDS * 4;
}

/* `then` waits for `first` by this event. */
static inline void fork_by(struct turn *t, CUevent e, struct lane *first, struct lane *then) {
    note(t, cuEventRecord(e, first->s));
    note(t, cuStreamWaitEvent(then->s, e, 0));
}

/* `then` waits for `first`: by the event of the lane, one of its ring, or one that is made for it.
 */
static inline void fork_order(struct turn *t, struct lane *first, struct lane *then, unsigned how) {
    CUevent e = how % 3 ? first->ring[how / 3 % RING] : first->made;
    if (how % 3 == 2)
        MUST(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
    fork_by(t, e, first, then);
    if (how % 3 == 2)
        note(t, cuEventDestroy(e));
}

/* One op of the lane. */
static inline void fork_work(struct turn *t, struct lane *l, CUdeviceptr x, unsigned how) {
    struct lane *before = t->l;
    unsigned loose[4] = {how, how + 1, how + 2, how + 3};
    t->l = l;
    if (how % 8 == 3)
        note(t, cuMemsetD32Async(x, how, (size_t)t->n, l->s));
    else if (how % 8 == 4)
        note(t, cuMemcpyDtoHAsync(l->pinned_out + how % 7, x, (size_t)t->n * 3, l->s));
    else if (how % 8 == 5)
        note(t, cuMemcpyHtoDAsync(x, l->pinned_in + how % 7, (size_t)t->n * 3, l->s));
    else if (how % 8 == 6)
        note(t, cuMemcpyHtoDAsync(x, loose, sizeof(loose), l->s));
    else
        do_chain(t, x, 3, how, t->n);
    t->l = before;
}

static inline void fork_copy(struct turn *t, struct lane *l, CUdeviceptr to, CUdeviceptr from) {
    struct lane *before = t->l;
    t->l = l;
    do_copy(t, to, from, t->n);
    t->l = before;
}

/* Leaves the new context current. */
static inline CUresult second_make(struct turn *t) {
    struct second *c = &t->m->second;
    CUresult code = note(t, cuCtxCreate(&c->ctx, NULL, 0, 0));
    if (code != CUDA_SUCCESS) {
        c->ctx = NULL;
        return code;
    }
    note(t, cuModuleLoad(&c->module, t->m->image));
    note(t, cuModuleGetFunction(&c->chain, c->module, "chain"));
    note(t, cuModuleGetFunction(&c->trap, c->module, "trap"));
    note(t, cuStreamCreate(&c->s, CU_STREAM_DEFAULT));
    note(t, cuMemAlloc(&c->x, 1024));
    note(t, cuEventCreate(&c->passed, CU_EVENT_DEFAULT));
    return note(t, cuMemsetD8(c->x, 0, 1024));
}

/*@ part op_chain */
static void op_chain(struct turn *t) {
    do_chain(t, t->x, 3, t->v, t->n);
}
/*@ part op_chain_shape */
/* Blocks of other sizes. */
static void op_chain_shape(struct turn *t) {
    unsigned a = 5, block = 32u << t->v % 4;
    launch(t, K_chain, ((unsigned)t->n + block - 1) / block, block, 0,
           (void *[]){&t->x, &a, &t->v, &t->n});
}
/*@ part op_more_shared */
/* Another size of shared memory at each launch. Some are beyond the limit, which op_func_attribute
 * moves: such a launch fails. */
static void op_more_shared(struct turn *t) {
    launch(t, K_reduce_dynamic, 1, 32, 256 + t->v % 4096 * (t->v % 64 ? 4 : 64),
           (void *[]){&t->y, &t->x, &t->n});
}
/*@ part op_more_threads */
/* Another block at each launch. Those of more than 1024 threads fail. */
static void op_more_threads(struct turn *t) {
    unsigned a = 7, block = 32 * (1 + t->v % 34);
    launch(t, K_chain, ((unsigned)t->n + block - 1) / block, block, 0,
           (void *[]){&t->x, &a, &t->v, &t->n});
}
/*@ part op_copy_words */
static void op_copy_words(struct turn *t) {
    do_copy(t, t->y, t->x, t->n);
}
/*@ part op_add */
static void op_add(struct turn *t) {
    int v = (int)t->v;
    launch(t, K_add_scalar, (unsigned)(t->n + 63) / 64, 64, 0, (void *[]){&t->x, &v, &t->n});
}
/*@ part op_fill */
static void op_fill(struct turn *t) {
    do_fill(t, t->x, t->v, t->n);
}
/*@ part op_saxpy */
static void op_saxpy(struct turn *t) {
    float a = (float)(t->v % 7) / 4;
    int rounds = 1 + (int)(t->v % 3);
    launch(t, K_saxpy_n, (unsigned)(t->n + 63) / 64, 64, 0,
           (void *[]){&t->y, &t->x, &a, &t->n, &rounds});
}
/*@ part op_many_params */
static void op_many_params(struct turn *t) {
    struct {
        char tag;
        double weight;
        short parts[3];
    } h;
    char a = (char)t->v;
    short b = (short)t->v;
    int c = (int)t->v * 3;
    long long d = (long long)t->v * 0x10001000100;
    float e = (float)(t->v % 1000);
    double f = (double)(t->v % 1000);
    unsigned char g = (unsigned char)t->v;
    unsigned short i = (unsigned short)t->v;
    CUdeviceptr j = t->x + 512;
    unsigned long long k = t->v;
    memset(&h, 0, sizeof(h));
    h.weight = t->v % 1000;
    launch(t, K_many_params, 1, 1, 0,
           (void *[]){&t->x, &a, &b, &c, &d, &e, &f, &g, &h, &i, &j, &k});
    memset(&h, 0xEE, sizeof(h));
}
/*@ part op_big_params */
static void op_big_params(struct turn *t) {
    unsigned word[256];
    for (unsigned i = 0; i < 256; i++)
        word[i] = i * t->v;
    launch(t, K_big_params, 1, 32u << t->v % 4, 0, (void *[]){&t->x, &word});
    memset(word, 0xEE, sizeof(word));
}
/*@ part op_reduce */
static void op_reduce(struct turn *t) {
    unsigned block = 16u << t->v % 2;
    launch(t, K_reduce_dynamic, 1 + t->v % 2, block, block * 8, (void *[]){&t->y, &t->x, &t->n});
}
/*@ part op_touch */
static void op_touch(struct turn *t) {
    launch(t, K_touch, 1, 1, 0, (void *[]){&t->x});
}
/*@ part op_cluster */
static void op_cluster(struct turn *t) {
    launch(t, K_cluster_touch, 4 + t->v % 3 * 2, 1, 0, (void *[]){&t->x});
}
/*@ part op_launch_ex */
static void op_launch_ex(struct turn *t) {
    CUlaunchAttribute attribute[2];
    unsigned a = 7;
    CUlaunchConfig config = {.gridDimX = ((unsigned)t->n + 63) / 64,
                             .gridDimY = 1,
                             .gridDimZ = 1,
                             .blockDimX = 64,
                             .blockDimY = 1,
                             .blockDimZ = 1,
                             .hStream = t->l->s,
                             .attrs = attribute,
                             .numAttrs = 1};
    memset(attribute, (int)t->step, sizeof(attribute)); /* what the union does not use is garbage */
    switch (t->v % 6) {
    case 0:
        attribute[0].id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
        attribute[0].value.programmaticStreamSerializationAllowed = (int)(t->v / 6 % 2);
        break;
    case 1:
        attribute[0].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
        attribute[0].value.clusterDim.x = 1;
        attribute[0].value.clusterDim.y = 1;
        attribute[0].value.clusterDim.z = 1;
        break;
    case 2:
        attribute[0].id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
        attribute[0].value.priority = -(int)(t->v / 6 % 3);
        break;
    case 3:
        attribute[0].id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
        attribute[0].value.cooperative = (int)(t->v / 6 % 2);
        break;
    case 4:
        attribute[0].id = CU_LAUNCH_ATTRIBUTE_IGNORE;
        break;
    default:
        config.numAttrs = 0;
    }
    note(t,
         cuLaunchKernelEx(&config, t->m->fn[K_chain], (void *[]){&t->x, &a, &t->v, &t->n}, NULL));
    memset(attribute, 0xEE, sizeof(attribute));
}
/*@ part op_programmatic */
static void overlap(struct turn *t, CUdeviceptr dst, CUdeviceptr src, int programmatic, int waits) {
    unsigned a = 11;
    CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION};
    attribute.value.programmaticStreamSerializationAllowed = programmatic;
    CUlaunchConfig config = {.gridDimX = ((unsigned)t->n + 63) / 64,
                             .gridDimY = 1,
                             .gridDimZ = 1,
                             .blockDimX = 64,
                             .blockDimY = 1,
                             .blockDimZ = 1,
                             .hStream = t->l->s,
                             .attrs = &attribute,
                             .numAttrs = 1};
    note(t, cuLaunchKernelEx(&config, t->m->fn[K_overlap],
                             (void *[]){&dst, &src, &a, &t->v, &t->n, &waits}, NULL));
}
/* The second kernel waits for the first. The third never waits, and has a buffer of its own; in a
 * graph of the program's nothing would order the fourth behind the second then. */
static void op_programmatic(struct turn *t) {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    CUdeviceptr z = 0;
    for (int i = 0; i < BUFFERS; i++)
        if (t->l->buffer[i] != t->x && t->l->buffer[i] != t->y)
            z = t->l->buffer[i];
    overlap(t, t->y, t->x, 0, 0);
    overlap(t, t->x, t->y, 1, 1);
    cuStreamIsCapturing(t->l->s, &status);
    if (status == CU_STREAM_CAPTURE_STATUS_NONE)
        overlap(t, z, z, 1, 0);
    do_chain(t, t->x, 3, t->v, t->n);
}
/*@ part op_cooperative */
static void op_cooperative(struct turn *t) {
    unsigned a = 9;
    note(t, cuLaunchCooperativeKernel(t->m->fn[K_chain], ((unsigned)t->n + 63) / 64, 1, 1, 64, 1, 1,
                                      0, t->l->s, (void *[]){&t->x, &a, &t->v, &t->n}));
}
/*@ part op_extra */
/* The packed buffer in the place of the pointers; now and then with a size that is refused. */
static void op_extra(struct turn *t) {
    struct {
        CUdeviceptr x;
        unsigned a, b;
        int n;
    } buffer = {t->x, 3, t->v, t->n};
    size_t bytes = t->v % 5 == 4 ? sizeof(buffer) : 20;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                     CU_LAUNCH_PARAM_END};
    note(t, cuLaunchKernel(t->m->fn[K_chain], ((unsigned)t->n + 63) / 64, 1, 1, 64, 1, 1, 0,
                           t->l->s, NULL, extra));
    memset(&buffer, 0xEE, sizeof(buffer));
}
/*@ part op_memset8 */
static void op_memset8(struct turn *t) {
    note(t, cuMemsetD8Async(t->x + t->v % 16, (unsigned char)t->v, (size_t)t->n, t->l->s));
}
/*@ part op_memset16 */
static void op_memset16(struct turn *t) {
    note(t, cuMemsetD16Async(t->x + t->v % 16 * 2, (unsigned short)t->v, (size_t)t->n, t->l->s));
}
/*@ part op_memset32 */
static void op_memset32(struct turn *t) {
    note(t, cuMemsetD32Async(t->x, t->v, (size_t)t->n, t->l->s));
}
/*@ part op_memset_none */
static void op_memset_none(struct turn *t) {
    note(t, cuMemsetD32Async(t->x, t->v, 0, t->l->s));
}
/*@ part op_memset_2d */
static void op_memset_2d(struct turn *t) {
    /* The place and the value vary from step to step; the pitch seldom, to one that is refused. */
    size_t width = 1 + (size_t)t->n / 16 % 32, height = 1 + (size_t)t->n % 16;
    size_t pitch = t->v % 32 == 31 ? 2 : t->v % 32 == 30 ? 48 : 64;
    CUdeviceptr x = t->x + t->v % 8 * 4;
    if (t->n % 3)
        note(t, cuMemsetD2D8Async(x, pitch, (unsigned char)t->v, width, height, t->l->s));
    else
        note(t, cuMemsetD2D32Async(x, pitch, t->v, 1 + width / 4, height, t->l->s));
}
/*@ part op_d2d */
static void op_d2d(struct turn *t) {
    note(t, cuMemcpyDtoDAsync(t->y + t->v % 8 * 4, t->x, (size_t)t->n * 3, t->l->s));
}
/*@ part op_copy_any */
static void op_copy_any(struct turn *t) {
    CUdeviceptr from = t->v % 3 == 0 ? (CUdeviceptr)(uintptr_t)t->l->pinned_in : t->x;
    CUdeviceptr to = t->v % 3 == 1 ? (CUdeviceptr)(uintptr_t)t->l->pinned_out : t->y;
    note(t, cuMemcpyAsync(to, from, (size_t)t->n * 4, t->l->s));
}
/*@ part op_copy_2d */
static void op_copy_2d(struct turn *t) {
    CUDA_MEMCPY2D c = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                       .srcDevice = t->x,
                       .srcPitch = 64,
                       .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                       .dstDevice = t->y,
                       .dstPitch = 64,
                       .WidthInBytes = 4 + t->v % 12 * 4,
                       .Height = 1 + (size_t)t->n % 15};
    note(t, cuMemcpy2DAsync(&c, t->l->s));
}
/*@ part op_d2h_pinned */
static void op_d2h_pinned(struct turn *t) {
    note(t, cuMemcpyDtoHAsync(t->l->pinned_out + t->v % 8, t->x, (size_t)t->n * 3, t->l->s));
}
/*@ part op_h2d_pinned */
static void op_h2d_pinned(struct turn *t) {
    note(t, cuMemcpyHtoDAsync(t->x, t->l->pinned_in + t->v % 8, (size_t)t->n * 3, t->l->s));
}
/*@ part op_h2d_pageable */
static void op_h2d_pageable(struct turn *t) {
    unsigned host[WORDS];
    if (t->m->capturing == t->l) /* the graph would read this later */
        return;
    for (int i = 0; i < t->n; i++)
        host[i] = t->v + (unsigned)i;
    note(t, cuMemcpyHtoDAsync(t->x, host, (size_t)t->n * 4, t->l->s));
    memset(host, 0xEE, sizeof(host));
}
/*@ part op_d2h_pageable */
static void op_d2h_pageable(struct turn *t) {
    if (note(t, cuMemcpyDtoHAsync(t->l->page_out, t->x, (size_t)t->n * 4, t->l->s)) ==
            CUDA_SUCCESS &&
        t->m->capturing != t->l)
        note_bytes(t, t->l->page_out, (size_t)t->n * 4);
}
/*@ part op_pinned_write */
/* The host changes what an upload reads, once the stream is through with it. */
static void op_pinned_write(struct turn *t) {
    if (note(t, cuStreamSynchronize(t->l->s)) == CUDA_SUCCESS)
        for (unsigned i = 0; i < WORDS; i++)
            t->l->pinned_in[i] = i * t->v;
    note(t, cuMemcpyHtoDAsync(t->x, t->l->pinned_in, (size_t)t->n * 4, t->l->s));
}
/*@ part op_register */
/* Pageable memory becomes pinned for a while. */
static void op_register(struct turn *t) {
    if (t->m->capturing)
        return;
    if (note(t, cuMemHostRegister(t->l->page_in, 4096, 0)) != CUDA_SUCCESS)
        return;
    for (unsigned i = 0; i < 1 + t->v % 4; i++) {
        note(t, cuMemcpyHtoDAsync(t->x, t->l->page_in + i, (size_t)t->n * 3, t->l->s));
        do_chain(t, t->x, 3, t->v, t->n);
    }
    if (t->v % 2)
        note(t, cuStreamSynchronize(t->l->s));
    if (note(t, cuMemHostUnregister(t->l->page_in)) == CUDA_SUCCESS)
        for (unsigned i = 0; i < 1024; i++) /* nothing reads it any more */
            t->l->page_in[i] += t->v;
}
/*@ part op_sync_h2d */
static void op_sync_h2d(struct turn *t) {
    unsigned host[WORDS];
    for (int i = 0; i < t->n; i++)
        host[i] = t->v * (unsigned)i;
    if (note(t, cuStreamSynchronize(t->l->s)) == CUDA_SUCCESS) {
        note(t, cuMemcpyHtoD(t->x, host, (size_t)t->n * 4));
        note(t, cuStreamSynchronize(CU_STREAM_LEGACY));
    }
}
/*@ part op_sync_d2h */
static void op_sync_d2h(struct turn *t) {
    unsigned host[WORDS];
    if (note(t, cuStreamSynchronize(t->l->s)) == CUDA_SUCCESS &&
        note(t, cuMemcpyDtoH(host, t->x, (size_t)t->n * 4)) == CUDA_SUCCESS)
        note_bytes(t, host, (size_t)t->n * 4);
}
/*@ part op_blocking_d2h */
/* Streams that are ordered with the legacy stream need no synchronisation in front of it. */
static void op_blocking_d2h(struct turn *t) {
    unsigned host[WORDS];
    if (t->l->kind == NON_BLOCKING || t->l->kind == URGENT)
        return;
    if (note(t, cuMemcpyDtoH(host, t->x, (size_t)t->n * 4)) == CUDA_SUCCESS)
        note_bytes(t, host, (size_t)t->n * 4);
}
/*@ part op_sync_d2d */
static void op_sync_d2d(struct turn *t) {
    if (note(t, cuStreamSynchronize(t->l->s)) == CUDA_SUCCESS) {
        note(t, cuMemcpyDtoD(t->y, t->x, (size_t)t->n * 4));
        note(t, cuStreamSynchronize(CU_STREAM_LEGACY));
    }
}
/*@ part op_sync_memset */
static void op_sync_memset(struct turn *t) {
    int ordered = t->l->kind != NON_BLOCKING && t->l->kind != URGENT;
    if (!ordered && note(t, cuStreamSynchronize(t->l->s)) != CUDA_SUCCESS)
        return;
    note(t, cuMemsetD32(t->x, t->v, (size_t)t->n));
    /* Whoever waits for the lane's stream has to wait for this memset, which may go on. */
    if (ordered)
        note(t, cuEventRecord(t->l->made, t->l->s));
    else
        note(t, cuStreamSynchronize(CU_STREAM_LEGACY));
}
/*@ part op_take */
/* From another lane of the same thread, between two events. */
static void op_take(struct turn *t) {
    struct lane *l = t->l, *o = t->o;
    if (l == o || l->thread != o->thread || t->m->capturing)
        return;
    note(t, cuEventRecord(o->made, o->s));
    note(t, cuStreamWaitEvent(l->s, o->made, 0));
    if (t->v % 2)
        do_copy(t, t->x, o->buffer[t->v % BUFFERS], t->n);
    else
        note(t, cuMemcpyDtoDAsync(t->x, o->buffer[t->v % BUFFERS], (size_t)t->n * 4, l->s));
    note(t, cuEventRecord(l->taken, l->s));
    note(t, cuStreamWaitEvent(o->s, l->taken, 0));
}
/*@ part op_legacy_take */
/* Between the legacy stream and a stream that is ordered with it no event is needed. */
static void op_legacy_take(struct turn *t) {
    struct lane *l = t->l, *o = t->o;
    struct lane *other = l->kind == LEGACY ? o : l;
    if (l == o || t->m->capturing || (l->kind != LEGACY && o->kind != LEGACY) ||
        other->kind == NON_BLOCKING || other->kind == URGENT)
        return;
    pthread_barrier_wait(&t->m->barrier); /* what other threads have asked for comes before */
    if (t->thread == l->thread && t->v % 2)
        do_copy(t, t->x, o->buffer[t->v % BUFFERS], t->n);
    else if (t->thread == l->thread)
        note(t, cuMemcpyDtoDAsync(t->x, o->buffer[t->v % BUFFERS], (size_t)t->n * 4, l->s));
    pthread_barrier_wait(&t->m->barrier);
}
/*@ part op_cross */
/* A kernel of one stream waits for a kernel of another one that was asked for before. */
static void op_cross(struct turn *t) {
    struct lane *l = t->l, *o = t->o;
    unsigned value = ++l->flag_value;
    unsigned long long rounds = ~0ull;
    CUdeviceptr flag = device(l->flags + 56 + (o - t->m->lane)); /* a word for each who sets it */
    if (l == o || l->thread != o->thread || t->m->capturing)
        return;
    t->l = o;
    CUresult code = launch(t, K_set_flag, 1, 1, 0, (void *[]){&flag, &value});
    t->l = l;
    if (code != CUDA_SUCCESS)
        return;
    launch(t, K_spin_until, 1, 1, 0, (void *[]){&flag, &value, &rounds, &t->y});
    do_chain(t, t->x, 3, t->v, t->n);
    if (t->v % 3)
        note(t, cuStreamSynchronize(l->s));
}
/*@ part op_give_far */
/* The same between lanes of different threads: the events are submitted by the host. */
static void op_give_far(struct turn *t) {
    struct lane *l = t->l, *o = t->o;
    if (l == o || t->m->capturing)
        return;
    if (t->thread == o->thread)
        note(t, cuEventRecord(o->made, o->s));
    pthread_barrier_wait(&t->m->barrier);
    if (t->thread == l->thread) {
        note(t, cuStreamWaitEvent(l->s, o->made, 0));
        do_copy(t, t->x, o->buffer[t->v % BUFFERS], t->n);
        note(t, cuEventRecord(l->taken, l->s));
    }
    pthread_barrier_wait(&t->m->barrier);
    if (t->thread == o->thread)
        note(t, cuStreamWaitEvent(o->s, l->taken, 0));
    pthread_barrier_wait(&t->m->barrier); /* the event may be recorded anew, in a capture too */
}
/*@ part op_sync_far */
/* One thread waits for its stream, another one reads what it made. */
static void op_sync_far(struct turn *t) {
    struct lane *l = t->l, *o = t->o;
    CUresult code = CUDA_SUCCESS;
    if (l == o || t->m->capturing)
        return;
    pthread_barrier_wait(&t->m->barrier); /* what the other thread has asked for so far */
    if (t->thread == (t->v % 2 && o->s != CU_STREAM_PER_THREAD ? l->thread : o->thread))
        code = note(t, cuStreamSynchronize(o->s));
    pthread_barrier_wait(&t->m->barrier);
    if (t->thread == l->thread && code == CUDA_SUCCESS) {
        do_copy(t, t->x, o->buffer[t->v % BUFFERS], t->n);
        note(t, cuStreamSynchronize(l->s));
    }
    pthread_barrier_wait(&t->m->barrier);
}
/*@ part op_barrier */
static void op_barrier(struct turn *t) {
    pthread_barrier_wait(&t->m->barrier);
}
/*@ part op_sync_stream */
static void op_sync_stream(struct turn *t) {
    if (note(t, cuStreamSynchronize(t->l->s)) == CUDA_SUCCESS)
        note_bytes(t, t->l->pinned_out, WORDS * 4); /* downloads are there */
}
/*@ part op_sync_context */
static void op_sync_context(struct turn *t) {
    if (note(t, cuCtxSynchronize()) == CUDA_SUCCESS)
        for (unsigned i = 0; i < t->m->lanes; i++)
            note_bytes(t, t->m->lane[i].pinned_out, WORDS * 4);
}
/*@ part op_query */
static void op_query(struct turn *t) {
    CUresult code = cuStreamQuery(t->l->s);
    note(t, code == CUDA_ERROR_NOT_READY ? CUDA_SUCCESS : code);
}
/*@ part op_query_until */
static void op_query_until(struct turn *t) {
    CUresult code;
    for (unsigned n = 0; (code = cuStreamQuery(t->l->s)) == CUDA_ERROR_NOT_READY; n++)
        poll_pause(n);
    if (note(t, code) == CUDA_SUCCESS)
        note_bytes(t, t->l->pinned_out, WORDS * 4);
}
/*@ part op_event */
static void op_event(struct turn *t) {
    note(t, cuEventRecord(t->l->other, t->l->s));
    if (t->v % 3 == 0 && t->m->capturing != t->l &&
        note(t, cuEventSynchronize(t->l->other)) == CUDA_SUCCESS)
        note_bytes(t, t->l->pinned_out, WORDS * 4);
}
/*@ part op_event_until */
/* A download, an event behind it, and a host that asks until it has passed. */
static void op_event_until(struct turn *t) {
    CUresult code;
    if (t->m->capturing)
        return;
    note(t, cuMemcpyDtoHAsync(t->l->pinned_out, t->x, (size_t)t->n * 4, t->l->s));
    note(t, cuEventRecord(t->l->other, t->l->s));
    if (t->v % 2)
        do_chain(t, t->y, 3, t->v, t->n);
    for (unsigned n = 0; (code = cuEventQuery(t->l->other)) == CUDA_ERROR_NOT_READY; n++)
        poll_pause(n);
    if (note(t, code) == CUDA_SUCCESS)
        note_bytes(t, t->l->pinned_out, (size_t)t->n * 4);
}
/*@ part op_event_time */
static void op_event_time(struct turn *t) {
    float ms = 0;
    note(t, cuEventRecord(t->l->timed[0], t->l->s));
    do_chain(t, t->x, 3, t->v, t->n);
    note(t, cuEventRecord(t->l->timed[1], t->l->s));
    if (note(t, cuEventSynchronize(t->l->timed[1])) == CUDA_SUCCESS)
        note(t, cuEventElapsedTime(&ms, t->l->timed[0], t->l->timed[1]));
    note(t, (CUresult)(ms < 0));
}
/*@ part op_ring_record */
/* In a capture of the lane the record becomes a node of the graph. Such flags are refused
 * elsewhere. */
static void op_ring_record(struct turn *t) {
    struct lane *l = t->l;
    unsigned i = t->v % RING, captures = t->m->capturing == l;
    if (t->m->capturing && !captures)
        return;
    if (captures)
        l->named |= 1u << i;
    if (captures || t->v % 29 == 28)
        note(t, cuEventRecordWithFlags(l->ring[i], l->s, CU_EVENT_RECORD_EXTERNAL));
    else if (t->v % 5 == 4)
        note(t, cuEventRecordWithFlags(l->ring[i], l->s, CU_EVENT_RECORD_DEFAULT));
    else
        note(t, cuEventRecord(l->ring[i], l->s));
}
/*@ part op_ring_down */
static void op_ring_down(struct turn *t) {
    if (!t->m->capturing)
        ring_down(t, t->v % RING);
}
/*@ part op_ring_read */
/* The host waits for an event, then reads what was copied in front of it. */
static void op_ring_read(struct turn *t) {
    unsigned i = t->v % RING;
    if (!t->m->capturing && ring_pass(t, t->l->ring[i], t->v / RING % 2) == CUDA_SUCCESS &&
        t->l->down & 1u << i)
        note_bytes(t, ring_words(t->l, i), 64);
}
/*@ part op_ring_query */
static void op_ring_query(struct turn *t) {
    CUresult code = cuEventQuery(t->l->ring[t->v % RING]);
    note(t, code == CUDA_ERROR_NOT_READY ? CUDA_SUCCESS : code);
}
/*@ part op_ring_time */
/* An event that was never recorded, or has no time, is an error, whatever else runs. */
static void op_ring_time(struct turn *t) {
    CUevent from = t->l->ring[t->v % RING], to = t->l->ring[t->v / RING % RING];
    float ms = 0;
    if (t->v % 3 == 0 && !t->m->capturing) {
        note(t, cuEventSynchronize(from));
        note(t, cuEventSynchronize(to));
    }
    CUresult code = cuEventElapsedTime(&ms, from, to);
    note(t, code == CUDA_ERROR_NOT_READY ? CUDA_SUCCESS : code);
}
/*@ part op_ring_new */
/* An event goes, whether its work is done or not, and another one comes, often at its handle. */
static void op_ring_new(struct turn *t) {
    struct lane *l = t->l;
    unsigned i = t->v % RING, timed = t->v / RING % 2;
    if (t->m->capturing || l->named & 1u << i)
        return;
    l->down &= ~(1u << i);
    note(t, cuEventDestroy(l->ring[i]));
    MUST(cuEventCreate(&l->ring[i], timed ? CU_EVENT_BLOCKING_SYNC : CU_EVENT_DISABLE_TIMING));
    if (t->v % 3)
        note(t, cuEventRecord(l->ring[i], l->s));
}
/*@ part op_ring_wait */
/* The lane waits for an event of its own, in a capture by a node of the graph. */
static void op_ring_wait(struct turn *t) {
    struct lane *l = t->l;
    unsigned i = t->v % RING, captures = t->m->capturing == l;
    if (t->m->capturing && !captures)
        return;
    if (captures)
        l->named |= 1u << i;
    note(t, cuStreamWaitEvent(l->s, l->ring[i],
                              captures ? CU_EVENT_WAIT_EXTERNAL : CU_EVENT_WAIT_DEFAULT));
}
/*@ part op_ring_take */
/* As op_take; the other lane goes on behind the record, with memory that is not taken. */
static void op_ring_take(struct turn *t) {
    struct lane *l = t->l, *o = t->o;
    unsigned i = t->v % RING;
    if (l == o || l->thread != o->thread || t->m->capturing)
        return;
    note(t, cuEventRecord(o->ring[i], o->s));
    t->l = o;
    for (unsigned n = t->v % 4; n > 0; n--)
        do_chain(t, o->buffer[(t->v + 1) % BUFFERS], 3, t->v, t->n);
    t->l = l;
    note(t, cuStreamWaitEvent(l->s, o->ring[i], 0));
    do_copy(t, t->x, o->buffer[t->v % BUFFERS], t->n);
    note(t, cuEventRecord(l->taken, l->s));
    note(t, cuStreamWaitEvent(o->s, l->taken, 0));
}
/*@ part op_ring_over */
/* An event of one lane is recorded on another one. */
static void op_ring_over(struct turn *t) {
    unsigned i = t->v % RING;
    if (t->l->thread != t->o->thread || t->m->capturing)
        return;
    t->o->down &= ~(1u << i);
    note(t, cuEventRecord(t->o->ring[i], t->l->s));
}
/*@ part op_ring_far */
/* A thread asks for an event, or has a stream wait for it, while the thread that recorded it goes
 * on with memory that nobody else reads. */
static void op_ring_far(struct turn *t) {
    struct lane *l = t->l, *o = t->o;
    unsigned i = t->v % RING, how = t->v / RING % 3;
    if (l == o || t->m->capturing)
        return;
    if (t->thread == l->thread)
        ring_down(t, i);
    pthread_barrier_wait(&t->m->barrier);
    if (t->thread == l->thread)
        for (unsigned n = t->v % 6; n > 0; n--)
            do_chain(t, t->y, 3, t->v, t->n);
    if (t->thread == o->thread && how < 2 && ring_pass(t, l->ring[i], (int)how) == CUDA_SUCCESS)
        note_bytes(t, ring_words(l, i), 64);
    if (t->thread == o->thread && how == 2) {
        note(t, cuStreamWaitEvent(o->s, l->ring[i], 0));
        t->l = o;
        do_copy(t, o->buffer[t->v % BUFFERS], t->x, t->n);
        t->l = l;
        note(t, cuEventRecord(o->taken, o->s));
    }
    pthread_barrier_wait(&t->m->barrier);
    if (t->thread == l->thread && how == 2)
        note(t, cuStreamWaitEvent(l->s, o->taken, 0));
    pthread_barrier_wait(&t->m->barrier); /* the event may be recorded anew */
}
/*@ part op_ring_graph */
/* A graph of the program records an event, then another one, and waits for a third. */
static void op_ring_graph(struct turn *t) {
    CUevent *ring = t->l->ring;
    CUgraph graph = NULL;
    CUgraphNode node[2];
    CUgraphExec exec = NULL;
    if (t->m->capturing || note(t, cuGraphCreate(&graph, 0)) != CUDA_SUCCESS)
        return;
    note(t, cuGraphAddEventWaitNode(&node[0], graph, NULL, 0, ring[(t->v + 2) % RING]));
    note(t, cuGraphAddEventRecordNode(&node[1], graph, node, 1, ring[t->v % RING]));
    if (note(t, cuGraphInstantiate(&exec, graph, 0)) == CUDA_SUCCESS) {
        note(t, cuGraphLaunch(exec, t->l->s));
        note(t, cuGraphExecEventRecordNodeSetEvent(exec, node[1], ring[(t->v + 1) % RING]));
        note(t, cuGraphLaunch(exec, t->l->s));
        note(t, cuGraphExecDestroy(exec));
    }
    note(t, cuGraphDestroy(graph));
}
/*@ part op_ring_launch */
/* A kernel that records an event when it begins. */
static void op_ring_launch(struct turn *t) {
    struct lane *l = t->l;
    unsigned a = 7, i = t->v % RING;
    CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT};
    attribute.value.launchCompletionEvent.event = l->ring[i];
    CUlaunchConfig config = {.gridDimX = ((unsigned)t->n + 63) / 64,
                             .gridDimY = 1,
                             .gridDimZ = 1,
                             .blockDimX = 64,
                             .blockDimY = 1,
                             .blockDimZ = 1,
                             .hStream = l->s,
                             .attrs = &attribute,
                             .numAttrs = 1};
    if (t->m->capturing)
        return;
    l->down &= ~(1u << i);
    note(t,
         cuLaunchKernelEx(&config, t->m->fn[K_chain], (void *[]){&t->x, &a, &t->v, &t->n}, NULL));
}
/*@ part op_poll */
/* A kernel sets a word of pinned memory; the host looks at it and calls nothing meanwhile. */
static void op_poll(struct turn *t) {
    unsigned value = ++t->l->flag_value;
    CUdeviceptr flag = device(t->l->flags);
    if (t->m->capturing ||
        launch(t, K_set_flag, 1, 1, 0, (void *[]){&flag, &value}) != CUDA_SUCCESS)
        return;
    while (__atomic_load_n(t->l->flags, __ATOMIC_ACQUIRE) != value)
        sched_yield();
}
/*@ part op_poll_copy */
/* The same by a download of one word. */
static void op_poll_copy(struct turn *t) {
    unsigned value = ++t->l->flag_value;
    if (t->m->capturing)
        return;
    do_fill(t, t->x, value, 1);
    if (note(t, cuMemcpyDtoHAsync(t->l->flags, t->x, 4, t->l->s)) != CUDA_SUCCESS)
        return;
    while (__atomic_load_n(t->l->flags, __ATOMIC_ACQUIRE) != value)
        sched_yield();
}
/*@ part op_spin */
/* A kernel waits for the host, which gives the word after some more launches. */
static void op_spin(struct turn *t) {
    unsigned value = ++t->l->flag_value;
    unsigned long long rounds = ~0ull;
    CUdeviceptr flag = device(t->l->flags + 16);
    if (t->m->capturing)
        return;
    launch(t, K_spin_until, 1, 1, 0, (void *[]){&flag, &value, &rounds, &t->y});
    do_chain(t, t->x, 3, t->v, t->n);
    do_chain(t, t->x, 5, t->v, t->n);
    __atomic_store_n(t->l->flags + 16, value, __ATOMIC_RELEASE);
}
/*@ part op_host_func */
static void CUDA_CB count_call(void *data) {
    ++*(unsigned *)data;
}
static void op_host_func(struct turn *t) {
    note(t, cuLaunchHostFunc(t->l->s, count_call, t->l->flags + 32 + t->v % 4));
}
/*@ part op_callback */
static void CUDA_CB count_callback(CUstream s, CUresult code, void *data) {
    (void)s;
    *(unsigned *)data += code == CUDA_SUCCESS ? 1 : 1000;
}
static void op_callback(struct turn *t) {
    note(t, cuStreamAddCallback(t->l->s, count_callback, t->l->flags + 36, 0));
}
/*@ part op_host_gate */
/* A host function of one stream lets the host go on. */
static void CUDA_CB open_gate(void *data) {
    __atomic_add_fetch((unsigned *)data, 1, __ATOMIC_RELEASE);
}
static void op_host_gate(struct turn *t) {
    unsigned before = __atomic_load_n(t->l->flags + 40, __ATOMIC_ACQUIRE);
    if (t->m->capturing)
        return;
    if (note(t, cuLaunchHostFunc(t->l->s, open_gate, t->l->flags + 40)) != CUDA_SUCCESS)
        return;
    do_chain(t, t->x, 3, t->v, t->n);
    while (__atomic_load_n(t->l->flags + 40, __ATOMIC_ACQUIRE) == before)
        sched_yield();
}
/*@ part op_alloc_free */
static void op_alloc_free(struct turn *t) {
    CUdeviceptr p = 0;
    size_t bytes = 1024u << t->v % 3;
    if (t->m->capturing == t->l || note(t, cuMemAlloc(&p, bytes)) != CUDA_SUCCESS)
        return;
    do_fill(t, p, t->v, t->n);
    do_copy(t, t->x, p, t->n);
    note(t, cuMemFree(p));
}
/*@ part op_extra_new */
/* Memory that is freed and comes back, at the same address or at another one. */
static void op_extra_new(struct turn *t) {
    if (t->m->capturing) /* what a graph that is being made uses must stay */
        return;
    if (t->l->extra && note(t, cuMemFree(t->l->extra)) != CUDA_SUCCESS)
        return;
    t->l->extra = 0;
    t->l->extra_words = 64u << t->v % 4;
    if (note(t, cuMemAlloc(&t->l->extra, t->l->extra_words * 4)) != CUDA_SUCCESS)
        t->l->extra = 0;
    else
        note(t, cuMemsetD32Async(t->l->extra, t->v, t->l->extra_words, t->l->s));
}
/*@ part op_extra_use */
static void op_extra_use(struct turn *t) {
    int n = t->n < (int)t->l->extra_words ? t->n : (int)t->l->extra_words;
    if (!t->l->extra || t->m->capturing)
        return;
    if (t->v % 3 == 0)
        note(t, cuMemsetD32Async(t->l->extra, t->v, (size_t)n, t->l->s));
    else if (t->v % 3 == 1)
        note(t, cuMemcpyDtoDAsync(t->l->extra, t->x, (size_t)n * 4, t->l->s));
    do_chain(t, t->l->extra, 3, t->v, n);
    do_copy(t, t->x, t->l->extra, n);
}
/*@ part op_scratch */
/* Pinned memory that comes and goes under downloads. */
static void op_scratch(struct turn *t) {
    if (t->m->capturing)
        return;
    if (t->v % 4 == 0 && t->l->scratch) {
        if (note(t, cuMemFreeHost(t->l->scratch)) != CUDA_SUCCESS)
            return;
        t->l->scratch = NULL;
    }
    if (!t->l->scratch &&
        note(t, cuMemHostAlloc((void **)&t->l->scratch, 4096, t->v % 8 ? 0 : 2)) != CUDA_SUCCESS) {
        t->l->scratch = NULL;
        return;
    }
    note(t, cuMemcpyDtoHAsync(t->l->scratch, t->x, (size_t)t->n * 4, t->l->s));
    do_chain(t, t->x, 5, t->v, t->n);
    note(t, cuMemcpyHtoDAsync(t->y, t->l->scratch, (size_t)t->n * 4, t->l->s));
}
/*@ part op_pool */
/* Allocation in stream order. */
static void op_pool(struct turn *t) {
    CUdeviceptr p = 0;
    if (t->m->capturing || note(t, cuMemAllocAsync(&p, 1024u << t->v % 2, t->l->s)) != CUDA_SUCCESS)
        return;
    do_fill(t, p, t->v, t->n);
    note(t, cuMemcpyDtoDAsync(t->x, p, (size_t)t->n * 4, t->l->s));
    do_chain(t, p, 3, t->v, t->n);
    do_copy(t, t->y, p, t->n);
    note(t, cuMemFreeAsync(p, t->l->s));
}
/*@ part op_pool_own */
/* The same in a pool of the lane's own. Some memory is kept, and used and freed at a later turn. */
static void op_pool_own(struct turn *t) {
    struct lane *l = t->l;
    CUdeviceptr p = 0;
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    if (t->m->capturing || (!l->pool && note(t, cuMemPoolCreate(&l->pool, &props)) != CUDA_SUCCESS))
        return;
    if (note(t, cuMemAllocFromPoolAsync(&p, 1024u << t->v % 2, l->pool, l->s)) != CUDA_SUCCESS)
        return;
    note(t, cuMemsetD32Async(p, t->v, WORDS, l->s));
    if (t->v % 7 == 6) {
        CUmemoryPool of = NULL;
        note(t, cuPointerGetAttribute(&of, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, p));
        note(t, (CUresult)(of == l->pool));
    }
    do_fill(t, p, t->v, t->n);
    note(t, cuMemcpyDtoDAsync(t->x, p, (size_t)t->n * 4, l->s));
    do_chain(t, p, 3, t->v, t->n);
    do_copy(t, t->y, p, t->n);
    if (l->kept) {
        do_chain(t, l->kept, 5, t->v, t->n);
        do_copy(t, t->x, l->kept, t->n);
        note(t, cuMemFreeAsync(l->kept, l->s));
    }
    l->kept = t->v % 5 ? 0 : p;
    if (!l->kept)
        note(t, cuMemFreeAsync(p, l->s));
}
/*@ part op_pool_change */
/* The lane's pool becomes the device's, is looked at, changed, or goes. */
static void op_pool_change(struct turn *t) {
    CUmemoryPool pool = t->l->pool;
    cuuint64_t used = 0;
    int on = t->v / 6 % 2;
    if (t->m->capturing || !pool)
        return;
    switch (t->v % 6) {
    case 0:
        note(t, cuMemPoolDestroy(pool));
        t->l->pool = NULL;
        break;
    case 1:
        if (on)
            note(t, cuDeviceGetDefaultMemPool(&pool, 0));
        note(t, cuDeviceSetMemPool(0, pool));
        break;
    case 2:
        note(t, on ? cuMemPoolTrimTo(pool, 0)
                   : cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &on));
        break;
    case 3:
    case 4:
        note(t, cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
        note(t, (CUresult)(used / 512));
        break;
    default:
        if (!t->l->kept)
            break;
        note(t, on ? cuMemFree(t->l->kept) : cuMemFreeAsync(t->l->kept, t->l->s));
        note(t, cuMemFreeAsync(t->l->kept, t->l->s)); /* a second time: refused */
        t->l->kept = 0;
    }
}
/*@ part op_capture */
/* A capture from begin to end, launched twice and thrown away while it may still run. */
static void op_capture(struct turn *t) {
    CUgraph graph = NULL;
    CUgraphExec exec = NULL;
    struct lane *l = t->l;
    if (t->m->capturing || l->kind == LEGACY || l->kind == PER_THREAD ||
        (t->m->threads > 1 && l->kind != NON_BLOCKING && l->kind != URGENT))
        return;
    if (note(t, cuStreamBeginCapture(l->s, t->v % 2 ? CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
                                                    : CU_STREAM_CAPTURE_MODE_RELAXED)))
        return;
    for (unsigned i = 0; i < 1 + t->v % 4; i++)
        do_chain(t, t->x, 3, t->v + i, t->n);
    if (t->v % 3 == 0)
        note(t, cuMemcpyDtoDAsync(t->y, t->x, (size_t)t->n * 4, l->s));
    if (t->v % 7 == 0) /* spoils it */
        note(t, cuStreamSynchronize(l->s));
    if (note(t, cuStreamEndCapture(l->s, &graph)) != CUDA_SUCCESS || !graph)
        return;
    if (note(t, cuGraphInstantiate(&exec, graph, 0)) == CUDA_SUCCESS) {
        note(t, cuGraphLaunch(exec, l->s));
        do_chain(t, t->x, 5, t->v, t->n);
        note(t, cuGraphLaunch(exec, l->s));
        note(t, cuGraphExecDestroy(exec));
    }
    note(t, cuGraphDestroy(graph));
}
/*@ part op_fork */
/* A capture that goes over to another stream and comes back. */
static void op_fork(struct turn *t) {
    CUgraph graph = NULL;
    CUgraphExec exec = NULL;
    struct lane *l = t->l, *o = t->o;
    if (t->m->capturing || l == o || l->thread != o->thread || l->kind == LEGACY ||
        l->kind == PER_THREAD || o->kind == LEGACY || o->kind == PER_THREAD)
        return;
    if (t->m->threads > 1 && (l->kind == BLOCKING || l->kind == LOW_BLOCKING ||
                              o->kind == BLOCKING || o->kind == LOW_BLOCKING))
        return;
    if (note(t, cuStreamBeginCapture(l->s, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)))
        return;
    do_chain(t, t->x, 3, t->v, t->n);
    note(t, cuEventRecord(l->made, l->s));
    note(t, cuStreamWaitEvent(o->s, l->made, 0));
    t->l = o;
    do_chain(t, t->x, 5, t->v, t->n);
    t->l = l;
    if (t->v % 5) { /* else it is not joined, and the end says so */
        note(t, cuEventRecord(l->taken, o->s));
        note(t, cuStreamWaitEvent(l->s, l->taken, 0));
    }
    do_chain(t, t->x, 7, t->v, t->n);
    if (note(t, cuStreamEndCapture(l->s, &graph)) != CUDA_SUCCESS || !graph)
        return;
    if (note(t, cuGraphInstantiate(&exec, graph, 0)) == CUDA_SUCCESS) {
        note(t, cuGraphLaunch(exec, l->s));
        note(t, cuGraphExecDestroy(exec));
    }
    note(t, cuGraphDestroy(graph));
}
/*@ part op_fork_join */
/* Lanes that a lane of their thread, the home, forks by an event and joins by another one. Between
 * the two the home leaves t->x alone, which they may read. Their part of its `given` is written
 * there alone, and read by the home behind the join. */
static void op_fork_join(struct turn *t) {
    struct lane *l = t->l, *o = t->o;
    CUdeviceptr z = o->buffer[t->v % BUFFERS];
    if (l == o || l->thread != o->thread || t->m->capturing)
        return;
    fork_order(t, l, o, t->v);
    fork_copy(t, o, z, t->x);
    for (unsigned i = 0; i < 1 + t->v / 3 % 3; i++) {
        fork_work(t, l, t->y, t->v + i);
        fork_work(t, o, z, t->v / 2 + i);
    }
    fork_copy(t, o, fork_given(t, l, o), z);
    fork_work(t, o, z, t->v / 3);
    fork_order(t, o, l, t->v);
    fork_copy(t, l, t->x, fork_given(t, l, o));
}
/*@ part op_fork_same */
/* The lane waits for the host's look at what it copied: the last record of `e` is behind that. */
static inline void fork_look(struct turn *t, struct lane *l, CUdeviceptr z, CUevent e) {
    unsigned *words = ring_words(l, RING);
    CUresult code = note(t, cuMemcpyDtoHAsync(words, z, 64, l->s));
    if (code != CUDA_SUCCESS || note(t, cuEventRecord(e, l->s)) != CUDA_SUCCESS)
        return;
    if (t->v % 2)
        code = ring_pass(t, e, t->v / 2 % 2);
    else
        code = note(t, cuStreamSynchronize(l->s));
    if (code == CUDA_SUCCESS)
        note_bytes(t, words, 64);
}

/* As fork_join, with one event for fork and join. Now and then it has a record more in between,
 * that is before the other one or behind it; the other lane waits again behind the join, and
 * perhaps does something there; and the host waits for that lane alone. */
static void op_fork_same(struct turn *t) {
    struct lane *l = t->l, *o = t->o;
    unsigned more = t->v / 2 % 8, behind = t->v / 16 % 4, look = t->v / 64 % 4;
    CUdeviceptr z = o->buffer[t->v % BUFFERS];
    CUevent e = t->v % 2 ? l->ring[t->v / 2 % RING] : l->made;
    CUevent join = t->step % 5 == t->v / 256 ? l->taken : e;
    if (l == o || l->thread != o->thread || t->m->capturing)
        return;
    fork_by(t, e, l, o);
    fork_copy(t, o, z, t->x);
    fork_work(t, l, t->y, t->v / 3);
    if (more == 1)
        note(t, cuEventRecord(e, l->s)); /* nothing orders it with the other lane's */
    fork_work(t, o, z, t->v / 5);
    fork_copy(t, o, fork_given(t, l, o), z);
    if (more == 2)
        note(t, cuEventRecord(e, o->s));
    if (look == 1)
        fork_look(t, o, z, e);
    fork_by(t, join, o, l);
    fork_copy(t, l, t->x, fork_given(t, l, o));
    if (more == 3)
        note(t, cuEventRecord(e, l->s));
    if (behind)
        fork_by(t, e, l, o);
    if (behind == 2)
        fork_work(t, o, z, t->v / 7);
    if (look == 2)
        fork_look(t, o, z, e);
    fork_work(t, l, t->y, t->v / 11);
    if (behind == 3)
        fork_copy(t, o, z, fork_given(t, l, o));
    if (look == 3 && note(t, cuEventSynchronize(e)) == CUDA_SUCCESS && !more)
        note(t, cuEventQuery(e));
}
/*@ part op_fork_chain */
/* A lane waits for another one that is forked, with nothing of its own yet, and then for the home.
 * What it does is behind both. */
static void op_fork_chain(struct turn *t) {
    struct lane *l = t->l, *o = t->o, *p = NULL;
    for (unsigned i = 0; i < t->m->lanes; i++)
        if (&t->m->lane[i] != l && &t->m->lane[i] != o && t->m->lane[i].thread == l->thread)
            p = &t->m->lane[i];
    if (!p || l == o || l->thread != o->thread || t->m->capturing)
        return;
    CUdeviceptr z = o->buffer[t->v % BUFFERS], w = p->buffer[t->v % BUFFERS];
    if (t->v % 5 == 1)
        fork_order(t, l, p, t->v);
    fork_order(t, l, o, t->v);
    fork_copy(t, o, z, t->x);
    fork_work(t, o, z, t->v / 3);
    fork_copy(t, o, fork_given(t, l, o), z);
    fork_order(t, o, p, t->v / 5);
    fork_work(t, l, t->y, t->v);
    launch(t, K_touch, 1, 1, 0, (void *[]){&t->y});
    fork_work(t, l, t->y, t->v / 2);
    fork_order(t, l, p, t->v / 7);
    fork_copy(t, p, w, fork_given(t, l, o));
    fork_work(t, p, w, t->v / 4);
    fork_copy(t, p, fork_given(t, l, p), w);
    fork_order(t, p, l, t->v / 2);
    fork_copy(t, l, t->y, fork_given(t, l, p));
    if (t->v % 4)
        fork_order(t, o, l, t->v);
    else
        note(t, cuStreamSynchronize(o->s));
}
/*@ part op_fork_two */
/* Two lanes at once. The second one is forked by the home or by the first one, may wait for that in
 * the midst, and is joined before it, behind it, or by it. */
static void op_fork_two(struct turn *t) {
    struct lane *l = t->l, *o = t->o, *p = NULL;
    unsigned nested = t->v % 2, waits = t->v / 2 % 2, order = t->v / 4 % 3;
    for (unsigned i = 0; i < t->m->lanes; i++)
        if (&t->m->lane[i] != l && &t->m->lane[i] != o && t->m->lane[i].thread == l->thread)
            p = &t->m->lane[i];
    if (!p || l == o || l->thread != o->thread || t->m->capturing)
        return;
    CUdeviceptr z = o->buffer[t->v % BUFFERS], w = p->buffer[t->v % BUFFERS];
    fork_order(t, l, o, t->v);
    fork_copy(t, o, z, t->x);
    fork_work(t, l, t->y, t->v);
    fork_order(t, nested ? o : l, p, t->v / 3);
    fork_copy(t, p, w, t->x);
    fork_work(t, o, z, t->v + 1);
    fork_work(t, p, w, t->v + 2);
    fork_copy(t, o, fork_given(t, l, o), z);
    if (waits) {
        fork_order(t, o, p, t->v / 5);
        fork_copy(t, p, w, fork_given(t, l, o));
    }
    fork_work(t, o, z, t->v / 7);
    fork_work(t, p, w, t->v / 5);
    fork_copy(t, p, fork_given(t, l, p), w);
    if (order < 2)
        fork_order(t, p, order ? o : l, t->v);
    fork_order(t, o, l, t->v);
    if (order == 2)
        fork_order(t, p, l, t->v);
    fork_copy(t, l, t->x, fork_given(t, l, p));
    fork_copy(t, l, t->y, fork_given(t, l, o));
}
/*@ part op_capture_begin */
/* What the program does from here on, until capture_end, is recorded where it is this lane's. */
static void op_capture_begin(struct turn *t) {
    static const CUstreamCaptureMode modes[] = {CU_STREAM_CAPTURE_MODE_GLOBAL,
                                                CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
                                                CU_STREAM_CAPTURE_MODE_RELAXED};
    if (t->m->capturing || t->m->threads > 1)
        return;
    if (note(t, cuStreamBeginCapture(t->l->s, modes[t->v % 3])) == CUDA_SUCCESS)
        t->m->capturing = t->l;
}
/*@ part op_capture_end */
static void op_capture_end(struct turn *t) {
    struct lane *l = t->m->capturing;
    unsigned slot = t->v % SLOTS;
    CUgraph graph = NULL;
    CUgraphExec exec = NULL;
    if (!l)
        return;
    t->m->capturing = NULL;
    if (note(t, cuStreamEndCapture(l->s, &graph)) != CUDA_SUCCESS || !graph)
        return;
    if (note(t, cuGraphInstantiate(&exec, graph, 0)) != CUDA_SUCCESS) {
        note(t, cuGraphDestroy(graph));
        return;
    }
    if (l->exec[slot]) {
        note(t, cuGraphExecDestroy(l->exec[slot]));
        note(t, cuGraphDestroy(l->graph[slot]));
    }
    l->exec[slot] = exec;
    l->graph[slot] = graph;
    note(t, cuGraphLaunch(exec, l->s));
}
/*@ part op_graph_launch */
static void op_graph_launch(struct turn *t) {
    if (t->l->exec[t->v % SLOTS] && !t->m->capturing)
        note(t, cuGraphLaunch(t->l->exec[t->v % SLOTS], t->l->s));
}
/*@ part op_graph_nodes */
/* A graph of explicit nodes, one behind the other, changed between two launches. */
static void op_graph_nodes(struct turn *t) {
    CUgraph graph = NULL;
    CUgraphNode node[2];
    CUgraphExec exec = NULL;
    unsigned a = 3;
    CUDA_KERNEL_NODE_PARAMS p = {.func = t->m->fn[K_chain],
                                 .gridDimX = ((unsigned)t->n + 63) / 64,
                                 .gridDimY = 1,
                                 .gridDimZ = 1,
                                 .blockDimX = 64,
                                 .blockDimY = 1,
                                 .blockDimZ = 1,
                                 .kernelParams = (void *[]){&t->x, &a, &t->v, &t->n}};
    if (t->m->capturing || note(t, cuGraphCreate(&graph, 0)) != CUDA_SUCCESS)
        return;
    note(t, cuGraphAddKernelNode(&node[0], graph, NULL, 0, &p));
    a = 5;
    note(t, cuGraphAddKernelNode(&node[1], graph, &node[0], 1, &p));
    if (note(t, cuGraphInstantiate(&exec, graph, 0)) == CUDA_SUCCESS) {
        note(t, cuGraphLaunch(exec, t->l->s));
        a = 7;
        note(t, cuGraphExecKernelNodeSetParams(exec, node[1], &p));
        note(t, cuGraphLaunch(exec, t->l->s));
        note(t, cuGraphExecDestroy(exec));
    }
    note(t, cuGraphDestroy(graph));
}
/*@ part op_bad_launch */
static void op_bad_launch(struct turn *t) {
    unsigned a = 3;
    void *params[] = {&t->x, &a, &t->v, &t->n};
    switch (t->v % 4) {
    case 0:
        launch(t, K_chain, 0, 64, 0, params);
        break;
    case 1:
        launch(t, K_chain, 1, 2000, 0, params);
        break;
    case 2:
        launch(t, K_chain, 1, 64, 1u << 24, params);
        break;
    default:
        note(t, cuLaunchKernel(NULL, 1, 1, 1, 64, 1, 1, 0, t->l->s, params, NULL));
    }
}
/*@ part op_bad_memory */
static void op_bad_memory(struct turn *t) {
    switch (t->v % 4) {
    case 0:
        note(t, cuMemsetD32Async(t->x, t->v, 1u << 20, t->l->s));
        break;
    case 1:
        note(t, cuMemsetD32Async(t->x + 2, t->v, 4, t->l->s));
        break;
    case 2:
        note(t, cuMemcpyDtoDAsync(t->y, 16, 64, t->l->s));
        break;
    default:
        note(t, cuMemcpyHtoDAsync(t->x, t->l->pinned_in, 1u << 20, t->l->s));
    }
}
/*@ part op_bad_handle */
static void op_bad_handle(struct turn *t) {
    switch (t->v % 3) {
    case 0:
        note(t, cuEventRecord(NULL, t->l->s));
        break;
    case 1:
        note(t, cuStreamWaitEvent(t->l->s, NULL, 0));
        break;
    default:
        note(t, cuGraphLaunch(NULL, t->l->s));
    }
}
/*@ part op_sleep */
static void op_sleep(struct turn *t) {
    pause_us(t->v % 150);
}
/*@ part op_new_stream */
/* The stream goes, with work in it, and another one takes its place. */
static void op_new_stream(struct turn *t) {
    struct lane *l = t->l;
    if (t->m->capturing || l->kind == LEGACY || l->kind == PER_THREAD)
        return;
    if (l->kept) /* logs are compared by streams, and so is memory whose address may differ */
        note(t, cuMemFreeAsync(l->kept, l->s));
    l->kept = 0;
    if (t->v % 3 == 1)
        note(t, cuStreamSynchronize(l->s));
    else if (t->v % 3 == 2)
        note(t, cuEventRecord(l->other, l->s));
    note(t, cuStreamDestroy(l->s));
    note(t,
         cuStreamCreate(&l->s, l->kind == NON_BLOCKING || l->kind == URGENT ? CU_STREAM_NON_BLOCKING
                                                                            : CU_STREAM_DEFAULT));
    if (t->v % 3 == 2)
        note(t, cuStreamWaitEvent(l->s, l->other, 0));
    else
        note(t, cuCtxSynchronize()); /* also for what the old stream still had */
}
/*@ part op_module */
/* A module of its own is loaded, used and unloaded. */
static void op_module(struct turn *t) {
    CUmodule module;
    CUfunction mine, before = t->m->fn[K_chain];
    if (t->m->capturing || note(t, cuModuleLoad(&module, t->m->image)) != CUDA_SUCCESS)
        return;
    if (note(t, cuModuleGetFunction(&mine, module, "chain")) == CUDA_SUCCESS) {
        t->m->fn[K_chain] = mine;
        for (unsigned i = 0; i < 1 + t->v % 6; i++)
            do_chain(t, t->x, 3, t->v, t->n);
        t->m->fn[K_chain] = before;
    }
    note(t, cuModuleUnload(module));
}
/*@ part op_module_use */
/* A module that stays for some steps. */
static void op_module_use(struct turn *t) {
    unsigned a = 11;
    if (t->m->capturing)
        return;
    if (!t->m->own &&
        (note(t, cuModuleLoad(&t->m->own, t->m->image)) != CUDA_SUCCESS ||
         note(t, cuModuleGetFunction(&t->m->own_chain, t->m->own, "chain")) != CUDA_SUCCESS)) {
        t->m->own = NULL;
        return;
    }
    for (unsigned i = 0; i < 2 + t->v % 5; i++)
        note(t, cuLaunchKernel(t->m->own_chain, ((unsigned)t->n + 63) / 64, 1, 1, 64, 1, 1, 0,
                               t->l->s, (void *[]){&t->x, &a, &t->v, &t->n}, NULL));
}
/*@ part op_module_end */
static void op_module_end(struct turn *t) {
    if (t->m->own && !t->m->capturing) {
        note(t, cuModuleUnload(t->m->own));
        t->m->own = NULL;
    }
}
/*@ part op_library */
/* The kernel by a handle of the library kind. */
static void op_library(struct turn *t) {
    CUlibrary library;
    CUkernel kernel;
    unsigned a = 3;
    if (t->m->capturing || note(t, cuLibraryLoadFromFile(&library, t->m->image, NULL, NULL, 0, NULL,
                                                         NULL, 0)) != CUDA_SUCCESS)
        return;
    if (note(t, cuLibraryGetKernel(&kernel, library, "chain")) == CUDA_SUCCESS)
        for (unsigned i = 0; i < 2 + t->v % 12; i++)
            note(t, cuLaunchKernel((CUfunction)kernel, ((unsigned)t->n + 63) / 64, 1, 1, 64, 1, 1,
                                   0, t->l->s, (void *[]){&t->x, &a, &t->v, &t->n}, NULL));
    note(t, cuLibraryUnload(library));
}
/*@ part op_managed */
/* Managed memory, which the host touches by itself once the stream is through. */
static void op_managed(struct turn *t) {
    CUdeviceptr p = 0;
    if (t->m->capturing ||
        note(t, cuMemAllocManaged(&p, 1024, CU_MEM_ATTACH_GLOBAL)) != CUDA_SUCCESS)
        return;
    note(t, cuMemsetD32Async(p, t->v, 256, t->l->s));
    do_fill(t, p, t->v + 1, t->n);
    note(t, cuMemcpyDtoDAsync(p + 512, t->x, 256, t->l->s));
    do_chain(t, p, 3, t->v, t->n);
    if (note(t, cuStreamSynchronize(t->l->s)) == CUDA_SUCCESS)
        note_bytes(t, (void *)(uintptr_t)p, 4);
    do_copy(t, t->x, p, 64);
    note(t, cuMemFree(p));
}
/*@ part op_second */
/* Work in a context of the program's own, current for that long. */
static void op_second(struct turn *t) {
    struct second *c = &t->m->second;
    unsigned a = 3;
    int n = 64;
    if (t->m->capturing ||
        (c->ctx ? note(t, cuCtxPushCurrent(c->ctx)) : second_make(t)) != CUDA_SUCCESS)
        return;
    for (unsigned i = 0; i < 1 + t->v % 8; i++)
        note(t, cuLaunchKernel(c->chain, 1, 1, 1, 64, 1, 1, 0, t->v % 3 ? c->s : NULL,
                               (void *[]){&c->x, &a, &t->v, &n}, NULL));
    note(t, cuMemsetD32Async(c->x + 256, t->v, 8, t->v % 3 ? c->s : NULL));
    note(t, cuEventRecord(c->passed, t->v % 3 ? c->s : NULL));
    if (t->v % 7 == 0) /* of another context */
        note(t, cuEventRecord(t->l->other, c->s));
    if (t->v % 5 == 0)
        note(t, cuStreamSynchronize(c->s));
    if (t->v % 5 == 1)
        note(t, cuEventSynchronize(c->passed));
    note(t, cuCtxPopCurrent(NULL));
}
/*@ part op_second_end */
/* That context ends; with a v of certain values it has failed before. */
static void op_second_end(struct turn *t) {
    struct second *c = &t->m->second;
    unsigned one = 1, a = 3, host[128];
    int n = 64;
    if (!c->ctx || t->m->capturing)
        return;
    note(t, cuCtxPushCurrent(c->ctx));
    if (t->v % 3 == 0) {
        note(t, cuMemcpyDtoH(host, c->x, sizeof(host)));
        note_bytes(t, host, sizeof(host));
    }
    if (t->v % 2) {
        note(t, cuMemsetD32Async(c->x, one, 1, c->s));
        note(t, cuLaunchKernel(c->trap, 1, 1, 1, 1, 1, 1, 0, c->s, (void *[]){&c->x}, NULL));
        note(t, cuStreamSynchronize(c->s));
        for (unsigned i = 0; i < 3; i++)
            note(t, cuLaunchKernel(c->chain, 1, 1, 1, 64, 1, 1, 0, c->s,
                                   (void *[]){&c->x, &a, &t->v, &n}, NULL));
        note(t, cuStreamQuery(c->s));
    } else if (t->v % 4) {
        note(t, cuStreamSynchronize(c->s));
    }
    note(t, cuCtxPopCurrent(NULL));
    note(t, cuCtxDestroy(c->ctx));
    c->ctx = NULL;
}
/*@ part op_ptsz */
/* The calls of programs that were compiled for per-thread streams, on those. */
static void op_ptsz(struct turn *t) {
    static CUresult (*run)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                           unsigned, CUstream, void **, void **);
    unsigned a = 3;
    if (t->l->kind != PER_THREAD)
        return;
    if (!__atomic_load_n(&run, __ATOMIC_ACQUIRE))
        __atomic_store_n(&run, (__typeof__(run))dlsym(RTLD_DEFAULT, "cuLaunchKernel_ptsz"),
                         __ATOMIC_RELEASE);
    for (unsigned i = 0; i < 1 + t->v % 4; i++)
        note(t, run(t->m->fn[K_chain], ((unsigned)t->n + 63) / 64, 1, 1, 64, 1, 1, 0,
                    i % 2 ? NULL : t->l->s, (void *[]){&t->x, &a, &t->v, &t->n}, NULL));
}
/*@ part op_func_attribute */
static void op_func_attribute(struct turn *t) {
    int value = 0;
    note(t, cuFuncSetAttribute(t->m->fn[K_reduce_dynamic],
                               CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                               t->v % 3 ? 65536 : 1024 * (int)(t->v % 64)));
    note(t, cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                               t->m->fn[K_reduce_dynamic]));
    note(t, (CUresult)value);
}
/*@ part op_ask */
/* Questions whose answers are always the same. */
static void op_ask(struct turn *t) {
    unsigned flags = 0;
    int number = 0;
    CUdeviceptr base = 0;
    size_t bytes = 0, all = 0;
    CUmemorytype type = 0;
    CUcontext ctx = NULL;
    switch (t->v % 8) {
    case 0:
        note(t, cuStreamGetFlags(t->l->s, &flags));
        note(t, (CUresult)flags);
        break;
    case 1:
        note(t, cuStreamGetPriority(t->l->s, &number));
        note(t, (CUresult)number);
        break;
    case 2:
        note(t, cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, t->x));
        note(t, (CUresult)type);
        break;
    case 3:
        note(t, cuMemGetAddressRange(&base, &bytes, t->x + 4));
        note(t, (CUresult)(base == t->x ? (int)bytes : -1));
        break;
    case 4:
        note(t, cuMemGetInfo(&bytes, &all));
        break;
    case 5:
        note(t, cuCtxGetCurrent(&ctx));
        note(t, (CUresult)(ctx == t->m->ctx));
        break;
    case 6:
        note(t, cuStreamGetCtx(t->l->s, &ctx));
        note(t, (CUresult)(ctx == t->m->ctx));
        break;
    default:
        note(t, cuOccupancyMaxActiveBlocksPerMultiprocessor(&number, t->m->fn[K_chain], 64, 0));
        note(t, (CUresult)number);
    }
}
/*@ part op_getter */
/* Settings that lie behind a lock of the driver, and facts that never change, in the midst of
 * launches. Only op_limit, which is alone, changes one of the limits. */
static void op_getter(struct turn *t) {
    size_t value = 0;
    unsigned number = 0;
    CUfunc_cache cache = 0;
    CUmoduleLoadingMode loading = 0;
    CUstreamAttrValue attribute = {0};
    switch (t->v % 5) {
    case 0:
        note(t, cuCtxGetLimit(&value, CU_LIMIT_PRINTF_FIFO_SIZE));
        note(t, (CUresult)(int)value);
        break;
    case 1:
        note(t, cuCtxGetCacheConfig(&cache));
        note(t, (CUresult)cache);
        break;
    case 2:
        note(t, cuStreamGetAttribute(t->l->s, CU_LAUNCH_ATTRIBUTE_PRIORITY, &attribute));
        break;
    case 3:
        note(t, cuCtxGetApiVersion(t->m->ctx, &number));
        note(t, (CUresult)number);
        break;
    default:
        note(t, cuModuleGetLoadingMode(&loading));
        note(t, (CUresult)loading);
    }
}
/*@ part op_capturing */
static void op_capturing(struct turn *t) {
    CUstreamCaptureStatus status = 0;
    note(t, cuStreamIsCapturing(t->l->s, &status));
    note(t, (CUresult)status);
}
/*@ part op_value */
/* A stream writes a word, and waits for it to be there. */
static void op_value(struct turn *t) {
    CUdeviceptr word = device(t->l->flags + 48);
    if (t->m->capturing)
        return;
    note(t, cuStreamWriteValue32(t->l->s, word, t->v, 0));
    note(t, cuStreamWaitValue32(t->l->s, word, t->v, CU_STREAM_WAIT_VALUE_EQ));
}
/*@ part op_limit */
static void op_limit(struct turn *t) {
    size_t value = 0;
    note(t, cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 1024 + t->v % 3 * 512));
    note(t, cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE));
    note(t, (CUresult)(int)value);
}
/*@ part run */

static void lane_make(struct lane *l, unsigned number) {
    switch (l->kind) {
    case LEGACY:
        l->s = number % 2 ? NULL : CU_STREAM_LEGACY;
        break;
    case PER_THREAD:
        l->s = CU_STREAM_PER_THREAD;
        break;
    case BLOCKING:
        MUST(cuStreamCreate(&l->s, CU_STREAM_DEFAULT));
        break;
    case NON_BLOCKING:
        MUST(cuStreamCreate(&l->s, CU_STREAM_NON_BLOCKING));
        break;
    case URGENT:
        MUST(cuStreamCreateWithPriority(&l->s, CU_STREAM_NON_BLOCKING, -5));
        break;
    case LOW_BLOCKING:
        MUST(cuStreamCreateWithPriority(&l->s, CU_STREAM_DEFAULT, -1));
        break;
    }
    for (unsigned b = 0; b < BUFFERS; b++) {
        MUST(cuMemAlloc(&l->buffer[b], WORDS * 4));
        MUST(cuMemsetD8(l->buffer[b], 0, WORDS * 4));
    }
    MUST(cuMemAlloc(&l->given, LANES * WORDS * 4));
    MUST(cuMemsetD8(l->given, 0, LANES * WORDS * 4));
    MUST(cuMemHostAlloc((void **)&l->pinned_in, 2 * WORDS * 4, 0));
    MUST(cuMemHostAlloc((void **)&l->pinned_out, 2 * WORDS * 4, CU_MEMHOSTALLOC_PORTABLE));
    MUST(cuMemHostAlloc((void **)&l->flags, WORDS * 4, CU_MEMHOSTALLOC_DEVICEMAP));
    memset(l->pinned_out, 0, 2 * WORDS * 4);
    memset(l->flags, 0, WORDS * 4);
    l->page_in = aligned_alloc(4096, 4096);
    l->page_out = aligned_alloc(4096, 4096);
    if (!l->page_in || !l->page_out)
        abort();
    memset(l->page_out, 0, 4096);
    for (unsigned i = 0; i < 1024; i++)
        l->page_in[i] = i * 5 + number;
    for (unsigned i = 0; i < 2 * WORDS; i++)
        l->pinned_in[i] = i * 7 + number;
    MUST(cuEventCreate(&l->made, CU_EVENT_DISABLE_TIMING));
    MUST(cuEventCreate(&l->taken, CU_EVENT_DISABLE_TIMING));
    MUST(cuEventCreate(&l->other, CU_EVENT_DEFAULT));
    MUST(cuEventCreate(&l->timed[0], CU_EVENT_DEFAULT));
    MUST(cuEventCreate(&l->timed[1], CU_EVENT_BLOCKING_SYNC));
    for (unsigned i = 0; i < RING; i++)
        MUST(cuEventCreate(&l->ring[i], i % 2 ? CU_EVENT_DISABLE_TIMING : CU_EVENT_DEFAULT));
}

static void lane_free(struct lane *l) {
    for (unsigned slot = 0; slot < SLOTS; slot++)
        if (l->exec[slot]) {
            cuGraphExecDestroy(l->exec[slot]);
            cuGraphDestroy(l->graph[slot]);
        }
    for (unsigned b = 0; b < BUFFERS; b++)
        MUST(cuMemFree(l->buffer[b]));
    MUST(cuMemFree(l->given));
    if (l->kept)
        MUST(cuMemFree(l->kept));
    if (l->pool)
        MUST(cuMemPoolDestroy(l->pool));
    if (l->extra)
        MUST(cuMemFree(l->extra));
    if (l->scratch)
        MUST(cuMemFreeHost(l->scratch));
    MUST(cuMemFreeHost(l->pinned_in));
    MUST(cuMemFreeHost(l->pinned_out));
    MUST(cuMemFreeHost(l->flags));
    MUST(cuEventDestroy(l->made));
    MUST(cuEventDestroy(l->taken));
    MUST(cuEventDestroy(l->other));
    MUST(cuEventDestroy(l->timed[0]));
    MUST(cuEventDestroy(l->timed[1]));
    for (unsigned i = 0; i < RING; i++)
        MUST(cuEventDestroy(l->ring[i]));
    if (l->kind != LEGACY && l->kind != PER_THREAD)
        MUST(cuStreamDestroy(l->s));
    free(l->page_in);
    free(l->page_out);
}

/* Pools give back what they kept, so that the next program finds all memory as this one did. */
static void machine_end(struct machine *m) {
    CUmemoryPool pool;
    for (unsigned i = 0; i < m->lanes; i++)
        lane_free(&m->lane[i]);
    if (m->second.ctx)
        MUST(cuCtxDestroy(m->second.ctx));
    m->second.ctx = NULL;
    if (m->own)
        MUST(cuModuleUnload(m->own));
    m->own = NULL;
    MUST(cuCtxSynchronize());
    MUST(cuDeviceGetDefaultMemPool(&pool, 0));
    MUST(cuMemPoolTrimTo(pool, 0));
}

/* A digest of a lane's memory; the context is idle. */
static uint64_t lane_digest(const struct lane *l) {
    unsigned host[WORDS];
    uint64_t h = 14695981039346656037u;
    for (unsigned b = 0; b < BUFFERS; b++) {
        MUST(cuMemcpyDtoH(host, l->buffer[b], sizeof(host)));
        h = hash(h, host, sizeof(host));
    }
    for (unsigned i = 0; i < LANES; i++) {
        MUST(cuMemcpyDtoH(host, l->given + i * WORDS * 4, sizeof(host)));
        h = hash(h, host, sizeof(host));
    }
    h = hash(h, l->pinned_in, 2 * WORDS * 4);
    h = hash(h, l->pinned_out, 2 * WORDS * 4);
    h = hash(h, l->page_out, 4096);
    h = hash(h, l->flags + 32, 16 * 4);
    return h;
}

static void do_op(struct turn *t, const struct op *op) {
    struct machine *m = t->m;
    t->l = &m->lane[op->lane];
    t->o = &m->lane[op->other];
    for (unsigned i = 0; i < op->repeat; i++) {
        int n = op->size + op->grow * (int)t->step;
        t->v = op->value + i * 3 + (op->vary ? t->step * 7 : 0);
        t->n = n < 1 ? 1 : n > WORDS - 8 ? WORDS - 8 : n;
        t->x = t->l->buffer[op->buffer % BUFFERS];
        t->y = t->l->buffer[(op->buffer + 1) % BUFFERS];
        op->verb(t);
    }
}

/* Per-thread streams come to life in a fixed order, so that they have fixed numbers. */
static void first_touch(struct turn *t) {
    struct machine *m = t->m;
    for (unsigned i = 0; i < m->lanes; i++) {
        struct lane *l = &m->lane[i];
        if (l->kind != PER_THREAD)
            continue;
        pthread_barrier_wait(&m->barrier);
        if (l->thread == t->thread)
            note(t, cuMemsetD32Async(l->buffer[0], i, 4, l->s));
        pthread_barrier_wait(&m->barrier);
    }
}

static void *run_thread(void *argument) {
    struct turn *t = argument;
    struct machine *m = t->m;
    MUST(cuCtxSetCurrent(m->ctx));
    t->number = 0xFFFF;
    first_touch(t);
    for (t->step = 0; t->step < m->steps; t->step++)
        for (t->number = 0; t->number < m->n_ops; t->number++) {
            const struct op *op = &m->ops[t->number];
            int solo = (op->flags & SOLO) && m->threads > 1;
            if (op->lane >= m->lanes || op->other >= m->lanes || t->step % op->every != op->phase)
                continue;
            if (solo)
                pthread_barrier_wait(&m->barrier);
            if ((op->flags & ALL) || m->lane[op->lane].thread == t->thread)
                do_op(t, op);
            if (solo)
                pthread_barrier_wait(&m->barrier);
        }
    t->number = 0xFFFF;
    if (m->capturing) {
        CUgraph graph = NULL;
        note(t, cuStreamEndCapture(m->capturing->s, &graph));
        if (graph)
            cuGraphDestroy(graph);
        m->capturing = NULL;
    }
    pthread_barrier_wait(&m->barrier); /* no capture is open from here on */
    for (unsigned i = 0; i < m->lanes; i++)
        if (m->lane[i].thread == t->thread)
            note(t, cuStreamSynchronize(m->lane[i].s));
    return NULL;
}

/* Runs the program of a machine whose ctx, lanes and ops are set; m->fn is filled in. */
static void machine_run(struct machine *m) {
    struct turn turn[THREADS];
    pthread_t thread[THREADS];
    for (unsigned i = 0; i < m->lanes; i++)
        lane_make(&m->lane[i], i);
    MUST(cuFuncSetAttribute(m->fn[K_reduce_dynamic],
                            CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 4096));
    MUST(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 1024));
    MUST(cuCtxSynchronize());
    pthread_barrier_init(&m->barrier, NULL, m->threads);
    for (unsigned i = 0; i < m->threads; i++) {
        turn[i] = (struct turn){.m = m, .thread = i};
        if (pthread_create(&thread[i], NULL, run_thread, &turn[i]))
            abort();
    }
    for (unsigned i = 0; i < m->threads; i++)
        pthread_join(thread[i], NULL);
    pthread_barrier_destroy(&m->barrier);
    MUST(cuCtxSynchronize());
}

static void machine_start(struct machine *m, const char *image) {
    CUdevice dev;
    MUST(cuInit(0));
    MUST(cuDeviceGet(&dev, 0));
    MUST(cuDevicePrimaryCtxRetain(&m->ctx, dev));
    MUST(cuCtxSetCurrent(m->ctx));
    m->image = image;
    MUST(cuModuleLoad(&m->module, image));
    for (int k = 0; k < KERNELS; k++)
        MUST(cuModuleGetFunction(&m->fn[k], m->module, kernel_names[k]));
}
