/*
 * Greedy choice: token[b] is the index of the largest of logits[b * stride .. + vocab), the lowest
 * index on a tie. Grid (batch), block CUS_REDUCE_BLOCK.
 */
#include "kernels/kernels.h"

extern "C" __global__ void argmax(int *token, const float *logits, int vocab, int stride) {
    __shared__ float value[CUS_REDUCE_BLOCK];
    __shared__ int index[CUS_REDUCE_BLOCK];
    const float *row = logits + (size_t)blockIdx.x * stride;
    int t = threadIdx.x;
    int best = -1;
    for (int i = t; i < vocab; i += CUS_REDUCE_BLOCK) {
        if (best < 0 || row[i] > row[best]) {
            best = i;
        }
    }
    index[t] = best;
    value[t] = best < 0 ? 0.0f : row[best];
    __syncthreads();
    for (int half = CUS_REDUCE_BLOCK / 2; half > 0; half /= 2) {
        if (t < half && index[t + half] >= 0 &&
            (index[t] < 0 || value[t + half] > value[t] ||
             (value[t + half] == value[t] && index[t + half] < index[t]))) {
            value[t] = value[t + half];
            index[t] = index[t + half];
        }
        __syncthreads();
    }
    if (t == 0) {
        token[blockIdx.x] = index[0];
    }
}

CUS_KERNEL_SYNC(argmax)
