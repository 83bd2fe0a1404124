// Promise: segments are submitted as long as that saves the program's thread more than it costs. No
// thread waits for a submit thread that has not begun.
#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>
#include <vector>

extern "C" {
#include "shim/stream/submit.h"
}
#include "tests/unit/stream/program.h"

namespace {

// Segments of which so many are submitted, each with such a gain; the others are measured.
struct Played {
    int submit = 0, before = 0; // before: in front of the first one
};
Played Play(cus_submit *submit, int segments, uint64_t alone_ns, int64_t gain_ns) {
    Played played;
    for (int i = 0; i < segments; i++) {
        bool over = cus_submit_pays(submit);
        cus_submit_count(submit, over);
        if (over) {
            played.submit++;
            submit->credit_ns += gain_ns;
        } else {
            played.before += !played.submit;
            cus_submit_took(submit, alone_ns);
        }
    }
    return played;
}

class Pays : public fake::EngineTest {
  protected:
    static void SetUpTestSuite() {
        fake::Reset();
        ASSERT_TRUE(fake::StartEngine({{"CUSPLICE_LOG", "error"}}));
    }
    cus_submit handed_ = {};
};

TEST_F(Pays, SomeAreMeasuredFirstAndOneOfManyLaterOn) {
    Played played = Play(&handed_, 4 + 100 * 257, 20000, 15000);
    EXPECT_EQ(played.before, 4);
    EXPECT_EQ(played.submit, 25600) << "256 of 257";
    EXPECT_EQ(handed_.alone_ns, 20000u);
}

TEST_F(Pays, WhatOneTakesFollowsWhatIsMeasured) {
    Play(&handed_, 100, 20000, 0);
    Play(&handed_, 16000, 40000, 0);
    EXPECT_GT(handed_.alone_ns, 38000u);
    EXPECT_LE(handed_.alone_ns, 40000u);
}

// A thread that had to wait for a processor, or for the GPU, says nothing of the next one.
TEST_F(Pays, OneThatWasHeldUpIsNotBelieved) {
    cus_submit_pays(&handed_);
    cus_submit_took(&handed_, 10000000);
    Play(&handed_, 2, 20000, 0);
    ASSERT_FALSE(cus_submit_pays(&handed_));
    cus_submit_took(&handed_, 10000000);
    EXPECT_EQ(handed_.alone_ns, 20000u);
    EXPECT_EQ(Play(&handed_, 256, 20000, 0).submit, 256);
    ASSERT_FALSE(cus_submit_pays(&handed_));
    cus_submit_took(&handed_, 10000000);
    EXPECT_EQ(handed_.alone_ns, 22500u);
}

TEST_F(Pays, ALossEndsItForAWhileAndThenForLonger) {
    EXPECT_EQ(Play(&handed_, 100, 20000, -50000).submit, 3) << "100 us, and one segment to notice";
    EXPECT_EQ(Play(&handed_, 160, 20000, -50000).submit, 0) << "256 in all, and 4 to measure";
    EXPECT_EQ(Play(&handed_, 60, 20000, -50000).submit, 3);
    EXPECT_EQ(Play(&handed_, 450, 20000, -50000).submit, 0) << "512";
    int often = Play(&handed_, 1 << 20, 20000, -50000).submit;
    EXPECT_GT(often, 3 * 16);
    EXPECT_LT(often, 3 * 32) << "it doubles up to 65536";
}

TEST_F(Pays, MostAreSubmittedThroughARest) {
    for (int i = 0; i < 8; i++) {
        EXPECT_FALSE(cus_submit_mostly(&handed_)) << "4 of which were measured";
        Play(&handed_, 1, 20000, 0);
    }
    for (int i = 0; i < 2000; i++) {
        Play(&handed_, 1, 20000, 0);
        EXPECT_TRUE(cus_submit_mostly(&handed_)) << "those apart that are measured";
    }
    for (int rest = 0; rest < 8; rest++) {
        handed_.credit_ns = -1100000; // once for a millisecond
        Play(&handed_, 260, 20000, 0);
        EXPECT_EQ(handed_.backoff, 0u);
        EXPECT_TRUE(cus_submit_mostly(&handed_)) << rest;
        for (int i = 0; i < 1000; i++)
            Play(&handed_, 1, 20000, 15000); // is paid back
        EXPECT_EQ(handed_.backoffs, 0u);
    }
}

TEST_F(Pays, OneThatIsAtRestForLongHandsNoneOver) {
    Play(&handed_, 5000, 20000, 0);
    EXPECT_TRUE(cus_submit_mostly(&handed_));
    Play(&handed_, 600, 20000, -50000); // 256 and some of 512
    EXPECT_TRUE(cus_submit_mostly(&handed_));
    Play(&handed_, 600, 20000, -50000);
    EXPECT_FALSE(cus_submit_mostly(&handed_));
    Play(&handed_, 5000, 20000, 15000);
    EXPECT_TRUE(cus_submit_mostly(&handed_)) << "again";
}

// A thread that is another stream's most of the time leaves the patching to the program's.
TEST_F(Pays, AFewOfManyAreNotMost) {
    for (int i = 0; i < 4000; i++) {
        cus_submit_count(&handed_, i % 3 == 0);
        EXPECT_FALSE(i > 8 && cus_submit_mostly(&handed_)) << i;
    }
    for (int i = 0; i < 4000; i++)
        cus_submit_count(&handed_, i % 3 != 0);
    EXPECT_TRUE(cus_submit_mostly(&handed_));
}

TEST_F(Pays, AGainMakesUpForWhatWasBefore) {
    Play(&handed_, 100, 20000, -50000);
    Play(&handed_, 400, 20000, -50000);
    Play(&handed_, 2000, 20000, 15000);
    EXPECT_EQ(handed_.backoffs, 0u);
    EXPECT_LE(handed_.credit_ns, 1015000) << "but no gain is kept for ever";
    EXPECT_EQ(Play(&handed_, 1 << 10, 20000, 15000).before, 0);
}

class Measured : public fake::EngineTest {};

TEST_F(Measured, TheProgramsThreadLaunchesSomeGraphsFirst) {
    if (std::thread::hardware_concurrency() < 2)
        GTEST_SKIP() << "nothing is submitted where there is one processor";
    fake::Reset();
    ASSERT_TRUE(fake::StartEngine({{"CUSPLICE_HOLD_US", "1000000"}, {"CUSPLICE_SUBMIT_NS", "1"}}));
    CUstream stream = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    std::vector<CUfunction> functions = fake::MakeFunctions(4);
    cus_counters now = {};
    for (int step = 0; step < 100 && !now.submitted; step++) {
        for (CUfunction f : functions)
            ASSERT_EQ(fake::Launch(stream, f, step), CUDA_SUCCESS);
        now = fake::Counters();
        fake::Sync(stream);
    }
    EXPECT_EQ(now.submitted, 1u);
    EXPECT_GE(now.graph_launches - now.built, 4u + now.submitted);
}

class Wait : public fake::EngineTest {};

// No thread knows of this one, which has no context either: waiting for another would be for ever.
TEST_F(Wait, WhatNobodyHasBegunIsDoneByWhoWaits) {
    fake::Reset();
    ASSERT_TRUE(fake::StartEngine({}));
    fake::driver().table.cuCtxPushCurrent_v2 = [](CUcontext) {
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    };
    cus_submit submit = {};
    submit.n = 3;
    submit.context = (CUcontext)0x77;
    submit.state = CUS_SUBMIT_QUEUED;
    cus_submit_wait(&submit);
    EXPECT_EQ(submit.state, (uint32_t)CUS_SUBMIT_FAILED);
    EXPECT_EQ(submit.refused, 3u) << "no node was";
}

} // namespace
