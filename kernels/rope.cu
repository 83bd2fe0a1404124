/*
 * Rotary position embedding in place: in each head of q ([batch] rows of n_heads * head_dim,
 * q_stride elements apart) and k (n_kv_heads * head_dim, k_stride apart) the neighbours (2i, 2i +
 * 1) turn by pos * base^(-2i / head_dim) radians. All rows are at position pos. Grid (ceil((n_heads
 * + n_kv_heads) * head_dim / 2 / block), batch), any block; one thread per pair.
 */
#include "kernels/kernels.h"

extern "C" __global__ void rope(float *q, float *k, int q_stride, int k_stride, int n_heads,
                                int n_kv_heads, int head_dim, int pos, float base) {
    int half = head_dim / 2;
    int pair = blockIdx.x * blockDim.x + threadIdx.x;
    if (pair >= (n_heads + n_kv_heads) * half) {
        return;
    }
    int head = pair / half;
    int i = pair % half;
    float *v = head < n_heads
                   ? q + (size_t)blockIdx.y * q_stride + (size_t)head * head_dim
                   : k + (size_t)blockIdx.y * k_stride + (size_t)(head - n_heads) * head_dim;
    float angle = pos * powf(base, -2.0f * i / head_dim);
    float c = cosf(angle), s = sinf(angle);
    float a = v[2 * i], b = v[2 * i + 1];
    v[2 * i] = a * c - b * s;
    v[2 * i + 1] = a * s + b * c;
}

CUS_KERNEL(rope)
