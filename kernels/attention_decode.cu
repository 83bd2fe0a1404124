/*
 * Attention of one new query per row over the n cached positions, split over the sequence: each
 * block covers CUS_ATTENTION_CHUNK positions of one head and leaves its maximum, its sum and its
 * unnormalised output; attention_combine joins them. q is [batch] rows of n_heads * head_dim,
 * q_stride apart; the caches are [batch][max_len][n_kv_heads * head_dim]; head h reads kv head h /
 * (n_heads / n_kv_heads); partial is [batch][n_heads][ceil(n / CUS_ATTENTION_CHUNK)][head_dim + 2].
 * head_dim is at most CUS_ATTENTION_HEAD_DIM_MAX. Scores are multiplied by scale (1 /
 * sqrt(head_dim)). Grid (n_heads, ceil(n / CUS_ATTENTION_CHUNK), batch): it grows with the
 * sequence; block CUS_ATTENTION_CHUNK.
 */
#include "kernels/kernels.h"

extern "C" __global__ void attention_decode(float *partial, const float *q, const float *k_cache,
                                            const float *v_cache, int q_stride, int n, int n_heads,
                                            int n_kv_heads, int head_dim, int max_len,
                                            float scale) {
    __shared__ float query[CUS_ATTENTION_HEAD_DIM_MAX];
    __shared__ float score[CUS_ATTENTION_CHUNK];
    __shared__ float weight[CUS_ATTENTION_CHUNK];
    int t = threadIdx.x;
    int head = blockIdx.x, chunk = blockIdx.y, row = blockIdx.z;
    int kv_dim = n_kv_heads * head_dim;
    int first = chunk * CUS_ATTENTION_CHUNK;
    int count = min(n - first, CUS_ATTENTION_CHUNK);
    size_t cache =
        ((size_t)row * max_len + first) * kv_dim + head / (n_heads / n_kv_heads) * head_dim;
    float *out = partial + (((size_t)row * n_heads + head) * gridDim.y + chunk) * (head_dim + 2);

    for (int d = t; d < head_dim; d += CUS_ATTENTION_CHUNK) {
        query[d] = q[(size_t)row * q_stride + head * head_dim + d] * scale;
    }
    __syncthreads();
    if (t < count) {
        const float *key = k_cache + cache + (size_t)t * kv_dim;
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
        const float *value = v_cache + cache + d;
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

CUS_KERNEL_SYNC(attention_decode)
