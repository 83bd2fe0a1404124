/*
 * The launches of launch.cu, for host code: plain, and (..._per_thread) through the per-thread
 * entry points.
 */
#ifndef TESTS_UNIT_SIMRT_LAUNCH_H
#define TESTS_UNIT_SIMRT_LAUNCH_H

#include <cuda_runtime_api.h>

#include "kernels/kernels.h"

extern "C" {
#define LAUNCH(suffix)                                                                             \
    void launch_chain##suffix(unsigned *x, unsigned a, unsigned b, int n, cudaStream_t stream);    \
    void launch_spin_until##suffix(const volatile unsigned *flag, unsigned value,                  \
                                   unsigned long long rounds, unsigned *out, cudaStream_t stream); \
    void launch_fill##suffix(unsigned *dst, unsigned value, int n, unsigned threads,               \
                             cudaStream_t stream);                                                 \
    void launch_reduce_dynamic##suffix(unsigned long long *out, const unsigned *in, int n,         \
                                       unsigned threads, size_t shared, cudaStream_t stream);      \
    void launch_many_params##suffix(unsigned long long *out, const unsigned *j,                    \
                                    cudaStream_t stream);                                          \
    void launch_big_params##suffix(unsigned *out, const struct cus_big *value, cudaStream_t stream);
LAUNCH()
LAUNCH(_per_thread)
#undef LAUNCH
}

#define OK(call) ASSERT_EQ(call, cudaSuccess) << cudaGetErrorName(cudaPeekAtLastError())

#endif
