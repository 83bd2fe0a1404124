/*
 * Looks up the rows of a batch of tokens: x is [batch][dim], table [vocab][dim], token [batch] on
 * the device. Grid (ceil(dim / block), batch), any block. Blocks with z above 0 do nothing, so a
 * caller may use the grid's z to tell the step class. The kernel does not check for a token outside
 * of the table.
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
