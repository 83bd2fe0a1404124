// Promise: an eager op is recorded before it is issued. The engine stays right if that op fails,
// and if a signal handler or another thread launches, waits or destroys meanwhile.
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <thread>

#include "tests/unit/stream/program.h"

namespace {

using fake::Counters;
using fake::driver;

// Each test is run with graphs, and where there are none (BUILD).
class Failing : public fake::ProgramTest {
  protected:
    static void SetUpTestSuite() {
        setenv("CUSPLICE_HOLD_US", "1000000", 1);
        fake::Reset();
        ASSERT_TRUE(cus_engine_start(&driver().table));
    }
    void SetUp() override {
        ProgramTest::SetUp();
        driver().fail = [this](const std::string &name) {
            const auto *meanwhile = failing_;
            if (name != "cuLaunchKernel" || !meanwhile)
                return CUDA_SUCCESS;
            failing_ = nullptr;
            (*meanwhile)();
            return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
        };
        for (int i = 0; i < 12; i++)
            Launch(i);
        Sync();
        before_ = Counters();
    }

    // The launch fails; while it is in the driver, `meanwhile` happens.
    CUresult Fail(
        int i, const std::function<void()> &meanwhile = [] {}) {
        failing_ = &meanwhile;
        CUresult result = Launch(i);
        failing_ = nullptr;
        return result;
    }
    uint64_t Ended() { return Counters().steps - before_.steps; }
    // Steps of all functions run in graphs, unless there are none, and as they were asked for.
    void ExpectRight() {
        ASSERT_NO_FATAL_FAILURE(Steps(6));
        EXPECT_EQ(driver().calls["cuGraphLaunch"] > 0, !without_graphs_);
        fake::ExpectBalance();
    }

    const bool without_graphs_ = getenv("CUSPLICE_MODE");
    const std::function<void()> *failing_ = nullptr;
    cus_counters before_;
};

TEST_F(Failing, AnErrorComesBackAndIsNoStep) {
    EXPECT_EQ(Fail(3), CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
    Sync();
    EXPECT_EQ(Ended(), 0u);
    ExpectRight();
}

TEST_F(Failing, AStepThatEndsMeanwhileIsOne) {
    EXPECT_EQ(Fail(0,
                   [&] {
                       EXPECT_EQ(Launch(1), CUDA_SUCCESS);
                       Sync();
                   }),
              CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
    Sync();
    EXPECT_EQ(Ended(), 1u);
    ExpectRight();
}

TEST_F(Failing, AnotherFailsMeanwhile) {
    EXPECT_EQ(Fail(0, [&] { EXPECT_EQ(Fail(0), CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES); }),
              CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
    Sync();
    EXPECT_EQ(Ended(), 0u);
    ExpectRight();
}

TEST_F(Failing, AnotherThreadGoesOnMeanwhile) {
    EXPECT_EQ(Fail(0,
                   [&] {
                       std::thread([&] {
                           for (int i = 1; i < 12; i++)
                               EXPECT_EQ(Launch(i), CUDA_SUCCESS);
                           Sync();
                           EXPECT_EQ(Launch(0), CUDA_SUCCESS);
                       }).join();
                   }),
              CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
    Sync();
    ExpectRight();
}

TEST_F(Failing, TheStreamGoesMeanwhileAndItsObjectIsAnothers) {
    EXPECT_EQ(Fail(0,
                   [&] {
                       cus_stream_ref ref = {stream_, CUS_ABI_LEGACY};
                       cus_engine_stream_gone(&ref);
                       stream_ = fake::MakeStream(CU_STREAM_NON_BLOCKING);
                       EXPECT_EQ(Launch(1), CUDA_SUCCESS);
                   }),
              CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
    Sync();
    EXPECT_EQ(Ended(), 1u);
    ExpectRight();
}

TEST_F(Failing, ItsCodeGoesMeanwhile) {
    EXPECT_EQ(Fail(0, [&] { cus_engine_code_gone(); }), CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
    Sync();
    ExpectRight();
}

// All that was learned goes, the stream is the same.
TEST_F(Failing, MemoryRunsOutMeanwhile) {
    EXPECT_EQ(Fail(0, [&] { cus_engine_give_memory_back(0); }), CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
    Sync();
    ExpectRight();
}

TEST_F(Failing, TheProgramCapturesMeanwhile) {
    EXPECT_EQ(Fail(0, [&] { fake::Of(stream_)->program_captures = true; }),
              CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
    for (int i = 0; i < 12; i++)
        EXPECT_EQ(Launch(i), CUDA_SUCCESS);
    fake::Of(stream_)->program_captures = false;
    Sync();
    ExpectRight();
}

} // namespace
