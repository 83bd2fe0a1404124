/*
 * Memory of the library's own in the target's process. The one place to change where it comes from.
 *
 * Not for the hot path: an op that is replayed allocates nothing. Any thread; errno is kept; ends
 * nothing when memory runs out.
 */
#ifndef CUSPLICE_BASE_MEM_H
#define CUSPLICE_BASE_MEM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Zeroed memory, aligned for any type; NULL when there is none (and for 0 bytes). */
void *cus_mem_alloc(size_t bytes);
/* Of cus_mem_alloc, or NULL. */
void cus_mem_free(void *memory);
/* What grows with what is learned of a program: counted, and NULL where more than the budget would
 * be held, too. What they give, and nothing else, goes to cus_mem_shrink. */
void *cus_mem_grow(size_t bytes);
/* The same for what comes before the rest, and may be in vain: half of the budget at most, so that
 * it leaves room for what follows from it. */
void *cus_mem_grow_first(size_t bytes);
void cus_mem_shrink(void *memory);
/* Bytes of that kind that may be held, once, before any are; without a word: any number. */
void cus_mem_budget(uint64_t bytes);
/* Held now; the most that were; how often the budget did not allow more. */
uint64_t cus_mem_held(void);
uint64_t cus_mem_most(void);
uint64_t cus_mem_refused(void);

/* Of cus_mem_alloc and cus_mem_grow, the same in cache lines of its own: for what one thread writes
 * at every op. */
enum { CUS_LINE = 64 };
void *cus_mem_lines(size_t bytes);
void *cus_mem_grow_lines(size_t bytes);
/* Of these, or NULL. */
void cus_mem_free_lines(void *memory);
void cus_mem_shrink_lines(void *memory);
/* A copy of `text` to be freed with cus_mem_free; NULL when there is no memory. */
char *cus_mem_text(const char *text);
/* How often there was none, so far. Reported as the fallback no_memory. */
uint64_t cus_mem_failures(void);

#ifdef __cplusplus
}
#endif

#endif
