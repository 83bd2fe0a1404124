/*
 * rope with a position for each row: row r is at pos[r] (on the device). All else, the grid too, is
 * as in rope.
 */
#include "kernels/decoder_row.h"

extern "C" __global__ void rope_rows(float *q, float *k, int q_stride, int k_stride, int n_heads,
                                     int n_kv_heads, int head_dim, const int *pos, float base) {
    int pair = blockIdx.x * blockDim.x + threadIdx.x;
    size_t row = blockIdx.y;
    if (pair < (n_heads + n_kv_heads) * (head_dim / 2)) {
        cus_rope_pair(q + row * q_stride, k + row * k_stride, pair, n_heads, head_dim, pos[row],
                      base);
    }
}

CUS_KERNEL(rope_rows)
