// Promise: launches work with all forms of arguments, handles and attributes; errors come at the
// call or are sticky.
#include "tests/unit/sim/sim.h"
#include "tests/within.h"

namespace sim {
namespace {

class Launch : public Sim {
  protected:
    CUresult Shape(unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned smem = 0, const char *name = "empty") {
        return cuLaunchKernel(Func(name), gx, gy, gz, bx, by, bz, smem, nullptr, nullptr, nullptr);
    }

    CUresult With(CUlaunchAttribute attr, unsigned gx, const char *name = "empty") {
        CUlaunchConfig config{};
        config.gridDimX = gx;
        config.gridDimY = config.gridDimZ = 1;
        config.blockDimX = config.blockDimY = config.blockDimZ = 1;
        config.attrs = &attr;
        config.numAttrs = 1;
        return cuLaunchKernelEx(&config, Func(name), nullptr, nullptr);
    }
};

const auto kInvalid = CUDA_ERROR_INVALID_VALUE;

TEST_F(Launch, BadShapesFailAtTheCall) {
    CU_EXPECT(CUDA_SUCCESS, Shape(1, 1, 1, 1024, 1, 1));
    CU_EXPECT(CUDA_SUCCESS, Shape(1, 65535, 65535, 1, 1, 64));
    CU_EXPECT(kInvalid, Shape(0, 1, 1, 1, 1, 1));
    CU_EXPECT(kInvalid, Shape(1, 0, 1, 1, 1, 1));
    CU_EXPECT(kInvalid, Shape(0x80000000u, 1, 1, 1, 1, 1));
    CU_EXPECT(kInvalid, Shape(1, 65536, 1, 1, 1, 1));
    CU_EXPECT(kInvalid, Shape(1, 1, 65536, 1, 1, 1));
    CU_EXPECT(kInvalid, Shape(1, 1, 1, 0, 1, 1));
    CU_EXPECT(kInvalid, Shape(1, 1, 1, 1025, 1, 1));
    CU_EXPECT(kInvalid, Shape(1, 1, 1, 32, 32, 2));
    CU_EXPECT(kInvalid, Shape(1, 1, 1, 1, 1, 65));
    CU_EXPECT(CUDA_SUCCESS, Shape(1, 1, 1, 256, 1, 1, 0, "bounded"));
    CU_EXPECT(kInvalid, Shape(1, 1, 1, 257, 1, 1, 0, "bounded"));
    CU_EXPECT(CUDA_SUCCESS, cuCtxSynchronize());
}

// As driver 580 does: the attribute says nothing of the one block.
TEST_F(Launch, KernelCompiledForOneBlockRefusesAllOthers) {
    int threads = 0;
    CU_OK(cuFuncGetAttribute(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, Func("one_block")));
    EXPECT_EQ(1024, threads);
    CU_EXPECT(CUDA_SUCCESS, Shape(1, 1, 1, 64, 1, 1, 0, "one_block"));
    CU_EXPECT(kInvalid, Shape(1, 1, 1, 32, 1, 1, 0, "one_block"));
    CU_EXPECT(kInvalid, Shape(1, 1, 1, 32, 2, 1, 0, "one_block"));
    CU_EXPECT(kInvalid, Shape(1, 1, 1, 128, 1, 1, 0, "one_block"));
    CU_EXPECT(CUDA_SUCCESS, cuCtxSynchronize());
}

TEST_F(Launch, SharedMemoryAboveTheStandardNeedsTheAttribute) {
    CUfunction f = Func("empty");
    int value = 0;
    CU_EXPECT(CUDA_SUCCESS, Shape(1, 1, 1, 1, 1, 1, 49152));
    CU_EXPECT(kInvalid, Shape(1, 1, 1, 1, 1, 1, 49153));
    CU_OK(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100000));
    CU_OK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, f));
    EXPECT_EQ(100000, value);
    CU_EXPECT(CUDA_SUCCESS, Shape(1, 1, 1, 1, 1, 1, 100000));
    CU_EXPECT(kInvalid, Shape(1, 1, 1, 1, 1, 1, 100001));
    CU_EXPECT(kInvalid,
              cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 232449));
}

