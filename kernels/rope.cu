/*
 * Rotary position embedding in place: in each head of q ([batch] rows of n_heads * head_dim,
 * q_stride elements apart) and k (n_kv_heads * head_dim, k_stride apart) the neighbours (2i, 2i +
 * 1) turn by pos * base^(-2i / head_dim) radians. All rows are at position pos. Grid (ceil((n_heads
 * + n_kv_heads) * head_dim / 2 / block), batch), any block; one thread per pair.
 */
#include "kernels/decoder_row.h"

extern "C" __global__ void rope(float *q, float *k, int q_stride, int k_stride, int n_heads,
                                int n_kv_heads, int head_dim, int pos, float base) {
    int pair = blockIdx.x * blockDim.x + threadIdx.x;
    size_t row = blockIdx.y;
    if (pair < (n_heads + n_kv_heads) * (head_dim / 2)) {
        cus_rope_pair(q + row * q_stride, k + row * k_stride, pair, n_heads, head_dim, pos, base);
    }
}

CUS_KERNEL(rope)
