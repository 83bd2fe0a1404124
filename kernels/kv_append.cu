/*
 * Writes the key and the value of position pos into the caches: k and v are [batch] rows of kv_dim,
 * k_stride and v_stride elements apart; the caches are [batch][max_len][kv_dim]. Grid (ceil(kv_dim
 * / block), batch), any block.
 */
#include "kernels/kernels.h"

extern "C" __global__ void kv_append(float *k_cache, float *v_cache, const float *k, const float *v,
                                     int k_stride, int v_stride, int kv_dim, int max_len, int pos) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int b = blockIdx.y;
    if (i < kv_dim) {
        size_t at = ((size_t)b * max_len + pos) * kv_dim + i;
        k_cache[at] = k[(size_t)b * k_stride + i];
        v_cache[at] = v[(size_t)b * v_stride + i];
    }
}

CUS_KERNEL(kv_append)
