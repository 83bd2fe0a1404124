// Promise: the libcublas stand-in computes what cuBLAS computes, in stream order and in captures.
#include <gtest/gtest.h>

#include <cublas_v2.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <vector>

#include "tests/unit/simrt/launch.h"

namespace {

using Floats = std::vector<float>;

Floats noise(size_t count, unsigned seed) {
    Floats v(count);
    unsigned s = seed * 747796405u + 1;
    for (float &f : v) {
        s = s * 1664525u + 1013904223u;
        f = (float)(s >> 24) / 64.0f - 2.0f; /* few bits, so that half and bfloat16 hold them */
    }
    return v;
}

class Cublas : public testing::Test {
  protected:
    void SetUp() override {
        ASSERT_EQ(cublasCreate(&handle), CUBLAS_STATUS_SUCCESS);
        OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
        ASSERT_EQ(cublasSetStream(handle, stream), CUBLAS_STATUS_SUCCESS);
    }

    void TearDown() override {
        EXPECT_EQ(cublasDestroy(handle), CUBLAS_STATUS_SUCCESS);
        OK(cudaStreamDestroy(stream));
        for (void *p : owned) {
            OK(cudaFree(p));
        }
    }

    template <class T> T *device(const std::vector<T> &v) {
        T *p = nullptr;
        EXPECT_EQ(cudaMalloc((void **)&p, v.size() * sizeof(T)), cudaSuccess);
        EXPECT_EQ(cudaMemcpy(p, v.data(), v.size() * sizeof(T), cudaMemcpyHostToDevice),
                  cudaSuccess);
        /* A copy from pageable memory may return before it has arrived, and our stream waits for no
         * other. */
        EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
        owned.push_back(p);
        return p;
    }

    template <class T> std::vector<T> host(const T *p, size_t count) {
        std::vector<T> v(count);
        EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
        EXPECT_EQ(cudaMemcpy(v.data(), p, count * sizeof(T), cudaMemcpyDeviceToHost), cudaSuccess);
        return v;
    }

    cublasHandle_t handle;
    cudaStream_t stream;
    std::vector<void *> owned;
};

float element(const Floats &v, bool transposed, int ld, int row, int column) {
    return transposed ? v[(size_t)row * ld + column] : v[(size_t)column * ld + row];
}

TEST_F(Cublas, SgemmForEveryTransposeAndBatchSize) {
    const int m = 70, k = 37, lda = 75, ldb = 45, ldc = 72;
    for (int n : {1, 3, 16, 17, 40}) {
        for (int ops = 0; ops < 4; ops++) {
            bool ta = ops & 1, tb = ops & 2;
            Floats a = noise(lda * 80, 1), b = noise((size_t)ldb * 80, 2), c = noise(ldc * n, 3);
            float *da = device(a), *db = device(b), *dc = device(c);
            float alpha = 0.5f, beta = n == 3 ? 0.0f : 2.0f;
            ASSERT_EQ(cublasSgemm(handle, ta ? CUBLAS_OP_T : CUBLAS_OP_N,
                                  tb ? CUBLAS_OP_T : CUBLAS_OP_N, m, n, k, &alpha, da, lda, db, ldb,
                                  &beta, dc, ldc),
                      CUBLAS_STATUS_SUCCESS);
            Floats out = host(dc, c.size());
            for (int j = 0; j < n; j++) {
                for (int i = 0; i < ldc; i++) {
                    double right = c[j * ldc + i];
                    if (i < m) {
                        double sum = 0;
                        for (int p = 0; p < k; p++) {
                            sum += (double)element(a, ta, lda, i, p) * element(b, tb, ldb, p, j);
                        }
                        right = alpha * sum + beta * right;
                    }
                    ASSERT_NEAR(out[j * ldc + i], right, 2e-3) << n << " " << ops;
                }
            }
        }
    }
}

template <class T> std::vector<T> narrow(const Floats &v) {
    return std::vector<T>(v.begin(), v.end());
}

TEST_F(Cublas, GemmExInSixteenBitsAndInStridedBatches) {
    const int m = 20, n = 5, k = 24, batch = 3;
    Floats a = noise(batch * m * k, 4), b = noise(batch * k * n, 5);
    float alpha = 0.125f, beta = 0.0f;
    auto half_a = device(narrow<__half>(a));
    auto half_b = device(narrow<__half>(b));
    auto half_c = device(std::vector<__half>(batch * m * n, __half(7.0f)));
    auto brain_a = device(narrow<__nv_bfloat16>(a));
    auto brain_b = device(narrow<__nv_bfloat16>(b));
    auto brain_c = device(std::vector<__nv_bfloat16>(batch * m * n, __nv_bfloat16(7.0f)));
    ASSERT_EQ(cublasGemmStridedBatchedEx(handle, CUBLAS_OP_T, CUBLAS_OP_N, m, n, k, &alpha, half_a,
                                         CUDA_R_16F, k, m * k, half_b, CUDA_R_16F, k, k * n, &beta,
                                         half_c, CUDA_R_16F, m, m * n, batch, CUBLAS_COMPUTE_32F,
                                         CUBLAS_GEMM_DEFAULT),
              CUBLAS_STATUS_SUCCESS);
    ASSERT_EQ(cublasGemmEx(handle, CUBLAS_OP_T, CUBLAS_OP_N, m, n, k, &alpha, brain_a, CUDA_R_16BF,
                           k, brain_b, CUDA_R_16BF, k, &beta, brain_c, CUDA_R_16BF, m,
                           CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
              CUBLAS_STATUS_SUCCESS);
    auto out = host(half_c, batch * m * n);
    auto brain = host(brain_c, batch * m * n);
    for (int z = 0; z < batch; z++) {
        for (int j = 0; j < n; j++) {
            for (int i = 0; i < m; i++) {
                double right = 0;
                for (int p = 0; p < k; p++) {
                    right += (double)a[(z * m + i) * k + p] * b[(z * n + j) * k + p];
                }
                right *= alpha;
                size_t at = (size_t)(z * n + j) * m + i;
                ASSERT_NEAR((float)out[at], right, 0.01) << z;
                ASSERT_NEAR((float)brain[at], z ? 7.0 : right, 0.06) << z;
            }
        }
    }
}

TEST_F(Cublas, SgemvAndScalarsOnTheDevice) {
    const int m = 70, n = 33;
    Floats a = noise(m * n, 6), x = noise(200, 7), y = noise(200, 8);
    Floats scalars = {2.0f, 3.0f};
    float *da = device(a), *dx = device(x), *dy = device(y), *ds = device(scalars);
    ASSERT_EQ(cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_DEVICE), CUBLAS_STATUS_SUCCESS);
    ASSERT_EQ(cublasSgemv(handle, CUBLAS_OP_N, m, n, ds, da, m, dx, 2, ds + 1, dy, 1),
              CUBLAS_STATUS_SUCCESS);
    Floats out = host(dy, 200);
    for (int i = 0; i < 200; i++) {
        double right = y[i];
        if (i < m) {
            double sum = 0;
            for (int j = 0; j < n; j++) {
                sum += (double)a[j * m + i] * x[2 * j];
            }
            right = 2 * sum + 3 * right;
        }
        ASSERT_NEAR(out[i], right, 1e-3) << i;
    }
    ASSERT_EQ(cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_HOST), CUBLAS_STATUS_SUCCESS);
    float one = 1, zero = 0;
    ASSERT_EQ(cublasSgemv(handle, CUBLAS_OP_T, m, n, &one, da, m, dx, 1, &zero, dy, 1),
              CUBLAS_STATUS_SUCCESS);
    out = host(dy, n);
    for (int j = 0; j < n; j++) {
        double sum = 0;
        for (int i = 0; i < m; i++) {
            sum += (double)a[j * m + i] * x[i];
        }
        ASSERT_NEAR(out[j], sum, 1e-3);
    }
}

