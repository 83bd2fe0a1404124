/*
 * The libcublas stand-in: handles, gemm and gemv, launched as the real library launches on an H100.
 *
 * It finds the driver itself and has its own library of kernels (cublas_kernels.cc). gemm uses
 * cuLaunchKernelEx with a cluster attribute and an `extra` buffer; gemv uses cuLaunchKernel with
 * kernelParams and a CUfunction. Any thread; one thread at a time uses a handle, as in cuBLAS.
 * `once` guards the library.
 */
#include "harness/sim/rt/cublas_sim.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cublas_v2.h>

#include "harness/sim/rt/driver.h"

#define EXPORT __attribute__((visibility("default")))
#define WORKSPACE_BYTES ((size_t)1 << 20)

struct cublasContext {
    cudaStream_t stream;
    CUdeviceptr own_workspace;
    void *workspace;
    cublasPointerMode_t pointer_mode;
    cublasMath_t math;
};

enum kernel { GEMM, GEMM_NARROW, GEMV, KERNELS };

static pthread_once_t once = PTHREAD_ONCE_INIT;
static CUkernel kernels[KERNELS]; /* written in pthread_once */

static void load(void) {
    static const char *const names[KERNELS] = {
        [GEMM] = "cublas_sim_gemm",
        [GEMM_NARROW] = "cublas_sim_gemm_narrow",
        [GEMV] = "cublas_sim_gemv",
    };
    CUresult why;
    const struct rt_driver *d = rt_driver(RT_LEGACY, &why);
    CUlibrary library;
    if (!d || RT_CALL(d, cuLibraryLoadData, &library, "cublas_sim", NULL, NULL, 0, NULL, NULL, 0)) {
        return;
    }
    for (int i = 0; i < KERNELS; i++) {
        if (RT_CALL(d, cuLibraryGetKernel, &kernels[i], library, names[i])) {
            kernels[i] = NULL;
        }
    }
}

static cublasStatus_t status(CUresult r) {
    switch (r) {
    case CUDA_SUCCESS:
        return CUBLAS_STATUS_SUCCESS;
    case CUDA_ERROR_OUT_OF_MEMORY:
        return CUBLAS_STATUS_ALLOC_FAILED;
    case CUDA_ERROR_NOT_SUPPORTED:
        return CUBLAS_STATUS_NOT_SUPPORTED;
    default:
        return CUBLAS_STATUS_EXECUTION_FAILED;
    }
}

EXPORT cublasStatus_t cublasCreate_v2(cublasHandle_t *out) {
    CUresult why;
    const struct rt_driver *d = rt_driver(RT_LEGACY, &why);
    if (!out) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    if (!d) {
        return CUBLAS_STATUS_NOT_INITIALIZED;
    }
    CUcontext context = NULL;
    CUresult r = RT_CALL(d, cuCtxGetCurrent, &context);
    if (!r && !context) {
        r = RT_CALL(d, cuDevicePrimaryCtxRetain, &context, 0);
        r = r ? r : RT_CALL(d, cuCtxSetCurrent, context);
    }
    struct cublasContext *handle = r ? NULL : calloc(1, sizeof *handle);
    if (!handle) {
        return r ? status(r) : CUBLAS_STATUS_ALLOC_FAILED;
    }
    r = RT_CALL(d, cuMemAlloc, &handle->own_workspace, WORKSPACE_BYTES);
    if (r) {
        free(handle);
        return status(r);
    }
    handle->workspace = (void *)handle->own_workspace;
    *out = handle;
    return CUBLAS_STATUS_SUCCESS;
}

EXPORT cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
    CUresult why;
    const struct rt_driver *d = rt_driver(RT_LEGACY, &why);
    if (!handle || !d) {
        return CUBLAS_STATUS_NOT_INITIALIZED;
    }
    CUresult r = RT_CALL(d, cuMemFree, handle->own_workspace);
    free(handle);
    return status(r);
}

EXPORT cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
    if (!handle) {
        return CUBLAS_STATUS_NOT_INITIALIZED;
    }
    handle->stream = stream;
    handle->workspace = (void *)handle->own_workspace;
    return CUBLAS_STATUS_SUCCESS;
}

