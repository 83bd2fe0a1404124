// Promise: ops that no graph stands for are deferred only if their graph may be built now.
#include "tests/unit/stream/calls.h"
#include "tests/unit/stream/program.h"

#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <thread>

using fake::driver;

namespace {

class Builds : public fake::ProgramTest {
  protected:
    static void SetUpTestSuite() {
        fake::Reset();
        ASSERT_TRUE(fake::StartEngine({{"CUSPLICE_HOLD_US", "1000000"},
                                       {"CUSPLICE_SEGMENT_MAX", "4"},
                                       {"CUSPLICE_BUILD_NODES", "4"}}));
    }
    // How many of a step's launches are deferred when they return.
    int Deferred() {
        int deferred = 0;
        driver().journal.clear();
        for (int i = 0; i < kOps; i++) {
            size_t before = driver().journal.size();
            EXPECT_EQ(Launch(i), CUDA_SUCCESS);
            deferred += driver().journal.size() == before;
        }
        Sync();
        EXPECT_EQ(driver().journal.size(), size_t{kOps});
        return deferred;
    }
    int Built() { return driver().calls["cuGraphInstantiateWithFlags"]; }
};

// Of each segment of four, all but the last launch, which launches the graph.
TEST_F(Builds, OpsAreDeferredSegmentBySegmentAsTheQuotaAllows) {
    EXPECT_EQ(Deferred(), 0);
    EXPECT_EQ(Deferred(), 0);
    for (int segments : {1, 2, 3, 3}) {
        EXPECT_EQ(Deferred(), segments * 3);
        EXPECT_EQ(Built(), segments);
    }
    fake::ExpectBalance();
}

TEST_F(Builds, NothingIsDeferredForAGraphWhileAnotherThreadBuilds) {
    EXPECT_EQ(Deferred(), 0);
    EXPECT_EQ(Deferred(), 0);
    std::promise<void> began, over;
    std::thread other([&] {
        builds_begin();
        began.set_value();
        over.get_future().wait();
        builds_end();
    });
    began.get_future().wait();
    EXPECT_EQ(Deferred(), 0);
    EXPECT_EQ(Built(), 0);
    over.set_value();
    other.join();
    EXPECT_EQ(Deferred(), 3);
    EXPECT_EQ(Built(), 1);
    fake::ExpectBalance();
}

} // namespace
