/*
 * Multiplicative hashing (Knuth, The Art of Computer Programming 3, 6.4): a word times an odd
 * number with well spread bits. The upper bits of the product have something of all bits of the
 * word: a table takes its place from them. Any thread; no state. Some of these hashes are in files
 * (the signature cache): the numbers stay.
 */
#ifndef CUSPLICE_BASE_HASH_H
#define CUSPLICE_BASE_HASH_H

#include <stdint.h>

#define CUS_HASH_FACTOR 0x9e3779b97f4a7c15u /* 2^64 by the golden ratio */
#define CUS_HASH_SECOND 0xd1b54a32d192ed03u /* for a second word */

static inline __attribute__((always_inline)) uint64_t cus_hash(uint64_t word) {
    return word * CUS_HASH_FACTOR;
}

static inline __attribute__((always_inline)) uint64_t cus_hash_pointer(const void *pointer) {
    return cus_hash((uint64_t)(uintptr_t)pointer);
}

/* Of what cus_hash gave, folded, and one more word. */
static inline __attribute__((always_inline)) uint64_t cus_hash_second(uint64_t word) {
    return word * CUS_HASH_SECOND;
}

#endif
