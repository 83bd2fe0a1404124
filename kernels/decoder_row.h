/*
 * One row's part of the decoder's kernels that have two forms: for a batch in step, with one
 * position or length as a parameter, and `_rows`, with one for each row. Both forms take the same
 * sums in the same order, so they give a row the same result.
 */
#ifndef KERNELS_DECODER_ROW_H
#define KERNELS_DECODER_ROW_H

#include "kernels/kernels.h"

/* Rotates pair number `pair` of a row's heads, first of q and then of k, by the row's position. */
static __device__ __forceinline__ void cus_rope_pair(float *q, float *k, int pair, int n_heads,
                                                     int head_dim, int pos, float base) {
    int half = head_dim / 2;
    int head = pair / half;
    int i = pair % half;
    float *v =
        head < n_heads ? q + (size_t)head * head_dim : k + (size_t)(head - n_heads) * head_dim;
    float angle = pos * powf(base, -2.0f * i / head_dim);
    float c = cosf(angle), s = sinf(angle);
    float a = v[2 * i], b = v[2 * i + 1];
    v[2 * i] = a * c - b * s;
    v[2 * i + 1] = a * s + b * c;
}

/* Attention of one head of one query over `count` (1 .. CUS_ATTENTION_CHUNK) positions. Keys and
 * values point to the first position; positions are kv_dim elements apart. Leaves maximum, sum
 * and unnormalised output [head_dim] in out. All CUS_ATTENTION_CHUNK threads of a block must
 * call it. */
static __device__ __forceinline__ void cus_attention_chunk(float *out, const float *q,
                                                           const float *keys, const float *values,
                                                           int count, int kv_dim, int head_dim,
                                                           float scale) {
    __shared__ float query[CUS_ATTENTION_HEAD_DIM_MAX];
    __shared__ float score[CUS_ATTENTION_CHUNK];
    __shared__ float weight[CUS_ATTENTION_CHUNK];
    int t = threadIdx.x;

    for (int d = t; d < head_dim; d += CUS_ATTENTION_CHUNK) {
        query[d] = q[d] * scale;
    }
    __syncthreads();
    if (t < count) {
        const float *key = keys + (size_t)t * kv_dim;
        float dot = 0.0f;
        for (int d = 0; d < head_dim; d++) {
            dot += query[d] * key[d];
        }
        score[t] = dot;
    }
    __syncthreads();
    float top = score[0];
    for (int j = 1; j < count; j++) {
        top = fmaxf(top, score[j]);
    }
    if (t < count) {
        weight[t] = expf(score[t] - top);
    }
    __syncthreads();
    for (int d = t; d < head_dim; d += CUS_ATTENTION_CHUNK) {
        const float *value = values + d;
        float sum = 0.0f;
        for (int j = 0; j < count; j++) {
            sum += weight[j] * value[(size_t)j * kv_dim];
        }
        out[2 + d] = sum;
    }
    if (t == 0) {
        float sum = 0.0f;
        for (int j = 0; j < count; j++) {
            sum += weight[j];
        }
        out[0] = top;
        out[1] = sum;
    }
}

/* Mixes the four numbers into 24 bits, as a float between 0 and 1, both excluded. */
static __device__ __forceinline__ float cus_sample_uniform(unsigned long long seed, unsigned step,
                                                           unsigned row, unsigned index) {
    unsigned long long z = seed + ((unsigned long long)step << 32 | index) * 0x9e3779b97f4a7c15ull;
    z ^= (row + 1ull) * 0xd1b54a32d192ed03ull;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    z ^= z >> 31;
    return ((unsigned)(z >> 41) + 0.5f) * (1.0f / 8388608.0f);
}

/* Draws from softmax(logits / temperature) into *token, with the noise of (seed, step, row). All
 * CUS_REDUCE_BLOCK threads of a block must call it. */
static __device__ __forceinline__ void cus_sample_one(int *token, const float *logits, int vocab,
                                                      float temperature, unsigned long long seed,
                                                      int step, int row) {
    __shared__ float value[CUS_REDUCE_BLOCK];
    __shared__ int index[CUS_REDUCE_BLOCK];
    int t = threadIdx.x;
    int best = -1;
    float most = 0.0f;
    for (int i = t; i < vocab; i += CUS_REDUCE_BLOCK) {
        float u = cus_sample_uniform(seed, step, row, i);
        float v = logits[i] / temperature - logf(-logf(u));
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
        *token = index[0];
    }
}

#endif
