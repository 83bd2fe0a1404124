/*
 * Looks the rows of a batch of tokens up: x is [batch][dim], table [vocab][dim], token [batch] on
 * the device. Grid (ceil(dim / block), batch), any block. Blocks with z above 0 do nothing: a
 * caller may say by the grid's z what kind of step it begins. A token outside of the table is the
 * caller's mistake and is not checked.
 */
#include "kernels/kernels.h"

extern "C" __global__ void embedding(float *x, const float *table, const int *token, int dim) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int b = blockIdx.y;
    if (i < dim && blockIdx.z == 0) {
        x[(size_t)b * dim + i] = table[(size_t)token[b] * dim + i];
    }
}

CUS_KERNEL(embedding)
