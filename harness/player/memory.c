/*
 * Maps device memory at the recorded addresses, from the beginning to the end of the replay. The
 * recorded spans decide which granules are mapped; several spans may share a granule.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "harness/player/player.h"

static int by_address(const void *a, const void *b) {
    uint64_t x = ((const struct player_run *)a)->address;
    uint64_t y = ((const struct player_run *)b)->address;
    return x < y ? -1 : x > y;
}

static int by_range(const void *a, const void *b) {
    const struct cst_span *x = *(const struct cst_span *const *)a,
                          *y = *(const struct cst_span *const *)b;
    return x->address < y->address ? -1 : x->address > y->address;
}

/* The reserved ranges, by address. */
static const struct cst_span **reserved(const struct player *p, size_t *n) {
    const struct cst_replay *replay = &p->trace->replay;
    const struct cst_span **ranges = player_need(calloc(replay->n_spans + 1, sizeof *ranges));
    *n = 0;
    for (size_t i = 0; i < replay->n_spans; i++)
        if (replay->spans[i]->what == CST_SPAN_RESERVED)
            ranges[(*n)++] = replay->spans[i];
    qsort(ranges, *n, sizeof *ranges, by_range);
    return ranges;
}

/* Tells whether from..to lies in one of the ranges, which do not overlap. */
static bool lies_within(const struct cst_span *const *ranges, size_t n, uint64_t from,
                        uint64_t to) {
    size_t low = 0, high = n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (ranges[middle]->address <= from)
            low = middle + 1;
        else
            high = middle;
    }
    return low && from < to && to <= ranges[low - 1]->address + ranges[low - 1]->bytes;
}

void player_memory_plan(struct player *p) {
    const struct cst_replay *replay = &p->trace->replay;
    struct player_run *runs = player_need(calloc(replay->n_spans + 1, sizeof *runs));
    size_t n = 0, n_ranges;
    const struct cst_span **ranges = reserved(p, &n_ranges);
    for (size_t i = 0; i < replay->n_spans; i++) {
        const struct cst_span *span = replay->spans[i];
        if (span->what != CST_SPAN_DEVICE || span->gone || !span->bytes)
            continue;
        uint64_t from = span->address / p->granule * p->granule;
        uint64_t to = (span->address + span->bytes + p->granule - 1) / p->granule * p->granule;
        if (!lies_within(ranges, n_ranges, from, to))
            notes_add(&p->obstacles,
                      "device memory at 0x%" PRIx64 " (%s) lies outside of what was reserved",
                      span->address, cst_string(p->trace, span->name));
        else
            runs[n++] = (struct player_run){.address = from, .bytes = to - from};
    }
    free(ranges);
    qsort(runs, n, sizeof *runs, by_address);
    for (size_t i = 0; i < n; i++) {
        struct player_run *last = p->n_runs ? &runs[p->n_runs - 1] : NULL;
        uint64_t end = runs[i].address + runs[i].bytes;
        if (!last || runs[i].address > last->address + last->bytes)
            runs[p->n_runs++] = runs[i];
        else if (end > last->address + last->bytes)
            last->bytes = end - last->address;
    }
    for (size_t i = 0; i < p->n_runs; i++)
        p->memory_bytes += runs[i].bytes;
    p->runs = runs;
}

bool player_memory_has(const struct player *p, uint64_t address, uint64_t bytes) {
    size_t low = 0, high = p->n_runs;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (p->runs[middle].address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    if (!low)
        return false;
    uint64_t into = address - p->runs[low - 1].address;
    return into <= p->runs[low - 1].bytes && bytes <= p->runs[low - 1].bytes - into &&
           into < p->runs[low - 1].bytes;
}

static void reserve(struct player *p, const struct cst_span *range) {
    CUdeviceptr got = 0;
    CUresult result =
        player_cu.cuMemAddressReserve(&got, range->bytes, 0, (CUdeviceptr)range->address, 0);
    if (result != CUDA_SUCCESS)
        notes_add(&p->obstacles,
                  "the addresses 0x%" PRIx64 " to 0x%" PRIx64 " cannot be reserved: %s",
                  range->address, range->address + range->bytes, player_api_error(result));
    else if (got != range->address)
        notes_add(&p->obstacles,
                  "the addresses 0x%" PRIx64 " to 0x%" PRIx64
                  " are taken in this process (0x%" PRIx64 " was given): try again",
                  range->address, range->address + range->bytes, (uint64_t)got);
}

static bool map(struct player *p, const struct player_run *run) {
    CUmemAllocationProp kind = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location.type = CU_MEM_LOCATION_TYPE_DEVICE,
                                .location.id = p->device};
    CUmemAccessDesc access = {.location = kind.location,
                              .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle handle;
    CUresult result = player_cu.cuMemCreate(&handle, run->bytes, &kind, 0);
    if (result == CUDA_SUCCESS)
        result = player_cu.cuMemMap(run->address, run->bytes, 0, handle, 0);
    if (result == CUDA_SUCCESS)
        result = player_cu.cuMemSetAccess(run->address, run->bytes, &access, 1);
    if (result == CUDA_SUCCESS)
        return true;
    p->no_memory |= result == CUDA_ERROR_OUT_OF_MEMORY;
    notes_add(&p->obstacles,
              "%" PRIu64 " bytes of device memory at 0x%" PRIx64 " cannot be had: %s", run->bytes,
              run->address, player_api_error(result));
    return false;
}

void player_memory_reserve(struct player *p) {
    const struct cst_replay *replay = &p->trace->replay;
    for (size_t i = 0; i < replay->n_spans; i++)
        if (replay->spans[i]->what == CST_SPAN_RESERVED && !replay->spans[i]->gone)
            reserve(p, replay->spans[i]);
}

void player_memory_map(struct player *p) {
    size_t left = 0, all = 0;
    player_check(player_cu.cuMemGetInfo(&left, &all), "cuMemGetInfo");
    if (p->memory_bytes > left) {
        p->no_memory = true;
        notes_add(&p->obstacles,
                  "it needs %" PRIu64 " MiB of device memory, and %zu MiB of %zu are free",
                  p->memory_bytes >> 20, left >> 20, all >> 20);
        return;
    }
    for (size_t i = 0; !p->obstacles.n && i < p->n_runs; i++)
        if (!map(p, &p->runs[i]))
            return;
}
