// Promise: the submit thread patches and launches a segment while the program goes on, and later
// work finds it launched. If the submit thread cannot launch it, its ops are issued one by one in
// its place.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <set>
#include <thread>

#include "tests/unit/stream/engines.h"
#include "tests/unit/stream/program.h"

namespace {

using fake::Counters;
using fake::driver;

constexpr int kOps = 12;

class Submitted : public testing::Test {
  protected:
    static void SetUpTestSuite() {
        setenv("CUSPLICE_HOLD_US", "1000000", 1);
        setenv("CUSPLICE_SUBMIT_NS", "1", 1);
        setenv("CUSPLICE_DEMOTE", "no", 1); // submitted whether that pays or not
        setenv("CUSPLICE_LOG", "error", 1);
        fake::Reset();
        static bool started = cus_engine_start(&driver().table); // a process does so once
        ASSERT_TRUE(started);
    }
    void SetUp() override {
        if (std::thread::hardware_concurrency() < 2)
            GTEST_SKIP() << "nothing is submitted where there is one processor";
        fake::Reset();
        driver().fail = [this](const std::string &name) { return Meet(name); };
        stream_ = fake::MakeStream(CU_STREAM_DEFAULT);
        functions_ = fake::MakeFunctions(kOps);
        other_ = fake::MakeFunction("other");
        LaunchOther(stream_); // no function's first time any more
        for (int step = 0; step < 8; step++) {
            Ops(0, kOps);
            Sync();
        }
        ASSERT_GT(driver().calls["cuGraphLaunch"], 0);
        driver().journal.clear();
        expected_.clear();
        before_ = Counters();
    }
    void TearDown() override {
        Open();
        cus_engine_flush(CUS_SCOPE_P, nullptr, 0);
        cus_engine_code_gone();
    }

    // What each call of the driver meets that is made by another thread than the test's: the one
    // named `stops_at_` waits until the gate is opened, and then fails if it is to.
    CUresult Meet(const std::string &name) {
        if (std::this_thread::get_id() == test_ || name != stops_at_ || met_.exchange(true))
            return fails_issued_ && name == "cuLaunchKernel" ? CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES
                                                             : CUDA_SUCCESS;
        while (!open_)
            usleep(100);
        return fails_ ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    }
    void StopAt(const char *name, bool fails) {
        stops_at_ = name;
        fails_ = fails;
        open_ = met_ = false;
    }
    void Open() { open_ = true; }
    void OpenSoon() {
        opener_ = std::thread([this] {
            usleep(20 * 1000);
            Open();
        });
    }
    void Join() {
        if (opener_.joinable())
            opener_.join();
    }

