// Promise: kernels reach the simulator by every route of the runtime: <<<>>>, launch calls,
// attributes, graphs, libraries, and the driver's entry points.
#include <gtest/gtest.h>

#include <cuda.h>

#include <numeric>
#include <vector>

#include "tests/unit/simrt/launch.h"

extern "C" const unsigned char micro_fatbin[];

namespace {

using Words = std::vector<unsigned>;

class Kernel : public testing::Test {
  protected:
    void SetUp() override {
        OK(cudaMalloc((void **)&x, 4096));
        OK(cudaMemset(x, 0, 4096));
        OK(cudaStreamCreate(&stream));
    }

    void TearDown() override {
        OK(cudaStreamDestroy(stream));
        OK(cudaFree(x));
    }

    unsigned first() {
        unsigned value = 0;
        EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
        EXPECT_EQ(cudaMemcpy(&value, x, 4, cudaMemcpyDeviceToHost), cudaSuccess);
        return value;
    }

    unsigned *x;
    cudaStream_t stream;
};

TEST_F(Kernel, ParametersOfAllSizesArrive) {
    unsigned j = 77, *device_j = x + 512;
    unsigned long long *sum = (unsigned long long *)x, out = 0, again = 0;
    OK(cudaMemcpy(device_j, &j, 4, cudaMemcpyHostToDevice));
    launch_many_params(sum, device_j, stream);
    OK(cudaMemcpyAsync(&out, sum, 8, cudaMemcpyDeviceToHost, stream));
    OK(cudaStreamSynchronize(stream));
    EXPECT_EQ(out, 0xd450a22d8a8ca63cull);
    launch_many_params_per_thread(sum, device_j, stream);
    OK(cudaMemcpyAsync(&again, sum, 8, cudaMemcpyDeviceToHost, stream));
    OK(cudaStreamSynchronize(stream));
    EXPECT_EQ(again, out);

    struct cus_big big;
    std::iota(big.word, big.word + CUS_BIG_WORDS, 1000u);
    launch_big_params(x, &big, stream);
    for (unsigned &w : big.word) {
        w = 0; /* by value: what the host writes behind the launch must not be seen */
    }
    Words words(CUS_BIG_WORDS);
    OK(cudaMemcpyAsync(words.data(), x, sizeof big, cudaMemcpyDeviceToHost, stream));
    OK(cudaStreamSynchronize(stream));
    EXPECT_EQ(words[0], 1000u);
    EXPECT_EQ(words[255], 1255u);
}

TEST_F(Kernel, EveryLaunchCallWorks) {
    unsigned a = 3, b = 1;
    int n = 1;
    void *params[] = {&x, &a, &b, &n};
    OK(cudaLaunchKernel((const void *)chain, dim3(1), dim3(1), params, 0, stream)); /* 1 */
    cudaLaunchAttribute cluster = {};
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim.x = 2;
    cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(2);
    config.blockDim = dim3(1);
    config.stream = stream;
    config.attrs = &cluster;
    config.numAttrs = 1;
    OK(cudaLaunchKernelExC(&config, (const void *)chain, params)); /* 4 */
    OK(cudaLaunchCooperativeKernel((const void *)chain, dim3(1), dim3(1), params, 0, stream));
    EXPECT_EQ(first(), 13u);
    cudaKernel_t kernel;
    cudaFunction_t function;
    OK(cudaGetKernel(&kernel, (const void *)chain));
    OK(cudaGetFuncBySymbol(&function, (const void *)chain));
    EXPECT_NE(kernel, nullptr);
    EXPECT_NE(function, nullptr);
}

TEST_F(Kernel, BadLaunchesAreRefusedAtTheCall) {
    launch_fill(x, 1, 1, 2048, stream);
    EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
    launch_fill(x, 1, 1, 0, stream);
    EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
    int no_kernel = 0;
    EXPECT_EQ(cudaLaunchKernel(&no_kernel, dim3(1), dim3(1), nullptr, 0, stream),
              cudaErrorInvalidResourceHandle);
    EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidResourceHandle);
    launch_fill(x, 6, 1, 32, stream);
    OK(cudaGetLastError());
    EXPECT_EQ(first(), 6u);
}