TEST_F(Launch, ArgumentsAreCopiedAtTheCallInBothForms) {
    CUstream s = Stream();
    CUdeviceptr p = Alloc(4);
    int v = 5;
    void *params[] = {&p, &v};
    Gate gate;
    CU_OK(Wait(gate, s));
    CU_OK(cuLaunchKernel(Func("mix"), 1, 1, 1, 1, 1, 1, 0, s, params, nullptr));
    v = 100;
    struct {
        CUdeviceptr p;
        int v;
    } packed{p, 6};
    size_t bytes = 12; // to the end of the last argument; padding behind it is refused
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                     CU_LAUNCH_PARAM_END};
    CU_OK(cuLaunchKernel(Func("mix"), 1, 1, 1, 1, 1, 1, 0, s, nullptr, extra));
    packed.v = 200;
    CU_EXPECT(kInvalid, cuLaunchKernel(Func("mix"), 1, 1, 1, 1, 1, 1, 0, s, params, extra));
    CU_EXPECT(kInvalid, cuLaunchKernel(Func("mix"), 1, 1, 1, 1, 1, 1, 0, s, nullptr, nullptr));
    bytes = 32;
    CU_EXPECT(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES,
              cuLaunchKernel(Func("mix"), 1, 1, 1, 1, 1, 1, 0, s, nullptr, extra));
    bytes = 8; // too short is accepted; what is missing is zero
    CU_OK(cuLaunchKernel(Func("mix"), 1, 1, 1, 1, 1, 1, 0, s, nullptr, extra));
    gate.Open();
    EXPECT_EQ((5 * 3 + 6) * 3, Read(p));
}

TEST_F(Launch, FunctionsAndKernelsAreDifferentHandles) {
    CUlibrary library;
    CUkernel kernel, same;
    CUfunction plain = Func("mix"), derived = nullptr;
    const char *name = nullptr;
    size_t offset = 9, size = 9;
    CU_OK(cuLibraryLoadData(&library, "image", nullptr, nullptr, 0, nullptr, nullptr, 0));
    CU_OK(cuLibraryGetKernel(&kernel, library, "mix"));
    CU_OK(cuLibraryGetKernel(&same, library, "mix"));
    EXPECT_EQ(kernel, same);
    CU_OK(cuKernelGetFunction(&derived, kernel));
    EXPECT_NE(reinterpret_cast<void *>(kernel), reinterpret_cast<void *>(derived));
    EXPECT_NE(plain, derived);
    const auto bad = CUDA_ERROR_INVALID_HANDLE;
    auto as_function = reinterpret_cast<CUfunction>(kernel);
    auto as_kernel = reinterpret_cast<CUkernel>(plain);
    CU_EXPECT(bad, cuFuncGetName(&name, as_function));
    CU_EXPECT(bad, cuFuncGetParamInfo(as_function, 0, &offset, &size));
    CU_EXPECT(bad, cuKernelGetName(&name, as_kernel));
    CU_EXPECT(bad, cuKernelGetParamInfo(as_kernel, 0, &offset, &size));
    CU_OK(cuKernelGetName(&name, kernel));
    EXPECT_STREQ("mix", name);
    CU_OK(cuFuncGetName(&name, derived));
    EXPECT_STREQ("mix", name);
    CU_OK(cuFuncGetParamInfo(plain, 1, &offset, &size));
    EXPECT_EQ(8u, offset);
    EXPECT_EQ(4u, size);
    CU_EXPECT(kInvalid, cuFuncGetParamInfo(plain, 2, &offset, &size));
    CUdeviceptr p = Alloc(4);
    int v = 3;
    void *args[] = {&p, &v};
    for (CUfunction f : {plain, derived, as_function})
        CU_OK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, nullptr, args, nullptr));
    EXPECT_EQ((3 * 3 + 3) * 3 + 3, Read(p));
    CU_OK(cuLibraryUnload(library));
    CU_EXPECT(bad, cuLaunchKernel(as_function, 1, 1, 1, 1, 1, 1, 0, nullptr, args, nullptr));
    CU_EXPECT(bad, cuLaunchKernel(derived, 1, 1, 1, 1, 1, 1, 0, nullptr, args, nullptr));
    CU_EXPECT(bad, cuLaunchKernel(nullptr, 1, 1, 1, 1, 1, 1, 0, nullptr, args, nullptr));
    CUfunction missing;
    CU_EXPECT(CUDA_ERROR_NOT_FOUND, cuModuleGetFunction(&missing, module, "no such kernel"));
    CU_OK(cuModuleUnload(module));
    CU_EXPECT(bad, cuLaunchKernel(plain, 1, 1, 1, 1, 1, 1, 0, nullptr, args, nullptr));
}

