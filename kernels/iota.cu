/*
 * dst[i] = start + i over n integers. Grid (ceil(n / block)), any block.
 */
#include "kernels/kernels.h"

extern "C" __global__ void iota(int *dst, int start, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        dst[i] = start + i;
    }
}

CUS_KERNEL(iota)
