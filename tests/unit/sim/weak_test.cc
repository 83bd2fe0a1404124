// Promise: with CUSIM_ORDER=weak the simulator breaks what CUDA does not promise, and keeps what it
// does.
#include "tests/unit/sim/sim.h"

#include <algorithm>
#include <functional>
#include <set>

extern "C" const cusim_calls *cuSimKernelCalls(void);

namespace sim {
namespace {

// Read when the simulator is first called.
const int kSet = setenv("CUSIM_ORDER", "weak", 1);

// What races here does so on purpose.
#define RACES __attribute__((no_sanitize("thread")))

RACES int Peek(const volatile int *p) {
    return *p;
}

constexpr int kRounds = 60; // until something that may happen has happened
constexpr unsigned kBlocks = 8;

template <class T> T Param(void **params, int i) {
    return *static_cast<T *>(params[i]);
}

RACES void Overtaken(const unsigned *, const unsigned *, unsigned, void **params) {
    cuSimKernelCalls()->trigger();
    *Param<int *>(params, 0) = Param<int>(params, 1);
}

void OvertakenAtGate(const unsigned *, const unsigned *, unsigned, void **params) {
    cuSimKernelCalls()->trigger();
    auto *flag = Param<std::atomic<int> *>(params, 0);
    while (flag->load() == 0)
        std::this_thread::sleep_for(std::chrono::microseconds(50));
}

RACES void CopyBehind(const unsigned *, const unsigned *, unsigned, void **params) {
    cuSimKernelCalls()->wait();
    *Param<int *>(params, 0) = *Param<int *>(params, 1);
}

void OpenGate(const unsigned *, const unsigned *, unsigned, void **params) {
    Param<std::atomic<int> *>(params, 0)->store(1);
}

// One word for each block.
RACES void AddBlocks(const unsigned *grid, const unsigned *, unsigned, void **params) {
    for (unsigned i = 0; i < grid[0]; i++)
        Param<int *>(params, 0)[cuSimKernelCalls()->block(i, grid[0])] += Param<int>(params, 1);
}

RACES void CopyBlocks(const unsigned *grid, const unsigned *, unsigned, void **params) {
    for (unsigned i = 0; i < grid[0]; i++) {
        size_t b = cuSimKernelCalls()->block(i, grid[0]);
        Param<int *>(params, 0)[b] = Param<int *>(params, 1)[b];
    }
}

void OrderOfBlocks(const unsigned *grid, const unsigned *, unsigned, void **params) {
    for (unsigned i = 0; i < grid[0]; i++)
        Param<int *>(params, 0)[i] = static_cast<int>(cuSimKernelCalls()->block(i, grid[0]));
}

const unsigned kOffsets[] = {0, 8};
const unsigned kPointerInt[] = {8, 4}, kPointers[] = {8, 8};

class Weak : public Sim {
  protected:
    static void SetUpTestSuite() {
        static std::vector<cusim_kernel> &kernels = *new std::vector<cusim_kernel>;
        auto add = [](const char *name, unsigned n, const unsigned *size,
                      decltype(cusim_kernel::run) run) {
            cusim_kernel kernel{};
            kernel.name = name, kernel.n_params = n, kernel.offset = kOffsets, kernel.size = size,
            kernel.run = run;
            kernels.push_back(kernel);
        };
        add("overtaken", 2, kPointerInt, Overtaken);
        add("overtaken_at_gate", 1, kPointers, OvertakenAtGate);
        add("copy_behind", 2, kPointers, CopyBehind);
        add("open_gate", 1, kPointers, OpenGate);
        add("add_blocks", 2, kPointerInt, AddBlocks);
        add("copy_blocks", 2, kPointers, CopyBlocks);
        add("order_of_blocks", 1, kPointers, OrderOfBlocks);
        for (cusim_kernel &kernel : kernels)
            cuSimKernelRegister(&kernel);
    }

    CUresult Launch(const char *name, CUstream s, std::vector<void *> params,
                    bool programmatic = false, unsigned blocks = 1) {
        CUlaunchAttribute attribute{};
        attribute.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
        attribute.value.programmaticStreamSerializationAllowed = programmatic;
        return Launch(name, s, params, attribute, blocks);
    }
    CUresult Launch(const char *name, CUstream s, std::vector<void *> params,
                    CUlaunchAttribute attribute, unsigned blocks) {
        CUlaunchConfig config{};
        config.gridDimX = blocks;
        config.gridDimY = config.gridDimZ = 1;
        config.blockDimX = config.blockDimY = config.blockDimZ = 1;
        config.hStream = s;
        config.attrs = &attribute;
        config.numAttrs = 1;
        return cuLaunchKernelEx(&config, Func(name), params.data(), nullptr);
    }

