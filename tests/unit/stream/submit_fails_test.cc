// Promise: if the submit thread cannot launch a segment, its ops are issued one by one in the
// segment's place.
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "tests/unit/stream/submitted.h"

namespace {

class SubmittedFails : public Submitted, public testing::WithParamInterface<const char *> {
  protected:
    static void SetUpTestSuite() { Start({{"CUSPLICE_EAGER", "eager_*"}}); }
    // Of all kernels, once their segments are gone.
    static uint64_t Tallied() {
        unsigned at = 0;
        uint64_t sum = 0;
        for (cus_tally *tally = nullptr; (tally = cus_tally_next(tally, &at));)
            sum += tally->in_graphs;
        return sum;
    }
    void TearDown() override {
        Submitted::TearDown();
        EXPECT_EQ(Tallied(), Counters().in_graphs);
    }
    void ExpectCounted() {
        cus_counters now = Counters();
        bool patch = GetParam() != std::string("cuGraphLaunch");
        auto why = patch ? CUS_FALLBACK_SETPARAMS : CUS_FALLBACK_GRAPH_LAUNCH;
        EXPECT_EQ(now.fallbacks[why], before_.fallbacks[why] + 1);
        EXPECT_EQ(now.fallbacks[CUS_FALLBACK_LATE_ERROR],
                  before_.fallbacks[CUS_FALLBACK_LATE_ERROR]);
    }
};

TEST_P(SubmittedFails, ItGoesOutOpByOp) {
    StopAt(GetParam(), true);
    int n = UntilSubmitted();
    ASSERT_GT(n, 0);
    Open();
    Sync();
    ExpectAllOut();
    ExpectCounted();
    EXPECT_EQ(Counters().submitted, before_.submitted) << "it counts as none";
    ExpectRight();
}

TEST_P(SubmittedFails, ItGoesOutInFrontOfWhatIsDeferredThen) {
    StopAt(GetParam(), true);
    int n = UntilSubmitted();
    ASSERT_GT(n, 0);
    OpenSoon();
    Ops(n, kOps);
    for (int step = 0; step < 3; step++)
        Ops(0, kOps);
    Sync();
    ExpectAllOut();
    ExpectCounted();
    ExpectRight();
}

TEST_P(SubmittedFails, ItGoesOutInFrontOfAnotherOp) {
    StopAt(GetParam(), true);
    int n = UntilSubmitted();
    ASSERT_GT(n, 0);
    OpenSoon();
    LaunchOther(stream_);
    ExpectAllOut();
    Sync();
    ExpectCounted();
    ExpectRight();
    EXPECT_EQ(Counters().eager_by[CUS_EAGER_UNSUPPORTED],
              before_.eager_by[CUS_EAGER_UNSUPPORTED] + n)
        << "the segment goes out in a graph when it comes again";
}

// The step has ended by the time at which that is known. Half of each step was in a graph.
TEST_P(SubmittedFails, TheNextStepIsNotTakenForOneInGraphs) {
    enum { STEP = 4 }; // ops: one segment
    stream_ = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    CUfunction eager = fake::MakeFunction("eager_one");
    auto alone = [&] {
        for (int i = 0; i < STEP; i++)
            ASSERT_EQ(fake::Launch(stream_, eager, 1), CUDA_SUCCESS);
    };
    for (int i = 0; i < 8; i++) {
        alone();
        Ops(0, STEP);
        Sync();
    }
    StopAt(GetParam(), true);
    uint64_t submitted = Counters().submitted;
    alone();
    Ops(0, STEP);
    ASSERT_EQ(Counters().submitted, submitted + 1);
    while (!met_)
        usleep(100);
    StepEnd();
    Open();
    alone();
    alone();
    EXPECT_EQ(Counters().submitted, submitted) << "it is known now";
    Sync();
    EXPECT_EQ(last_engine_covered(), 0u);
}

// The segment begins again before it is known that it failed: what is deferred of it is not lost.
TEST_P(SubmittedFails, TheSegmentThatHasBegunAgainGoesOutBehindIt) {
    enum { STEP = 4 }; // ops: one segment
    stream_ = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    for (int n = 1; n <= STEP; n++) {
        stops_at_ = "";
        cus_engine_code_gone(); // what was learned of the last round
        for (int step = 0; step < 8; step++) {
            Ops(0, STEP);
            Sync();
        }
        driver().journal.clear();
        expected_.clear();
        StopAt(GetParam(), true);
        Ops(0, STEP);
        while (!met_)
            usleep(100);
        StepEnd();
        Ops(0, n < STEP ? n : STEP - 1);
        EXPECT_TRUE(driver().journal.empty());
        OpenSoon();
        if (n == STEP)
            Ops(STEP - 1, STEP);
        Sync();
        ExpectAllOut();
    }
    stops_at_ = "";
    for (int step = 0; step < 8; step++) {
        Ops(0, STEP);
        Sync();
    }
    ExpectAllOut();
}

// What comes next is just what the graph was to hold, and does not.
TEST_P(SubmittedFails, TheSegmentThatComesAgainAsItIsGoesOutAsItIs) {
    enum { STEP = 4 }; // ops: one segment
    stream_ = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    for (int step = 0; step < 8; step++) {
        Ops(0, STEP);
        Sync();
    }
    StopAt(GetParam(), true);
    for (int i = 0; i < STEP; i++)
        Op(i, 777);
    while (!met_)
        usleep(100);
    StepEnd();
    OpenSoon();
    for (int step = 0; step < 4; step++) {
        for (int i = 0; i < STEP; i++)
            Op(i, 777);
        step ? Sync() : StepEnd();
    }
    ExpectAllOut();
}

TEST_P(SubmittedFails, WhatFailsThenIsHeardOfLater) {
    StopAt(GetParam(), true);
    ASSERT_GT(UntilSubmitted(), 0);
    fails_issued_ = true;
    Open();
    Sync();
    fails_issued_ = false;
    cus_stream_ref ref = {stream_, CUS_ABI_LEGACY};
    EXPECT_EQ(cus_engine_take_error(&ref, 7), CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
    EXPECT_EQ(cus_engine_take_error(&ref, 7), CUDA_SUCCESS);
}

// Nobody can issue it any more: the program hears of it.
TEST_P(SubmittedFails, WhereItsContextIsDeadItIsLost) {
    StopAt(GetParam(), true);
    ASSERT_GT(UntilSubmitted(), 0);
    OpenSoon();
    LoseContext([] { cus_engine_flush(CUS_SCOPE_P, nullptr, 0); });
    Join();
    EXPECT_TRUE(driver().journal.empty());
    cus_stream_ref ref = {stream_, CUS_ABI_LEGACY};
    EXPECT_EQ(cus_engine_take_error(&ref, 7), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    ExpectNothingPends();
}

// It was launched before: nothing of it is lost.
TEST_P(SubmittedFails, WhereItsContextDiedBehindItsLaunchNoErrorIsTold) {
    StopAt(GetParam(), false);
    ASSERT_GT(UntilSubmitted(), 0);
    OpenSoon();
    LoseContext([] { cus_engine_flush(CUS_SCOPE_P, nullptr, 0); });
    Join();
    EXPECT_EQ(driver().journal, expected_);
    cus_stream_ref ref = {stream_, CUS_ABI_LEGACY};
    EXPECT_EQ(cus_engine_take_error(&ref, 7), CUDA_SUCCESS);
    ExpectNothingPends();
}

INSTANTIATE_TEST_SUITE_P(Of, SubmittedFails,
                         testing::Values("cuGraphExecKernelNodeSetParams_v2", "cuGraphLaunch"),
                         [](const auto &info) {
                             return std::string(info.param) == "cuGraphLaunch" ? "Launch" : "Patch";
                         });

} // namespace