EXPORT cublasStatus_t cublasGetStream_v2(cublasHandle_t handle, cudaStream_t *stream) {
    if (!handle) {
        return CUBLAS_STATUS_NOT_INITIALIZED;
    }
    *stream = handle->stream;
    return CUBLAS_STATUS_SUCCESS;
}

EXPORT cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void *workspace, size_t bytes) {
    if (!handle) {
        return CUBLAS_STATUS_NOT_INITIALIZED;
    }
    handle->workspace = bytes ? workspace : NULL;
    return CUBLAS_STATUS_SUCCESS;
}

EXPORT cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode) {
    if (!handle) {
        return CUBLAS_STATUS_NOT_INITIALIZED;
    }
    handle->math = mode;
    return CUBLAS_STATUS_SUCCESS;
}

EXPORT cublasStatus_t cublasGetMathMode(cublasHandle_t handle, cublasMath_t *mode) {
    if (!handle) {
        return CUBLAS_STATUS_NOT_INITIALIZED;
    }
    *mode = handle->math;
    return CUBLAS_STATUS_SUCCESS;
}

EXPORT cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t mode) {
    if (!handle) {
        return CUBLAS_STATUS_NOT_INITIALIZED;
    }
    handle->pointer_mode = mode;
    return CUBLAS_STATUS_SUCCESS;
}

EXPORT cublasStatus_t cublasGetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t *mode) {
    if (!handle) {
        return CUBLAS_STATUS_NOT_INITIALIZED;
    }
    *mode = handle->pointer_mode;
    return CUBLAS_STATUS_SUCCESS;
}

EXPORT cublasStatus_t cublasGetVersion_v2(cublasHandle_t handle, int *version) {
    (void)handle;
    if (!version) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    *version = CUBLAS_VERSION;
    return CUBLAS_STATUS_SUCCESS;
}

/* The statuses of the stand-in: name and text of each. */
#define STATUSES(S)                                                                                \
    S(CUBLAS_STATUS_SUCCESS, "success")                                                            \
    S(CUBLAS_STATUS_NOT_INITIALIZED, "no handle, or no driver")                                    \
    S(CUBLAS_STATUS_ALLOC_FAILED, "out of memory")                                                 \
    S(CUBLAS_STATUS_INVALID_VALUE, "invalid argument")                                             \
    S(CUBLAS_STATUS_EXECUTION_FAILED, "the driver refused the launch")                             \
    S(CUBLAS_STATUS_NOT_SUPPORTED, "not supported by the simulator")

EXPORT const char *cublasGetStatusName(cublasStatus_t s) {
    switch (s) {
#define NAME(value, text)                                                                          \
    case value:                                                                                    \
        return #value;
        STATUSES(NAME)
    default:
        return "unknown status";
    }
}

EXPORT const char *cublasGetStatusString(cublasStatus_t s) {
    switch (s) {
#define TEXT(value, text)                                                                          \
    case value:                                                                                    \
        return text;
        STATUSES(TEXT)
    default:
        return "unknown status";
    }
}

static bool type_of(cudaDataType type, int *out) {
    *out = type == CUDA_R_32F    ? CUBLAS_SIM_F32
           : type == CUDA_R_16F  ? CUBLAS_SIM_F16
           : type == CUDA_R_16BF ? CUBLAS_SIM_BF16
                                 : -1;
    return *out >= 0;
}

/* Passes alpha and beta: as values, or as addresses that the kernel reads. */
static void scalars(cublasHandle_t handle, const void *alpha, const void *beta, float *alpha_value,
                    float *beta_value, unsigned long long *alpha_at, unsigned long long *beta_at) {
    if (handle->pointer_mode == CUBLAS_POINTER_MODE_DEVICE) {
        *alpha_at = (uintptr_t)alpha;
        *beta_at = (uintptr_t)beta;
    } else {
        *alpha_value = *(const float *)alpha;
        *beta_value = *(const float *)beta;
    }
}

