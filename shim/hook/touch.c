/*
 * Remembers the functions that the program has asked about. The first question about a function may
 * load it and wait for the GPU (HAZARDS C5). Later questions are frequent: PyTorch asks for a
 * kernel's occupancy before it launches it.
 *
 * Any thread, inside a hook, without a lock. The set holds 64-bit fingerprints in open addressing.
 * If the set is full or code was unloaded, a new generation makes all fingerprints invalid. A
 * forgotten handle costs one flush.
 */
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <stddef.h>

#include "shim/hook/handles.h"
#include "shim/hook/real.h"

#include "shim/base/forbid.h"
#include "shim/base/hash.h"

enum { SLOTS = 16384, PROBES = 32 };

static uint64_t slots[SLOTS]; /* atomic; 0 is free */
static uint64_t generation;   /* atomic */

static uint64_t mix(uint64_t x) {
    x ^= x >> 32;
    x = cus_hash(x);
    x ^= x >> 29;
    x *= 0xbf58476d1ce4e5b9u;
    return x ^ (x >> 32);
}

bool cus_touch_first(const void *handle) {
    CUcontext context = NULL;
    CUS_REAL(cuCtxGetCurrent)(&context);
    uint64_t print = mix(mix((uint64_t)(uintptr_t)handle) + (uint64_t)(uintptr_t)context +
                         __atomic_load_n(&generation, __ATOMIC_RELAXED)) |
                     1;
    for (unsigned probe = 0; probe < PROBES; probe++) {
        uint64_t *slot = &slots[((print >> 8) + probe) % SLOTS];
        uint64_t seen = __atomic_load_n(slot, __ATOMIC_RELAXED);
        if (seen == 0 && __atomic_compare_exchange_n(slot, &seen, print, false, __ATOMIC_RELAXED,
                                                     __ATOMIC_RELAXED))
            return true;
        if (seen == print)
            return false;
    }
    cus_touch_forget();
    return true;
}

void cus_touch_forget(void) {
    __atomic_fetch_add(&generation, 1, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < SLOTS; i++)
        __atomic_store_n(&slots[i], 0, __ATOMIC_RELAXED);
}
