/*
 * dst += value over n integers, which wrap. Grid (ceil(n / block)), any block.
 */
#include "kernels/kernels.h"

extern "C" __global__ void add_scalar(int *dst, int value, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        dst[i] = (int)((unsigned)dst[i] + (unsigned)value);
    }
}

CUS_KERNEL(add_scalar)
