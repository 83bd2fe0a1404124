/*
 * The kernels of hazards.cu, for nvcc and, with -DCUSIM, for the simulator (kernels/cus_kernel.h).
 */
#ifndef CUSPLICE_TESTS_GPU_PROGRAMS_HAZARD_KERNELS_H
#define CUSPLICE_TESTS_GPU_PROGRAMS_HAZARD_KERNELS_H

#include <stdio.h>
#include <string.h>

#include "kernels/cus_kernel.h"

#ifdef CUSIM
#define __grid_constant__
#define __host__
#endif

/*
 * One line for each of four threads: the launch, the thread, and 28 digits that follow from both,
 * each of which takes eight bytes of the buffer: about 1 KiB for a launch.
 */
enum { PRINT_THREADS = 4 };

extern "C" __global__ void hazard_print(unsigned launch) {
    const unsigned t = threadIdx.x;
    unsigned long long d = launch * 31ull + t * 7ull;
#define D(i) (d + i) % 10
    printf("L%06u.%u %llu%llu%llu%llu%llu%llu%llu%llu%llu%llu%llu%llu%llu%llu"
           "%llu%llu%llu%llu%llu%llu%llu%llu%llu%llu%llu%llu%llu%llu\n",
           launch, t, D(0), D(1), D(2), D(3), D(4), D(5), D(6), D(7), D(8), D(9), D(10), D(11),
           D(12), D(13), D(14), D(15), D(16), D(17), D(18), D(19), D(20), D(21), D(22), D(23),
           D(24), D(25), D(26), D(27));
#undef D
}

/* A parameter of N bytes without alignment. The first eight are the address of the result. */
template <unsigned N> struct hazard_bytes { unsigned char byte[N]; };

/* What the byte at a place adds to the sum. */
__host__ __device__ static inline unsigned long long hazard_byte(unsigned char byte,
                                                                 unsigned place) {
    unsigned long long x = ((unsigned long long)place << 8 | byte) * 0x9e3779b97f4a7c15ull;
    return (x ^ x >> 31) * 0xbf58476d1ce4e5b9ull;
}

template <unsigned N>
__device__ static inline void hazard_sum(const struct hazard_bytes<N> &bytes) {
    unsigned long long *out, sum = 0;
    memcpy(&out, bytes.byte, sizeof out);
    for (unsigned i = sizeof out + threadIdx.x; i < N; i += blockDim.x)
        sum += hazard_byte(bytes.byte[i], i);
    atomicAdd(out, sum);
}

#define HAZARD_PARAMS(n)                                                                           \
    extern "C" __global__ void hazard_params_##n(                                                  \
        const __grid_constant__ struct hazard_bytes<n> bytes) {                                    \
        hazard_sum(bytes);                                                                         \
    }
/* As many as went always, one more, and as many as go at all. */
HAZARD_PARAMS(4096)
HAZARD_PARAMS(4097)
HAZARD_PARAMS(32764)

/* Two of these in the wrong order, or one too many, change the result. */
extern "C" __global__ void hazard_chain(unsigned *x, unsigned a, unsigned b, unsigned n) {
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        x[i] = a * x[i] + b;
}

CUS_KERNEL(hazard_print)
CUS_KERNEL(hazard_params_4096)
CUS_KERNEL(hazard_params_4097)
CUS_KERNEL(hazard_params_32764)
CUS_KERNEL(hazard_chain)

#endif
