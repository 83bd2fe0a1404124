// Promise: the submit thread patches and launches a segment while the program goes on, and later
// work finds it launched.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/stream/submitted.h"
#include "tests/unit/stream/waits.h"

namespace {

TEST_F(Submitted, TheProgramGoesOnMeanwhile) {
    StopAt("cuGraphLaunch", false);
    int n = UntilSubmitted();
    ASSERT_GT(n, 0);
    EXPECT_TRUE(driver().journal.empty());
    Ops(n, n + 2 < kOps ? n + 2 : kOps); // deferred, or issued behind it
    Open();
    Sync();
    ExpectAllOut();
    ExpectNothingPends();
    ExpectRight();
    ExpectNothingPends();
}

// The thread that only completed the segment has it to wait for as well.
TEST_F(Submitted, AnOpOfWhoCompletedTheSegmentOnAnotherStreamWaitsForIt) {
    StopAt("cuGraphLaunch", false);
    int n = UntilSubmitted();
    ASSERT_GT(n, 1);
    Open();
    Ops(n, kOps);
    Sync();
    CUstream elsewhere = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    StopAt("cuGraphLaunch", false);
    Ops(0, n - 1);
    std::thread([&] {
        auto test = test_;
        test_ = std::this_thread::get_id();
        Ops(n - 1, n);
        while (!met_)
            usleep(100);
        OpenSoon();
        LaunchOther(elsewhere);
        ExpectAllOut();
        test_ = test;
    }).join();
    Sync();
    ExpectRight();
}

// HAZARDS B13. The handle is another stream by now, and nobody saw the one before go.
TEST_F(Submitted, AnOpOfAStreamThatCameBackComesBehind) {
    StopAt("cuGraphLaunch", false);
    int n = UntilSubmitted();
    ASSERT_GT(n, 0);
    StepEnd();
    cus_stream_ref never = {fake::MakeStream(CU_STREAM_DEFAULT), CUS_ABI_LEGACY};
    cus_engine_stream_gone(&never); // each stream is looked at again
    fake::Of(stream_)->id = 4711;
    OpenSoon();
    Ops(0, 1);
    Join();
    std::string names;
    for (const std::string &line : driver().journal)
        names += line.substr(line.find(' ') + 1, 2);
    std::string wanted;
    for (int i = 0; i < n; i++)
        wanted += "k" + std::to_string(i);
    EXPECT_EQ(names, wanted + "k0");
    ExpectNothingPends();
    fake::ExpectBalance();
}

TEST_F(Submitted, ASynchronisationWaitsForIt) {
    StopAt("cuGraphExecKernelNodeSetParams_v2", false);
    ASSERT_GT(UntilSubmitted(), 0);
    OpenSoon();
    Sync();
    ExpectAllOut();
    ExpectRight();
}

// It does not keep a processor busy for as long as the launch takes.
TEST_F(Submitted, WhoWaitsForLongSleeps) {
    StopAt("cuGraphLaunch", false);
    ASSERT_GT(UntilSubmitted(), 0);
    opener_ = std::thread([this, waits = gettid()] {
        EXPECT_TRUE(Within(20, [waits] { return Waits(waits); }));
        Open();
    });
    Sync();
    ExpectAllOut();
    ExpectRight();
}

// The time of the processor is what is asked, so a loaded machine changes nothing.
TEST_F(Submitted, TheThreadSleepsWhileNothingIsGivenToIt) {
    Ops(0, kOps);
    Sync();
    ASSERT_GT(Counters().submitted, before_.submitted);
    clock_t start = clock();
    usleep(200 * 1000);
    EXPECT_LT(clock() - start, CLOCKS_PER_SEC / 20);
}

TEST_F(Submitted, AnOpThatIsNoPartOfASegmentWaitsForIt) {
    StopAt("cuGraphLaunch", false);
    ASSERT_GT(UntilSubmitted(), 0);
    OpenSoon();
    LaunchOther(stream_);
    ExpectAllOut();
    Sync();
    ExpectRight();
}

TEST_F(Submitted, AnOpOnAnotherStreamOfTheThreadWaitsForIt) {
    CUstream elsewhere = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    StopAt("cuGraphLaunch", false);
    ASSERT_GT(UntilSubmitted(), 0);
    OpenSoon();
    LaunchOther(elsewhere);
    ExpectAllOut();
    Sync();
    ExpectRight();
}

TEST_F(Submitted, TheSegmentBehindItWaitsForIt) {
    StopAt("cuGraphLaunch", false);
    int n = UntilSubmitted();
    ASSERT_GT(n, 0);
    OpenSoon();
    Ops(n, kOps);
    for (int step = 0; step < 3; step++)
        Ops(0, kOps);
    Sync();
    ExpectAllOut();
    ExpectRight();
}

// A loop that never waits is one segment, again and again: what its ops are compared with, and
// where they are put, is what was submitted a moment ago, whether that was begun meanwhile or not.
TEST_F(Submitted, TheSegmentItselfGoesOnFromWhatItSubmitted) {
    CUstream before = Elsewhere();
    uint64_t submit = Counters().submitted;
    for (int turn = 0; turn < 20000; turn++)
        for (int i = 0; i < 3; i++)
            Op(i, turn % 3 == i ? value_ : ++value_); // some as before, in turn
    Sync();
    EXPECT_GT(Counters().submitted - submit, 100u);
    ExpectEachAsAsked();
    stream_ = before;
    ExpectRight();
}

// So does one that begins as the one does for which it was taken.
TEST_F(Submitted, TheSegmentThatItTurnsOutToBeGoesOnFromWhatItSubmitted) {
    CUstream before = Elsewhere();
    uint64_t submit = Counters().submitted, diverged = Counters().eager_by[CUS_EAGER_DIVERGED];
    const int kWays[][4] = {{0, 1, 2, 3}, {0, 1, 4, 5}};
    std::minstd_rand random(7);
    for (int step = 0; step < 4000; step++) {
        const int *ops = kWays[random() / 64 % 2];
        for (int i = 0; i < 4; i++)
            Op(ops[i], i % 2 ? value_ : ++value_);
        StepEnd();
    }
    Sync();
    EXPECT_GT(Counters().submitted - submit, 3000u);
    EXPECT_LT(Counters().eager_by[CUS_EAGER_DIVERGED] - diverged, 100u) << "they have one head";
    ExpectEachAsAsked();
    stream_ = before;
    ExpectRight();
}

// Of each node it is counted how often it takes another shape, whoever patches it.
TEST_F(Submitted, ShapesThatChangeAreCounted) {
    driver().fail = [](const std::string &) { return CUDA_SUCCESS; };
    const std::set<int> changing = {0, 2, 3}; // at an end of a segment, and in the midst of one
    uint64_t reshaped[kOps] = {};
    uint64_t submit = 0;
    for (unsigned step = 1; step <= 300; step++) {
        if (step == 100) { // it is known how they change
            submit = Counters().submitted;
            for (int i = 0; i < kOps; i++)
                reshaped[i] = Reshaped(i);
        }
        for (int i = 0; i < kOps; i++)
            Op(i, ++value_, changing.count(i) ? step : 1);
        Sync();
    }
    ExpectAllOut();
    EXPECT_GT(Counters().submitted - submit, 200u);
    for (int i = 0; i < kOps; i++)
        EXPECT_EQ(Reshaped(i) - reshaped[i], changing.count(i) ? 201u : 0u) << i;
}

// Patching costs the program nothing here: of sizes that take turns only a few have graphs of their
// own.
TEST_F(Submitted, ManyShapesHaveAFewGraphs) {
    Elsewhere();
    uint64_t submit = Counters().submitted;
    Shapes(8);
    uint64_t built = Counters().built;
    Shapes(40);
    EXPECT_EQ(Counters().built, built) << "though each came 40 times more";
    EXPECT_GT(Counters().submitted - submit, 40u * 24);
    ExpectEachAsAsked();
}

// It does cost the program where the thread is busy elsewhere for long.
TEST_F(Submitted, ManyShapesHaveAGraphEachWhereTheThreadIsAnothers) {
    CUstream other = Elsewhere(), stream = stream_;
    Shapes(48);
    ExpectEachAsAsked();
    uint64_t built = Counters().built, submit = Counters().submitted;
    expected_.clear();
    driver().journal.clear();
    driver().fail = [this](const std::string &name) { return Meet(name); };
    StopAt("cuGraphLaunch", false);
    stream_ = other;
    ASSERT_GT(UntilSubmitted(), 0);
    std::vector<std::string> behind;
    behind.swap(expected_);
    stream_ = stream;
    // A call of the thread that submitted waits for that segment.
    std::thread([this] { Shapes(20); }).join();
    EXPECT_EQ(Counters().built, built) << "for a while that says nothing";
    std::thread([this] { Shapes(40); }).join();
    EXPECT_EQ(Counters().submitted, submit + 1);
    EXPECT_GE(Counters().built - built, 16u);
    Open();
    stream_ = other;
    Sync();
    expected_.insert(expected_.end(), behind.begin(), behind.end());
    ExpectEachAsAsked();
}

// An op of another thread on the legacy stream is ordered behind those of blocking streams.
TEST_F(Submitted, TheLegacyStreamWaitsForIt) {
    StopAt("cuGraphLaunch", false);
    ASSERT_GT(UntilSubmitted(), 0);
    OpenSoon();
    std::thread([this] {
        EXPECT_EQ(fake::Launch(CU_STREAM_LEGACY, other_, 7), CUDA_SUCCESS);
    }).join();
    expected_.push_back("L other(1,7,0)");
    ExpectAllOut();
    Sync();
    ExpectRight();
}

TEST_F(Submitted, CodeThatGoesWaitsForIt) {
    StopAt("cuGraphExecKernelNodeSetParams_v2", false);
    ASSERT_GT(UntilSubmitted(), 0);
    OpenSoon();
    cus_engine_code_gone();
    ExpectAllOut();
    for (int step = 0; step < 8; step++) {
        Ops(0, kOps);
        Sync();
    }
    ExpectRight();
}

TEST_F(Submitted, AStreamThatGoesWaitsForIt) {
    StopAt("cuGraphLaunch", false);
    ASSERT_GT(UntilSubmitted(), 0);
    OpenSoon();
    cus_stream_ref ref = {stream_, CUS_ABI_LEGACY};
    cus_engine_flush(CUS_SCOPE_S, &ref, 7);
    cus_engine_stream_gone(&ref);
    ExpectAllOut();
}

TEST_F(Submitted, WhatOthersCannotSeeIsDroppedBehindIt) {
    StopAt("cuGraphLaunch", false);
    ASSERT_GT(UntilSubmitted(), 0);
    OpenSoon();
    cus_engine_function_changed(functions_[0]); // its graphs are dropped
    ExpectAllOut();
    Sync();
    for (int step = 0; step < 8; step++) {
        Ops(0, kOps);
        Sync();
    }
    ExpectRight();
}

TEST_F(Submitted, AnotherThreadOfTheSameStreamWaitsForIt) {
    StopAt("cuGraphLaunch", false);
    ASSERT_GT(UntilSubmitted(), 0);
    OpenSoon();
    std::thread([this] { LaunchOther(stream_); }).join();
    ExpectAllOut();
    Sync();
    ExpectRight();
}

// A node that is refused each time is demoted; the others go on in graphs.
TEST_F(Submitted, ANodeThatIsRefusedAgainAndAgainIsTheOnlyOneThatIsLeftOut) {
    std::atomic<int> patched{0};
    driver().fail = [&](const std::string &name) {
        if (name == "cuGraphLaunch")
            patched = 0;
        return name == "cuGraphExecKernelNodeSetParams_v2" && ++patched == 3
                   ? (patched = 0, CUDA_ERROR_INVALID_VALUE)
                   : CUDA_SUCCESS;
    };
    for (int step = 0; step < 60; step++) {
        Ops(0, 4);
        Sync();
        ASSERT_EQ(driver().journal, expected_) << step;
    }
    uint64_t before = Counters().in_graphs;
    driver().fail = [](const std::string &) { return CUDA_SUCCESS; };
    for (int step = 0; step < 20; step++) {
        Ops(0, 4);
        Sync();
    }
    ExpectAllOut();
    EXPECT_GT(Counters().in_graphs, before + 20);
}

// Steps of three segments.
class SubmittedParts : public Submitted {
  protected:
    static void SetUpTestSuite() {
        Start({{"CUSPLICE_SEGMENT_FIRST", "4"}, {"CUSPLICE_SEGMENT_MAX", "4"}});
    }
};

// HAZARDS B13. The next op would begin a segment, and finds that the handle is another stream's.
TEST_F(SubmittedParts, AStreamThatHasGoneIsClosedBehindIt) {
    static std::atomic<bool> *open;
    static bool early;
    static int destroyed;
    CUstream other = fake::MakeStream(CU_STREAM_NON_BLOCKING);
    LaunchOther(other);
    StopAt("cuGraphLaunch", false);
    int n = UntilSubmitted();
    ASSERT_EQ(n, 4);
    open = &open_;
    early = false;
    destroyed = 0;
    static decltype(driver().table.cuGraphExecDestroy) destroy;
    destroy = driver().table.cuGraphExecDestroy;
    driver().table.cuGraphExecDestroy = [](CUgraphExec exec) {
        early |= !*open;
        destroyed++;
        return destroy(exec);
    };
    cus_stream_ref gone = {other, CUS_ABI_LEGACY};
    cus_engine_stream_gone(&gone);
    fake::Of(stream_)->id += 1000;
    OpenSoon();
    Ops(n, n + 1);
    Join();
    EXPECT_EQ(destroyed, 3) << "its graphs went with it";
    EXPECT_FALSE(early) << "while one was being launched";
    EXPECT_EQ(driver().journal.size(), expected_.size());
}

// The submit thread does not ask whether a graph may be launched under such a tool (HAZARDS A32).
TEST_F(Submitted, NothingWhileAToolTimesNodes) {
    auto step = [&] {
        uint64_t before = Counters().submitted;
        Ops(0, kOps);
        Sync();
        return Counters().submitted - before;
    };
    EXPECT_GT(step(), 0u);
    cus_engine_nodes_timed(true);
    EXPECT_EQ(step(), 0u);
    cus_engine_nodes_timed(false);
    EXPECT_GT(step(), 0u);
}

TEST_F(Submitted, IsLaunchedBeforeAToolTimesNodes) {
    StopAt("cuGraphLaunch", false);
    ASSERT_GT(UntilSubmitted(), 0);
    OpenSoon();
    cus_engine_nodes_timed(true);
    ExpectAllOut();
    Join();
    cus_engine_nodes_timed(false);
}

} // namespace
