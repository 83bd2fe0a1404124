/*
 * Joins the results of attention_decode's blocks into out[b][head * head_dim + d], rows out_stride
 * apart. partial is [batch][n_heads][chunks][head_dim + 2], chunks = ceil(n / CUS_ATTENTION_CHUNK).
 * Grid (n_heads, batch), any block. Each thread computes the weights of the chunks itself, so no
 * barrier is needed.
 */
#include "kernels/kernels.h"

extern "C" __global__ void attention_combine(float *out, const float *partial, int out_stride,
                                             int chunks, int n_heads, int head_dim) {
    int head = blockIdx.x, row = blockIdx.y;
    int each = head_dim + 2;
    const float *part = partial + ((size_t)row * n_heads + head) * chunks * each;
    float top = part[0];
    for (int c = 1; c < chunks; c++) {
        top = fmaxf(top, part[(size_t)c * each]);
    }
    for (int d = threadIdx.x; d < head_dim; d += blockDim.x) {
        float sum = 0.0f, value = 0.0f;
        for (int c = 0; c < chunks; c++) {
            const float *p = part + (size_t)c * each;
            float weight = expf(p[0] - top);
            sum += p[1] * weight;
            value += p[2 + d] * weight;
        }
        out[(size_t)row * out_stride + head * head_dim + d] = value / sum;
    }
}

CUS_KERNEL(attention_combine)
