/*
 * Adds the sum of n words to *out like reduce_sum, but in dynamic shared memory: 8 bytes for each
 * thread of the block, which is any power of two. Grid: any, the blocks stride over the input.
 */
#include "kernels/kernels.h"

extern "C" __global__ void reduce_dynamic(unsigned long long *out, const unsigned *in, int n) {
    CUS_DYNAMIC_SHARED(unsigned long long, sum);
    int t = threadIdx.x, threads = blockDim.x;
    unsigned long long mine = 0;
    for (int i = blockIdx.x * threads + t; i < n; i += gridDim.x * threads) {
        mine += in[i];
    }
    sum[t] = mine;
    __syncthreads();
    for (int half = threads / 2; half > 0; half /= 2) {
        if (t < half) {
            sum[t] += sum[t + half];
        }
        __syncthreads();
    }
    if (t == 0) {
        atomicAdd(out, sum[0]);
    }
}

CUS_KERNEL_SYNC(reduce_dynamic)
