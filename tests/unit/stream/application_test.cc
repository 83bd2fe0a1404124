// Promise: what the program itself says (shim/include/cusplice.h) holds: nothing of a suspended
// thread is deferred, and a break or a mark of a step stands where it is made.
#include "shim/api/api.h"
#include "tests/unit/stream/engine.h"
#include "tests/unit/stream/events.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <thread>

namespace {

class Application : public Engine {};

TEST_F(Application, NothingOfASuspendedThreadIsDeferred) {
    Teach(stream_);
    ASSERT_EQ(Launch(functions_[0], 100, 0), CUDA_SUCCESS);
    ASSERT_TRUE(driver().journal.empty()) << "deferred";
    cus_engine_suspend(true);
    cus_engine_suspend(true);
    cus_engine_force_break(CUS_CAUSE_APP);
    EXPECT_EQ(driver().journal, std::vector<std::string>{Line("k0", 100, 0)});
    uint64_t passed = Counters().eager_by[CUS_EAGER_PASSTHROUGH];
    cus_engine_suspend(false);
    for (int i = 1; i < 4; i++) {
        ASSERT_EQ(Launch(functions_[i], 100 + i, 0), CUDA_SUCCESS);
        EXPECT_EQ(driver().journal.size(), size_t(1 + i));
    }
    EXPECT_EQ(Counters().eager_by[CUS_EAGER_PASSTHROUGH] - passed, 3u);
    cus_engine_suspend(false);
    cus_engine_suspend(false); // one too many
    Sync();
    driver().journal.clear();
    ASSERT_EQ(Launch(functions_[0], 100, 0), CUDA_SUCCESS);
    EXPECT_TRUE(driver().journal.empty()) << "deferred again";
    Sync();
    ExpectBalance();
}

TEST_F(Application, OpsOfASuspendedThreadGoBehindWhatOthersDefer) {
    Teach(stream_);
    std::thread([&] {
        ASSERT_EQ(Launch(functions_[0], 100, 0), CUDA_SUCCESS);
        ASSERT_TRUE(driver().journal.empty());
    }).join();
    cus_engine_suspend(true);
    ASSERT_EQ(Launch(functions_[5], 1, 2), CUDA_SUCCESS);
    cus_engine_suspend(false);
    EXPECT_EQ(driver().journal, (std::vector<std::string>{Line("k0", 100, 0), Line("k5", 1, 2)}));
}

// HAZARDS B7. A rule may say so of records.
class ApplicationWaits : public Application, public testing::WithParamInterface<const char *> {
  protected:
    static void SetUpTestSuite() {}
    void SetUp() override {
        std::string path = testing::TempDir() + "application.conf";
        std::ofstream(path) << "[rules]\nnever_defer = api:" << GetParam() << "\n";
        fake::Reset();
        ASSERT_TRUE(
            fake::StartEngine({{"CUSPLICE_HOLD_US", "1000000"}, {"CUSPLICE_CONFIG", path}}));
        Application::SetUp();
        fake::TableOfBranches();
    }
    void TearDown() override {
        Application::TearDown();
        fake::EndEngine();
    }
};

TEST_P(ApplicationWaits, ARecordThatMayWaitGoesBehindWhatOthersDefer) {
    Teach(stream_);
    CUstream other = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    fake::Launch(other, functions_[11], 100);
    cus_engine_event_made(fake::Event(0));
    driver().journal.clear();
    std::thread([&] { ASSERT_EQ(Launch(functions_[0], 100, 0), CUDA_SUCCESS); }).join();
    ASSERT_TRUE(driver().journal.empty());
    cus_engine_suspend(true);
    EXPECT_EQ(fake::RecordOn(other, fake::Event(0)), CUDA_SUCCESS);
    cus_engine_suspend(false);
    std::vector<std::string> expected = {fake::RecordLine(fake::Event(0), other)};
    if (GetParam() == std::string("cuEventRecord"))
        expected.insert(expected.begin(), Line("k0", 100, 0));
    EXPECT_EQ(driver().journal, expected);
    Sync();
    ExpectBalance();
}

INSTANTIATE_TEST_SUITE_P(Of, ApplicationWaits,
                         testing::Values("cuEventRecord", "cuMemsetD8Async", "cuStreamWaitEvent"));

TEST_F(Application, AForcedBreakEndsTheRun) {
    Teach(stream_);
    ASSERT_EQ(Launch(functions_[0], 100, 0), CUDA_SUCCESS);
    ASSERT_EQ(Launch(functions_[1], 101, 0), CUDA_SUCCESS);
    uint64_t before = Counters().flushes[CUS_CAUSE_APP];
    cus_engine_force_break(CUS_CAUSE_APP);
    EXPECT_EQ(driver().journal, (std::vector<std::string>{Line("k0", 100, 0), Line("k1", 101, 0)}));
    EXPECT_EQ(Counters().flushes[CUS_CAUSE_APP] - before, 1u);
}

TEST_F(Application, AMarkEndsAStepWithoutAWait) {
    uint64_t steps = Counters().steps;
    for (int step = 0; step < 6; step++) {
        for (int i = 0; i < 12; i++)
            ASSERT_EQ(Launch(functions_[i], 100 + i, 0), CUDA_SUCCESS);
        cus_engine_force_break(CUS_CAUSE_APP);
        cus_engine_step_end(nullptr);
    }
    EXPECT_EQ(Counters().steps - steps, 6u);
    EXPECT_GT(driver().calls["cuGraphLaunch"], 0);
    ExpectBalance();
}

// The thread used the stream last, whoever defers there by now.
TEST_F(Application, AForcedBreakReachesWhatAnotherThreadDefersThere) {
    Teach(stream_);
    ASSERT_EQ(Launch(functions_[11], 1, 2), CUDA_SUCCESS);
    driver().journal.clear();
    std::thread([&] {
        ASSERT_EQ(Launch(functions_[0], 100, 0), CUDA_SUCCESS);
        ASSERT_TRUE(driver().journal.empty());
    }).join();
    cus_engine_force_break(CUS_CAUSE_APP);
    EXPECT_EQ(driver().journal, std::vector<std::string>{Line("k0", 100, 0)});
}

} // namespace
