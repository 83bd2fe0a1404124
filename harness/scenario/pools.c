/*
 * Pools that a program makes itself, as RAPIDS' memory manager does. Main thread only.
 */
#include "harness/scenario/sc.h"

#define N ((size_t)1024)

static CUmemoryPool pool_new(struct sc *sc) {
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
    CUmemoryPool pool;
    OK(sc->cu.MemPoolCreate(&pool, &props));
    return pool;
}

static cuuint64_t bytes_used(struct sc *sc, CUmemoryPool pool) {
    cuuint64_t used = 0;
    OK(sc->cu.MemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
    return used;
}

/* A launch on memory of the pool, which is freed behind it; what it holds comes into `out`. */
static void use(struct sc *sc, CUmemoryPool pool, CUdeviceptr out, unsigned v, CUstream s) {
    CUdeviceptr p, q;
    OK(sc->cu.MemAllocFromPoolAsync(&p, 512 << out / 512 % 3, pool, s));
    sc_fill(sc, s, p, v, 128);
    OK(sc->cu.MemAllocFromPoolAsync(&q, 512, pool, s));
    OK(sc->cu.MemcpyDtoDAsync(q, p, 512, s));
    OK(sc->cu.MemsetD8Async(q, (unsigned char)v, 16, s));
    OK(sc->cu.MemFreeAsync(p, s));
    sc_chain(sc, s, q, 3, v, 128);
    OK(sc->cu.MemcpyDtoDAsync(out, q, 512, s));
    OK(sc->cu.MemFreeAsync(q, s));
}

/* Allocations and frees around launches, in a pool of the program's. */
int sc_run_pool_own(struct sc *sc) {
    CUstream s;
    sc_start(sc);
    CUdeviceptr out = sc_device(sc, "out", N);
    OK(sc->cu.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
    CUmemoryPool pool = pool_new(sc);
    for (unsigned step = 0; step < sc_steps(sc, 24); step++) {
        for (unsigned i = 0; i < 5; i++)
            use(sc, pool, out + i * 512, step + i, s);
        OK(sc->cu.StreamSynchronize(s));
    }
    sc_say(sc, "used %llu", (unsigned long long)bytes_used(sc, pool));
    OK(sc->cu.MemPoolDestroy(pool));
    sc_digest(sc);
    return 0;
}

/* What a pool shows is looked at in the midst of a step, where frees may be deferred. */
static void look(struct sc *sc, CUmemoryPool pool, unsigned step) {
    int file, on = step % 2;
    switch (step % 5) {
    case 0:
        sc_say(sc, "used %llu", (unsigned long long)bytes_used(sc, pool));
        break;
    case 1:
        OK(sc->cu.MemPoolTrimTo(pool, 0));
        break;
    case 2:
        OK(sc->cu.MemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &on));
        break;
    case 3:
        sc_code(sc, sc->cu.MemPoolExportToShareableHandle(
                        &file, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
        break;
    default:
        break;
    }
}

/* Pools come, are the device's current one, and go, the last one while memory of it lives. Memory
 * is freed twice at times, and by cuMemFree. No pool is made once one has gone with memory or
 * unfinished frees: driver 580 crashes at an allocation from such a pool (tests/gpu/DRIVER.md). */
int sc_run_pool_changes(struct sc *sc) {
    CUstream s;
    CUmemoryPool first, pool, other;
    CUdeviceptr left = 0;
    sc_start(sc);
    CUdeviceptr out = sc_device(sc, "out", N * 2);
    OK(sc->cu.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
    OK(sc->cu.DeviceGetDefaultMemPool(&first, 0));
    pool = pool_new(sc);
    other = pool_new(sc);
    for (unsigned step = 0; step < sc_steps(sc, 96); step++) {
        CUdeviceptr p;
        for (unsigned i = 0; i < 6; i++)
            use(sc, i % 3 ? pool : other, out + i * 512, step + i, s);
        OK(sc->cu.MemAllocAsync(&p, 512, s)); /* from the current pool */
        sc_fill(sc, s, p, step, 128);
        OK(sc->cu.MemcpyDtoDAsync(out + 6 * 512, p, 512, s));
        OK(sc->cu.MemFreeAsync(p, s));
        if (step % 16 == 15) {
            look(sc, pool, step / 16);
            sc_code(sc, sc->cu.MemFreeAsync(p, s));
        }
        if (step % 12 == 5)
            OK(sc->cu.DeviceSetMemPool(0, step % 24 == 5 ? pool : first));
        if (left) {
            sc_chain(sc, s, left, 5, step, 128);
            OK(sc->cu.MemcpyDtoDAsync(out + 7 * 512, left, 512, s));
            OK(step % 3 ? sc->cu.MemFreeAsync(left, s) : sc->cu.MemFree(left));
            left = 0;
        }
        if (step % 8 == 3) {
            OK(sc->cu.MemAllocFromPoolAsync(&left, 512, pool, s));
            sc_fill(sc, s, left, step, 128);
            use(sc, pool, out, step, s);
        }
        if (step % 8 == 7) {
            OK(sc->cu.StreamSynchronize(s));
            OK(sc->cu.MemPoolDestroy(pool));
            pool = other;
            other = pool_new(sc);
        }
        if (step % 2)
            OK(sc->cu.StreamSynchronize(s));
    }
    OK(sc->cu.MemAllocFromPoolAsync(&left, 512, pool, s));
    sc_fill(sc, s, left, 7, 128);
    OK(sc->cu.MemPoolDestroy(pool));
    sc_chain(sc, s, left, 5, 9, 128);
    OK(sc->cu.MemcpyDtoDAsync(out + 7 * 512, left, 512, s));
    OK(sc->cu.MemFreeAsync(left, s));
    OK(sc->cu.MemPoolDestroy(other));
    sc_digest(sc);
    return 0;
}

/* One thread's pool on two streams that events order, and a pool with a largest size, which has
 * room for one allocation at a time. */
int sc_run_pool_limits(struct sc *sc) {
    CUstream a, b;
    CUevent e;
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
                            .maxSize = 32 << 20};
    CUmemoryPool largest, pool;
    sc_start(sc);
    CUdeviceptr out = sc_device(sc, "out", N);
    OK(sc->cu.StreamCreate(&a, CU_STREAM_NON_BLOCKING));
    OK(sc->cu.StreamCreate(&b, CU_STREAM_NON_BLOCKING));
    OK(sc->cu.EventCreate(&e, CU_EVENT_DISABLE_TIMING));
    OK(sc->cu.MemPoolCreate(&largest, &props));
    pool = pool_new(sc);
    int off = 0;
    OK(sc->cu.MemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, &off));
    for (unsigned step = 0; step < sc_steps(sc, 48); step++) {
        CUdeviceptr p;
        for (unsigned i = 0; i < 3; i++) {
            OK(sc->cu.MemAllocFromPoolAsync(&p, 24 << 20, largest, a));
            sc_fill(sc, a, p, step + i, 128);
            OK(sc->cu.MemcpyDtoDAsync(out + i * 512, p, 512, a));
            OK(sc->cu.MemFreeAsync(p, a));
        }
        for (unsigned i = 3; i < 6; i++)
            use(sc, pool, out + i * 512, step + i, a);
        if (step % 4 == 0) {
            OK(sc->cu.EventRecord(e, a));
            OK(sc->cu.StreamWaitEvent(b, e, 0));
            use(sc, pool, out + 6 * 512, step, b);
            OK(sc->cu.StreamSynchronize(b));
        }
        OK(sc->cu.StreamSynchronize(a));
    }
    OK(sc->cu.MemPoolDestroy(largest));
    OK(sc->cu.MemPoolDestroy(pool));
    sc_digest(sc);
    return 0;
}
