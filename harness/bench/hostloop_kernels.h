/*
 * The kernels of hostloop, for nvcc and, with -DCUSIM, for the simulator (kernels/cus_kernel.h).
 * HOSTLOOP_KERNELS lists their names alone.
 */
#ifndef CUSPLICE_HARNESS_BENCH_HOSTLOOP_KERNELS_H
#define CUSPLICE_HARNESS_BENCH_HOSTLOOP_KERNELS_H

/* Fifty kernels under fifty names: the same body with another constant. */
#define HOSTLOOP_KERNELS(X)                                                                        \
    HOSTLOOP_TEN(X, 1)                                                                             \
    HOSTLOOP_TEN(X, 2)                                                                             \
    HOSTLOOP_TEN(X, 3)                                                                             \
    HOSTLOOP_TEN(X, 4)                                                                             \
    HOSTLOOP_TEN(X, 5)
#define HOSTLOOP_TEN(X, t)                                                                         \
    X(t##0) X(t##1) X(t##2) X(t##3) X(t##4) X(t##5) X(t##6) X(t##7) X(t##8) X(t##9)

#if defined(__CUDACC__) || defined(CUSIM)

#include "kernels/cus_kernel.h"

#ifdef CUSIM
static inline unsigned atomicXor(unsigned *p, unsigned v) {
    return __atomic_fetch_xor(p, v, __ATOMIC_RELAXED);
}
#endif

/* The smallest kernel whose effect depends on everything about the launch. Kernels with an odd
 * constant exclusive-or into the buffer and the others add. The two do not commute, so the order
 * of launches matters, and no kernel waits for what it reads. The loop covers the buffer with
 * any shape, and the shape is part of the result. */
__device__ static inline void mix(unsigned *state, unsigned words, unsigned scalar, unsigned own) {
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < words;
         i += gridDim.x * blockDim.x) {
        unsigned value = (scalar + own) * 2654435761u + gridDim.x * 40503u +
                         (blockDim.x / 32 - 1) * 97u + cus_dynamic_bytes() * 89u + i;
        if (own & 1)
            atomicXor(&state[i], value);
        else
            atomicAdd(&state[i], value);
    }
}

#define HOSTLOOP_DEFINE(n)                                                                         \
    extern "C" __global__ void bench_small_##n(unsigned *state, unsigned words, unsigned scalar) { \
        mix(state, words, scalar, 1##n);                                                           \
    }                                                                                              \
    CUS_KERNEL(bench_small_##n)
HOSTLOOP_KERNELS(HOSTLOOP_DEFINE)

/* The kernel that an eager rule can name. */
extern "C" __global__ void bench_eager(unsigned *state, unsigned words, unsigned scalar) {
    mix(state, words, scalar, 77u);
}
CUS_KERNEL(bench_eager)

#endif
#endif
