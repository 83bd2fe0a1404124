/*
 * All kernels of this folder, for CUDA, C++ and C. In CUDA a name is a __global__ function. In C
 * and C++ it is the host stub, whose address cudaLaunchKernel takes; a call of the stub launches
 * nothing. README.md has parameters and launch shapes.
 */
#ifndef KERNELS_KERNELS_H
#define KERNELS_KERNELS_H

#if defined(__CUDACC__) || defined(CUSIM)
#include "kernels/cus_kernel.h"
#define CUS_GLOBAL __global__
#else
#define CUS_GLOBAL
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The cached positions of one block of attention_decode or attention_rows, and its block size. */
#define CUS_ATTENTION_CHUNK 64
/* The largest head_dim of both. */
#define CUS_ATTENTION_HEAD_DIM_MAX 256
/* The block size of the kernels with a fixed one: rmsnorm, argmax, sample, sample_rows, reduce_sum.
 */
#define CUS_REDUCE_BLOCK 128

/* A parameter with padding in two places, for many_params. */
struct cus_mixed {
    signed char tag; /* char has no sign on AArch64 */
    double weight;
    short parts[3];
};

/* A parameter of 1 KiB, for big_params. */
#define CUS_BIG_WORDS 256
struct cus_big {
    unsigned word[CUS_BIG_WORDS];
};

CUS_GLOBAL void embedding(float *x, const float *table, const int *token, int dim);
CUS_GLOBAL void rmsnorm(float *y, const float *x, const float *weight, int dim, float eps);
CUS_GLOBAL void rope(float *q, float *k, int q_stride, int k_stride, int n_heads, int n_kv_heads,
                     int head_dim, int pos, float base);
CUS_GLOBAL void kv_append(float *k_cache, float *v_cache, const float *k, const float *v,
                          int k_stride, int v_stride, int kv_dim, int max_len, int pos);
CUS_GLOBAL void attention_decode(float *partial, const float *q, const float *k_cache,
                                 const float *v_cache, int q_stride, int n, int n_heads,
                                 int n_kv_heads, int head_dim, int max_len, float scale);
CUS_GLOBAL void rope_rows(float *q, float *k, int q_stride, int k_stride, int n_heads,
                          int n_kv_heads, int head_dim, const int *pos, float base);
CUS_GLOBAL void kv_append_rows(float *k_cache, float *v_cache, const float *k, const float *v,
                               int k_stride, int v_stride, int kv_dim, int max_len, const int *seq,
                               const int *pos);
CUS_GLOBAL void attention_rows(float *partial, const float *q, const float *k_cache,
                               const float *v_cache, const int *seq, const int *pos, int context,
                               int q_stride, int n_heads, int n_kv_heads, int head_dim, int max_len,
                               float scale);
CUS_GLOBAL void attention_combine(float *out, const float *partial, int out_stride, int chunks,
                                  int n_heads, int head_dim);
CUS_GLOBAL void silu_mul(float *out, const float *gate, const float *up, int n);
CUS_GLOBAL void residual_add(float *x, const float *y, int n);
CUS_GLOBAL void argmax(int *token, const float *logits, int vocab, int stride);
CUS_GLOBAL void sample(int *token, const float *logits, int vocab, int stride, float temperature,
                       unsigned long long seed, int step);
CUS_GLOBAL void sample_rows(int *token, const float *logits, int vocab, int stride,
                            float temperature, unsigned long long seed, const int *seq,
                            const int *pos);

CUS_GLOBAL void axpy(float *y, const float *x, float a, int n);
CUS_GLOBAL void saxpy_n(float *y, const float *x, float a, int n, int rounds);
CUS_GLOBAL void fill(unsigned *dst, unsigned value, int n);
CUS_GLOBAL void iota(int *dst, int start, int n);
CUS_GLOBAL void add_scalar(int *dst, int value, int n);
CUS_GLOBAL void chain(unsigned *x, unsigned a, unsigned b, int n);
CUS_GLOBAL void copy_words(unsigned *dst, const unsigned *src, int n);
CUS_GLOBAL void reduce_sum(unsigned long long *out, const unsigned *in, int n);
CUS_GLOBAL void reduce_dynamic(unsigned long long *out, const unsigned *in, int n);
CUS_GLOBAL void checksum(unsigned long long *out, const void *data, unsigned long long bytes);
CUS_GLOBAL void stamp(unsigned long long *p);
CUS_GLOBAL void touch(unsigned *p);
CUS_GLOBAL void cluster_touch(unsigned *p);
CUS_GLOBAL void set_flag(volatile unsigned *flag, unsigned value);
CUS_GLOBAL void spin_until(const volatile unsigned *flag, unsigned value,
                           unsigned long long max_rounds, unsigned *out);
CUS_GLOBAL void join_words(unsigned long long *out, unsigned long long a, unsigned long long b,
                           unsigned long long c);
CUS_GLOBAL void many_params(unsigned long long *out, signed char a, short b, int c, long long d,
                            float e, double f, unsigned char g, struct cus_mixed h,
                            unsigned short i, const unsigned *j, unsigned long long k);
CUS_GLOBAL void big_params(unsigned *out, struct cus_big value);
CUS_GLOBAL void overlap(unsigned *dst, const unsigned *src, unsigned a, unsigned b, int n,
                        int waits);
CUS_GLOBAL void trap(unsigned *p);

#ifdef __cplusplus
}
#endif

#endif
