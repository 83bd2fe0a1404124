/*
 * Memory: the arenas, the table of live blocks (mappings of virtual.c included), allocation and
 * release.
 *
 * Device, pinned and managed memory come from arenas at fixed addresses, first fit, so each run
 * gets the same addresses. Everything is under cusim.lock; only cusim_mem_in_arena may be called
 * without it. A release waits for the context's work, as in CUDA, and then looks the block up
 * again.
 */
#include "harness/sim/cusim.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { ARENA_HOST = CUSIM_DEVICES_MAX, ARENA_MANAGED, ARENAS };

/* Arenas are mapped in pieces, when blocks need them: qemu-user takes 24 bytes and some time for
 * each page of a mapping. */
#define MOST ((size_t)0x4000000000) /* bytes of an arena */
enum { PIECE = 64 << 20, PIECES = MOST / PIECE };

/* The addresses of the arenas. The second row is for processes under ThreadSanitizer, whose
 * shadow is at the first row's addresses. */
static const struct {
    uintptr_t device, device_step, host, managed;
    size_t most;
} places[] = {
    {0x300000000000, 0x4000000000, 0x320000000000, 0x330000000000, MOST},
    {0x2000000000, 0x400000000, 0x5000000000, 0x6000000000, (size_t)0x200000000},
};
extern void __tsan_init(void) __attribute__((weak));

static struct arena {
    _Atomic uintptr_t base;
    size_t bytes, used;
    bool mapped[PIECES];
} arenas[ARENAS];

static struct cusim_mem **blocks; /* by address */
static size_t n_blocks, cap_blocks;

bool cusim_mem_in_arena(uintptr_t address) {
    for (int i = 0; i < ARENAS; i++) {
        uintptr_t base = atomic_load_explicit(&arenas[i].base, memory_order_acquire);
        if (base && address >= base && address - base < arenas[i].bytes)
            return true;
    }
    return cusim_virtual_reserved(address, NULL, NULL);
}

