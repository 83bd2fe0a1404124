/*
 * The contents of device memory: at the begin of the recording, what a pass changes, and the
 * recorded end.
 *
 * The player finds out once, by sums before and after a pass, which parts of memory a pass changes.
 * Between passes it puts these parts back, so each pass does the same. If they are too large to
 * keep, the player reads all contents from the trace again.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include "xxhash.h"

#include "harness/player/player.h"

enum { CHUNK = 1 << 20 };

static void *staging(struct player *p) {
    if (!p->staging)
        player_check(player_cu.cuMemHostAlloc(&p->staging, PLAYER_STAGING, 0), "cuMemHostAlloc");
    return p->staging;
}

static void settle(void) {
    player_check(player_cu.cuCtxSynchronize(), "cuCtxSynchronize");
}

/* The address here of memory at a recorded address; 0 if it is missing in part. */
static CUdeviceptr here(const struct player *p, uint64_t address, uint64_t bytes) {
    if (player_memory_has(p, address, bytes))
        return address;
    size_t low = 0, high = p->n_places;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (p->places[middle]->span->address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    const struct player_global *global = low ? p->places[low - 1] : NULL;
    uint64_t into = global ? address - global->span->address : 0;
    return global && into < global->span->bytes && bytes <= global->span->bytes - into
               ? global->here + into
               : 0;
}

static void load_part(struct player *p, const struct cst_part *part) {
    char error[600];
    CUdeviceptr to = here(p, part->offset, part->bytes);
    if (!to || !part->bytes)
        return; /* memory that the trace never uses */
    char *bytes = player_need(malloc(part->bytes));
    if (!cst_data_load(p->trace, part, bytes, error, sizeof error))
        player_fail("%s", error);
    player_check(player_cu.cuMemcpyHtoD(to, bytes, part->bytes), "cuMemcpyHtoD");
    free(bytes);
}

void player_restore(struct player *p) {
    size_t n;
    const struct cst_part *parts = cst_data_of(p->trace, CST_DATA_MEMORY, 0, &n);
    settle();
    for (size_t i = 0; i < p->n_runs; i++)
        player_check(player_cu.cuMemsetD8(p->runs[i].address, 0, p->runs[i].bytes), "cuMemsetD8");
    for (size_t i = 0; i < p->n_globals; i++)
        if (p->globals[i].here)
            player_check(player_cu.cuMemcpyHtoD(p->globals[i].here, p->globals[i].contents,
                                                p->globals[i].span->bytes),
                         "cuMemcpyHtoD");
    settle();
    for (size_t i = 0; i < n; i++)
        load_part(p, &parts[i]);
    settle();
}

/* ---- what a pass changes ---- */

/* Sums up the parts of a run; calls `differs` for those that changed. */
static void sum_run(struct player *p, struct player_run *run,
                    void (*differs)(struct player *, uint64_t address, uint64_t bytes)) {
    char *buffer = staging(p);
    for (uint64_t at = 0; at < run->bytes; at += PLAYER_STAGING) {
        uint64_t left = run->bytes - at, bytes = left < PLAYER_STAGING ? left : PLAYER_STAGING;
        player_check(player_cu.cuMemcpyDtoH(buffer, run->address + at, bytes), "cuMemcpyDtoH");
        for (uint64_t k = 0; k < bytes; k += CHUNK) {
            uint64_t chunk = bytes - k < CHUNK ? bytes - k : CHUNK;
            uint64_t sum = XXH3_64bits(buffer + k, chunk), *was = &run->hashes[(at + k) / CHUNK];
            if (differs && sum != *was)
                differs(p, run->address + at + k, chunk);
            else
                *was = sum;
        }
    }
}

void player_watch(struct player *p) {
    if (p->dirty_known)
        return;
    for (size_t i = 0; i < p->n_runs; i++) {
        struct player_run *run = &p->runs[i];
        if (!run->hashes)
            run->hashes = player_need(calloc(run->bytes / CHUNK + 1, sizeof *run->hashes));
        sum_run(p, run, NULL);
    }
}

static void add_dirty(struct player *p, uint64_t address, uint64_t bytes) {
    p->dirty_bytes += bytes;
    struct player_dirty *last = p->n_dirty ? &p->dirty[p->n_dirty - 1] : NULL;
    if (last && last->address + last->bytes == address && last->bytes < PLAYER_STAGING) {
        last->bytes += bytes;
        return;
    }
    if (!(p->n_dirty & (p->n_dirty + 1)))
        p->dirty = player_need(realloc(p->dirty, (2 * p->n_dirty + 2) * sizeof *p->dirty));
    p->dirty[p->n_dirty++] = (struct player_dirty){address, bytes, NULL};
}

/* Restores the memory at its end. */
void player_compare(struct player *p) {
    if (p->dirty_known)
        return;
    for (size_t i = 0; i < p->n_runs; i++) {
        sum_run(p, &p->runs[i], add_dirty);
        free(p->runs[i].hashes);
        p->runs[i].hashes = NULL;
    }
    player_restore(p);
    p->dirty_known = true;
    if (p->dirty_bytes >> 20 > PLAYER_DIRTY_MIB)
        return;
    for (size_t i = 0; i < p->n_dirty; i++) {
        struct player_dirty *dirty = &p->dirty[i];
        dirty->contents = player_need(malloc(dirty->bytes));
        player_check(player_cu.cuMemcpyDtoH(dirty->contents, dirty->address, dirty->bytes),
                     "cuMemcpyDtoH");
    }
}

void player_restore_dirty(struct player *p) {
    if (p->dirty_bytes >> 20 > PLAYER_DIRTY_MIB) {
        player_restore(p);
        return;
    }
    settle();
    for (size_t i = 0; i < p->n_dirty; i++)
        player_check(
            player_cu.cuMemcpyHtoD(p->dirty[i].address, p->dirty[i].contents, p->dirty[i].bytes),
            "cuMemcpyHtoD");
    for (size_t i = 0; i < p->n_globals; i++)
        if (p->globals[i].here)
            player_check(player_cu.cuMemcpyHtoD(p->globals[i].here, p->globals[i].contents,
                                                p->globals[i].span->bytes),
                         "cuMemcpyHtoD");
    settle();
}

/* ---- the recorded end ---- */

static uint64_t sum_at(struct player *p, CUdeviceptr at, uint64_t bytes) {
    XXH3_state_t *state = player_need(XXH3_createState());
    XXH3_64bits_reset(state);
    while (bytes) {
        uint64_t n = bytes < PLAYER_STAGING ? bytes : PLAYER_STAGING;
        player_check(player_cu.cuMemcpyDtoH(staging(p), at, n), "cuMemcpyDtoH");
        XXH3_64bits_update(state, p->staging, n);
        at += n;
        bytes -= n;
    }
    uint64_t sum = XXH3_64bits_digest(state);
    XXH3_freeState(state);
    return sum;
}

size_t player_checks(struct player *p, struct notes *wrong) {
    size_t n = 0;
    settle();
    for (size_t i = 0; i < p->trace->replay.n_checks; i++) {
        const struct cst_check *check = p->trace->replay.checks[i];
        CUdeviceptr at = here(p, check->address, check->bytes);
        if (!check->bytes || (at && sum_at(p, at, check->bytes) == check->check))
            continue;
        n++;
        notes_add(wrong, "0x%" PRIx64 " (%" PRIu64 " bytes)%s", check->address, check->bytes,
                  at ? "" : " is no memory of the trace");
    }
    return n;
}
