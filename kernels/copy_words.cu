/*
 * dst = src over n words of 32 bits; the two must not overlap. Grid (ceil(n / block)), any block.
 */
#include "kernels/kernels.h"

extern "C" __global__ void copy_words(unsigned *dst, const unsigned *src, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        dst[i] = src[i];
    }
}

CUS_KERNEL(copy_words)
