// Promise: a call of class GETTER cuts no segment. It issues what its thread deferred only while a
// thread is in a copy that may sleep in the driver, and everything with a driver that nobody
// measured (HAZARDS F13).
#include "tests/unit/stream/engine.h"

#include <gtest/gtest.h>

#include <thread>

#include "shim/api/api.h"

namespace {

int version;

class Getters : public Engine {
  protected:
    void SetUp() override {
        Engine::SetUp();
        version = CUS_GATE_VERSION;
        driver().table.cuDriverGetVersion = [](int *answer) {
            *answer = version;
            return CUDA_SUCCESS;
        };
        Steps(6);
        driver().journal.clear();
    }
    void TearDown() override {
        Sync();
        Engine::TearDown();
    }
    static void Ask() { cus_engine_getter(CUS_ROW_cuCtxGetLimit); }
};

TEST_F(Getters, CutNoSegment) {
    int graphs = driver().calls["cuGraphLaunch"];
    uint64_t flushes = Counters().flushes[CUS_ROW_cuCtxGetLimit];
    Step();
    int in_a_step = driver().calls["cuGraphLaunch"] - graphs;
    ASSERT_GT(in_a_step, 0);
    for (int i = 0; i < kOps; i++) {
        Launch(i);
        Ask();
    }
    Sync();
    EXPECT_EQ(driver().calls["cuGraphLaunch"] - graphs, 2 * in_a_step);
    EXPECT_EQ(Counters().flushes[CUS_ROW_cuCtxGetLimit], flushes);
    ExpectBalance();
}

TEST_F(Getters, IssueWhatTheirThreadDeferredWhileAThreadCopies) {
    Launch(0);
    Ask();
    EXPECT_TRUE(driver().journal.empty());
    cus_engine_copying(true);
    std::thread(Ask).join();
    EXPECT_TRUE(driver().journal.empty()) << "another thread's ops are none of its business";
    Ask();
    cus_engine_copying(false);
    ASSERT_EQ(driver().journal.size(), 1u);
    EXPECT_EQ(driver().journal[0], Line(0, 0));
}

TEST_F(Getters, IssueEverythingWithADriverThatNobodyMeasured) {
    Launch(0);
    version = CUS_GATE_VERSION + 10;
    std::thread(Ask).join();
    EXPECT_EQ(driver().journal.size(), 1u);
    Sync();
    driver().journal.clear();
    Launch(0);
    driver().table.cuDriverGetVersion = nullptr;
    std::thread(Ask).join();
    EXPECT_EQ(driver().journal.size(), 1u);
}

} // namespace
