/*
 * The launches of the decode host. nvcc compiles this file alone; all other files of the host are
 * C. Runs on the host's one thread.
 */
#include "harness/decode/launch.h"

#include <math.h>

#include "kernels/kernels.h"

enum { BLOCK = 128, ROPE_BLOCK = 64 };

static unsigned blocks(int n, int block) {
    return (unsigned)((n + block - 1) / block);
}

cudaError_t decode_launch_embedding(cudaStream_t stream, float *x, const float *table,
                                    const int *token, int dim, int one_each, int rows) {
    dim3 grid(blocks(dim, BLOCK), rows, one_each ? 1 : 2);
    embedding<<<grid, BLOCK, 0, stream>>>(x, table, token, dim);
    return cudaGetLastError();
}

cudaError_t decode_launch_rmsnorm(cudaStream_t stream, float *y, const float *x,
                                  const float *weight, int dim, float eps, int rows) {
    rmsnorm<<<rows, CUS_REDUCE_BLOCK, 0, stream>>>(y, x, weight, dim, eps);
    return cudaGetLastError();
}

cudaError_t decode_launch_rope(cudaStream_t stream, float *q, float *k, int q_stride, int k_stride,
                               int n_heads, int n_kv_heads, int head_dim, int pos, float base,
                               int rows) {
    unsigned x = blocks((n_heads + n_kv_heads) * head_dim / 2, ROPE_BLOCK);
    rope<<<dim3(x, rows), ROPE_BLOCK, 0, stream>>>(q, k, q_stride, k_stride, n_heads, n_kv_heads,
                                                   head_dim, pos, base);
    return cudaGetLastError();
}

cudaError_t decode_launch_kv_append(cudaStream_t stream, float *k_cache, float *v_cache,
                                    const float *k, const float *v, int kv_dim, int max_len,
                                    int pos, int rows) {
    kv_append<<<dim3(blocks(kv_dim, BLOCK), rows), BLOCK, 0, stream>>>(
        k_cache, v_cache, k, v, kv_dim, kv_dim, kv_dim, max_len, pos);
    return cudaGetLastError();
}

cudaError_t decode_launch_rope_rows(cudaStream_t stream, float *q, float *k, int q_stride,
                                    int k_stride, int n_heads, int n_kv_heads, int head_dim,
                                    const int *pos, float base, int rows) {
    unsigned x = blocks((n_heads + n_kv_heads) * head_dim / 2, ROPE_BLOCK);
    rope_rows<<<dim3(x, rows), ROPE_BLOCK, 0, stream>>>(q, k, q_stride, k_stride, n_heads,
                                                        n_kv_heads, head_dim, pos, base);
    return cudaGetLastError();
}

cudaError_t decode_launch_kv_append_rows(cudaStream_t stream, float *k_cache, float *v_cache,
                                         const float *k, const float *v, int kv_dim, int max_len,
                                         const int *seq, const int *pos, int rows) {
    kv_append_rows<<<dim3(blocks(kv_dim, BLOCK), rows), BLOCK, 0, stream>>>(
        k_cache, v_cache, k, v, kv_dim, kv_dim, kv_dim, max_len, seq, pos);
    return cudaGetLastError();
}

int decode_attention_chunks(int n) {
    return (int)blocks(n, CUS_ATTENTION_CHUNK);
}

cudaError_t decode_launch_attention(cudaStream_t stream, float *partial, const float *q,
                                    const float *k_cache, const float *v_cache, int n, int n_heads,
                                    int n_kv_heads, int head_dim, int max_len, int rows) {
    dim3 grid(n_heads, decode_attention_chunks(n), rows);
    attention_decode<<<grid, CUS_ATTENTION_CHUNK, 0, stream>>>(
        partial, q, k_cache, v_cache, n_heads * head_dim, n, n_heads, n_kv_heads, head_dim, max_len,
        1.0f / sqrtf((float)head_dim));
    return cudaGetLastError();
}

cudaError_t decode_launch_attention_rows(cudaStream_t stream, float *partial, const float *q,
                                         const float *k_cache, const float *v_cache, const int *seq,
                                         const int *pos, int context, int n, int n_heads,
                                         int n_kv_heads, int head_dim, int max_len, int rows) {
    dim3 grid(n_heads, decode_attention_chunks(n), rows);
    attention_rows<<<grid, CUS_ATTENTION_CHUNK, 0, stream>>>(
        partial, q, k_cache, v_cache, seq, pos, context, n_heads * head_dim, n_heads, n_kv_heads,
        head_dim, max_len, 1.0f / sqrtf((float)head_dim));
    return cudaGetLastError();
}

cudaError_t decode_launch_combine(cudaStream_t stream, float *out, const float *partial, int n,
                                  int n_heads, int head_dim, int rows) {
    attention_combine<<<dim3(n_heads, rows), CUS_ATTENTION_CHUNK, 0, stream>>>(
        out, partial, n_heads * head_dim, decode_attention_chunks(n), n_heads, head_dim);
    return cudaGetLastError();
}

cudaError_t decode_launch_silu_mul(cudaStream_t stream, float *out, const float *gate,
                                   const float *up, int n) {
    silu_mul<<<blocks(n, BLOCK), BLOCK, 0, stream>>>(out, gate, up, n);
    return cudaGetLastError();
}

cudaError_t decode_launch_residual_add(cudaStream_t stream, float *x, const float *y, int n) {
    residual_add<<<blocks(n, BLOCK), BLOCK, 0, stream>>>(x, y, n);
    return cudaGetLastError();
}

cudaError_t decode_launch_argmax(cudaStream_t stream, int *token, const float *logits, int vocab,
                                 int rows) {
    argmax<<<rows, CUS_REDUCE_BLOCK, 0, stream>>>(token, logits, vocab, vocab);
    return cudaGetLastError();
}

cudaError_t decode_launch_sample(cudaStream_t stream, int *token, const float *logits, int vocab,
                                 float temperature, unsigned long long seed, int step, int rows) {
    sample<<<rows, CUS_REDUCE_BLOCK, 0, stream>>>(token, logits, vocab, vocab, temperature, seed,
                                                  step);
    return cudaGetLastError();
}

cudaError_t decode_launch_sample_rows(cudaStream_t stream, int *token, const float *logits,
                                      int vocab, float temperature, unsigned long long seed,
                                      const int *seq, const int *pos, int rows) {
    sample_rows<<<rows, CUS_REDUCE_BLOCK, 0, stream>>>(token, logits, vocab, vocab, temperature,
                                                       seed, seq, pos);
    return cudaGetLastError();
}
