/*
 * dst = value over n words of 32 bits. Grid (ceil(n / block)), any block.
 */
#include "kernels/kernels.h"

extern "C" __global__ void fill(unsigned *dst, unsigned value, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        dst[i] = value;
    }
}

CUS_KERNEL(fill)