static cublasStatus_t gemm(cublasHandle_t handle, struct cublas_sim_gemm_args *args,
                           const void *alpha, const void *beta, int batch) {
    pthread_once(&once, load);
    CUresult why;
    const struct rt_driver *d = rt_driver(RT_LEGACY, &why);
    bool wide = args->n > CUBLAS_SIM_COLUMNS;
    CUkernel kernel = kernels[wide ? GEMM : GEMM_NARROW];
    if (!handle || !d || !kernel) {
        return CUBLAS_STATUS_NOT_INITIALIZED;
    }
    int a_rows = args->transpose_a ? args->k : args->m;
    int b_rows = args->transpose_b ? args->n : args->k;
    if (args->m < 0 || args->n < 0 || args->k < 0 || batch < 0 || !alpha || !beta ||
        args->a.ld < a_rows || args->b.ld < b_rows || args->c.ld < args->m || args->a.ld < 1 ||
        args->b.ld < 1 || args->c.ld < 1) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    if (args->m == 0 || args->n == 0 || batch == 0) {
        return CUBLAS_STATUS_SUCCESS;
    }
    scalars(handle, alpha, beta, &args->alpha, &args->beta, &args->alpha_at, &args->beta_at);
    unsigned across = (unsigned)(args->m + CUBLAS_SIM_ROWS - 1) / CUBLAS_SIM_ROWS;
    unsigned down = (unsigned)(args->n + CUBLAS_SIM_COLUMNS - 1) / CUBLAS_SIM_COLUMNS;
    CUlaunchAttribute cluster = {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION};
    /* Only the first bytes of the union have a meaning; the real library leaves garbage after
     * them. */
    memset(&cluster.value, 0xa5 ^ (int)across, sizeof cluster.value);
    cluster.value.clusterDim.x = 2;
    cluster.value.clusterDim.y = 1;
    cluster.value.clusterDim.z = 1;
    CUlaunchConfig config = {
        .gridDimX = (across + 1) & ~1u,
        .gridDimY = down,
        .gridDimZ = (unsigned)batch,
        .blockDimX = CUBLAS_SIM_ROWS,
        .blockDimY = 1,
        .blockDimZ = 1,
        .hStream = handle->stream,
        .attrs = &cluster,
        .numAttrs = 1,
    };
    size_t bytes = sizeof *args;
    void *extra[] = {
        CU_LAUNCH_PARAM_BUFFER_POINTER,
        args,
        CU_LAUNCH_PARAM_BUFFER_SIZE,
        &bytes,
        CU_LAUNCH_PARAM_END,
    };
    return status(RT_CALL(d, cuLaunchKernelEx, &config, (CUfunction)kernel, NULL, extra));
}

static struct cublas_sim_matrix matrix(const void *data, int type, int ld, long long stride) {
    return (struct cublas_sim_matrix){
        .data = (uintptr_t)data, .stride = stride, .ld = ld, .type = type};
}

EXPORT cublasStatus_t cublasSgemmStridedBatched(cublasHandle_t handle, cublasOperation_t op_a,
                                                cublasOperation_t op_b, int m, int n, int k,
                                                const float *alpha, const float *a, int lda,
                                                long long stride_a, const float *b, int ldb,
                                                long long stride_b, const float *beta, float *c,
                                                int ldc, long long stride_c, int batch) {
    struct cublas_sim_gemm_args args = {
        .a = matrix(a, CUBLAS_SIM_F32, lda, stride_a),
        .b = matrix(b, CUBLAS_SIM_F32, ldb, stride_b),
        .c = matrix(c, CUBLAS_SIM_F32, ldc, stride_c),
        .m = m,
        .n = n,
        .k = k,
        .transpose_a = op_a != CUBLAS_OP_N,
        .transpose_b = op_b != CUBLAS_OP_N,
    };
    return gemm(handle, &args, alpha, beta, batch);
}