TEST_F(Launch, ContextsMustMatch) {
    CUcontext other;
    CUfunction f = Func("empty");
    CU_OK(cuCtxCreate(&other, nullptr, 0, 0));
    CUstream foreign = Stream();
    CU_EXPECT(CUDA_ERROR_INVALID_HANDLE,
              cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, foreign, nullptr, nullptr));
    CU_EXPECT(CUDA_ERROR_INVALID_HANDLE,
              cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
    CU_OK(cuCtxSetCurrent(nullptr)); // takes the top away: the first context is current again
    CU_OK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
    CU_OK(cuCtxSetCurrent(nullptr));
    CU_EXPECT(CUDA_ERROR_INVALID_CONTEXT,
              cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
    CU_OK(cuCtxDestroy(other));
    CU_OK(cuCtxSetCurrent(ctx));
    CU_EXPECT(CUDA_ERROR_INVALID_HANDLE,
              cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, foreign, nullptr, nullptr));
}

TEST_F(Launch, ClustersMustDivideTheGrid) {
    CUlaunchAttribute a{};
    a.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    a.value.clusterDim.x = 4;
    a.value.clusterDim.y = a.value.clusterDim.z = 1;
    CU_EXPECT(CUDA_SUCCESS, With(a, 8));
    CU_EXPECT(CUDA_ERROR_INVALID_CLUSTER_SIZE, With(a, 6));
    a.value.clusterDim.x = 16;
    CU_EXPECT(CUDA_ERROR_INVALID_CLUSTER_SIZE, With(a, 32));
    CU_OK(
        cuFuncSetAttribute(Func("empty"), CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1));
    CU_EXPECT(CUDA_SUCCESS, With(a, 32));
    CU_EXPECT(CUDA_SUCCESS, Shape(4, 1, 1, 1, 1, 1, 0, "clustered"));
    CU_EXPECT(CUDA_ERROR_INVALID_CLUSTER_SIZE, Shape(3, 1, 1, 1, 1, 1, 0, "clustered"));
}

