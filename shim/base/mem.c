/*
 * calloc and free behind names of this library, so that the rest of it can poison them, and
 * sanitizers still see every block. Any thread. Holds no lock of the library. Never logs: the
 * caller knows what the memory was for.
 */
#include "shim/base/mem.h"

#include <errno.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static uint64_t failures; /* atomic, as are those below */
static uint64_t budget = UINT64_MAX, held, most, refused;

void *cus_mem_alloc(size_t bytes) {
    int saved = errno;
    void *memory = bytes ? calloc(1, bytes) : NULL;
    if (bytes && !memory)
        __atomic_add_fetch(&failures, 1, __ATOMIC_RELAXED);
    errno = saved;
    return memory;
}

void cus_mem_free(void *memory) {
    int saved = errno;
    free(memory);
    errno = saved;
}

/* Stands in front of a block of cus_mem_grow and holds its size. The allocator cannot be asked,
 * since the process may use another one than libc's. */
struct grown {
    alignas(max_align_t) size_t bytes;
};

static void *grow(size_t bytes, uint64_t limit) {
    if (!bytes || bytes > SIZE_MAX / 2)
        return cus_mem_alloc(bytes);
    bytes += sizeof(struct grown);
    /* Counted before the allocation, so that two threads together do not exceed the budget. */
    uint64_t now = __atomic_add_fetch(&held, bytes, __ATOMIC_RELAXED);
    struct grown *memory = NULL;
    if (now > limit)
        __atomic_add_fetch(&refused, 1, __ATOMIC_RELAXED);
    else
        memory = cus_mem_alloc(bytes);
    if (!memory) {
        __atomic_sub_fetch(&held, bytes, __ATOMIC_RELAXED);
        return NULL;
    }
    memory->bytes = bytes;
    uint64_t before = __atomic_load_n(&most, __ATOMIC_RELAXED);
    while (now > before && !__atomic_compare_exchange_n(&most, &before, now, true, __ATOMIC_RELAXED,
                                                        __ATOMIC_RELAXED))
        ;
    return memory + 1;
}

void *cus_mem_grow(size_t bytes) {
    return grow(bytes, __atomic_load_n(&budget, __ATOMIC_RELAXED));
}

void *cus_mem_grow_first(size_t bytes) {
    return grow(bytes, __atomic_load_n(&budget, __ATOMIC_RELAXED) / 2);
}

void cus_mem_shrink(void *memory) {
    if (!memory)
        return;
    struct grown *grown = (struct grown *)memory - 1;
    __atomic_sub_fetch(&held, grown->bytes, __ATOMIC_RELAXED);
    cus_mem_free(grown);
}

void cus_mem_budget(uint64_t bytes) {
    __atomic_store_n(&budget, bytes, __ATOMIC_RELAXED);
}

uint64_t cus_mem_held(void) {
    return __atomic_load_n(&held, __ATOMIC_RELAXED);
}

uint64_t cus_mem_most(void) {
    return __atomic_load_n(&most, __ATOMIC_RELAXED);
}

uint64_t cus_mem_refused(void) {
    return __atomic_load_n(&refused, __ATOMIC_RELAXED);
}

/* The size of a block that has room for `bytes` bytes in cache lines of their own. */
static size_t block_bytes(size_t bytes) {
    size_t whole = (bytes + CUS_LINE - 1) & ~(size_t)(CUS_LINE - 1);
    return bytes ? whole + CUS_LINE + sizeof(uint8_t *) : 0;
}

/* The address of the block stands in front of the result, in a line that is only read. */
static void *lines_of(uint8_t *block) {
    if (!block)
        return NULL;
    uintptr_t after = (uintptr_t)block + sizeof block + CUS_LINE - 1;
    uint8_t *memory = block + (after - after % CUS_LINE - (uintptr_t)block);
    memcpy(memory - sizeof block, &block, sizeof block);
    return memory;
}

static void *block_of(void *memory) {
    uint8_t *block = NULL;
    if (memory)
        memcpy(&block, (uint8_t *)memory - sizeof block, sizeof block);
    return block;
}

void *cus_mem_lines(size_t bytes) {
    return lines_of(cus_mem_alloc(block_bytes(bytes)));
}

void *cus_mem_grow_lines(size_t bytes) {
    return lines_of(cus_mem_grow(block_bytes(bytes)));
}

void cus_mem_free_lines(void *memory) {
    cus_mem_free(block_of(memory));
}

void cus_mem_shrink_lines(void *memory) {
    cus_mem_shrink(block_of(memory));
}

uint64_t cus_mem_failures(void) {
    return __atomic_load_n(&failures, __ATOMIC_RELAXED);
}

void cus_mem_drop(void) {
    failures = refused = 0;
    most = held;
    budget = UINT64_MAX;
}

char *cus_mem_text(const char *text) {
    size_t bytes = strlen(text) + 1;
    char *copy = cus_mem_alloc(bytes);
    if (copy)
        memcpy(copy, text, bytes);
    return copy;
}
