/*
 * The library's own host memory in the program's process. This header is the one place to change
 * where that memory comes from.
 *
 * Not for the hot path: an op in the midst of a segment allocates nothing. Any thread. Keeps errno.
 * If memory runs out, a call returns NULL and nothing ends.
 */
#ifndef CUSPLICE_BASE_MEM_H
#define CUSPLICE_BASE_MEM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Zeroed memory, aligned for any type; NULL if there is none, or for 0 bytes. */
void *cus_mem_alloc(size_t bytes);
/* Frees memory of cus_mem_alloc; NULL is allowed. */
void cus_mem_free(void *memory);
/* Memory that grows with what the library learns of a program. It is counted. NULL: no memory,
 * or more than the budget would be held. Only cus_mem_shrink frees this memory. */
void *cus_mem_grow(size_t bytes);
/* The same for memory that is needed first and may be in vain. At most half of the budget, so
 * that room is left for what follows. */
void *cus_mem_grow_first(size_t bytes);
void cus_mem_shrink(void *memory);
/* Sets the budget in bytes. Called once, before any such memory is held. Without a call there is
 * no limit. */
void cus_mem_budget(uint64_t bytes);
/* Bytes held now; the most bytes ever held; how often the budget refused memory. */
uint64_t cus_mem_held(void);
uint64_t cus_mem_most(void);
uint64_t cus_mem_refused(void);

/* As cus_mem_alloc and cus_mem_grow, in cache lines that hold nothing else. For data that one
 * thread writes at every op. */
enum { CUS_LINE = 64 };

/* Prefetches the line at `at` for writing. On x86-64 the code names the instruction, because
 * __builtin_prefetch may prefetch for reading. A CPU without prefetchw ignores it. */
static inline __attribute__((always_inline)) void cus_fetch_for_writing(const uint8_t *at) {
#ifdef __x86_64__
    __asm__ volatile("prefetchw %0" : : "m"(*at));
#else
    __builtin_prefetch(at, 1);
#endif
}
void *cus_mem_lines(size_t bytes);
void *cus_mem_grow_lines(size_t bytes);
/* Frees memory of the two functions above; NULL is allowed. */
void cus_mem_free_lines(void *memory);
void cus_mem_shrink_lines(void *memory);
/* A copy of `text`, to be freed with cus_mem_free; NULL: no memory. */
char *cus_mem_text(const char *text);
/* How often an allocation failed. The stats report it as the fallback no_memory. */
uint64_t cus_mem_failures(void);
/* Counts anew and forgets the budget; what is held stays counted. For cus_engine_end. */
void cus_mem_drop(void);

#ifdef __cplusplus
}
#endif

#endif
