/*
 * y += a * x over n floats, `rounds` times: a kernel of a chosen length. Grid (ceil(n / block)),
 * any block.
 */
#include "kernels/kernels.h"

extern "C" __global__ void saxpy_n(float *y, const float *x, float a, int n, int rounds) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float sum = y[i];
        for (int r = 0; r < rounds; r++) {
            sum += a * x[i];
        }
        y[i] = sum;
    }
}

CUS_KERNEL(saxpy_n)
