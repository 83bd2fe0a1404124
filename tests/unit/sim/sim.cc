#include "tests/unit/sim/sim.h"

#include <deque>

namespace sim {
namespace {

void MixRun(const unsigned *, const unsigned *, unsigned, void **params) {
    unsigned *p = *static_cast<unsigned **>(params[0]);
    *p = *p * 3 + *static_cast<unsigned *>(params[1]);
}

void WriteRun(const unsigned *, const unsigned *, unsigned, void **params) {
    **static_cast<int **>(params[0]) = *static_cast<int *>(params[1]);
}

void CopyRun(const unsigned *, const unsigned *, unsigned, void **params) {
    **static_cast<int **>(params[0]) = **static_cast<int **>(params[1]);
}

void WaitRun(const unsigned *, const unsigned *, unsigned, void **params) {
    auto *flag = *static_cast<std::atomic<int> **>(params[0]);
    while (flag->load() == 0)
        std::this_thread::sleep_for(std::chrono::microseconds(50));
}

void EmptyRun(const unsigned *, const unsigned *, unsigned, void **) {}

const unsigned kOffsets[] = {0, 8, 16};
const unsigned kPointerInt[] = {8, 4};
const unsigned kPointers[] = {8, 8};

cusim_kernel Kernel(const char *name, unsigned n, const unsigned *sizes,
                    decltype(cusim_kernel::run) run) {
    cusim_kernel kernel{};
    kernel.name = name;
    kernel.n_params = n;
    kernel.offset = kOffsets;
    kernel.size = sizes;
    kernel.run = run;
    return kernel;
}

cusim_kernel kernels[] = {
    Kernel("mix", 2, kPointerInt, MixRun),     Kernel("write", 2, kPointerInt, WriteRun),
    Kernel("copy", 2, kPointers, CopyRun),     Kernel("wait", 1, kPointers, WaitRun),
    Kernel("empty", 0, nullptr, EmptyRun),     Kernel("cus_trap", 0, nullptr, EmptyRun),
    Kernel("clustered", 0, nullptr, EmptyRun), Kernel("bounded", 0, nullptr, EmptyRun),
    Kernel("one_block", 0, nullptr, EmptyRun),
};

} // namespace

void RegisterKernels() {
    static bool done;
    if (done)
        return;
    done = true;
    for (cusim_kernel &kernel : kernels) {
        if (std::string(kernel.name) == "clustered")
            kernel.cluster[0] = 2, kernel.cluster[1] = kernel.cluster[2] = 1;
        if (std::string(kernel.name) == "bounded")
            kernel.max_threads = 256;
        if (std::string(kernel.name) == "one_block")
            kernel.block[0] = 64, kernel.block[1] = kernel.block[2] = 1;
        cuSimKernelRegister(&kernel);
    }
}

Gate::Gate() {
    static auto &flags =
        *new std::deque<std::atomic<int>>; // a kernel may still look while the process ends
    flags.emplace_back(0);
    flag_ = &flags.back();
}

void Sim::SetUp() {
    RegisterKernels();
    CU_OK(cuInit(0));
    CU_OK(cuDevicePrimaryCtxRetain(&ctx, 0));
    CU_OK(cuCtxSetCurrent(ctx));
    CU_OK(cuModuleLoadData(&module, "any image"));
}

void Sim::TearDown() {
    cuSimSetFault("");
    cuSimSetDelay(20);
    cuDevicePrimaryCtxReset(0);
    cuCtxSetCurrent(nullptr);
}

CUdeviceptr Sim::Alloc(size_t bytes, int value) {
    CUdeviceptr p = 0;
    EXPECT_EQ(CUDA_SUCCESS, cuMemAlloc(&p, bytes));
    EXPECT_EQ(CUDA_SUCCESS, cuMemsetD32(p, static_cast<unsigned>(value), bytes / 4));
    EXPECT_EQ(CUDA_SUCCESS, cuCtxSynchronize());
    return p;
}

int Sim::Read(CUdeviceptr p) {
    int value = 0;
    EXPECT_EQ(CUDA_SUCCESS, cuCtxSynchronize());
    EXPECT_EQ(CUDA_SUCCESS, cuMemcpyDtoH(&value, p, sizeof value));
    return value;
}

CUstream Sim::Stream(unsigned flags) {
    CUstream stream = nullptr;
    EXPECT_EQ(CUDA_SUCCESS, cuStreamCreate(&stream, flags));
    return stream;
}

CUfunction Sim::Func(const char *name) {
    CUfunction f = nullptr;
    EXPECT_EQ(CUDA_SUCCESS, cuModuleGetFunction(&f, module, name));
    return f;
}

CUresult Sim::Mix(CUdeviceptr p, int v, CUstream stream) {
    void *args[] = {&p, &v};
    return cuLaunchKernel(Func("mix"), 1, 1, 1, 1, 1, 1, 0, stream, args, nullptr);
}

CUresult Sim::Write(CUdeviceptr p, int v, CUstream stream) {
    void *args[] = {&p, &v};
    return cuLaunchKernel(Func("write"), 1, 1, 1, 1, 1, 1, 0, stream, args, nullptr);
}

CUresult Sim::Copy(CUdeviceptr to, CUdeviceptr from, CUstream stream) {
    void *args[] = {&to, &from};
    return cuLaunchKernel(Func("copy"), 1, 1, 1, 1, 1, 1, 0, stream, args, nullptr);
}

CUresult Sim::Wait(Gate &gate, CUstream stream) {
    auto *flag = gate.flag();
    void *args[] = {&flag};
    return cuLaunchKernel(Func("wait"), 1, 1, 1, 1, 1, 1, 0, stream, args, nullptr);
}

} // namespace sim
