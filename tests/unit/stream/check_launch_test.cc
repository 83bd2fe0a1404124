// Promise: if a closer look could disturb the program, mode verify does not check a graph's launch.
// It counts the launch, and launches the graph all the same.
#include "tests/unit/stream/program.h"

#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <thread>

extern "C" {
#include "shim/verify/gate.h"
#include "shim/verify/report.h"
}

namespace {

using fake::driver;

const int kOps = 12;

class CheckLaunch : public fake::EngineTest {
  protected:
    static void SetUpTestSuite() {
        std::string path = ::testing::TempDir() + "prove.conf";
        std::ofstream(path)
            << "mode = verify\nhold_us = 1000000\n[rules]\nnever_defer = spin_*\neager = eager_*\n";
        fake::Reset();
        ASSERT_TRUE(fake::StartEngine({{"CUSPLICE_CONFIG", path}}));
    }

    void SetUp() override {
        fake::Reset();
        driver().table.cuCtxSynchronize = [] {
            driver().calls["cuCtxSynchronize"]++;
            return CUDA_SUCCESS;
        };
        stream_ = fake::MakeStream(CU_STREAM_NON_BLOCKING);
        other_ = fake::MakeStream(CU_STREAM_NON_BLOCKING);
        functions_ = fake::MakeFunctions(kOps);
        cus_gate_enter();
        for (int step = 0; step < 12; step++)
            Step();
        driver().calls.clear();
        before_ = Counts();
    }

    void TearDown() override {
        cus_engine_flush(CUS_SCOPE_P, nullptr, 0);
        cus_engine_code_gone();
        cus_gate_leave();
    }

    // Not by the hot path: a hook that goes through the gate does not take it.
    CUresult Launch(CUfunction f, CUstream on) {
        fake::Call call(on, f, 1, 2);
        return cus_engine_launch(&call.launch);
    }

    // A step whose graphs are launched while `meanwhile` holds, which is said once the first op is
    // deferred.
    template <class F> void Step(F meanwhile) {
        for (int i = 0; i < kOps; i++) {
            if (i == 1)
                meanwhile();
            ASSERT_EQ(Launch(functions_[i], stream_), CUDA_SUCCESS);
        }
        fake::Sync(stream_);
    }
    void Step() {
        Step([] {});
    }

    static cus_verify_counts Counts() {
        cus_verify_counts counts;
        cus_report_get(&counts);
        return counts;
    }

    // Of the launches since SetUp none was verified, all for this reason, and all were made.
    void ExpectLeft(cus_unverified why) {
        cus_verify_counts now = Counts();
        uint64_t launches = now.launches - before_.launches;
        EXPECT_GT(launches, 0u);
        EXPECT_EQ(now.skipped[why] - before_.skipped[why], launches);
        EXPECT_EQ(now.checked, 0u);
        EXPECT_EQ((uint64_t)driver().calls["cuGraphLaunch"], launches);
    }

    CUstream stream_, other_;
    std::vector<CUfunction> functions_;
    cus_verify_counts before_;
};

// This driver has no modules: as far as that it comes where nothing is in the way.
TEST_F(CheckLaunch, NothingInTheWay) {
    Step();
    ExpectLeft(CUS_UNVERIFIED_DRIVER);
    EXPECT_GT(driver().calls["cuStreamQuery"], 0);
    EXPECT_EQ(Counts().skipped[CUS_UNVERIFIED_NO_MEMORY], 0u) << "from the first graph on";
}

// A stream that captures must not be asked anything, and waiting for its context spoils it.
TEST_F(CheckLaunch, ACaptureOfTheProgram) {
    cus_stream_ref ref = {other_, CUS_ABI_LEGACY};
    Step([&] {
        fake::Of(other_)->program_captures = true;
        cus_engine_capture_began(&ref);
    });
    ExpectLeft(CUS_UNVERIFIED_CAPTURE);
    EXPECT_EQ(driver().calls["cuStreamQuery"], 0);
    EXPECT_EQ(driver().calls["cuCtxSynchronize"], 0);
    fake::Of(other_)->program_captures = false;
    cus_engine_capture_ended(&ref);
}

TEST_F(CheckLaunch, AThreadInTheDriver) {
    std::atomic<int> stage{0};
    std::thread other;
    Step([&] {
        other = std::thread([&] {
            cus_gate_enter();
            stage = 1;
            while (stage != 2)
                std::this_thread::yield();
            cus_gate_leave();
        });
        while (stage != 1)
            std::this_thread::yield();
    });
    stage = 2;
    other.join();
    ExpectLeft(CUS_UNVERIFIED_BUSY);
}

TEST_F(CheckLaunch, AKernelThatMayWaitForOthers) {
    CUfunction spin = fake::MakeFunction("spin_wait");
    fake::Of(other_)->busy = true;
    ASSERT_EQ(Launch(spin, other_), CUDA_SUCCESS);
    driver().calls.clear();
    before_ = Counts();
    Step();
    ExpectLeft(CUS_UNVERIFIED_RUNNING);
    fake::Of(other_)->busy = false;
}

// What does not end in time may be waiting for what comes behind.
TEST_F(CheckLaunch, WorkThatDoesNotEnd) {
    ASSERT_EQ(Launch(functions_[0], other_), CUDA_SUCCESS); // an engine of its own
    driver().calls.clear();
    before_ = Counts();
    fake::Of(other_)->busy = true;
    Step();
    ExpectLeft(CUS_UNVERIFIED_RUNNING);
    fake::Of(other_)->busy = false;
}

// A per-thread stream of another thread cannot be asked, and a wait for the context would be one
// for its work.
TEST_F(CheckLaunch, WorkThatNobodyCanAskFor) {
    std::thread([&] { Launch(functions_[0], CU_STREAM_PER_THREAD); }).join();
    driver().calls.clear();
    before_ = Counts();
    Step();
    ExpectLeft(CUS_UNVERIFIED_RUNNING);
    EXPECT_EQ(driver().calls["cuCtxSynchronize"], 0);
    cus_engine_wait_ended(cus_engine_wait_begins());
}

// All is looked at, whether graphs come of it or not. Here each second launch is eager, so that no
// segment has two ops.
TEST_F(CheckLaunch, AStreamWithoutSegmentsIsNotLeftAlone) {
    CUfunction eager = fake::MakeFunction("eager_attention");
    cus_counters before = fake::Counters();
    for (int step = 0; step < 250; step++) {
        for (int i = 0; i < 100; i++) {
            ASSERT_EQ(Launch(functions_[i % kOps], other_), CUDA_SUCCESS);
            ASSERT_EQ(Launch(eager, other_), CUDA_SUCCESS);
        }
        fake::Sync(other_);
    }
    cus_counters after = fake::Counters();
    EXPECT_EQ(after.in_graphs, before.in_graphs);
    EXPECT_EQ(after.fallbacks[CUS_FALLBACK_DEMOTED], before.fallbacks[CUS_FALLBACK_DEMOTED]);
    EXPECT_EQ(after.eager_by[CUS_EAGER_PASSTHROUGH], before.eager_by[CUS_EAGER_PASSTHROUGH]);
}

} // namespace
