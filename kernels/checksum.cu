/*
 * Adds a 64-bit checksum of a buffer to *out; the caller clears *out. Each group of 8 bytes is
 * mixed with its place, and the results are added. So the sum depends on every byte and its place,
 * but not on the order of additions. Any alignment, length, grid and block: the threads stride over
 * the data.
 */
#include "kernels/kernels.h"

static __device__ __forceinline__ unsigned long long checksum_mix(unsigned long long word,
                                                                  unsigned long long place) {
    unsigned long long z = word + (place + 1) * 0x9e3779b97f4a7c15ull;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return z ^ z >> 31;
}

extern "C" __global__ void checksum(unsigned long long *out, const void *data,
                                    unsigned long long bytes) {
    const unsigned char *from = (const unsigned char *)data;
    unsigned long long step = (unsigned long long)gridDim.x * blockDim.x;
    unsigned long long sum = 0;
    bool aligned = (unsigned long long)from % 8 == 0;
    for (unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
         i * 8 < bytes; i += step) {
        unsigned long long word = 0;
        if (aligned && i * 8 + 8 <= bytes) {
            word = ((const unsigned long long *)data)[i];
        } else {
            for (int b = 0; b < 8 && i * 8 + b < bytes; b++) {
                word |= (unsigned long long)from[i * 8 + b] << 8 * b;
            }
        }
        sum += checksum_mix(word, i);
    }
    if (sum) {
        atomicAdd(out, sum);
    }
}

CUS_KERNEL(checksum)
