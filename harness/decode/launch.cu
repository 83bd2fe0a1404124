/*
 * The launch lines of the decode host, and nothing else: nvcc compiles this file, the rest of the
 * host is C. Runs on the host's one thread.
 */
#include "harness/decode/launch.h"

#include <math.h>

#include "kernels/kernels.h"

enum { BLOCK = 128, ROPE_BLOCK = 64 };

static unsigned blocks(int n, int block) {
    return (unsigned)((n + block - 1) / block);
}

cudaError_t decode_launch_embedding(cudaStream_t stream, float *x, const float *table,
                                    const int *token, int dim, int batch) {
    embedding<<<dim3(blocks(dim, BLOCK), batch), BLOCK, 0, stream>>>(x, table, token, dim);
    return cudaGetLastError();
}

cudaError_t decode_launch_rmsnorm(cudaStream_t stream, float *y, const float *x,
                                  const float *weight, int dim, float eps, int batch) {
    rmsnorm<<<batch, CUS_REDUCE_BLOCK, 0, stream>>>(y, x, weight, dim, eps);
    return cudaGetLastError();
}

cudaError_t decode_launch_rope(cudaStream_t stream, float *q, float *k, int q_stride, int k_stride,
                               int n_heads, int n_kv_heads, int head_dim, int pos, float base,
                               int batch) {
    unsigned x = blocks((n_heads + n_kv_heads) * head_dim / 2, ROPE_BLOCK);
    rope<<<dim3(x, batch), ROPE_BLOCK, 0, stream>>>(q, k, q_stride, k_stride, n_heads, n_kv_heads,
                                                    head_dim, pos, base);
    return cudaGetLastError();
}

cudaError_t decode_launch_kv_append(cudaStream_t stream, float *k_cache, float *v_cache,
                                    const float *k, const float *v, int kv_dim, int max_len,
                                    int pos, int batch) {
    kv_append<<<dim3(blocks(kv_dim, BLOCK), batch), BLOCK, 0, stream>>>(
        k_cache, v_cache, k, v, kv_dim, kv_dim, kv_dim, max_len, pos);
    return cudaGetLastError();
}

int decode_attention_chunks(int n) {
    return (int)blocks(n, CUS_ATTENTION_CHUNK);
}

cudaError_t decode_launch_attention(cudaStream_t stream, float *partial, const float *q,
                                    const float *k_cache, const float *v_cache, int n, int n_heads,
                                    int n_kv_heads, int head_dim, int max_len, int batch) {
    dim3 grid(n_heads, decode_attention_chunks(n), batch);
    attention_decode<<<grid, CUS_ATTENTION_CHUNK, 0, stream>>>(
        partial, q, k_cache, v_cache, n_heads * head_dim, n, n_heads, n_kv_heads, head_dim, max_len,
        1.0f / sqrtf((float)head_dim));
    return cudaGetLastError();
}

cudaError_t decode_launch_combine(cudaStream_t stream, float *out, const float *partial, int n,
                                  int n_heads, int head_dim, int batch) {
    attention_combine<<<dim3(n_heads, batch), CUS_ATTENTION_CHUNK, 0, stream>>>(
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
                                 int batch) {
    argmax<<<batch, CUS_REDUCE_BLOCK, 0, stream>>>(token, logits, vocab, vocab);
    return cudaGetLastError();
}

cudaError_t decode_launch_sample(cudaStream_t stream, int *token, const float *logits, int vocab,
                                 float temperature, unsigned long long seed, int step, int batch) {
    sample<<<batch, CUS_REDUCE_BLOCK, 0, stream>>>(token, logits, vocab, vocab, temperature, seed,
                                                   step);
    return cudaGetLastError();
}
