/*
 * Memsets and copies of all kinds, and memory that is allocated and freed between launches. Main
 * thread.
 */
#include "harness/scenario/sc.h"

#include <stdlib.h>
#include <string.h>

enum { N = 1024 };

/* All widths, odd sizes, unaligned places, two dimensions, empty ones, with and without Async. */
int sc_run_memsets(struct sc *sc) {
    CUstream s;
    sc_start(sc);
    CUdeviceptr x = sc_device(sc, "x", N), y = sc_device(sc, "y", N);
    OK(sc->cu.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
    for (unsigned step = 0; step < sc_steps(sc, 24); step++) {
        unsigned char b = (unsigned char)(step * 7 + 1);
        unsigned short h = (unsigned short)(step * 777 + 1);
        OK(sc->cu.MemsetD8Async(x + 1, b, 13, s));
        sc_chain(sc, s, y, 3, step, N);
        OK(sc->cu.MemsetD8Async(x + 3, b, 64, s));
        OK(sc->cu.MemsetD16Async(x + 102, h, 1 + step % 9, s));
        OK(sc->cu.MemsetD32Async(x + 200, step * 99999, 17, s));
        sc_code(sc, sc->cu.MemsetD32Async(x + 400, step, 0, s));
        OK(sc->cu.MemsetD2D8Async(x + 1024, 64, b, 7, 5, s));
        OK(sc->cu.MemsetD2D16Async(x + 2048, 128, h, 9, 4, s));
        OK(sc->cu.MemsetD2D32Async(x + 3072, 128, step, 3, 6, s));
        sc_chain(sc, s, x, 5, step, N);
        OK(sc->cu.MemsetD8Async(y + 5, b, step % 4 ? 40 : 41, s));
        OK(sc->cu.MemsetD32Async(y + 512, step, step % 2 ? 100 : 50, s));
        if (step % 6 == 5) {
            /* Forms without Async are ordered by the legacy stream, so wait for s first. */
            OK(sc->cu.StreamSynchronize(s));
            OK(sc->cu.MemsetD8(x + 9, b, 3));
            OK(sc->cu.MemsetD16(x + 90, h, 3));
            OK(sc->cu.MemsetD32(x + 900, step, 3));
            OK(sc->cu.StreamSynchronize(NULL));
        }
        OK(sc->cu.StreamSynchronize(s));
    }
    sc_digest(sc);
    return 0;
}

/* One 2-D memset in a block that comes and goes. */
static void fill_late(struct sc *sc, CUstream s, CUdeviceptr x, unsigned char value) {
    CUdeviceptr late;
    OK(sc->cu.MemAlloc(&late, 4096));
    OK(sc->cu.MemsetD2D8Async(late, 64, value, 13, 5, s));
    OK(sc->cu.MemcpyDtoDAsync(x + 3584, late, 512, s));
    OK(sc->cu.StreamSynchronize(s));
    OK(sc->cu.MemFree(late));
}

/* Of two dimensions: other places and values in each step, other extents in some, rows that touch,
 * one row, and pitches that the driver refuses. */
int sc_run_memsets_2d(struct sc *sc) {
    CUstream s;
    sc_start(sc);
    CUdeviceptr x = sc_device(sc, "x", N), y = sc_device(sc, "y", N);
    OK(sc->cu.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
    for (unsigned step = 0; step < sc_steps(sc, 36); step++) {
        unsigned char b = (unsigned char)(step * 7 + 1);
        CUdeviceptr at = x + step % 4 * 16;
        sc_chain(sc, s, y, 3, step, N);
        OK(sc->cu.MemsetD2D8Async(at + 1, 64, b, 13, 5, s));
        OK(sc->cu.MemsetD2D16Async(at + 512, 96, (unsigned short)(step * 777), 9, 4, s));
        OK(sc->cu.MemsetD2D32Async(at + 1024, 128, step * 99999, 3, 6, s));
        sc_chain(sc, s, x, 5, step, N);
        OK(sc->cu.MemsetD2D32Async(x + 2048, 64, step, 16, 4, s));
        OK(sc->cu.MemsetD2D8Async(at + 2560, 32, b, 20, 1, s));
        OK(sc->cu.MemsetD8Async(at + 2560, b, 20, s));
        sc_chain(sc, s, x, 3, step, N);
        OK(sc->cu.MemsetD2D8Async(x + 3072, 64, b, step % 12 == 11 ? 9 : 10, 4, s));
        OK(sc->cu.MemsetD2D8Async(y, step % 18 == 17 ? 48 : 64, b, 10, 4, s));
        sc_chain(sc, s, y, 5, step, N);
        if (step % 9 == 8) {
            sc_code(sc, sc->cu.MemsetD2D8Async(x, 8, b, 9, 2, s));
            sc_code(sc, sc->cu.MemsetD2D32Async(x, 30, step, 2, 2, s));
            sc_code(sc, sc->cu.MemsetD2D32Async(x + 2, 32, step, 2, 2, s));
            fill_late(sc, s, x, b);
        }
        OK(sc->cu.StreamSynchronize(s));
    }
    sc_digest(sc);
    return 0;
}

/* A memset of pinned memory, which the host reads after the synchronisation. */
int sc_run_memset_pinned(struct sc *sc) {
    CUstream s;
    CUdeviceptr p_device;
    uint64_t said = 0;
    sc_start(sc);
    CUdeviceptr x = sc_device(sc, "x", N);
    unsigned char *p = sc_pinned(sc, "pinned", 256);
    OK(sc->cu.MemHostGetDevicePointer(&p_device, p, 0));
    OK(sc->cu.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
    for (unsigned step = 0; step < sc_steps(sc, 20); step++) {
        for (unsigned i = 0; i < 5; i++) {
            sc_chain(sc, s, x, 3, step + i, N);
        }
        OK(sc->cu.MemsetD8Async(p_device + step % 8, (unsigned char)step, 100, s));
        OK(sc->cu.MemsetD32Async(p_device + 128, step, 8, s));
        OK(sc->cu.StreamSynchronize(s));
        said = sc_hash(said, p, 256);
        OK(sc->cu.MemsetD8(p_device + 200, (unsigned char)(step + 1), 16));
        said = sc_hash(said, p, 256);
    }
    sc_say(sc, "seen: %016llx", (unsigned long long)said);
    sc_digest(sc);
    return 0;
}

int sc_run_copies(struct sc *sc) {
    CUstream s;
    sc_start(sc);
    CUdeviceptr x = sc_device(sc, "x", N), y = sc_device(sc, "y", N);
    unsigned *in = sc_pinned(sc, "in", N * 4), *out = sc_pinned(sc, "out", N * 4);
    unsigned *loose_in = malloc(N * 4), *loose_out = calloc(N, 4);
    if (!loose_in || !loose_out) {
        sc_fail("no memory");
    }
    sc_register(sc, "loose_out", 0, loose_out, N * 4);
    OK(sc->cu.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
    uint64_t said = 0;
    for (unsigned step = 0; step < sc_steps(sc, 24); step++) {
        unsigned on_stack[16];
        for (unsigned i = 0; i < N; i++) {
            in[i] = step * 31 + i;
            loose_in[i] = step * 17 + i;
        }
        for (unsigned i = 0; i < 16; i++) {
            on_stack[i] = step + i;
        }
        OK(sc->cu.MemcpyHtoDAsync(x, in, 400, s)); /* pinned: read in stream order */
        sc_chain(sc, s, x, 3, step, N);
        OK(sc->cu.MemcpyDtoDAsync(y, x + 16, 1000, s));
        sc_chain(sc, s, y, 5, step, N);
        OK(sc->cu.MemcpyHtoDAsync(x + 800, loose_in, 333,
                                  s)); /* pageable: read before the call returns */
        memset(loose_in, 0xEE, N * 4);
        OK(sc->cu.MemcpyHtoDAsync(x + 1200, on_stack, sizeof(on_stack), s));
        memset(on_stack, 0xEE, sizeof(on_stack));
        sc_chain(sc, s, x, 7, step, N);
        OK(sc->cu.MemcpyDtoHAsync(out, y, 2000, s));
        sc_chain(sc, s, y, 9, step, N);
        /* The generic form, which derives the direction from the pointers. */
        OK(sc->cu.MemcpyAsync(y + 2048, x, 512, s));
        OK(sc->cu.MemcpyAsync((CUdeviceptr)(uintptr_t)(out + 600), y, 800, s));
        OK(sc->cu.MemcpyDtoHAsync(loose_out, x, 700,
                                  s)); /* pageable: complete when the call returns */
        said = sc_hash(said, loose_out, 700);
        memset(loose_out, 0, 16);
        sc_code(sc, sc->cu.MemcpyDtoDAsync(x + 4, y + 4, 0, s));
        OK(sc->cu.StreamSynchronize(s));
        said = sc_hash(said, out, N * 4);
    }
    sc_say(sc, "seen: %016llx", (unsigned long long)said);
    sc_digest(sc);
    free(loose_in);
    free(loose_out);
    return 0;
}

/* Copies without Async among launches on the legacy stream. */
int sc_run_copies_sync(struct sc *sc) {
    sc_start(sc);
    CUdeviceptr x = sc_device(sc, "x", N), y = sc_device(sc, "y", N);
    unsigned host[64];
    uint64_t said = 0;
    for (unsigned step = 0; step < sc_steps(sc, 24); step++) {
        for (unsigned i = 0; i < 64; i++) {
            host[i] = step + i;
        }
        OK(sc->cu.MemcpyHtoD(x, host, sizeof(host)));
        memset(host, 0xEE, sizeof(host));
        for (unsigned i = 0; i < 6; i++) {
            sc_chain(sc, NULL, x, 3, step + i, N);
        }
        OK(sc->cu.MemcpyDtoD(y, x, N * 2));
        OK(sc->cu.Memcpy(y + 2048, x + 64, 256));
        for (unsigned i = 0; i < 6; i++) {
            sc_chain(sc, NULL, y, 5, step + i, N);
        }
        OK(sc->cu.MemcpyDtoH(host, y + 1024, sizeof(host)));
        said = sc_hash(said, host, sizeof(host));
    }
    sc_say(sc, "seen: %016llx", (unsigned long long)said);
    sc_digest(sc);
    return 0;
}

/* Memory of the program is registered, in whole and in part, and unregistered again at the same
 * address. */
int sc_run_copies_registered(struct sc *sc) {
    enum { PAGE = 4096 };
    CUstream s;
    sc_start(sc);
    CUdeviceptr x = sc_device(sc, "x", PAGE / 2);
    unsigned char *p = NULL;
    uint64_t said = 0;
    if (posix_memalign((void **)&p, PAGE, 2 * PAGE)) {
        sc_fail("no memory");
    }
    OK(sc->cu.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
    for (unsigned step = 0; step < sc_steps(sc, 24); step++) {
        unsigned how = step / 2 % 3; /* not at all, the first half, all of it */
        memset(p, (int)step, 2 * PAGE);
        if (how) {
            OK(sc->cu.MemHostRegister(p, (size_t)how * PAGE, 0));
        }
        for (unsigned i = 0; i < 5; i++) {
            sc_chain(sc, s, x, 3, step + i, PAGE / 2);
        }
        OK(sc->cu.MemcpyHtoDAsync(x + 64, p, 1024, s));
        if (how == 0) {
            memset(p, 0xEE, 1024);
        }
        for (unsigned i = 0; i < 5; i++) {
            sc_chain(sc, s, x, 5, step + i, PAGE / 2);
        }
        OK(sc->cu.MemcpyDtoHAsync(p + 256, x, 1024, s));
        if (how != 1) { /* not every driver allows a copy over the border of a registered part */
            OK(sc->cu.MemcpyDtoHAsync(p + PAGE - 512, x, 1024, s));
        }
        OK(sc->cu.StreamSynchronize(s));
        said = sc_hash(said, p, 2 * PAGE);
        if (how) {
            OK(sc->cu.MemHostUnregister(p));
        }
    }
    free(p);
    sc_say(sc, "seen: %016llx", (unsigned long long)said);
    sc_digest(sc);
    return 0;
}

/* Data from the device goes back by way of the host, without a wait in between. */
int sc_run_copy_back(struct sc *sc) {
    CUstream s;
    sc_start(sc);
    CUdeviceptr x = sc_device(sc, "x", N), y = sc_device(sc, "y", N);
    unsigned *pinned = sc_pinned(sc, "pinned", N * 4);
    OK(sc->cu.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
    for (unsigned step = 0; step < sc_steps(sc, 20); step++) {
        for (unsigned i = 0; i < 6; i++)
            sc_chain(sc, s, x, 3, step + i, N);
        OK(sc->cu.MemcpyDtoHAsync(pinned, x, N * 4, s));
        OK(sc->cu.MemcpyHtoDAsync(y, pinned, N * 4, s));
        for (unsigned i = 0; i < 6; i++)
            sc_chain(sc, s, y, 5, step + i, N);
        OK(sc->cu.StreamSynchronize(s));
    }
    sc_digest(sc);
    return 0;
}

int sc_run_copies_2d(struct sc *sc) {
    CUstream s;
    sc_start(sc);
    CUdeviceptr x = sc_device(sc, "x", N), y = sc_device(sc, "y", N);
    unsigned char *pinned = sc_pinned(sc, "pinned", 4096);
    OK(sc->cu.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
    for (unsigned step = 0; step < sc_steps(sc, 20); step++) {
        CUDA_MEMCPY2D on_device = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                                   .srcDevice = x + 4,
                                   .srcPitch = 64,
                                   .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                                   .dstDevice = y + 8,
                                   .dstPitch = 128,
                                   .WidthInBytes = 17 + step % 5,
                                   .Height = 9};
        CUDA_MEMCPY2D to_host = on_device;
        to_host.dstMemoryType = CU_MEMORYTYPE_HOST;
        to_host.dstHost = pinned;
        to_host.dstPitch = 100;
        for (unsigned i = 0; i < 6; i++) {
            sc_chain(sc, s, x, 3, step + i, N);
        }
        OK(sc->cu.Memcpy2DAsync(&on_device, s));
        for (unsigned i = 0; i < 6; i++) {
            sc_chain(sc, s, y, 5, step + i, N);
        }
        OK(sc->cu.Memcpy2DAsync(&to_host, s));
        OK(sc->cu.StreamSynchronize(s));
    }
    sc_digest(sc);
    return 0;
}

/* Asks for much memory when the stream of all launches is gone. */
int sc_run_memory_late(struct sc *sc) {
    CUstream s;
    CUdeviceptr before, late;
    sc_start(sc);
    CUdeviceptr x = sc_device(sc, "x", N);
    OK(sc->cu.MemAlloc(&before, 16 << 20));
    OK(sc->cu.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
    for (unsigned step = 0; step < sc_steps(sc, 12); step++) {
        for (unsigned i = 0; i < 8; i++) {
            sc_chain(sc, s, x, 3, step + i, 64);
        }
        OK(sc->cu.StreamSynchronize(s));
    }
    OK(sc->cu.StreamDestroy(s));
    OK(sc->cu.MemAlloc(&late, 64 << 20));
    OK(sc->cu.MemFree(late));
    OK(sc->cu.MemFree(before));
    sc_digest(sc);
    return 0;
}

/* A program reads its free memory before and after a phase without a free, as serving engines
 * do. A setter call in between must not make more memory free. */
int sc_run_free_memory(struct sc *sc) {
    CUstream s;
    size_t before, after, total;
    sc_start(sc);
    CUdeviceptr x = sc_device(sc, "x", N);
    OK(sc->cu.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
    for (unsigned step = 0; step < sc_steps(sc, 24); step++) {
        for (unsigned i = 0; i < 1200; i++) {
            sc_chain(sc, s, x, 3, step + i, 64);
        }
        OK(sc->cu.StreamSynchronize(s));
    }
    OK(sc->cu.MemGetInfo(&before, &total));
    OK(sc->cu.FuncSetAttribute(sc->fn[SC_chain], CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
                               50));
    for (unsigned i = 0; i < 40; i++) {
        sc_chain(sc, s, x, 5, i, 64);
        OK(sc->cu.StreamSynchronize(s));
    }
    OK(sc->cu.MemGetInfo(&after, &total));
    sc_say(sc, "more is free than before: %s", after > before + (1 << 20) ? "yes" : "no");
    sc_digest(sc);
    return 0;
}

/* Memory is freed right after the launch, and allocated again at the same address with another
 * size. */
int sc_run_free_reuse(struct sc *sc) {
    CUstream s;
    sc_start(sc);
    CUdeviceptr out = sc_device(sc, "out", N);
    OK(sc->cu.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
    for (unsigned step = 0; step < sc_steps(sc, 30); step++) {
        CUdeviceptr p, q;
        void *host;
        OK(sc->cu.MemAlloc(&p, 2048));
        sc_fill(sc, s, p, step, 512);
        for (unsigned i = 0; i < 5; i++) {
            sc_chain(sc, s, p, 3, step + i, 512);
        }
        sc_copy(sc, s, out + (step % 4) * 512, p, 128);
        OK(sc->cu.MemFree(p));
        OK(sc->cu.MemAlloc(&q, step % 2 ? 2048 : 1024));
        OK(sc->cu.MemHostAlloc(&host, 256, 0));
        memset(host, (int)step, 256);
        OK(sc->cu.MemcpyHtoDAsync(q, host, 256, s));
        for (unsigned i = 0; i < 5; i++) {
            sc_chain(sc, s, q, 5, step + i, 64);
        }
        sc_copy(sc, s, out + 2048 + (step % 4) * 256, q, 64);
        if (step % 2) { /* the free waits for the copy that reads it */
            OK(sc->cu.MemFreeHost(host));
            OK(sc->cu.MemFree(q));
        } else {
            OK(sc->cu.StreamSynchronize(s));
            OK(sc->cu.MemFree(q));
            OK(sc->cu.MemFreeHost(host));
        }
    }
    sc_digest(sc);
    return 0;
}

/* Stream-ordered allocation, as pools do it; every other step another stream gets the memory. */
int sc_run_pool_memory(struct sc *sc) {
    CUstream a, b;
    CUevent e;
    sc_start(sc);
    CUdeviceptr out = sc_device(sc, "out", N);
    OK(sc->cu.StreamCreate(&a, CU_STREAM_NON_BLOCKING));
    OK(sc->cu.StreamCreate(&b, CU_STREAM_NON_BLOCKING));
    OK(sc->cu.EventCreate(&e, CU_EVENT_DISABLE_TIMING));
    for (unsigned step = 0; step < sc_steps(sc, 24); step++) {
        CUdeviceptr p, q;
        OK(sc->cu.MemAllocAsync(&p, 1024, a));
        sc_fill(sc, a, p, step, 256);
        for (unsigned i = 0; i < 5; i++) {
            sc_chain(sc, a, p, 3, step + i, 256);
        }
        OK(sc->cu.MemAllocAsync(&q, 512, a));
        OK(sc->cu.MemcpyDtoDAsync(q, p, 512, a));
        OK(sc->cu.MemFreeAsync(p, a));
        OK(sc->cu.EventRecord(e, a));
        CUstream last = step % 2 ? b : a;
        if (step % 2) {
            OK(sc->cu.StreamWaitEvent(b, e, 0));
        }
        for (unsigned i = 0; i < 5; i++) {
            sc_chain(sc, last, q, 5, step + i, 128);
        }
        OK(sc->cu.MemcpyDtoDAsync(out + (step % 8) * 512, q, 512, last));
        OK(sc->cu.MemFreeAsync(q, last));
        if (step % 4 == 3) {
            OK(sc->cu.CtxSynchronize());
        }
    }
    sc_digest(sc);
    return 0;
}

/* Allocations and frees around launches on one stream, as an inference engine makes them. */
int sc_run_pool_loop(struct sc *sc) {
    CUstream s;
    sc_start(sc);
    CUdeviceptr out = sc_device(sc, "out", N);
    OK(sc->cu.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
    for (unsigned step = 0; step < sc_steps(sc, 24); step++) {
        CUdeviceptr p, q;
        for (unsigned i = 0; i < 5; i++) {
            OK(sc->cu.MemAllocAsync(&p, 512 << i % 3, s));
            sc_fill(sc, s, p, step + i, 128);
            OK(sc->cu.MemAllocAsync(&q, 512, s));
            OK(sc->cu.MemcpyDtoDAsync(q, p, 512, s));
            OK(sc->cu.MemFreeAsync(p, s));
            sc_chain(sc, s, q, 3, step + i, 128);
            OK(sc->cu.MemcpyDtoDAsync(out + i * 512, q, 512, s));
            OK(sc->cu.MemFreeAsync(q, s));
        }
        OK(sc->cu.StreamSynchronize(s));
    }
    sc_digest(sc);
    return 0;
}

/* A mapping with its own memory, as in PyTorch's expandable segments. */
static void map(struct sc *sc, CUdeviceptr at, size_t bytes) {
    CUmemAllocationProp prop = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = sc->device}};
    CUmemAccessDesc access = {.location = prop.location,
                              .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle handle;
    OK(sc->cu.MemCreate(&handle, bytes, &prop, 0));
    OK(sc->cu.MemMap(at, bytes, 0, handle, 0));
    OK(sc->cu.MemRelease(handle));
    OK(sc->cu.MemSetAccess(at, bytes, &access, 1));
}

/* Memsets and copies within mappings, across them, and to and from other memory. The last
 * mapping is removed and made again; calls meanwhile fail. */
int sc_run_virtual_memory(struct sc *sc) {
    enum { GRANULE = 2 << 20, HALF = 2048, STEP = 10 };
    CUstream s;
    CUdeviceptr base;
    sc_start(sc);
    CUdeviceptr x = sc_device(sc, "x", N);
    unsigned *out = sc_pinned(sc, "out", N);
    uint64_t said = 0;
    OK(sc->cu.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
    OK(sc->cu.MemAddressReserve(&base, (size_t)4 * GRANULE, 0, 0, 0));
    for (unsigned i = 0; i < 3; i++) {
        map(sc, base + (size_t)i * GRANULE, GRANULE);
    }
    CUdeviceptr border = base + GRANULE, last = base + 2 * (size_t)GRANULE;
    OK(sc->cu.MemsetD8Async(base, 0, 3 * (size_t)GRANULE, s));
    sc_register(sc, "first", base, NULL, 4 * N);
    sc_register(sc, "border", border - HALF, NULL, 2 * HALF);
    for (unsigned step = 0; step < sc_steps(sc, 40); step++) {
        for (unsigned i = 0; i < 3; i++) {
            sc_chain(sc, s, base, 3, step + i, N);
            OK(sc->cu.MemsetD32Async(base + 512, step + i, 16, s));
            OK(sc->cu.MemcpyDtoDAsync(border - HALF, base, 2 * HALF, s));
            sc_chain(sc, s, border - HALF, 5, step, N);
            OK(sc->cu.MemsetD8Async(border - 8, (unsigned char)step, 16, s));
            OK(sc->cu.MemcpyDtoDAsync(x, border - HALF, N, s));
            OK(sc->cu.MemcpyDtoDAsync(last + 64 * i, x, 256, s));
            OK(sc->cu.MemcpyAsync(base + 1024, last, 256, s));
        }
        OK(sc->cu.MemcpyDtoHAsync(out, last, N, s));
        OK(sc->cu.StreamSynchronize(s));
        said = sc_hash(said, out, N);
        if (step % STEP == STEP - 1) {
            OK(sc->cu.MemUnmap(last, GRANULE));
            sc_chain(sc, s, x, 7, step, N / 4);
            sc_code(sc, sc->cu.MemsetD32Async(last, step, 16, s));
            sc_code(sc, sc->cu.MemcpyDtoDAsync(last, x, 256, s));
            map(sc, last, GRANULE);
            OK(sc->cu.MemsetD8Async(last, 0, N, s));
        }
    }
    sc_say(sc, "seen: %016llx", (unsigned long long)said);
    sc_digest(sc);
    for (unsigned i = 0; i < 3; i++) {
        OK(sc->cu.MemUnmap(base + (size_t)i * GRANULE, GRANULE));
    }
    OK(sc->cu.MemAddressFree(base, (size_t)4 * GRANULE));
    return 0;
}

/* Managed memory: the host accesses it after a synchronisation, without any call. */
int sc_run_managed(struct sc *sc) {
    CUstream s;
    CUdeviceptr m;
    sc_start(sc);
    CUdeviceptr x = sc_device(sc, "x", N);
    OK(sc->cu.MemAllocManaged(&m, 1024, CU_MEM_ATTACH_GLOBAL));
    unsigned *host = (unsigned *)(uintptr_t)m;
    memset(host, 0, 1024);
    sc_register(sc, "managed", 0, host, 1024);
    OK(sc->cu.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
    for (unsigned step = 0; step < sc_steps(sc, 20); step++) {
        host[step % 256] += step;
        for (unsigned i = 0; i < 5; i++) {
            sc_chain(sc, s, m, 3, step + i, 256);
            sc_copy(sc, s, x, m, 256);
        }
        OK(sc->cu.MemsetD32Async(m + 64, step, 4, s));
        OK(sc->cu.MemcpyDtoDAsync(m + 128, x, 64, s));
        OK(sc->cu.StreamSynchronize(s));
    }
    sc_digest(sc);
    return 0;
}

/* One place in the program copies and sets memory of every family in turn: device, pool, pinned,
 * registered, managed. */
int sc_run_families(struct sc *sc) {
    enum { FAMILIES = 5, BYTES = 512 };
    CUstream s;
    CUdeviceptr p[FAMILIES];
    void *registered = NULL;
    sc_start(sc);
    CUdeviceptr x = sc_device(sc, "x", N);
    OK(sc->cu.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
    p[0] = sc_device(sc, "device", BYTES / 4);
    OK(sc->cu.MemAllocAsync(&p[1], BYTES, s));
    OK(sc->cu.MemsetD8Async(p[1], 0, BYTES, s));
    sc_register(sc, "pool", p[1], NULL, BYTES);
    OK(sc->cu.MemHostGetDevicePointer(&p[2], sc_pinned(sc, "pinned", BYTES), 0));
    if (posix_memalign(&registered, 4096, 4096)) {
        sc_fail("no memory");
    }
    memset(registered, 0, 4096);
    OK(sc->cu.MemHostRegister(registered, 4096, CU_MEMHOSTREGISTER_DEVICEMAP));
    OK(sc->cu.MemHostGetDevicePointer(&p[3], registered, 0));
    sc_register(sc, "registered", 0, registered, BYTES);
    OK(sc->cu.MemAllocManaged(&p[4], BYTES, CU_MEM_ATTACH_GLOBAL));
    memset((void *)(uintptr_t)p[4], 0, BYTES);
    sc_register(sc, "managed", 0, (void *)(uintptr_t)p[4], BYTES);
    for (unsigned step = 0; step < sc_steps(sc, 75); step++) {
        /* First each pair for some steps, then another pair in each step. */
        unsigned pair = step < 50 ? step / 5 : step * 7;
        CUdeviceptr from = p[pair % FAMILIES], to = p[pair / FAMILIES % FAMILIES];
        for (unsigned i = 0; i < 4; i++) {
            sc_chain(sc, s, x, 3, step + i, N);
            OK(sc->cu.MemcpyAsync(from, x, 64, s));
            OK(sc->cu.MemcpyAsync(to + 128, from, 64 + step % 3 * 4, s));
            OK(sc->cu.MemsetD8Async(to + 256 + i, (unsigned char)(step + i), 9, s));
            OK(sc->cu.MemsetD32Async(from + 320, step + i, 4, s));
            OK(sc->cu.MemcpyAsync(x + 64, to, 128, s));
        }
        OK(sc->cu.StreamSynchronize(s));
    }
    sc_digest(sc);
    OK(sc->cu.MemHostUnregister(registered));
    free(registered);
    return 0;
}
