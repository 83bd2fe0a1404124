/*
 * Saves, sums up and restores ranges of device memory and of pinned memory, on a stream of the
 * verifier's own.
 */
#include "shim/verify/device.h"

#include <string.h>

#include "shim/base/log.h"
#include "shim/base/mem.h"
#include "shim/graph/relax.h"

extern const unsigned char checksum_fatbin[]; /* kernels/checksum.cu */

enum {
    CONTEXTS = 16,
    BLOCKS = 528, /* four per multiprocessor of an H100; any number gives the right result */
    THREADS = 256,
    ROUND = 64 << 20,
};

struct cus_saver {
    const struct cus_driver *driver;
    CUcontext context; /* NULL: a free entry */
    bool refused;      /* making it failed */
    CUmodule module;
    CUfunction checksum;
    CUstream stream;
    CUdeviceptr room; /* device ranges are saved here, one after another */
    uint64_t room_bytes;
    CUdeviceptr sums;
    uint32_t sums_n;
    uint8_t *host_room; /* the same for pinned memory */
    uint64_t host_bytes;
};

static struct cus_saver savers[CONTEXTS];

static bool make(struct cus_saver *saver) {
    const struct cus_driver *driver = saver->driver;
    struct cus_relaxed relaxed = cus_relax(driver);
    bool made =
        driver->cuModuleLoadData(&saver->module, checksum_fatbin) == CUDA_SUCCESS &&
        driver->cuModuleGetFunction(&saver->checksum, saver->module, "checksum") == CUDA_SUCCESS &&
        driver->cuStreamCreateWithPriority(&saver->stream, CU_STREAM_NON_BLOCKING, 0) ==
            CUDA_SUCCESS;
    cus_relax_end(driver, relaxed);
    return made;
}

static bool driver_suffices(const struct cus_driver *driver) {
    return driver->cuModuleLoadData && driver->cuModuleGetFunction && driver->cuMemAlloc_v2 &&
           driver->cuMemFree_v2 && driver->cuStreamSynchronize && driver->cuCtxSynchronize;
}

struct cus_saver *cus_saver_get(const struct cus_driver *driver, CUcontext context) {
    struct cus_saver *saver = NULL;
    for (unsigned i = 0; i < CONTEXTS; i++) {
        if (savers[i].context == context)
            return savers[i].refused ? NULL : &savers[i];
        if (!savers[i].context && !saver)
            saver = &savers[i];
    }
    if (!saver)
        return NULL;
    *saver = (struct cus_saver){.driver = driver, .context = context};
    saver->refused = !driver_suffices(driver) || !make(saver);
    if (saver->refused)
        CUS_LOG_ONCE(CUS_WARN, "verify", "this driver lacks what verifying needs, or refuses it");
    return saver->refused ? NULL : saver;
}

CUstream cus_saver_stream(const struct cus_saver *saver) {
    return saver->stream;
}

/* ---- room ---- */

static bool have_room(struct cus_saver *saver, uint64_t bytes) {
    if (bytes <= saver->room_bytes)
        return true;
    if (saver->room)
        saver->driver->cuMemFree_v2(saver->room);
    saver->room = 0;
    saver->room_bytes = 0;
    uint64_t wanted = (bytes + ROUND - 1) / ROUND * ROUND;
    if (saver->driver->cuMemAlloc_v2(&saver->room, wanted) != CUDA_SUCCESS)
        return false;
    saver->room_bytes = wanted;
    return true;
}

static bool have_sums(struct cus_saver *saver, uint32_t n) {
    if (n <= saver->sums_n)
        return true;
    if (saver->sums)
        saver->driver->cuMemFree_v2(saver->sums);
    saver->sums_n = 0;
    if (saver->driver->cuMemAlloc_v2(&saver->sums, (uint64_t)n * 2 * 8) != CUDA_SUCCESS) {
        saver->sums = 0;
        return false;
    }
    saver->sums_n = n * 2;
    return true;
}

static bool have_host_room(struct cus_saver *saver, uint64_t bytes) {
    if (bytes <= saver->host_bytes)
        return true;
    cus_mem_free(saver->host_room);
    saver->host_room = cus_mem_alloc(bytes);
    saver->host_bytes = saver->host_room ? bytes : 0;
    return saver->host_room != NULL;
}

/* ---- copies ---- */

/* As in verify.c. */
static bool wait(struct cus_saver *saver) {
    if (saver->driver->cuStreamSynchronize(saver->stream) == CUDA_SUCCESS)
        return true;
    saver->driver->cuStreamSynchronize(saver->stream);
    return false;
}

/* Copies between the ranges and the place where they are saved. `now` NULL: all ranges. After a
 * failed copy the other ranges are copied all the same. */
