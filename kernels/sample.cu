/*
 * Draws token[b] from softmax(logits[b] / temperature): adds Gumbel noise to each scaled logit and
 * takes the largest, which needs no sum and no order. The noise is a function of (seed, step, row,
 * index) alone, so the same call draws the same token. logits are [batch] rows of vocab, stride
 * apart; temperature is above 0. Grid (batch), block CUS_REDUCE_BLOCK.
 */
#include "kernels/kernels.h"

/* 24 well-mixed bits of the four numbers as a float inside of (0, 1). */
static __device__ __forceinline__ float sample_uniform(unsigned long long seed, unsigned step,
                                                       unsigned row, unsigned index) {
    unsigned long long z = seed + ((unsigned long long)step << 32 | index) * 0x9e3779b97f4a7c15ull;
    z ^= (row + 1ull) * 0xd1b54a32d192ed03ull;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    z ^= z >> 31;
    return ((unsigned)(z >> 41) + 0.5f) * (1.0f / 8388608.0f);
}

extern "C" __global__ void sample(int *token, const float *logits, int vocab, int stride,
                                  float temperature, unsigned long long seed, int step) {
    __shared__ float value[CUS_REDUCE_BLOCK];
    __shared__ int index[CUS_REDUCE_BLOCK];
    const float *row = logits + (size_t)blockIdx.x * stride;
    int t = threadIdx.x;
    int best = -1;
    float most = 0.0f;
    for (int i = t; i < vocab; i += CUS_REDUCE_BLOCK) {
        float u = sample_uniform(seed, step, blockIdx.x, i);
        float v = row[i] / temperature - logf(-logf(u));
        if (best < 0 || v > most) {
            best = i;
            most = v;
        }
    }
    index[t] = best;
    value[t] = most;
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

CUS_KERNEL_SYNC(sample)
