/*
 * x = a * x + b over n words of 32 bits, which wrap. Two such kernels do not commute, so a launch
 * that is lost, doubled or out of order changes the result. Grid (ceil(n / block)), any block.
 */
#include "kernels/kernels.h"

extern "C" __global__ void chain(unsigned *x, unsigned a, unsigned b, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        x[i] = a * x[i] + b;
    }
}

CUS_KERNEL(chain)
