/*
 * attention_decode for rows of any sequences at any positions. Row r is position pos[r] of sequence
 * seq[r] (both on the device), and sees itself and at most `context` positions in all, the latest
 * ones. So rows of one sequence are causal among themselves; kv_append_rows must have written all
 * of them before.
 *
 * Grid (n_heads, chunks, rows), where chunks = ceil(n / CUS_ATTENTION_CHUNK) of the row that sees
 * most positions. A row with fewer chunks leaves neutral values in the others: maximum minus
 * infinity, sum and output 0. All else is as in attention_decode; attention_combine joins the
 * chunks.
 */
#include "kernels/decoder_row.h"

extern "C" __global__ void attention_rows(float *partial, const float *q, const float *k_cache,
                                          const float *v_cache, const int *seq, const int *pos,
                                          int context, int q_stride, int n_heads, int n_kv_heads,
                                          int head_dim, int max_len, float scale) {
    int head = blockIdx.x, chunk = blockIdx.y, row = blockIdx.z;
    int kv_dim = n_kv_heads * head_dim;
    int n = min(pos[row] + 1, context);
    int first = chunk * CUS_ATTENTION_CHUNK;
    float *out = partial + (((size_t)row * n_heads + head) * gridDim.y + chunk) * (head_dim + 2);
    if (first >= n) {
        for (int d = threadIdx.x; d < head_dim + 2; d += CUS_ATTENTION_CHUNK) {
            out[d] = d ? 0.0f : -INFINITY;
        }
        return;
    }
    size_t cache = ((size_t)seq[row] * max_len + (pos[row] + 1 - n) + first) * kv_dim +
                   head / (n_heads / n_kv_heads) * head_dim;
    cus_attention_chunk(out, q + (size_t)row * q_stride + head * head_dim, k_cache + cache,
                        v_cache + cache, min(n - first, CUS_ATTENTION_CHUNK), kv_dim, head_dim,
                        scale);
}

CUS_KERNEL_SYNC(attention_rows)
