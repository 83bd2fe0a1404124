/*
 * Adds the sum of n words to *out, in 64 bits; the caller clears *out. Grid: any, the blocks stride
 * over the input; block CUS_REDUCE_BLOCK.
 */
#include "kernels/kernels.h"

extern "C" __global__ void reduce_sum(unsigned long long *out, const unsigned *in, int n) {
    __shared__ unsigned long long sum[CUS_REDUCE_BLOCK];
    int t = threadIdx.x;
    unsigned long long mine = 0;
    for (int i = blockIdx.x * CUS_REDUCE_BLOCK + t; i < n; i += gridDim.x * CUS_REDUCE_BLOCK) {
        mine += in[i];
    }
    sum[t] = mine;
    __syncthreads();
    for (int half = CUS_REDUCE_BLOCK / 2; half > 0; half /= 2) {
        if (t < half) {
            sum[t] += sum[t + half];
        }
        __syncthreads();
    }
    if (t == 0) {
        atomicAdd(out, sum[0]);
    }
}

CUS_KERNEL_SYNC(reduce_sum)
