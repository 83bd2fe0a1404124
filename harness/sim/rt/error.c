/*
 * Errors of the libcudart stand-in: the last error of each thread, and the names and texts of all
 * errors. Any thread, no lock; calls nothing.
 */
#include "harness/sim/rt/rt.h"

static _Thread_local cudaError_t last;

cudaError_t rt_error(CUresult result) {
    switch (result) {
    case CUDA_ERROR_STUB_LIBRARY:
        return cudaErrorInsufficientDriver;
    case CUDA_ERROR_NOT_INITIALIZED:
        return cudaErrorInitializationError;
    default:
        return (cudaError_t)result;
    }
}

cudaError_t rt_leave(cudaError_t error) {
    if (error != cudaSuccess) {
        last = error;
    }
    return error;
}

RT_EXPORT cudaError_t cudaGetLastError(void) {
    cudaError_t error = last;
    last = cudaSuccess;
    return error;
}

RT_EXPORT cudaError_t cudaPeekAtLastError(void) {
    return last;
}

RT_EXPORT const char *cudaGetErrorName(cudaError_t error) {
    switch (error) {
#define RT_ERROR(name, text)                                                                       \
    case name:                                                                                     \
        return #name;
#include "harness/sim/rt/error.def"
#undef RT_ERROR
    default:
        return "unrecognized error code";
    }
}

RT_EXPORT const char *cudaGetErrorString(cudaError_t error) {
    switch (error) {
#define RT_ERROR(name, text)                                                                       \
    case name:                                                                                     \
        return text;
#include "harness/sim/rt/error.def"
#undef RT_ERROR
    default:
        return "unrecognized error code";
    }
}