    // How often a kernel behind one that triggers, then writes 1, finds 0. A third kernel copies
    // what the second one has.
    int Stale(const char *second, bool programmatic, bool graph) {
        CUstream s = Stream();
        CUdeviceptr p = Alloc(4), q = Alloc(4), r = Alloc(4);
        int stale = 0, one = 1;
        auto launch = [&] {
            EXPECT_EQ(CUDA_SUCCESS, Launch("overtaken", s, {&p, &one}));
            EXPECT_EQ(CUDA_SUCCESS, Launch(second, s, {&q, &p}, programmatic));
            EXPECT_EQ(CUDA_SUCCESS, Copy(r, q, s));
        };
        CUgraphExec exec = nullptr;
        if (graph) {
            CUgraph captured;
            EXPECT_EQ(CUDA_SUCCESS, cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
            launch();
            EXPECT_EQ(CUDA_SUCCESS, cuStreamEndCapture(s, &captured));
            EXPECT_EQ(CUDA_SUCCESS, cuGraphInstantiate(&exec, captured, 0));
            EXPECT_EQ(CUDA_SUCCESS, cuGraphDestroy(captured));
        }
        for (int i = 0; i < kRounds; i++) {
            EXPECT_EQ(CUDA_SUCCESS, Write(p, 0, s));
            EXPECT_EQ(CUDA_SUCCESS, Write(q, 2, s));
            if (graph)
                EXPECT_EQ(CUDA_SUCCESS, cuGraphLaunch(exec, s));
            else
                launch();
            int seen = Read(q);
            EXPECT_TRUE(seen == 0 || seen == 1) << seen;
            EXPECT_EQ(seen, Read(r));
            EXPECT_EQ(1, Read(p));
            stale += seen == 0;
        }
        return stale;
    }

    // Tells whether it happens in one of the rounds.
    static bool Happens(const std::function<bool()> &round) {
        for (int i = 0; i < 20 * kRounds; i++)
            if (round())
                return true;
        return false;
    }

    // A graph of two kernels that nothing orders.
    CUgraphExec TwoBranches(const std::function<void(CUstream, CUstream)> &launch) {
        CUstream a = Stream(), b = Stream();
        CUevent fork, join;
        CUgraph graph = nullptr;
        CUgraphExec exec = nullptr;
        EXPECT_EQ(CUDA_SUCCESS, cuEventCreate(&fork, 0));
        EXPECT_EQ(CUDA_SUCCESS, cuEventCreate(&join, 0));
        EXPECT_EQ(CUDA_SUCCESS, cuStreamBeginCapture(a, CU_STREAM_CAPTURE_MODE_RELAXED));
        EXPECT_EQ(CUDA_SUCCESS, cuEventRecord(fork, a));
        EXPECT_EQ(CUDA_SUCCESS, cuStreamWaitEvent(b, fork, 0));
        launch(a, b);
        EXPECT_EQ(CUDA_SUCCESS, cuEventRecord(join, b));
        EXPECT_EQ(CUDA_SUCCESS, cuStreamWaitEvent(a, join, 0));
        EXPECT_EQ(CUDA_SUCCESS, cuStreamEndCapture(a, &graph));
        EXPECT_EQ(CUDA_SUCCESS, cuGraphInstantiate(&exec, graph, 0));
        return exec;
    }
};

// A launch that names an event, and a copy on a stream that waits for the event: how often is it 0?
TEST_F(Weak, AnEventOfALaunchMayFireBeforeTheKernelHasWritten) {
    CUstream a = Stream(), b = Stream();
    CUdeviceptr p = Alloc(4 * kBlocks), q = Alloc(4);
    CUevent event;
    ASSERT_EQ(CUDA_SUCCESS, cuEventCreate(&event, 0));
    auto stale = [&](const char *name, CUlaunchAttributeID id) {
        int n = 0, one = 1;
        for (int i = 0; i < kRounds; i++) {
            EXPECT_EQ(CUDA_SUCCESS, Write(p, 0, a));
            CUlaunchAttribute attribute{};
            attribute.id = id;
            if (id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT)
                attribute.value.programmaticEvent.event = event;
            else
                attribute.value.launchCompletionEvent.event = event;
            EXPECT_EQ(CUDA_SUCCESS, Launch(name, a, {&p, &one}, attribute, 1));
            if (id == CU_LAUNCH_ATTRIBUTE_IGNORE) {
                EXPECT_EQ(CUDA_SUCCESS, cuEventRecord(event, a));
            }
            EXPECT_EQ(CUDA_SUCCESS, cuStreamWaitEvent(b, event, 0));
            EXPECT_EQ(CUDA_SUCCESS, Copy(q, p, b));
            EXPECT_EQ(CUDA_SUCCESS, cuStreamSynchronize(b));
            EXPECT_EQ(CUDA_SUCCESS, cuEventQuery(event));
            n += Read(q) == 0;
            EXPECT_EQ(CUDA_SUCCESS, cuStreamSynchronize(a));
            EXPECT_EQ(1, Read(p));
        }
        return n;
    };
    EXPECT_GT(stale("overtaken", CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT), 0);
    EXPECT_EQ(stale("overtaken", CU_LAUNCH_ATTRIBUTE_IGNORE), 0);
    EXPECT_EQ(stale("add_blocks", CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT), 0) << "no trigger";
    EXPECT_GT(stale("add_blocks", CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT), 0);
    EXPECT_EQ(CUDA_SUCCESS, cuEventDestroy(event));
}

TEST_F(Weak, AProgrammaticLaunchThatDoesNotWaitReadsStaleBytes) {
    ASSERT_EQ(0, kSet);
    EXPECT_GT(Stale("copy", true, false), 0);
    EXPECT_GT(Stale("copy", true, true), 0);
}

TEST_F(Weak, OneThatWaitsDoesNot) {
    EXPECT_EQ(0, Stale("copy_behind", true, false));
    EXPECT_EQ(0, Stale("copy_behind", true, true));
}

TEST_F(Weak, NorDoesOneWithoutTheAttribute) {
    EXPECT_EQ(0, Stale("copy", false, false));
    EXPECT_EQ(0, Stale("copy", false, true));
}

TEST_F(Weak, AKernelThatDoesNotTriggerIsNotOvertaken) {
    Gate gate;
    CUstream s = Stream();
    CUdeviceptr p = Alloc(4, 1), q = Alloc(4, 0);
    CU_OK(Wait(gate, s));
    CU_OK(Launch("copy", s, {&q, &p}, true));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_EQ(0, Peek(reinterpret_cast<int *>(q)));
    gate.Open();
    EXPECT_EQ(1, Read(q));
}

// In a stream all else waits for the kernels that overlap, the first one too.
TEST_F(Weak, WhatFollowsWaitsForBothKernels) {
    Gate gate;
    CUstream s = Stream();
    CUevent e;
    CUdeviceptr p = Alloc(4, 1), q = Alloc(4, 0), r = Alloc(4, 0);
    auto *flag = gate.flag();
    CU_OK(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
    CU_OK(Launch("overtaken_at_gate", s, {&flag}));
    CU_OK(Launch("copy", s, {&q, &p}, true));
    CU_OK(cuEventRecord(e, s));
    CU_OK(Launch("copy", s, {&r, &q}));
    while (Peek(reinterpret_cast<int *>(q)) == 0) // overtakes the first, which waits for us
        std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    CU_EXPECT(CUDA_ERROR_NOT_READY, cuEventQuery(e));
    EXPECT_EQ(0, Peek(reinterpret_cast<int *>(r)));
    gate.Open();
    CU_OK(cuEventSynchronize(e));
    EXPECT_EQ(1, Read(r));
}

TEST_F(Weak, AStreamIsDestroyedWhileItsKernelsOverlap) {
    Gate gate;
    CUstream s = Stream();
    CUdeviceptr p = Alloc(4, 1), q = Alloc(4, 0);
    auto *flag = gate.flag();
    CU_OK(Launch("overtaken_at_gate", s, {&flag}));
    CU_OK(Launch("copy_behind", s, {&q, &p}, true));
    CU_OK(cuStreamDestroy(s));
    gate.Open();
    EXPECT_EQ(1, Read(q));
}

TEST_F(Weak, BranchesOfAGraphRunAtTheSameTime) {
    Gate gate;
    CUstream s = Stream();
    auto *flag = gate.flag();
    CUgraphExec exec = TwoBranches([&](CUstream a, CUstream b) {
        EXPECT_EQ(CUDA_SUCCESS, Wait(gate, a));
        EXPECT_EQ(CUDA_SUCCESS, Launch("open_gate", b, {&flag}));
    });
    for (int i = 0; i < kRounds; i++) { // whichever begins first
        flag->store(0);
        CU_OK(cuGraphLaunch(exec, s));
        for (int ms = 0; ms < 5000 && cuStreamQuery(s) == CUDA_ERROR_NOT_READY; ms++)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        ASSERT_EQ(CUDA_SUCCESS, cuStreamQuery(s)) << i;
    }
}

TEST_F(Weak, BlocksOfTwoBranchesInterleave) {
    CUdeviceptr x = Alloc(kBlocks * 4), y = Alloc(kBlocks * 4);
    CUstream s = Stream();
    int one = 1;
    CUgraphExec exec = TwoBranches([&](CUstream a, CUstream b) {
        EXPECT_EQ(CUDA_SUCCESS, Launch("add_blocks", a, {&x, &one}, false, kBlocks));
        EXPECT_EQ(CUDA_SUCCESS, Launch("copy_blocks", b, {&y, &x}, false, kBlocks));
    });
    EXPECT_TRUE(Happens([&] {
        int seen[kBlocks];
        EXPECT_EQ(CUDA_SUCCESS, cuGraphLaunch(exec, s));
        EXPECT_EQ(CUDA_SUCCESS, cuStreamSynchronize(s));
        EXPECT_EQ(CUDA_SUCCESS, cuMemcpyDtoH(seen, y, sizeof seen));
        return std::set<int>(seen, seen + kBlocks).size() > 1;
    }));
}

TEST_F(Weak, BlocksRunInManyOrdersAndEachOnce) {
    CUdeviceptr order = Alloc(kBlocks * 4);
    std::set<std::vector<int>> orders;
    for (int i = 0; i < kRounds; i++) {
        std::vector<int> seen(kBlocks);
        CU_OK(Launch("order_of_blocks", nullptr, {&order}, false, kBlocks));
        CU_OK(cuMemcpyDtoH(seen.data(), order, kBlocks * 4));
        EXPECT_EQ(kBlocks, std::set<int>(seen.begin(), seen.end()).size());
        EXPECT_EQ(kBlocks - 1, static_cast<unsigned>(*std::max_element(seen.begin(), seen.end())));
        orders.insert(seen);
    }
    EXPECT_GT(orders.size(), 10u);
}

TEST_F(Weak, ACopyShowsInParts) {
    constexpr int kWords = 1024;
    CUstream s = Stream();
    CUdeviceptr x = Alloc(kWords * 4);
    volatile int *host = nullptr;
    CU_OK(cuMemHostAlloc((void **)&host, kWords * 4, 0));
    cuSimSetDelay(200);
    int value = 0;
    EXPECT_TRUE(Happens([&] {
        EXPECT_EQ(CUDA_SUCCESS, cuMemsetD32Async(x, static_cast<unsigned>(++value), kWords, s));
        EXPECT_EQ(CUDA_SUCCESS, cuMemcpyDtoHAsync((void *)host, x, kWords * 4, s));
        while (Peek(host + kWords - 1) != value)
            std::this_thread::yield();
        bool in_parts = Peek(host) != value;
        EXPECT_EQ(CUDA_SUCCESS, cuStreamSynchronize(s));
        for (int i = 0; i < kWords; i++)
            EXPECT_EQ(value, host[i]);
        return in_parts;
    }));
}

TEST_F(Weak, EffectsShowBeforeCompletion) {
    CUstream s = Stream();
    volatile int *host = nullptr;
    CU_OK(cuMemHostAlloc((void **)&host, 4, 0));
    cuSimSetDelay(1000);
    int value = 0;
    EXPECT_TRUE(Happens([&] {
        EXPECT_EQ(CUDA_SUCCESS, Write((CUdeviceptr)(uintptr_t)host, ++value, s));
        while (Peek(host) != value)
            std::this_thread::yield();
        std::this_thread::sleep_for(std::chrono::microseconds(400));
        bool early = cuStreamQuery(s) == CUDA_ERROR_NOT_READY;
        EXPECT_EQ(CUDA_SUCCESS, cuStreamSynchronize(s));
        return early;
    }));
}

} // namespace
} // namespace sim
