/* A shared library with a kernel, as nvcc makes it: its own image and its own launch. */
#include "kernels/add_scalar.cu"

extern "C" __attribute__((visibility("default"))) int library_add(int *x, int value, int n,
                                                                  cudaStream_t stream) {
    add_scalar<<<(n + 63) / 64, 64, 0, stream>>>(x, value, n);
    return (int)cudaGetLastError();
}