TEST_F(Launch, UnknownAttributesAndOversizedCooperativeGridsAreRefused) {
    CUlaunchAttribute a{};
    a.id = static_cast<CUlaunchAttributeID>(77);
    CU_EXPECT(kInvalid, With(a, 1));
    a.id = CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE;
    a.value.deviceUpdatableKernelNode.deviceUpdatable = 1;
    CU_EXPECT(CUDA_ERROR_NOT_SUPPORTED, With(a, 1));
    int per_sm = 0, sms = 0;
    CU_OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, Func("empty"), 1024, 0));
    CU_OK(cuDeviceGetAttribute(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
    EXPECT_EQ(2, per_sm);
    unsigned most = static_cast<unsigned>(per_sm * sms);
    auto cooperative = [&](unsigned grid) {
        return cuLaunchCooperativeKernel(Func("empty"), grid, 1, 1, 1024, 1, 1, 0, nullptr,
                                         nullptr);
    };
    CU_EXPECT(CUDA_SUCCESS, cooperative(most));
    CU_EXPECT(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, cooperative(most + 1));
}

TEST_F(Launch, ATrapPoisonsTheContextUntilItIsReset) {
    CUstream s = Stream();
    CUdeviceptr p = Alloc(4);
    std::atomic<int> called{0}, skipped{0};
    Gate gate;
    CU_OK(Wait(gate, s));
    CU_OK(cuLaunchKernel(Func("cus_trap"), 1, 1, 1, 1, 1, 1, 0, s, nullptr, nullptr));
    CU_OK(Write(p, 1, s));
    CU_OK(cuStreamAddCallback(
        s,
        [](CUstream, CUresult status, void *data) {
            *static_cast<std::atomic<int> *>(data) = static_cast<int>(status);
        },
        &called, 0));
    CU_OK(cuLaunchHostFunc(
        s, [](void *data) { *static_cast<std::atomic<int> *>(data) = 1; }, &skipped));
    gate.Open();
    const auto dead = CUDA_ERROR_ILLEGAL_ADDRESS;
    CU_EXPECT(dead, cuStreamSynchronize(s));
    CU_EXPECT(dead, cuMemAlloc(&p, 4));
    CU_EXPECT(dead, Write(p, 1, s));
    CU_EXPECT(dead, cuCtxSynchronize());
    EXPECT_TRUE(Within(20, [&] { return called == static_cast<int>(dead); })) << called;
    EXPECT_EQ(0, skipped);
    CU_OK(cuDevicePrimaryCtxReset(0));
    CUcontext again;
    CU_OK(cuDevicePrimaryCtxRetain(&again, 0));
    EXPECT_EQ(ctx, again); // the address comes back, with another id
    CU_OK(cuCtxSetCurrent(again));
    CU_OK(cuModuleLoadData(&module, "image"));
    CUdeviceptr q = Alloc(4);
    CU_OK(Write(q, 4, nullptr));
    EXPECT_EQ(4, Read(q));
}

TEST_F(Launch, IdsAreNeverUsedTwice) {
    unsigned long long first, second, stream_id, other_id;
    CU_OK(cuCtxGetId(ctx, &first));
    CUstream s = Stream();
    CU_OK(cuStreamGetId(s, &stream_id));
    CU_OK(cuStreamDestroy(s));
    for (int i = 0; i < 20; i++) {
        s = Stream();
        CU_OK(cuStreamGetId(s, &other_id));
        EXPECT_NE(stream_id, other_id);
        CU_OK(cuStreamDestroy(s));
    }
    CU_OK(cuDevicePrimaryCtxReset(0));
    CU_EXPECT(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuCtxSynchronize());
    CU_OK(cuDevicePrimaryCtxRetain(&ctx, 0));
    CU_OK(cuCtxGetId(ctx, &second));
    EXPECT_NE(first, second);
    CU_EXPECT(CUDA_SUCCESS, cuCtxSynchronize());
}

TEST_F(Launch, TheNthCallFailsAsAsked) {
    CUdeviceptr p;
    CU_OK(cuSimSetFault("cuMemAlloc_v2:2:2,cuEventCreate:1+:999"));
    CU_EXPECT(CUDA_SUCCESS, cuMemAlloc(&p, 4));
    CU_EXPECT(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&p, 4));
    CU_EXPECT(CUDA_SUCCESS, cuMemAlloc(&p, 4));
    CUevent e;
    CU_EXPECT(CUDA_ERROR_UNKNOWN, cuEventCreate(&e, 0));
    CU_EXPECT(CUDA_ERROR_UNKNOWN, cuEventCreate(&e, 0));
    CU_EXPECT(CUDA_ERROR_INVALID_VALUE, cuSimSetFault("cuNoSuchCall:1:2"));
    CU_OK(cuSimSetFault(""));
    CU_EXPECT(CUDA_SUCCESS, cuEventCreate(&e, 0));
}

} // namespace
} // namespace sim
