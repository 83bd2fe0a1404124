/*
 * calloc and free behind two names, so that the rest of the library can poison them and a sanitizer
 * still sees every block. Runs on any thread, holds no lock of the library, never logs (the caller
 * knows what the memory was for).
 */
#include "shim/base/mem.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void *cus_mem_alloc(size_t bytes) {
    int saved = errno;
    void *memory = bytes ? calloc(1, bytes) : NULL;
    errno = saved;
    return memory;
}

void cus_mem_free(void *memory) {
    int saved = errno;
    free(memory);
    errno = saved;
}

char *cus_mem_text(const char *text) {
    size_t bytes = strlen(text) + 1;
    char *copy = cus_mem_alloc(bytes);
    if (copy)
        memcpy(copy, text, bytes);
    return copy;
}
