/*
 * Takes four parameters of 8 bytes into a word: *out = (*out ^ a) * b + c. <<<1, 1>>>.
 */
#include "kernels/kernels.h"

extern "C" __global__ void join_words(unsigned long long *out, unsigned long long a,
                                      unsigned long long b, unsigned long long c) {
    *out = (*out ^ a) * b + c;
}

CUS_KERNEL(join_words)
