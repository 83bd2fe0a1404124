/*
 * Multiplicative hashing (Knuth, The Art of Computer Programming 3, 6.4): a word times an odd
 * number. The upper bits of the product depend on all bits of the word, so a table takes its index
 * from them. Any thread; no state. The signature cache stores some of these hashes in files, so the
 * factors must not change.
 */
#ifndef CUSPLICE_BASE_HASH_H
#define CUSPLICE_BASE_HASH_H

#include <stdint.h>

#define CUS_HASH_FACTOR 0x9e3779b97f4a7c15u /* 2^64 divided by the golden ratio */
#define CUS_HASH_SECOND 0xd1b54a32d192ed03u /* for a second word */

static inline __attribute__((always_inline)) uint64_t cus_hash(uint64_t word) {
    return word * CUS_HASH_FACTOR;
}

static inline __attribute__((always_inline)) uint64_t cus_hash_pointer(const void *pointer) {
    return cus_hash((uint64_t)(uintptr_t)pointer);
}

/* Hashes a second word into a folded result of cus_hash. */
static inline __attribute__((always_inline)) uint64_t cus_hash_second(uint64_t word) {
    return word * CUS_HASH_SECOND;
}

#endif