static bool map_at(uintptr_t want, size_t bytes) {
    /* Not by mmap(): a sanitizer's mmap would touch the shadow of all of it. */
    void *got =
        (void *)syscall(SYS_mmap, want, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (got == MAP_FAILED)
        return false;
    if ((uintptr_t)got != want) { /* the kernel does not know MAP_FIXED_NOREPLACE */
        munmap(got, bytes);
        return false;
    }
    madvise(got, bytes, MADV_DONTDUMP);
    return true;
}

/* Maps the pieces of an arena at `base` that [at, at + bytes) needs. */
static bool map_pieces(struct arena *arena, uintptr_t base, uintptr_t at, size_t bytes) {
    for (size_t i = (at - base) / PIECE; i <= (at - base + bytes - 1) / PIECE; i++) {
        if (!arena->mapped[i])
            arena->mapped[i] = map_at(base + i * PIECE, PIECE);
        if (!arena->mapped[i])
            return false;
    }
    return true;
}

static bool arena_open(int index) {
    struct arena *arena = &arenas[index];
    if (arena->base)
        return true;
    for (size_t i = __tsan_init ? 1 : 0; i < sizeof places / sizeof places[0]; i++) {
        uintptr_t want = index == ARENA_HOST ? places[i].host
                         : index == ARENA_MANAGED
                             ? places[i].managed
                             : places[i].device + (uintptr_t)index * places[i].device_step;
        size_t bytes = index < ARENA_HOST ? cusim.options.device_bytes : (size_t)64 << 30;
        if (bytes > places[i].most)
            bytes = places[i].most;
        if (!map_pieces(arena, want, want, 1))
            continue;
        arena->bytes = bytes;
        atomic_store_explicit(&arena->base, want, memory_order_release);
        return true;
    }
    return false;
}

/* Index of the first block whose base is above the address. */
static size_t place_above(uintptr_t address) {
    size_t low = 0, high = n_blocks;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (blocks[middle]->base > address)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

struct cusim_mem *cusim_mem_find(uintptr_t address) {
    size_t above = place_above(address);
    if (above == 0)
        return NULL;
    struct cusim_mem *mem = blocks[above - 1];
    return address - mem->base < mem->bytes && !mem->freed ? mem : NULL;
}

struct cusim_operand cusim_mem_operand(uintptr_t address) {
    struct cusim_mem *mem = cusim_mem_find(address);
    return mem ? (struct cusim_operand){mem->kind, mem->device, mem->ctx_id}
               : (struct cusim_operand){.kind = CUSIM_MEM_PAGEABLE};
}

struct cusim_mem *cusim_mem_at(uintptr_t base) {
    struct cusim_mem *mem = cusim_mem_find(base);
    return mem && mem->base == base ? mem : NULL;
}

enum cusim_mem_kind cusim_mem_kind_of(uintptr_t address, size_t bytes) {
    struct cusim_mem *mem = cusim_mem_find(address);
    if (mem && mem->kind == CUSIM_MEM_VIRTUAL)
        return cusim_virtual_allows(address, bytes, CU_MEM_ACCESS_FLAGS_PROT_READ)
                   ? CUSIM_MEM_VIRTUAL
                   : CUSIM_MEM_PAGEABLE;
    return mem && bytes <= mem->bytes - (address - mem->base) ? mem->kind : CUSIM_MEM_PAGEABLE;
}

struct cusim_mem *cusim_mem_next(uintptr_t from, uintptr_t to) {
    size_t at = place_above(from);
    if (at > 0 && from - blocks[at - 1]->base < blocks[at - 1]->bytes)
        return blocks[at - 1];
    return at < n_blocks && blocks[at]->base < to ? blocks[at] : NULL;
}

void cusim_mem_insert(struct cusim_mem *mem) {
    if (n_blocks == cap_blocks)
        blocks = realloc(blocks, (cap_blocks = cap_blocks ? cap_blocks * 2 : 256) * sizeof *blocks);
    size_t at = place_above(mem->base);
    memmove(blocks + at + 1, blocks + at, (n_blocks - at) * sizeof *blocks);
    blocks[at] = mem;
    n_blocks++;
}

/* The first place for a block at or behind `at`. */
static bool first_fit(const struct arena *arena, uintptr_t at, size_t bytes, uintptr_t *base) {
    uintptr_t end = arena->base + arena->bytes;
    size_t above = place_above(at - 1);
    if (above > 0 && blocks[above - 1]->base + blocks[above - 1]->reserved > at)
        at = blocks[above - 1]->base + blocks[above - 1]->reserved;
    for (size_t i = place_above(at - 1); i < n_blocks && blocks[i]->base < end; i++) {
        if (blocks[i]->base - at >= bytes)
            break;
        at = blocks[i]->base + blocks[i]->reserved;
    }
    *base = at;
    return at <= end && end - at >= bytes;
}

/* Memory of pools is in the upper half, so that the addresses of other memory do not depend on what
 * a pool keeps. */
static bool arena_take(int index, bool of_pool, size_t bytes, uintptr_t *base) {
    if (index < 0 || !arena_open(index))
        return false;
    struct arena *arena = &arenas[index];
    bool found =
        of_pool && first_fit(arena, arena->base + arena->bytes / 2 / 4096 * 4096, bytes, base);
    if (!found && !first_fit(arena, arena->base, bytes, base))
        return false;
    if (!map_pieces(arena, arena->base, *base, bytes))
        return false;
    arena->used += bytes;
    return true;
}

static int arena_of(const struct cusim_mem *mem) {
    switch (mem->kind) {
    case CUSIM_MEM_DEVICE:
    case CUSIM_MEM_POOL:
        return mem->device;
    case CUSIM_MEM_HOST:
        return ARENA_HOST;
    case CUSIM_MEM_MANAGED:
        return ARENA_MANAGED;
    default:
        return -1;
    }
}

static bool fits(int device, size_t bytes) {
    size_t used = arenas[device].used + (device == 0 ? cusim_graph_held : 0);
    return bytes <= cusim.options.device_bytes && used <= cusim.options.device_bytes - bytes;
}

/* If memory runs out, pools give back what they hold for destroyed graphs, behind all that runs,
 * as driver 580 does. May wait. */
static bool has_room(int device, size_t bytes) {
    if (fits(device, bytes))
        return true;
    if (device != 0 || cusim_graph_held == cusim_graph_bytes)
        return false;
    cusim_all_wait();
    cusim_graph_held = cusim_graph_bytes;
    return fits(device, bytes);
}

bool cusim_mem_charge(int device, size_t bytes) {
    bool room = has_room(device, bytes);
    arenas[device].used += room ? bytes : 0;
    return room;
}

void cusim_mem_discharge(int device, size_t bytes) {
    arenas[device].used -= bytes;
}

CUresult cusim_mem_alloc(enum cusim_mem_kind kind, struct cusim_ctx *ctx, size_t bytes,
                         unsigned flags, struct cusim_mem **out) {
    struct cusim_mem *mem = calloc(1, sizeof *mem);
    size_t grain = kind == CUSIM_MEM_DEVICE || kind == CUSIM_MEM_POOL ? 512 : 4096;
    mem->kind = kind;
    mem->device = ctx->device->ordinal;
    mem->bytes = bytes;
    mem->reserved = (bytes + grain - 1) / grain * grain;
    int index = arena_of(mem);
    if (mem->reserved < bytes ||
        (index >= 0 && index < ARENA_HOST && !has_room(index, mem->reserved)) ||
        !arena_take(index, kind == CUSIM_MEM_POOL, mem->reserved, &mem->base)) {
        free(mem);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    mem->ctx = ctx;
    mem->ctx_id = ctx->id;
    mem->flags = flags;
    mem->id = cusim_new_id();
    cusim_mem_insert(mem);
    *out = mem;
    return CUDA_SUCCESS;
}

void cusim_mem_free(struct cusim_mem *mem) {
    size_t at = place_above(mem->base) - 1;
    int index = arena_of(mem);
    memmove(blocks + at, blocks + at + 1, (n_blocks - at - 1) * sizeof *blocks);
    n_blocks--;
    if (index >= 0)
        arenas[index].used -= mem->reserved;
    if (mem->reserved >= (size_t)1 << 20) /* large blocks return their pages */
        madvise((void *)mem->base, mem->reserved & ~(size_t)4095, MADV_DONTNEED);
    free(mem);
}

void cusim_ctx_memory_free(struct cusim_ctx *ctx) {
    for (size_t i = n_blocks; i-- > 0;)
        if (blocks[i]->ctx_id == ctx->id && blocks[i]->kind != CUSIM_MEM_POOL)
            cusim_mem_free(blocks[i]);
}

size_t cusim_mem_used(int device) {
    return arenas[device].used;
}

/* ---- allocation ---- */

static CUresult allocate(enum cusim_mem_kind kind, size_t bytes, unsigned flags, void **out) {
    struct cusim_ctx *ctx;
    struct cusim_mem *mem;
    CUresult result = cusim_ctx_current(&ctx);
    if (result == CUDA_SUCCESS && (!out || bytes == 0))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        result = cusim_capture_unsafe();
    if (result == CUDA_SUCCESS)
        result = cusim_mem_alloc(kind, ctx, bytes, flags, &mem);
    if (result == CUDA_SUCCESS)
        *out = (void *)mem->base;
    return result;
}

CUSIM_LOCKED(cuMemAlloc_v2, (CUdeviceptr * out, size_t bytes), (out, bytes)) {
    return allocate(CUSIM_MEM_DEVICE, bytes, 0, (void **)out);
}

CUSIM_LOCKED(cuMemAllocPitch_v2,
             (CUdeviceptr * out, size_t *pitch, size_t width, size_t height, unsigned element),
             (out, pitch, width, height, element)) {
    if (!pitch || (element != 4 && element != 8 && element != 16))
        return CUDA_ERROR_INVALID_VALUE;
    *pitch = (width + 511) / 512 * 512;
    return allocate(CUSIM_MEM_DEVICE, *pitch * height, 0, (void **)out);
}

CUSIM_LOCKED(cuMemAllocManaged, (CUdeviceptr * out, size_t bytes, unsigned flags),
             (out, bytes, flags)) {
    if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST)
        return CUDA_ERROR_INVALID_VALUE;
    return allocate(CUSIM_MEM_MANAGED, bytes, flags, (void **)out);
}

CUSIM_LOCKED(cuMemHostAlloc, (void **out, size_t bytes, unsigned flags), (out, bytes, flags)) {
    if (flags & ~7u)
        return CUDA_ERROR_INVALID_VALUE;
    return allocate(CUSIM_MEM_HOST, bytes, flags, out);
}

CUSIM_LOCKED(cuMemAllocHost_v2, (void **out, size_t bytes), (out, bytes)) {
    return allocate(CUSIM_MEM_HOST, bytes, 0, out);
}

static CUresult host_register(void *address, size_t bytes, unsigned flags) {
    struct cusim_ctx *ctx;
    CUresult result = cusim_ctx_current(&ctx);
    if (result == CUDA_SUCCESS && (!address || bytes == 0 || (flags & ~0xfu)))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        result = cusim_capture_unsafe();
    if (result != CUDA_SUCCESS)
        return result;
    uintptr_t base = (uintptr_t)address;
    size_t above = place_above(base + bytes - 1);
    if (above > 0 && blocks[above - 1]->base + blocks[above - 1]->bytes > base)
        return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    struct cusim_mem *mem = calloc(1, sizeof *mem);
    *mem = (struct cusim_mem){.base = base,
                              .bytes = bytes,
                              .kind = CUSIM_MEM_REGISTERED,
                              .ctx = ctx,
                              .ctx_id = ctx->id,
                              .device = ctx->device->ordinal,
                              .flags = flags,
                              .id = cusim_new_id()};
    cusim_mem_insert(mem);
    return CUDA_SUCCESS;
}

CUSIM_LOCKED(cuMemHostRegister, (void *address, size_t bytes, unsigned flags),
             (address, bytes, flags)) {
    return host_register(address, bytes, flags);
}
CUSIM_LOCKED(cuMemHostRegister_v2, (void *address, size_t bytes, unsigned flags),
             (address, bytes, flags)) {
    return host_register(address, bytes, flags);
}

/* ---- release ---- */

static bool kind_in(enum cusim_mem_kind kind, unsigned kinds) {
    return (kinds >> kind & 1u) != 0;
}

static CUresult release(uintptr_t base, unsigned kinds, CUresult missing) {
    struct cusim_ctx *ctx;
    CUresult result = cusim_ctx_current(&ctx);
    if (result == CUDA_SUCCESS)
        result = cusim_capture_unsafe();
    if (result != CUDA_SUCCESS)
        return result;
    struct cusim_mem *mem = cusim_mem_at(base);
    if (!mem || !kind_in(mem->kind, kinds))
        return missing;
    if (mem->kind != CUSIM_MEM_POOL && mem->ctx->id == mem->ctx_id)
        cusim_ctx_wait(mem->ctx);
    mem = cusim_mem_at(base);
    if (!mem || !kind_in(mem->kind, kinds))
        return missing;
    if (mem->kind == CUSIM_MEM_POOL)
        cusim_pool_block_gone(mem);
    cusim_mem_free(mem);
    return ctx->error;
}

static const unsigned device_kinds =
    1u << CUSIM_MEM_DEVICE | 1u << CUSIM_MEM_POOL | 1u << CUSIM_MEM_MANAGED;

CUSIM_LOCKED(cuMemFree_v2, (CUdeviceptr base), (base)) {
    return base ? release(base, device_kinds, CUDA_ERROR_INVALID_VALUE) : CUDA_SUCCESS;
}

CUSIM_LOCKED(cuMemFreeHost, (void *base), (base)) {
    if (!base)
        return CUDA_SUCCESS;
    return release((uintptr_t)base, 1u << CUSIM_MEM_HOST, CUDA_ERROR_INVALID_VALUE);
}

CUSIM_LOCKED(cuMemHostUnregister, (void *base), (base)) {
    struct cusim_mem *mem = cusim_mem_find((uintptr_t)base);
    return release((uintptr_t)base, 1u << CUSIM_MEM_REGISTERED,
                   mem && mem->kind == CUSIM_MEM_REGISTERED
                       ? CUDA_ERROR_INVALID_VALUE /* not its first byte */
                       : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
}

CUSIM_LOCKED(cuMemGetInfo_v2, (size_t * available, size_t *total), (available, total)) {
    struct cusim_ctx *ctx;
    CUresult result = cusim_ctx_current(&ctx);
    if (result != CUDA_SUCCESS)
        return result;
    size_t used = arenas[ctx->device->ordinal].used + cusim_graph_held;
    if (total)
        *total = cusim.options.device_bytes;
    if (available)
        *available = used < cusim.options.device_bytes ? cusim.options.device_bytes - used : 0;
    return CUDA_SUCCESS;
}
