/* The smallest kernel with a visible effect: each thread does *p += 1. Launch it as <<<1, 1>>>. */
#include "kernels/kernels.h"

extern "C" __global__ void touch(unsigned *p) {
    atomicAdd(p, 1u);
}

CUS_KERNEL(touch)
