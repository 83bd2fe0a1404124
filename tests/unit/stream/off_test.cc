// Promise: once deferral is switched off, no op stays deferred, even if a thread was about to defer
// one.
#include "tests/unit/stream/events.h"
#include "tests/unit/stream/program.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <thread>

namespace {

using fake::driver;

std::atomic<bool> pause_at_query;
std::atomic<bool> paused;

class Off : public testing::Test {
  protected:
    void TearDown() override { fake::EndEngine(); }
};

TEST_F(Off, SwitchesThatPromiseCompletionForbidDeferring) {
    fake::Reset();
    for (const char *name :
         {"CUDA_LAUNCH_BLOCKING", "CUDA_DEVICE_WAITS_ON_EXCEPTION",
          "CUDA_ENABLE_COREDUMP_ON_EXCEPTION", "CUDA_ENABLE_USER_TRIGGERED_COREDUMP"}) {
        EXPECT_FALSE(fake::StartEngine({{name, "1"}})) << name;
        fake::EndEngine();
        EXPECT_TRUE(fake::StartEngine({{name, "0"}})) << name;
        fake::EndEngine();
    }
}

TEST_F(Off, AWaitForARecordFromBeforeIsTheProgramsOwn) {
    fake::Reset();
    fake::TableOfBranches();
    ASSERT_TRUE(fake::StartEngine({}));
    cus_engine_event_made(fake::Event(0));
    CUstream stream = fake::MakeStream(CU_STREAM_NON_BLOCKING),
             other = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    fake::Launch(stream, fake::MakeFunction("k"), 1);
    EXPECT_EQ(fake::RecordOn(stream, fake::Event(0)), CUDA_SUCCESS);
    cus_engine_defer_off("a test says so");
    driver().journal.clear();
    EXPECT_EQ(fake::WaitOn(other, fake::Event(0)), CUDA_SUCCESS);
    EXPECT_EQ(driver().journal, std::vector<std::string>{fake::WaitLine(fake::Event(0), other)});
}

TEST_F(Off, NothingIsDeferredBehindTheBackOfWhoSwitchesItOff) {
    fake::Reset();
    // The last thing that is asked before ops are deferred.
    driver().table.cuStreamIsCapturing = [](CUstream, CUstreamCaptureStatus *status) {
        if (pause_at_query.exchange(false)) {
            paused = true;
            usleep(200 * 1000);
        }
        *status = CU_STREAM_CAPTURE_STATUS_NONE;
        return CUDA_SUCCESS;
    };
    ASSERT_TRUE(fake::StartEngine({{"CUSPLICE_HOLD_US", "1000000"}}));
    CUstream stream = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    std::vector<CUfunction> functions = fake::MakeFunctions(8);
    auto launch = [&](int i) { ASSERT_EQ(fake::Launch(stream, functions[i], 1, 2), CUDA_SUCCESS); };
    ASSERT_NO_FATAL_FAILURE(fake::Learn(stream, functions));

    driver().journal.clear();
    pause_at_query = true;
    std::thread off([] {
        while (!paused)
            usleep(100);
        cus_engine_defer_off("a test says so");
    });
    launch(0);
    off.join();
    fake::Sync(stream);
    EXPECT_EQ(driver().journal.size(), 1u);
    launch(1);
    EXPECT_EQ(driver().journal.size(), 2u);
}

} // namespace