    // Ops [from, to) of a step, each with other params than ever before.
    void Ops(int from, int to) {
        for (int i = from; i < to; i++)
            Op(i, ++value_);
    }
    void Op(int i, uint64_t value, unsigned grid = 1) {
        ASSERT_EQ(fake::Launch(stream_, functions_[i], value, 0, grid), CUDA_SUCCESS);
        expected_.push_back(fake::Line(stream_, "k" + std::to_string(i), value, 0, grid));
    }
    void LaunchOther(CUstream stream) {
        value_++;
        ASSERT_EQ(fake::Launch(stream, other_, value_), CUDA_SUCCESS);
        expected_.push_back(fake::Line(stream, "other", value_));
    }
    void StepEnd() {
        cus_stream_ref ref = {stream_, CUS_ABI_LEGACY};
        cus_engine_step_end(&ref);
    }
    void Sync() { fake::Sync(stream_); }
    // The ops of a step, one by one, until some have been submitted, and the thread that has them
    // is stopped. Nothing else of the step has been issued then. Returns how many there were.
    int UntilSubmitted() {
        uint64_t submit = Counters().submitted;
        for (int i = 0; i < kOps; i++) {
            Ops(i, i + 1);
            if (Counters().submitted > submit) {
                while (!met_)
                    usleep(100);
                return i + 1;
            }
        }
        return 0;
    }
    static uint64_t Reshaped(int i) {
        return cus_tally_of(("k" + std::to_string(i)).c_str(), true)->reshaped;
    }
    void ExpectAllOut() {
        Join();
        EXPECT_EQ(driver().journal, expected_);
    }
    // From here on all is asked for on a stream of its own, and nothing is stopped. Returns the one
    // before.
    CUstream Elsewhere() {
        CUstream before = stream_;
        driver().fail = [](const std::string &) { return CUDA_SUCCESS; };
        Sync();
        expected_.clear();
        driver().journal.clear();
        stream_ = fake::MakeStream(CU_STREAM_NON_BLOCKING);
        return before;
    }
    // Steps of 24 shapes in turn.
    void Shapes(int rounds) {
        for (int round = 0; round < rounds; round++)
            for (unsigned grid = 1; grid <= 24; grid++) {
                for (int i = 0; i < 4; i++)
                    Op(i, 1000 * grid + i, grid);
                Sync();
            }
    }
    // Of many: the first one that is not.
    void ExpectEachAsAsked() {
        ASSERT_EQ(driver().journal.size(), expected_.size());
        for (size_t i = 0; i < expected_.size(); i++)
            ASSERT_EQ(driver().journal[i], expected_[i]) << i;
    }
    // No stream is looked at for ever, for what it deferred once.
    static void ExpectNothingPends() {
        EXPECT_EQ(last_engine_group_pending(), 0u);
        EXPECT_EQ(last_engine_blocking_pending(), 0u);
    }
    // Steps go on in graphs, and as they were asked for.
    void ExpectRight() {
        stops_at_ = "";
        uint64_t submit = Counters().submitted;
        for (int step = 0; step < 6; step++) {
            Ops(0, kOps);
            Sync();
            ASSERT_EQ(driver().journal, expected_) << "step " << step;
        }
        EXPECT_GT(Counters().submitted, submit);
        fake::ExpectBalance();
    }

    CUstream stream_;
    std::vector<CUfunction> functions_;
    CUfunction other_;
    uint64_t value_ = 0;
    std::vector<std::string> expected_;
    cus_counters before_;
    std::thread::id test_ = std::this_thread::get_id();
    std::string stops_at_;
    std::atomic<bool> open_{true}, met_{false}, fails_{false}, fails_issued_{false};
    std::thread opener_;
};

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

TEST_F(Submitted, ASynchronisationWaitsForIt) {
    StopAt("cuGraphExecKernelNodeSetParams_v2", false);
    ASSERT_GT(UntilSubmitted(), 0);
    OpenSoon();
    Sync();
    ExpectAllOut();
    ExpectRight();
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

class SubmittedFails : public Submitted, public testing::WithParamInterface<const char *> {
  protected:
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
    ASSERT_GT(UntilSubmitted(), 0);
    OpenSoon();
    LaunchOther(stream_);
    ExpectAllOut();
    Sync();
    ExpectCounted();
    ExpectRight();
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
    auto current = driver().table.cuCtxGetCurrent;
    auto push = driver().table.cuCtxPushCurrent_v2;
    driver().table.cuCtxGetCurrent = [](CUcontext *context) {
        *context = nullptr;
        return CUDA_SUCCESS;
    };
    driver().table.cuCtxPushCurrent_v2 = [](CUcontext) { return CUDA_ERROR_CONTEXT_IS_DESTROYED; };
    OpenSoon();
    cus_engine_flush(CUS_SCOPE_P, nullptr, 0);
    Join();
    driver().table.cuCtxGetCurrent = current;
    driver().table.cuCtxPushCurrent_v2 = push;
    EXPECT_TRUE(driver().journal.empty());
    cus_stream_ref ref = {stream_, CUS_ABI_LEGACY};
    EXPECT_EQ(cus_engine_take_error(&ref, 7), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    ExpectNothingPends();
}

INSTANTIATE_TEST_SUITE_P(Of, SubmittedFails,
                         testing::Values("cuGraphExecKernelNodeSetParams_v2", "cuGraphLaunch"),
                         [](const auto &info) {
                             return std::string(info.param) == "cuGraphLaunch" ? "Launch" : "Patch";
                         });

} // namespace
