/*
 * two_objects LIBRARY: kernels come from the program, a shared library, and an image in memory;
 * copies and memsets use calls of both ABIs. One thread, one stream. Prints the sum of the words.
 * Steps of
 *
 *   4 chain (program)  2 add_scalar (library)  1 fill (memory)
 *   1 cuMemcpyDtoDAsync_v2  1 cuMemcpyDtoDAsync_v2_ptsz  1 cuMemsetD32Async
 *   4 chain (program)
 *
 * then a synchronisation.
 */
#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/chain.cu"

enum { N = 256, STEPS = 40 };

#define CHECK(call)                                                                                \
    do {                                                                                           \
        int status_ = (int)(call);                                                                 \
        if (status_) {                                                                             \
            fprintf(stderr, "two_objects: %s: %d\n", #call, status_);                              \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

typedef int library_fn(int *, int, int, cudaStream_t);
typedef CUresult copy_fn(CUdeviceptr, CUdeviceptr, size_t, CUstream);

/* A kernel out of an image that lies on the heap, as one that was just compiled does. The simulator
 * takes any image. */
static CUfunction from_memory(void) {
    CUmodule module;
    CUfunction fill;
    void *image = calloc(1, 4096);
    CHECK(!image);
    CHECK(cuModuleLoadData(&module, image));
    CHECK(cuModuleGetFunction(&fill, module, "fill"));
    return fill;
}

static void step(unsigned *x, library_fn *add, CUfunction fill, copy_fn *copy_twin,
                 cudaStream_t stream) {
    CUdeviceptr words = (CUdeviceptr)x;
    CUdeviceptr to = words + N * 4;
    unsigned value = 3;
    int n = 64;
    void *params[] = {&to, &value, &n};
    for (unsigned i = 0; i < 4; i++)
        chain<<<N / 64, 64, 0, stream>>>(x, 3, i, N);
    for (int i = 0; i < 2; i++)
        CHECK(add((int *)x, i, N, stream));
    CHECK(cuLaunchKernel(fill, 1, 1, 1, 64, 1, 1, 0, stream, params, NULL));
    CHECK(cuMemcpyDtoDAsync(to + 256, words, 64, stream));
    CHECK(copy_twin(to + 320, words, 64, stream));
    CHECK(cuMemsetD32Async(to + 384, 7, 16, stream));
    for (unsigned i = 0; i < 4; i++)
        chain<<<N / 64, 64, 0, stream>>>(x, 5, i, N);
    CHECK(cudaGetLastError());
}

int main(int argc, char **argv) {
    void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL, *driver;
    library_fn *add = library ? (library_fn *)dlsym(library, "library_add") : NULL;
    driver = dlopen("libcuda.so.1", RTLD_NOW);
    copy_fn *twin = driver ? (copy_fn *)dlsym(driver, "cuMemcpyDtoDAsync_v2_ptsz") : NULL;
    unsigned *x, *host = (unsigned *)malloc(2 * N * 4), sum = 0;
    cudaStream_t stream;
    CHECK(!add || !twin || !host);
    CHECK(cudaMalloc(&x, 2 * N * 4));
    CHECK(cudaMemset(x, 0, 2 * N * 4));
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CUfunction fill = from_memory();
    for (int i = 0; i < STEPS; i++) {
        step(x, add, fill, twin, stream);
        CHECK(cudaStreamSynchronize(stream));
    }
    CHECK(cudaMemcpy(host, x, 2 * N * 4, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 2 * N; i++)
        sum = sum * 31 + host[i];
    printf("%u\n", sum);
    free(host);
    return 0;
}
