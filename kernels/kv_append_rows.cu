/*
 * kv_append with a place for each row: row r is position pos[r] of sequence seq[r] (both on the
 * device). No two rows may have the same place. All else, the grid too, is as in kv_append.
 */
#include "kernels/kernels.h"

extern "C" __global__ void kv_append_rows(float *k_cache, float *v_cache, const float *k,
                                          const float *v, int k_stride, int v_stride, int kv_dim,
                                          int max_len, const int *seq, const int *pos) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y;
    if (i < kv_dim) {
        size_t at = ((size_t)seq[row] * max_len + pos[row]) * kv_dim + i;
        k_cache[at] = k[(size_t)row * k_stride + i];
        v_cache[at] = v[(size_t)row * v_stride + i];
    }
}

CUS_KERNEL(kv_append_rows)
