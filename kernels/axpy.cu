/*
 * y += a * x over n floats. Grid (ceil(n / block)), any block.
 */
#include "kernels/kernels.h"

extern "C" __global__ void axpy(float *y, const float *x, float a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        y[i] += a * x[i];
    }
}

CUS_KERNEL(axpy)
