// Promise: with CUSIM_LOCKS=measured calls wait for the driver's locks as the gate table of
// tests/gpu says.
#include "tests/unit/sim/sim.h"

#include <functional>

namespace sim {
namespace {

// Read when the simulator is first called.
const int kSet = setenv("CUSIM_LOCKS", "measured", 1);

class Locks : public Sim {
  protected:
    // A thread of its own that makes calls in the context.
    std::thread Thread(std::function<void()> calls, std::atomic<bool> *done) {
        return std::thread([=] {
            cuCtxSetCurrent(ctx);
            calls();
            *done = true;
        });
    }

    // Does the call wait until the gate of a running kernel opens? Another thread has begun
    // `other` by then, which gets the kernel's stream.
    bool Waits(const std::function<void(CUstream)> &other, const std::function<void()> &call) {
        Gate gate;
        std::atomic<bool> other_done{false}, done{false};
        CUstream s = Stream();
        EXPECT_EQ(CUDA_SUCCESS, Wait(gate, s));
        std::thread first = Thread([&] { other(s); }, &other_done);
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        std::thread caller = Thread(call, &done);
        for (int ms = 0; ms < 50 && !done; ms++)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        bool waits = !done;
        gate.Open();
        caller.join();
        first.join();
        EXPECT_EQ(CUDA_SUCCESS, cuCtxSynchronize());
        return waits;
    }
    void SetUp() override {
        Sim::SetUp();
        p_ = Alloc(4);
        s_ = Stream();
        empty_ = Func("empty");
    }

    CUdeviceptr p_ = 0;
    CUstream s_ = nullptr;
    CUfunction empty_ = nullptr;
    int loose_ = 0;
    const std::function<void(CUstream)> nothing_ = [](CUstream) {};
    // Sleeps in a copy to pageable memory.
    const std::function<void(CUstream)> copy_ = [this](CUstream s) {
        EXPECT_EQ(CUDA_SUCCESS, cuMemcpyDtoHAsync(&loose_, p_, 4, s));
    };
    const std::function<void()> launch_ = [this] {
        EXPECT_EQ(CUDA_SUCCESS, cuLaunchKernel(empty_, 1, 1, 1, 1, 1, 1, 0, s_, nullptr, nullptr));
    };
};

TEST_F(Locks, SomeCallsWaitForACopyToPageableMemory) {
    ASSERT_EQ(0, kSet);
    CUstream made = nullptr;
    auto create = [&] { cuStreamCreate(&made, CU_STREAM_NON_BLOCKING); };
    EXPECT_TRUE(Waits(copy_, create));
    EXPECT_FALSE(Waits(nothing_, create));
    EXPECT_FALSE(Waits(copy_, launch_));
}

TEST_F(Locks, AGraphWaitsForSuchACopyIfItHasAHostNode) {
    for (bool host : {false, true}) {
        CUgraph graph;
        CUgraphExec exec;
        CU_OK(cuStreamBeginCapture(s_, CU_STREAM_CAPTURE_MODE_RELAXED));
        launch_();
        if (host) {
            CU_OK(cuLaunchHostFunc(
                s_, [](void *) {}, nullptr));
        }
        CU_OK(cuStreamEndCapture(s_, &graph));
        CU_OK(cuGraphInstantiate(&exec, graph, 0));
        EXPECT_EQ(host, Waits(copy_, [&] { cuGraphLaunch(exec, s_); }));
    }
}

TEST_F(Locks, LoadingWaitsForRunningKernelsAndLocksLaunchesOut) {
    CUmodule loaded;
    auto load = [&] { cuModuleLoadData(&loaded, "any image"); };
    EXPECT_TRUE(Waits(nothing_, load));
    EXPECT_FALSE(Waits(nothing_, launch_));
    EXPECT_TRUE(Waits([&](CUstream) { load(); }, launch_));
    // What waits for a copy first does not lock yet.
    EXPECT_FALSE(Waits(
        [&](CUstream s) {
            std::atomic<bool> done{false};
            std::thread loader = Thread(
                [&] {
                    std::this_thread::sleep_for(std::chrono::milliseconds(10));
                    load();
                },
                &done);
            copy_(s);
            loader.join();
        },
        launch_));
}

TEST_F(Locks, AFunctionOfAKernelWaitsTheFirstTime) {
    CUlibrary library;
    CUkernel kernel;
    CUfunction f;
    CU_OK(cuLibraryLoadData(&library, "any image", nullptr, nullptr, 0, nullptr, nullptr, 0));
    CU_OK(cuLibraryGetKernel(&kernel, library, "mix"));
    auto get = [&] { EXPECT_EQ(CUDA_SUCCESS, cuKernelGetFunction(&f, kernel)); };
    EXPECT_TRUE(Waits(nothing_, get));
    EXPECT_FALSE(Waits(nothing_, get));
}

} // namespace
} // namespace sim
