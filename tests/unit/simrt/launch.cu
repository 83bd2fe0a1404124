/*
 * Launches by <<<>>>, which only nvcc compiles, for runtime_test.cc. The file is compiled twice: as
 * it is, and with per-thread default streams.
 */
#include "kernels/kernels.h"

#ifdef SIMRT_PER_THREAD
#define NAME(what) launch_##what##_per_thread
#else
#define NAME(what) launch_##what
#endif

extern "C" {

void NAME(chain)(unsigned *x, unsigned a, unsigned b, int n, cudaStream_t stream) {
    chain<<<(n + 63) / 64, 64, 0, stream>>>(x, a, b, n);
}

void NAME(spin_until)(const volatile unsigned *flag, unsigned value, unsigned long long rounds,
                      unsigned *out, cudaStream_t stream) {
    spin_until<<<1, 1, 0, stream>>>(flag, value, rounds, out);
}

void NAME(fill)(unsigned *dst, unsigned value, int n, unsigned threads, cudaStream_t stream) {
    fill<<<1, threads, 0, stream>>>(dst, value, n);
}

void NAME(reduce_dynamic)(unsigned long long *out, const unsigned *in, int n, unsigned threads,
                          size_t shared, cudaStream_t stream) {
    reduce_dynamic<<<2, threads, shared, stream>>>(out, in, n);
}

void NAME(many_params)(unsigned long long *out, const unsigned *j, cudaStream_t stream) {
    cus_mixed mixed = {-3, 2.5, {1, -2, 3}};
    many_params<<<1, 1, 0, stream>>>(out, 1, 2, 3, 4, 5.5f, 6.5, 7, mixed, 8, j, 9);
}

void NAME(big_params)(unsigned *out, const cus_big *value, cudaStream_t stream) {
    big_params<<<1, CUS_BIG_WORDS, 0, stream>>>(out, *value);
}
}
