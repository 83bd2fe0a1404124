/*
 * *out becomes a mix of twelve parameters of many sizes, with padding between them and inside of a
 * structure. A lost or misplaced byte of any parameter changes *out. <<<1, 1>>>.
 */
#include "kernels/kernels.h"

static __device__ __forceinline__ unsigned long long many_params_join(unsigned long long sum,
                                                                      unsigned long long value) {
    return (sum ^ value) * 0x100000001b3ull + 0x9e37ull;
}

extern "C" __global__ void many_params(unsigned long long *out, signed char a, short b, int c,
                                       long long d, float e, double f, unsigned char g,
                                       struct cus_mixed h, unsigned short i, const unsigned *j,
                                       unsigned long long k) {
    unsigned long long sum = 0xcbf29ce484222325ull;
    sum = many_params_join(sum, (unsigned long long)a);
    sum = many_params_join(sum, (unsigned long long)b);
    sum = many_params_join(sum, (unsigned long long)c);
    sum = many_params_join(sum, (unsigned long long)d);
    sum = many_params_join(sum, (unsigned long long)(long long)(e * 1024.0f));
    sum = many_params_join(sum, (unsigned long long)(long long)(f * 1024.0));
    sum = many_params_join(sum, g);
    sum = many_params_join(sum, (unsigned long long)h.tag);
    sum = many_params_join(sum, (unsigned long long)(long long)(h.weight * 1024.0));
    for (int n = 0; n < 3; n++) {
        sum = many_params_join(sum, (unsigned long long)h.parts[n]);
    }
    sum = many_params_join(sum, i);
    sum = many_params_join(sum, *j);
    sum = many_params_join(sum, k);
    *out = sum;
}

CUS_KERNEL(many_params)
