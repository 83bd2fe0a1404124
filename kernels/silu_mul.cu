/*
 * The gate of a Llama feed-forward: out = gate * sigmoid(gate) * up over n elements (batch *
 * hidden); out may be gate or up. Grid (ceil(n / block)), any block.
 */
#include "kernels/kernels.h"

extern "C" __global__ void silu_mul(float *out, const float *gate, const float *up, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[i] = gate[i] / (1.0f + expf(-gate[i])) * up[i];
    }
}

CUS_KERNEL(silu_mul)