TEST_F(Cublas, WorksUnderCapture) {
    Floats a = {1, 2, 3, 4}, b = {1, 1}, c = {0, 0};
    float *da = device(a), *db = device(b), *dc = device(c), alpha = 1, beta = 1;
    auto multiply = [&] {
        return cublasSgemm(handle, CUBLAS_OP_T, CUBLAS_OP_N, 2, 1, 2, &alpha, da, 2, db, 2, &beta,
                           dc, 2);
    };
    ASSERT_EQ(multiply(), CUBLAS_STATUS_SUCCESS);
    OK(cudaStreamSynchronize(stream));
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    ASSERT_EQ(multiply(), CUBLAS_STATUS_SUCCESS);
    OK(cudaStreamEndCapture(stream, &graph));
    OK(cudaGraphInstantiate(&exec, graph, 0));
    for (int i = 0; i < 3; i++) {
        OK(cudaGraphLaunch(exec, stream));
    }
    EXPECT_EQ(host(dc, 2), (Floats{12, 28}));
    OK(cudaGraphExecDestroy(exec));
    OK(cudaGraphDestroy(graph));
}

TEST_F(Cublas, RefusesWhatCannotBe) {
    float *p = device(Floats(16)), one = 1;
    EXPECT_EQ(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 4, 1, 4, &one, p, 3, p, 4, &one, p, 4),
              CUBLAS_STATUS_INVALID_VALUE);
    EXPECT_EQ(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 4, -1, 4, &one, p, 4, p, 4, &one, p, 4),
              CUBLAS_STATUS_INVALID_VALUE);
    EXPECT_EQ(cublasSgemm(nullptr, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &one, p, 1, p, 1, &one, p, 1),
              CUBLAS_STATUS_NOT_INITIALIZED);
    EXPECT_STREQ(cublasGetStatusName(CUBLAS_STATUS_INVALID_VALUE), "CUBLAS_STATUS_INVALID_VALUE");
    cudaStream_t s;
    EXPECT_EQ(cublasGetStream(handle, &s), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(s, stream);
}

} // namespace
