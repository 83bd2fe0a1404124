/*
 * calloc and free behind two names, so that the rest of the library can poison them and a sanitizer
 * still sees every block. Runs on any thread, holds no lock of the library, never logs (the caller
 * knows what the memory was for).
 */
#include "shim/base/mem.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static uint64_t failures; /* atomic */

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

/* In front of it, in a line that is only read, stands what was allocated. */
void *cus_mem_lines(size_t bytes) {
    size_t whole = (bytes + CUS_LINE - 1) & ~(size_t)(CUS_LINE - 1);
    uint8_t *block = bytes ? cus_mem_alloc(whole + CUS_LINE + sizeof block) : NULL;
    if (!block)
        return NULL;
    uintptr_t after = (uintptr_t)block + sizeof block + CUS_LINE - 1;
    uint8_t *memory = block + (after - after % CUS_LINE - (uintptr_t)block);
    memcpy(memory - sizeof block, &block, sizeof block);
    return memory;
}

void cus_mem_free_lines(void *memory) {
    uint8_t *block = NULL;
    if (memory)
        memcpy(&block, (uint8_t *)memory - sizeof block, sizeof block);
    cus_mem_free(block);
}

uint64_t cus_mem_failures(void) {
    return __atomic_load_n(&failures, __ATOMIC_RELAXED);
}

char *cus_mem_text(const char *text) {
    size_t bytes = strlen(text) + 1;
    char *copy = cus_mem_alloc(bytes);
    if (copy)
        memcpy(copy, text, bytes);
    return copy;
}
