/*
 * out[i] = value.word[i]: a parameter of 1 KiB by value. <<<1, CUS_BIG_WORDS>>>.
 */
#include "kernels/kernels.h"

extern "C" __global__ void big_params(unsigned *out, struct cus_big value) {
    out[threadIdx.x] = value.word[threadIdx.x];
}

CUS_KERNEL(big_params)
