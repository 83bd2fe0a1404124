/*
 * Root-mean-square norm of each row: y = x / sqrt(mean(x^2) + eps) * weight, x and y [batch][dim],
 * weight [dim]; y may be x. Grid (batch), block CUS_REDUCE_BLOCK. One block owns a row, and every
 * thread reads its elements for the sum before any element is written.
 */
#include "kernels/kernels.h"

extern "C" __global__ void rmsnorm(float *y, const float *x, const float *weight, int dim,
                                   float eps) {
    __shared__ float sum[CUS_REDUCE_BLOCK];
    size_t row = (size_t)blockIdx.x * dim;
    int t = threadIdx.x;
    float mine = 0.0f;
    for (int i = t; i < dim; i += CUS_REDUCE_BLOCK) {
        mine += x[row + i] * x[row + i];
    }
    sum[t] = mine;
    __syncthreads();
    for (int half = CUS_REDUCE_BLOCK / 2; half > 0; half /= 2) {
        if (t < half) {
            sum[t] += sum[t + half];
        }
        __syncthreads();
    }
    float scale = rsqrtf(sum[0] / dim + eps);
    for (int i = t; i < dim; i += CUS_REDUCE_BLOCK) {
        y[row + i] = x[row + i] * scale * weight[i];
    }
}

CUS_KERNEL_SYNC(rmsnorm)