TEST_F(Kernel, SharedMemoryAboveTheDefaultWantsTheAttribute) {
    unsigned long long *sum = (unsigned long long *)x, out = 0;
    Words in(256, 3);
    OK(cudaMemcpy(x + 64, in.data(), 1024, cudaMemcpyHostToDevice));
    cudaFuncAttributes a;
    OK(cudaFuncGetAttributes(&a, (const void *)reduce_dynamic));
    EXPECT_EQ(a.maxThreadsPerBlock, 1024);
    EXPECT_EQ(a.maxDynamicSharedSizeBytes, 48 * 1024);
    launch_reduce_dynamic(sum, x + 64, 256, 64, 60 * 1024, stream);
    EXPECT_NE(cudaGetLastError(), cudaSuccess);
    OK(cudaFuncSetAttribute((const void *)reduce_dynamic,
                            cudaFuncAttributeMaxDynamicSharedMemorySize, 60 * 1024));
    launch_reduce_dynamic(sum, x + 64, 256, 64, 60 * 1024, stream);
    OK(cudaGetLastError());
    OK(cudaMemcpyAsync(&out, sum, 8, cudaMemcpyDeviceToHost, stream));
    OK(cudaStreamSynchronize(stream));
    EXPECT_EQ(out, 768u);
    int blocks = 0;
    OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, (const void *)chain, 128, 0));
    EXPECT_GE(blocks, 1);
}

TEST_F(Kernel, CapturedGraphReplays) {
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaStreamCaptureStatus status;
    launch_chain(x, 1, 0, 1, stream);
    OK(cudaStreamSynchronize(stream));
    OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    OK(cudaStreamIsCapturing(stream, &status));
    EXPECT_EQ(status, cudaStreamCaptureStatusActive);
    launch_chain(x, 1, 2, 1, stream);
    launch_chain(x, 3, 1, 1, stream);
    OK(cudaStreamEndCapture(stream, &graph));
    size_t nodes = 0;
    OK(cudaGraphGetNodes(graph, nullptr, &nodes));
    EXPECT_EQ(nodes, 2u);
    OK(cudaGraphInstantiate(&exec, graph, 0));
    EXPECT_EQ(first(), 0u);
    OK(cudaGraphLaunch(exec, stream));
    OK(cudaGraphLaunch(exec, stream));
    EXPECT_EQ(first(), 28u);
    OK(cudaGraphExecDestroy(exec));
    OK(cudaGraphDestroy(graph));
}

TEST_F(Kernel, ExplicitGraphIsPatched) {
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaGraphNode_t set, add;
    cudaMemsetParams zero = {};
    zero.dst = x;
    zero.elementSize = 4;
    zero.width = 1;
    zero.height = 1;
    zero.value = 9;
    unsigned a = 2, b = 5;
    int n = 1;
    void *params[] = {&x, &a, &b, &n};
    cudaKernelNodeParams kernel = {};
    kernel.func = (void *)chain;
    kernel.gridDim = kernel.blockDim = dim3(1);
    kernel.kernelParams = params;
    OK(cudaGraphCreate(&graph, 0));
    OK(cudaGraphAddMemsetNode(&set, graph, nullptr, 0, &zero));
    OK(cudaGraphAddKernelNode(&add, graph, &set, 1, &kernel));
    OK(cudaGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cudaGraphLaunch(exec, stream));
    EXPECT_EQ(first(), 23u);
    b = 6;
    OK(cudaGraphExecKernelNodeSetParams(exec, add, &kernel));
    zero.value = 10;
    OK(cudaGraphExecMemsetNodeSetParams(exec, set, &zero));
    OK(cudaGraphLaunch(exec, stream));
    EXPECT_EQ(first(), 26u);
    OK(cudaGraphExecDestroy(exec));
    OK(cudaGraphDestroy(graph));
}

TEST_F(Kernel, LibrariesAndEntryPoints) {
    cudaLibrary_t library;
    cudaKernel_t kernel;
    OK(cudaLibraryLoadData(&library, micro_fatbin, nullptr, nullptr, 0, nullptr, nullptr, 0));
    OK(cudaLibraryGetKernel(&kernel, library, "touch"));
    void *params[] = {&x};
    OK(cudaLaunchKernel((const void *)kernel, dim3(3), dim3(2), params, 0, stream));
    EXPECT_EQ(first(), 6u);
    cudaKernel_t none;
    EXPECT_NE(cudaLibraryGetKernel(&none, library, "no_such_kernel"), cudaSuccess);
    cudaGetLastError();
    OK(cudaLibraryUnload(library));

    CUresult (*set)(CUdeviceptr, unsigned, size_t) = nullptr;
    cudaDriverEntryPointQueryResult how;
    OK(cudaGetDriverEntryPointByVersion("cuMemsetD32", (void **)&set, 12000, cudaEnableDefault,
                                        &how));
    ASSERT_EQ(how, cudaDriverEntryPointSuccess);
    EXPECT_EQ(set((CUdeviceptr)x, 31, 1), CUDA_SUCCESS);
    EXPECT_EQ(first(), 31u);
    void *nothing = &nothing;
    OK(cudaGetDriverEntryPointByVersion("cuNoSuchThing", &nothing, 12000, cudaEnableDefault, &how));
    EXPECT_EQ(how, cudaDriverEntryPointSymbolNotFound);
    EXPECT_EQ(nothing, nullptr);
}

} // namespace
