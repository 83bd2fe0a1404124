/*
 * x += y over n elements (batch * dim). Grid (ceil(n / block)), any block.
 */
#include "kernels/kernels.h"

extern "C" __global__ void residual_add(float *x, const float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        x[i] += y[i];
    }
}

CUS_KERNEL(residual_add)
