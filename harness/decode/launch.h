/*
 * One function for each kernel of kernels/ that the decode host launches. The parameters are the
 * stream, then the kernel's own (kernels/README.md). Each function computes the grid from them and
 * the number of rows, and returns the result of the launch.
 */
#ifndef HARNESS_DECODE_LAUNCH_H
#define HARNESS_DECODE_LAUNCH_H

#include <cuda_runtime.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The grid's z is 1 for one_each, otherwise 2: it tells the step class. */
cudaError_t decode_launch_embedding(cudaStream_t stream, float *x, const float *table,
                                    const int *token, int dim, int one_each, int rows);
cudaError_t decode_launch_rmsnorm(cudaStream_t stream, float *y, const float *x,
                                  const float *weight, int dim, float eps, int rows);
cudaError_t decode_launch_rope(cudaStream_t stream, float *q, float *k, int q_stride, int k_stride,
                               int n_heads, int n_kv_heads, int head_dim, int pos, float base,
                               int rows);
cudaError_t decode_launch_kv_append(cudaStream_t stream, float *k_cache, float *v_cache,
                                    const float *k, const float *v, int kv_dim, int max_len,
                                    int pos, int rows);
cudaError_t decode_launch_rope_rows(cudaStream_t stream, float *q, float *k, int q_stride,
                                    int k_stride, int n_heads, int n_kv_heads, int head_dim,
                                    const int *pos, float base, int rows);
cudaError_t decode_launch_kv_append_rows(cudaStream_t stream, float *k_cache, float *v_cache,
                                         const float *k, const float *v, int kv_dim, int max_len,
                                         const int *seq, const int *pos, int rows);
/* The number of blocks for n cached positions. */
int decode_attention_chunks(int n);
cudaError_t decode_launch_attention(cudaStream_t stream, float *partial, const float *q,
                                    const float *k_cache, const float *v_cache, int n, int n_heads,
                                    int n_kv_heads, int head_dim, int max_len, int rows);
/* n: the positions that the furthest row sees. */
cudaError_t decode_launch_attention_rows(cudaStream_t stream, float *partial, const float *q,
                                         const float *k_cache, const float *v_cache, const int *seq,
                                         const int *pos, int context, int n, int n_heads,
                                         int n_kv_heads, int head_dim, int max_len, int rows);
cudaError_t decode_launch_combine(cudaStream_t stream, float *out, const float *partial, int n,
                                  int n_heads, int head_dim, int rows);
cudaError_t decode_launch_silu_mul(cudaStream_t stream, float *out, const float *gate,
                                   const float *up, int n);
cudaError_t decode_launch_residual_add(cudaStream_t stream, float *x, const float *y, int n);
cudaError_t decode_launch_argmax(cudaStream_t stream, int *token, const float *logits, int vocab,
                                 int rows);
cudaError_t decode_launch_sample(cudaStream_t stream, int *token, const float *logits, int vocab,
                                 float temperature, unsigned long long seed, int step, int rows);
cudaError_t decode_launch_sample_rows(cudaStream_t stream, int *token, const float *logits,
                                      int vocab, float temperature, unsigned long long seed,
                                      const int *seq, const int *pos, int rows);

#ifdef __cplusplus
}
#endif

#endif