static bool move(struct cus_saver *saver, const struct cus_range_list *list, bool back,
                 const uint64_t *now, const uint64_t *then, bool *moved) {
    uint64_t at = 0, host_at = 0;
    bool done = true;
    *moved = false;
    for (uint32_t i = 0; i < list->n; i++) {
        const struct cus_range *range = &list->ranges[i];
        bool wanted = !now || now[i] != then[i], one = true;
        if (range->host) {
            void *memory = (void *)(uintptr_t)range->start, *saved = saver->host_room + host_at;
            if (wanted)
                memcpy(back ? memory : saved, back ? saved : memory, range->bytes);
            host_at += range->bytes;
        } else {
            CUdeviceptr saved = saver->room + at;
            if (wanted)
                one = saver->driver->cuMemcpyDtoDAsync_v2(back ? range->start : saved,
                                                          back ? saved : range->start, range->bytes,
                                                          saver->stream) == CUDA_SUCCESS;
            at += range->bytes;
        }
        *moved |= wanted && one;
        done &= one;
    }
    return wait(saver) && done;
}

bool cus_saver_save(struct cus_saver *saver, const struct cus_range_list *list) {
    bool moved;
    return have_room(saver, cus_memory_bytes(list, false)) &&
           have_host_room(saver, cus_memory_bytes(list, true)) && have_sums(saver, list->n) &&
           move(saver, list, false, NULL, NULL, &moved);
}

bool cus_saver_restore(struct cus_saver *saver, const struct cus_range_list *list,
                       const uint64_t *now, const uint64_t *then, bool *moved) {
    return move(saver, list, true, now, then, moved);
}

static uint64_t host_sum(const uint8_t *bytes, uint64_t n) {
    uint64_t sum = 0xcbf29ce484222325u;
    for (uint64_t i = 0; i < n; i++)
        sum = (sum ^ bytes[i]) * 0x100000001b3u;
    return sum;
}

bool cus_saver_sums(struct cus_saver *saver, const struct cus_range_list *list, uint64_t *sums) {
    const struct cus_driver *driver = saver->driver;
    if (driver->cuMemsetD8Async(saver->sums, 0, (uint64_t)list->n * 8, saver->stream) !=
        CUDA_SUCCESS)
        return false;
    for (uint32_t i = 0; i < list->n; i++) {
        CUdeviceptr out = saver->sums + (uint64_t)i * 8, data = list->ranges[i].start;
        uint64_t bytes = list->ranges[i].bytes;
        void *params[] = {&out, &data, &bytes};
        uint64_t blocks = bytes / 8 / THREADS + 1;
        if (!list->ranges[i].host &&
            driver->cuLaunchKernel(saver->checksum, blocks < BLOCKS ? (unsigned)blocks : BLOCKS, 1,
                                   1, THREADS, 1, 1, 0, saver->stream, params,
                                   NULL) != CUDA_SUCCESS)
            return false;
    }
    if (driver->cuMemcpyDtoHAsync_v2(sums, saver->sums, (uint64_t)list->n * 8, saver->stream) !=
            CUDA_SUCCESS ||
        !wait(saver))
        return false;
    for (uint32_t i = 0; i < list->n; i++)
        if (list->ranges[i].host)
            sums[i] =
                host_sum((const uint8_t *)(uintptr_t)list->ranges[i].start, list->ranges[i].bytes);
    return true;
}

/* ---- giving memory back ---- */

/* Pushes the saver's context, which may no longer be current on any thread. */
static void give_back(struct cus_saver *saver) {
    const struct cus_driver *driver = saver->driver;
    CUcontext popped;
    if (driver->cuCtxPushCurrent_v2(saver->context) != CUDA_SUCCESS)
        return;
    if (saver->room)
        driver->cuMemFree_v2(saver->room);
    saver->room = 0;
    saver->room_bytes = 0;
    driver->cuCtxPopCurrent_v2(&popped);
}

void cus_saver_forget(void) {
    for (unsigned i = 0; i < CONTEXTS; i++) {
        if (!savers[i].context)
            continue;
        if (!savers[i].refused)
            give_back(&savers[i]);
        cus_mem_free(savers[i].host_room);
        savers[i] = (struct cus_saver){0};
    }
}

bool cus_saver_has_room(CUcontext context) {
    for (unsigned i = 0; i < CONTEXTS; i++)
        if (savers[i].context == context && savers[i].room)
            return true;
    return false;
}

void cus_saver_shrink(CUcontext context) {
    for (unsigned i = 0; i < CONTEXTS; i++)
        if (savers[i].context == context && !savers[i].refused)
            give_back(&savers[i]);
}
