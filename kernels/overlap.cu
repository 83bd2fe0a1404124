/*
 * dst = a * src + b over n words, which wrap. It lets a programmatic dependent begin before it has
 * written anything; with `waits` it waits for what it depends on itself before it reads. Grid
 * (ceil(n / block)), any block.
 */
#include "kernels/kernels.h"

extern "C" __global__ void overlap(unsigned *dst, const unsigned *src, unsigned a, unsigned b,
                                   int n, int waits) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    CUS_TRIGGER();
    if (waits) {
        CUS_WAIT();
    }
    if (i < n) {
        dst[i] = a * src[i] + b;
    }
}

CUS_KERNEL(overlap)