EXPORT cublasStatus_t cublasSgemm_v2(cublasHandle_t handle, cublasOperation_t op_a,
                                     cublasOperation_t op_b, int m, int n, int k,
                                     const float *alpha, const float *a, int lda, const float *b,
                                     int ldb, const float *beta, float *c, int ldc) {
    return cublasSgemmStridedBatched(handle, op_a, op_b, m, n, k, alpha, a, lda, 0, b, ldb, 0, beta,
                                     c, ldc, 0, 1);
}

EXPORT cublasStatus_t cublasGemmStridedBatchedEx(
    cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n, int k,
    const void *alpha, const void *a, cudaDataType type_a, int lda, long long stride_a,
    const void *b, cudaDataType type_b, int ldb, long long stride_b, const void *beta, void *c,
    cudaDataType type_c, int ldc, long long stride_c, int batch, cublasComputeType_t compute,
    cublasGemmAlgo_t algo) {
    (void)algo;
    int ta, tb, tc;
    if (!type_of(type_a, &ta) || !type_of(type_b, &tb) || !type_of(type_c, &tc) ||
        compute == CUBLAS_COMPUTE_16F || compute == CUBLAS_COMPUTE_16F_PEDANTIC ||
        compute >= CUBLAS_COMPUTE_64F) {
        return CUBLAS_STATUS_NOT_SUPPORTED;
    }
    struct cublas_sim_gemm_args args = {
        .a = matrix(a, ta, lda, stride_a),
        .b = matrix(b, tb, ldb, stride_b),
        .c = matrix(c, tc, ldc, stride_c),
        .m = m,
        .n = n,
        .k = k,
        .transpose_a = op_a != CUBLAS_OP_N,
        .transpose_b = op_b != CUBLAS_OP_N,
    };
    return gemm(handle, &args, alpha, beta, batch);
}

EXPORT cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t op_a,
                                   cublasOperation_t op_b, int m, int n, int k, const void *alpha,
                                   const void *a, cudaDataType type_a, int lda, const void *b,
                                   cudaDataType type_b, int ldb, const void *beta, void *c,
                                   cudaDataType type_c, int ldc, cublasComputeType_t compute,
                                   cublasGemmAlgo_t algo) {
    return cublasGemmStridedBatchedEx(handle, op_a, op_b, m, n, k, alpha, a, type_a, lda, 0, b,
                                      type_b, ldb, 0, beta, c, type_c, ldc, 0, 1, compute, algo);
}

EXPORT cublasStatus_t cublasSgemv_v2(cublasHandle_t handle, cublasOperation_t op, int m, int n,
                                     const float *alpha, const float *a, int lda, const float *x,
                                     int step_x, const float *beta, float *y, int step_y) {
    pthread_once(&once, load);
    CUresult why;
    const struct rt_driver *d = rt_driver(RT_LEGACY, &why);
    if (!handle || !d || !kernels[GEMV]) {
        return CUBLAS_STATUS_NOT_INITIALIZED;
    }
    if (m < 0 || n < 0 || lda < m || lda < 1 || !step_x || !step_y || !alpha || !beta) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    if (m == 0 || n == 0) {
        return CUBLAS_STATUS_SUCCESS;
    }
    struct cublas_sim_gemv_args args = {
        .a = matrix(a, CUBLAS_SIM_F32, lda, 0),
        .x = (uintptr_t)x,
        .y = (uintptr_t)y,
        .m = m,
        .n = n,
        .transpose = op != CUBLAS_OP_N,
        .step_x = step_x,
        .step_y = step_y,
    };
    scalars(handle, alpha, beta, &args.alpha, &args.beta, &args.alpha_at, &args.beta_at);
    CUfunction function;
    CUresult r = RT_CALL(d, cuKernelGetFunction, &function, kernels[GEMV]);
    void *params[] = {&args};
    unsigned rows = (unsigned)(args.transpose ? n : m);
    return status(r ? r
                    : RT_CALL(d, cuLaunchKernel, function,
                              (rows + CUBLAS_SIM_ROWS - 1) / CUBLAS_SIM_ROWS, 1, 1, CUBLAS_SIM_ROWS,
                              1, 1, 0, handle->stream, params, NULL));
}
