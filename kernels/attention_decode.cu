/*
 * Attention of one new query per row over the n cached positions. A block covers
 * CUS_ATTENTION_CHUNK positions of one head, and leaves its maximum, sum and unnormalised output;
 * attention_combine joins them.
 *
 * q is [batch] rows of n_heads * head_dim, q_stride apart. The caches are
 * [batch][max_len][n_kv_heads * head_dim]; head h reads kv head h / (n_heads / n_kv_heads). partial
 * is [batch][n_heads][ceil(n / CUS_ATTENTION_CHUNK)][head_dim + 2]. head_dim is at most
 * CUS_ATTENTION_HEAD_DIM_MAX. Scores are multiplied by scale (1 / sqrt(head_dim)). Grid (n_heads,
 * ceil(n / CUS_ATTENTION_CHUNK), batch), which grows with the sequence; block CUS_ATTENTION_CHUNK.
 */
#include "kernels/decoder_row.h"

extern "C" __global__ void attention_decode(float *partial, const float *q, const float *k_cache,
                                            const float *v_cache, int q_stride, int n, int n_heads,
                                            int n_kv_heads, int head_dim, int max_len,
                                            float scale) {
    int head = blockIdx.x, chunk = blockIdx.y, row = blockIdx.z;
    int kv_dim = n_kv_heads * head_dim;
    int first = chunk * CUS_ATTENTION_CHUNK;
    size_t cache =
        ((size_t)row * max_len + first) * kv_dim + head / (n_heads / n_kv_heads) * head_dim;
    float *out = partial + (((size_t)row * n_heads + head) * gridDim.y + chunk) * (head_dim + 2);
    cus_attention_chunk(out, q + (size_t)row * q_stride + head * head_dim, k_cache + cache,
                        v_cache + cache, min(n - first, CUS_ATTENTION_CHUNK), kv_dim, head_dim,
                        scale);
}

CUS_KERNEL_SYNC(attention_decode)
