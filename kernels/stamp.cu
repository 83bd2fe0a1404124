/* A kernel that never does the same twice: it sets *p to a number that it never gave before. */
#include "kernels/kernels.h"

#if defined(CUSIM)
static unsigned long long stamp_next() {
    static unsigned long long last;
    return __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
}
#else
static __device__ __forceinline__ unsigned long long stamp_next() {
    unsigned long long ns;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
    return ns ^ (unsigned long long)clock64() << 32;
}
#endif

extern "C" __global__ void stamp(unsigned long long *p) {
    *p = stamp_next();
}

CUS_KERNEL(stamp)
