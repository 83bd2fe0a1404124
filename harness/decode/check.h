/*
 * Checked CUDA and cuBLAS calls. If a call fails, the macros print the call and its error on
 * stderr, and return -1 from the function.
 */
#ifndef HARNESS_DECODE_CHECK_H
#define HARNESS_DECODE_CHECK_H

#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <stdio.h>

static inline int decode_cuda_failed(cudaError_t status, const char *call) {
    if (status == cudaSuccess) {
        return 0;
    }
    fprintf(stderr, "decode: %s: %s (%s)\n", call, cudaGetErrorName(status),
            cudaGetErrorString(status));
    return -1;
}

static inline int decode_cublas_failed(cublasStatus_t status, const char *call) {
    if (status == CUBLAS_STATUS_SUCCESS) {
        return 0;
    }
    fprintf(stderr, "decode: %s: %s\n", call, cublasGetStatusString(status));
    return -1;
}

#define DECODE_CUDA(call)                                                                          \
    do {                                                                                           \
        if (decode_cuda_failed((call), #call)) {                                                   \
            return -1;                                                                             \
        }                                                                                          \
    } while (0)

#define DECODE_CUBLAS(call)                                                                        \
    do {                                                                                           \
        if (decode_cublas_failed((call), #call)) {                                                 \
            return -1;                                                                             \
        }                                                                                          \
    } while (0)

#endif
